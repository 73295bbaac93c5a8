/* SPDX-License-Identifier: MIT */
#include "overlays/dispatch/arch.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Digits, then at most one letter: 90, 100a, 120f. */
static bool is_number(const char *s, size_t size)
{
  size_t digits = 0;
  while (digits < size && s[digits] >= '0' && s[digits] <= '9')
    digits++;
  if (digits == 0 || digits > 6)
    return false;
  return digits == size || (digits + 1 == size && s[digits] >= 'a' && s[digits] <= 'z');
}

bool cfs_arch_add(cfs_strings *archs, const char *word, size_t size)
{
  static const char *const prefixes[] = {"sm_", "compute_", "lto_"};
  for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
    size_t n = strlen(prefixes[i]);
    if (size <= n || strncmp(word, prefixes[i], n) != 0 || !is_number(word + n, size - n))
      continue;
    char *name = cfs_strndup(word + n, size - n);
    if (cfs_strings_has(archs, name))
      free(name);
    else
      cfs_strings_take(archs, name);
    return true;
  }
  return false;
}

void cfs_arch_add_all(cfs_strings *archs, const char *text)
{
  static const char separators[] = ", \t\n\"[]=";
  while (*text) {
    size_t size = strcspn(text, separators);
    cfs_arch_add(archs, text, size);
    text += size;
    text += strspn(text, separators);
  }
}

char *cfs_arch_list(const cfs_strings *archs)
{
  cfs_buffer b = {0};
  cfs_buffer_text(&b, "");
  for (size_t i = 0; i < archs->count; i++) {
    const char *join = i == 0 ? "" : i + 1 == archs->count ? " and " : ", ";
    cfs_buffer_format(&b, "%ssm_%s", join, archs->items[i]);
  }
  return b.data;
}
