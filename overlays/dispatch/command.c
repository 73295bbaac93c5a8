/* SPDX-License-Identifier: MIT */
#include "overlays/dispatch/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "overlays/dispatch/input.h"
#include "overlays/dispatch/words.h"

/* NVIDIA's engine gives up at the 16th file ("Too many options file opened"), nested or not; the limits on
 * number and size only end what it would never get through. */
#define MAX_DEPTH 15
#define MAX_FILES 256
#define MAX_SIZE  (64 * 1024 * 1024)

static void push(cfs_command *c, enum cfs_origin origin, const char *text)
{
  if ((c->count & (c->count - 1)) == 0)
    c->words = cfs_grow(c->words, c->count ? c->count * 2 : 1, sizeof(*c->words));
  c->words[c->count++] = (struct cfs_word){cfs_strdup(text), origin};
}

static void expand(cfs_command *c, const cfs_command *in, unsigned depth);

static bool read_words(cfs_command *c, const char *path, cfs_strings *words)
{
  cleanup_free char *text = NULL;
  size_t size;
  if (++c->files > MAX_FILES || cfs_input_read(path, MAX_SIZE, &text, &size) < 0)
    return false;
  return cfs_words_split_file(words, text, size) == 0;
}

static void expand_file(cfs_command *c, const char *path, enum cfs_origin origin, unsigned depth)
{
  cleanup_strings cfs_strings words = {0};
  if (depth > MAX_DEPTH || !read_words(c, path, &words)) {
    c->broken = true;
    return;
  }
  cleanup_command cfs_command inner = {.table = c->table};
  for (size_t i = 0; i < words.count; i++)
    push(&inner, origin, words.items[i]);
  expand(c, &inner, depth);
}

static void expand_files(cfs_command *c, const char *list, enum cfs_origin origin, unsigned depth)
{
  cleanup_strings cfs_strings paths = {0};
  cfs_strings_split(&paths, list, ",");
  c->has_files[origin] = true;
  for (size_t i = 0; i < paths.count && !c->broken; i++)
    expand_file(c, paths.items[i], origin, depth + 1);
}

/* Whether the option at word i takes word i + 1, whatever that looks like. */
static bool takes_next(const struct cfs_match *m, const cfs_command *c, size_t i)
{
  if (!m->takes_next || i + 1 >= c->count)
    return false;
  return m->option->kind != CFS_KIND_OPTIONAL || c->words[i + 1].text[0] != '-';
}

/* Copies the words of in to c; a value is copied unseen. */
static void expand(cfs_command *c, const cfs_command *in, unsigned depth)
{
  for (size_t i = 0; i < in->count && !c->broken; i++) {
    const struct cfs_word *word = &in->words[i];
    struct cfs_match m = cfs_option_match(c->table, word->text);
    bool two = takes_next(&m, in, i);
    if (m.takes_next && !two && m.option->kind != CFS_KIND_OPTIONAL) {
      c->broken = true;
      return;
    }
    if (m.option && m.option->role == CFS_ROLE_FILE) {
      expand_files(c, two ? in->words[++i].text : m.value, word->origin, depth);
      continue;
    }
    push(c, word->origin, word->text);
    if (two) {
      word = &in->words[++i];
      push(c, word->origin, word->text);
    }
  }
}

static void add_flags(cfs_command *c, enum cfs_origin origin, const char *text)
{
  cleanup_strings cfs_strings words = {0};
  if (!text)
    return;
  if (cfs_words_split_flags(&words, text) < 0)
    c->broken = true;
  for (size_t i = 0; i < words.count; i++)
    push(c, origin, words.items[i]);
}

void cfs_command_read(cfs_command *c, const struct cfs_option_table *table, char *const argv[], const char *prepend,
                      const char *append)
{
  cleanup_command cfs_command flat = {.table = table};
  *c = (cfs_command){.table = table};
  /* One list before anything is matched: the last option of NVCC_PREPEND_FLAGS takes its value from argv. */
  add_flags(&flat, CFS_FROM_PREPEND, prepend);
  for (size_t i = 0; argv[i]; i++)
    push(&flat, CFS_FROM_ARGV, argv[i]);
  add_flags(&flat, CFS_FROM_APPEND, append);
  c->broken = flat.broken;
  expand(c, &flat, 0);
}

bool cfs_command_next(const cfs_command *c, size_t *at, struct cfs_item *ret)
{
  if (*at >= c->count)
    return false;
  const char *text = c->words[*at].text;
  *ret = (struct cfs_item){.match = cfs_option_match(c->table, text), .word = (*at)++};
  ret->value = ret->match.value;
  if (!ret->match.option)
    ret->value = text;
  if (takes_next(&ret->match, c, ret->word)) {
    ret->word = (*at)++;
    ret->value = c->words[ret->word].text;
  }
  return true;
}

void cfs_command_done(cfs_command *c)
{
  for (size_t i = 0; i < c->count; i++)
    free(c->words[i].text);
  free(c->words);
  *c = (cfs_command){0};
}
