/* SPDX-License-Identifier: MIT */
#include "overlays/dispatch/words.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"

static void take(cfs_strings *words, cfs_buffer *word)
{
  cfs_strings_take(words, TAKE_PTR(word->data));
  *word = (cfs_buffer){0};
}

int cfs_words_split_flags(cfs_strings *words, const char *text)
{
  cleanup_buffer cfs_buffer word = {0};
  bool quoted = false;
  for (; *text; text++) {
    if (*text == '\\')
      return -EINVAL;
    if (*text == '"')
      quoted = !quoted;
    if (quoted || !strchr(" \t\r\n", *text))
      cfs_buffer_add(&word, text, 1);
    else if (word.data)
      take(words, &word);
  }
  if (word.data)
    take(words, &word);
  return quoted ? -EINVAL : 0;
}

int cfs_words_split_file(cfs_strings *words, const char *text, size_t size)
{
  cleanup_buffer cfs_buffer word = {0};
  bool quoted = false;
  if (memchr(text, '\0', size))
    return -EINVAL;
  for (const char *end = text + size; text < end; text++) {
    if (*text == '"') {
      /* "" alone is an empty word, so a quote begins one. */
      cfs_buffer_text(&word, "");
      quoted = !quoted;
    } else if (*text == '\\' && text + 1 < end) {
      cfs_buffer_add(&word, ++text, 1);
    } else if (quoted || !strchr(" \t\r\n", *text)) {
      cfs_buffer_add(&word, text, 1);
    } else if (word.data) {
      take(words, &word);
    }
  }
  if (word.data)
    take(words, &word);
  return quoted ? -EINVAL : 0;
}

void cfs_words_quote(cfs_buffer *b, const char *word)
{
  if (!*word)
    cfs_buffer_text(b, "\"\"");
  for (; *word; word++) {
    if (strchr(" \t\r\n\"\\", *word))
      cfs_buffer_text(b, "\\");
    cfs_buffer_add(b, word, 1);
  }
}
