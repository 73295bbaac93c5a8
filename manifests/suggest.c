/* SPDX-License-Identifier: MIT */
#include "manifests/suggest.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Longer words are nobody's typing mistake, and the table below is quadratic. */
#define LONGEST 128

static size_t least(size_t a, size_t b)
{
  return a < b ? a : b;
}

size_t cfs_edit_distance(const char *a, const char *b)
{
  size_t n = strlen(a), m = strlen(b);
  if (n > LONGEST || m > LONGEST)
    return strcmp(a, b) == 0 ? 0 : n + m;
  size_t width = m + 1;
  cleanup_free size_t *d = cfs_grow(NULL, (n + 1) * width, sizeof(*d));
  for (size_t j = 0; j <= m; j++)
    d[j] = j;
  for (size_t i = 1; i <= n; i++) {
    d[i * width] = i;
    for (size_t j = 1; j <= m; j++) {
      size_t best = d[(i - 1) * width + j - 1] + (a[i - 1] != b[j - 1]);
      best = least(best, least(d[(i - 1) * width + j], d[i * width + j - 1]) + 1);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        best = least(best, d[(i - 2) * width + j - 2] + 1);
      d[i * width + j] = best;
    }
  }
  return d[n * width + m];
}

void cfs_suggestion_offer(cfs_suggestion *s, const char *choice)
{
  size_t limit = strlen(s->word) / 3 + 1;
  size_t distance = cfs_edit_distance(s->word, choice);
  if (distance > limit || (s->best && distance >= s->distance))
    return;
  s->best = choice;
  s->distance = distance;
}

char *cfs_suggestion_text(const cfs_suggestion *s, const char *otherwise)
{
  return s->best ? cfs_format("did you mean \"%s\"?", s->best) : cfs_strdup(otherwise);
}
