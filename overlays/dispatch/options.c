/* SPDX-License-Identifier: MIT */
#include "overlays/dispatch/options.h"

#include <string.h>

static int compare_name(const char *word, size_t size, const char *name)
{
  int c = strncmp(word, name, size);
  return c ? c : -(name[size] != '\0');
}

static const struct cfs_option *find(const struct cfs_option_table *table, const char *word, size_t size)
{
  size_t low = 0, high = table->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int c = compare_name(word, size, table->options[middle].name);
    if (c == 0)
      return &table->options[middle];
    if (c < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

static bool is_attachable(const struct cfs_option *o)
{
  return o && (o->kind == CFS_KIND_ATTACHED || o->kind == CFS_KIND_GLUED);
}

struct cfs_match cfs_option_match(const struct cfs_option_table *table, const char *word)
{
  struct cfs_match m = {0};
  /* "-" alone is standard input. */
  if (word[0] != '-' || word[1] == '\0')
    return m;
  const char *equals = strchr(word, '=');
  size_t size = equals ? (size_t)(equals - word) : strlen(word);
  m.option = find(table, word, size);
  if (m.option && !(m.option->kind == CFS_KIND_FLAG && equals)) {
    m.value = equals ? equals + 1 : NULL;
    m.takes_next = !equals && m.option->kind != CFS_KIND_FLAG && m.option->kind != CFS_KIND_GLUED;
    return m;
  }
  /* The exact name goes first (-link is no -l), then a short one with its value attached. */
  m.option = size > 2 ? find(table, word, 2) : NULL;
  if (is_attachable(m.option)) {
    m.value = word + 2;
    return m;
  }
  m.option = NULL;
  m.unknown = true;
  return m;
}
