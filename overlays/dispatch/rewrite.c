/* SPDX-License-Identifier: MIT */
#include "overlays/dispatch/rewrite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strings.h"
#include "overlays/dispatch/trailer.h"

/* What the words for the host compiler or a linker have said so far: "-isystem" may stand in one word and
 * its path in the next. */
enum pending { NOTHING, A_PATH, ANYTHING };

int cfs_rewrite_init(struct cfs_rewrite *ret, const char *root, const char *view)
{
  struct stat st;
  if (stat(root, &st) < 0)
    return -errno;
  *ret = (struct cfs_rewrite){view, st.st_dev, st.st_ino};
  return 0;
}

static bool is_root(const struct cfs_rewrite *rw, const char *path)
{
  struct stat st;
  return stat(path, &st) == 0 && st.st_dev == rw->dev && st.st_ino == rw->ino;
}

/* How much of path names the root: the longest part before a slash or the end that is that directory by
 * device and inode; 0 when none is. */
static size_t root_length(const struct cfs_rewrite *rw, const char *path)
{
  cleanup_free char *part = cfs_strdup(path);
  for (size_t n = strlen(path); n > 0; n--) {
    if (n > 1 && path[n - 1] == '/')
      continue;
    if (path[n] != '\0' && path[n] != '/')
      continue;
    part[n] = '\0';
    if (is_root(rw, part))
      return n;
  }
  return 0;
}

static char *move(const struct cfs_rewrite *rw, const char *path, size_t root)
{
  const char *rest = path + root;
  while (*rest == '/')
    rest++;
  /* Already in a view, or one of ours that views do not have. */
  if (strncmp(rest, CFS_DOT_DIR, strlen(CFS_DOT_DIR)) == 0)
    return NULL;
  const char *slash = path[root - 1] == '/' ? "" : "/";
  char *moved = cfs_format("%.*s%s%s%s%s", (int)root, path, slash, rw->view, *rest ? "/" : "", rest);
  if (access(moved, F_OK) < 0)
    return free(moved), NULL;
  return moved;
}

char *cfs_rewrite_path(const struct cfs_rewrite *rw, const char *path)
{
  struct stat st;
  if (!*path)
    return NULL;
  size_t root = root_length(rw, path);
  if (root)
    return move(rw, path, root);
  /* A link or a working directory inside the root leads there without passing it by name. */
  if (stat(path, &st) < 0 || st.st_dev != rw->dev)
    return NULL;
  cleanup_free char *real = realpath(path, NULL);
  root = real ? root_length(rw, real) : 0;
  return root ? move(rw, real, root) : NULL;
}

char *cfs_rewrite_list(const struct cfs_rewrite *rw, const char *list, char separator)
{
  cleanup_buffer cfs_buffer b = {0};
  bool changed = false;
  for (const char *at = list;; at++) {
    const char *end = strchrnul(at, separator);
    cleanup_free char *element = cfs_strndup(at, (size_t)(end - at));
    cleanup_free char *moved = cfs_rewrite_path(rw, element);
    changed |= moved != NULL;
    cfs_buffer_text(&b, moved ? moved : element);
    if (!*end)
      break;
    cfs_buffer_add(&b, end, 1);
    at = end;
  }
  return changed ? TAKE_PTR(b.data) : NULL;
}

static bool is_one_of(const char *word, const char *const *list)
{
  for (; *list; list++)
    if (strcmp(word, *list) == 0)
      return true;
  return false;
}

/* The length of the option at word's start that takes a path without a blank; 0 when it is no such option. */
static size_t before_attached_path(const char *word)
{
  static const char *const prefixes[] = {"-isystem",        "-iquote", "-idirafter", "-include", "-imacros",
                                         "--library-path=", "-I",      "-L",         NULL};
  for (size_t i = 0; prefixes[i]; i++)
    if (cfs_has_prefix(word, prefixes[i]))
      return strlen(prefixes[i]);
  return 0;
}

/* One word for the host compiler or a linker: what it becomes, or NULL when it stays. */
static char *rewrite_token(const struct cfs_rewrite *rw, const char *word, enum pending *pending)
{
  static const char *const path_next[] = {"-I",       "-isystem", "-iquote",        "-idirafter", "-include",
                                          "-imacros", "-L",       "--library-path", NULL};
  static const char *const any_next[] = {"-o", "-MF",    "-MT",     "-MQ",         "-D",           "-U",
                                         "-x", "-rpath", "--rpath", "-rpath-link", "--rpath-link", "-soname",
                                         "-h", "-Map",   "-z",      NULL};
  enum pending before = *pending;
  *pending = is_one_of(word, path_next) ? A_PATH : is_one_of(word, any_next) ? ANYTHING : NOTHING;
  if (before != NOTHING) {
    *pending = NOTHING;
    return before == A_PATH ? cfs_rewrite_path(rw, word) : NULL;
  }
  if (*pending != NOTHING)
    return NULL;
  size_t option = before_attached_path(word);
  if (!option)
    return word[0] != '-' && strchr(word, '/') ? cfs_rewrite_path(rw, word) : NULL;
  cleanup_free char *moved = cfs_rewrite_path(rw, word + option);
  return moved ? cfs_format("%.*s%s", (int)option, word, moved) : NULL;
}

/* A value of -Xcompiler, -Xlinker: words parted by commas or blanks, perhaps quoted or escaped. */
static char *rewrite_tokens(const struct cfs_rewrite *rw, const char *text, enum pending *pending)
{
  static const char separators[] = ", \t\n\"'\\";
  cleanup_buffer cfs_buffer b = {0};
  cfs_buffer_text(&b, "");
  while (*text) {
    size_t gap = strspn(text, separators);
    cfs_buffer_add(&b, text, gap);
    text += gap;
    size_t size = strcspn(text, separators);
    if (!size)
      break;
    cleanup_free char *word = cfs_strndup(text, size);
    cleanup_free char *moved = rewrite_token(rw, word, pending);
    cfs_buffer_text(&b, moved ? moved : word);
    text += size;
  }
  return TAKE_PTR(b.data);
}

static char *rewrite_value(const struct cfs_rewrite *rw, const struct cfs_item *item, enum pending *host,
                           enum pending *link)
{
  if (item->match.unknown)
    return rewrite_tokens(rw, item->value, host);
  if (!item->match.option)
    return cfs_rewrite_path(rw, item->value);
  switch (item->match.option->role) {
  case CFS_ROLE_PATHS:
    return cfs_rewrite_list(rw, item->value, ',');
  case CFS_ROLE_HOST:
    return rewrite_tokens(rw, item->value, host);
  case CFS_ROLE_LINK:
    return rewrite_tokens(rw, item->value, link);
  default:
    return NULL;
  }
}

void cfs_rewrite_command(const struct cfs_rewrite *rw, cfs_command *c)
{
  enum pending host = NOTHING, link = NOTHING;
  struct cfs_item item;
  for (size_t at = 0; cfs_command_next(c, &at, &item);) {
    cleanup_free char *value = item.value ? rewrite_value(rw, &item, &host, &link) : NULL;
    if (!value)
      continue;
    char **text = &c->words[item.word].text;
    char *whole = cfs_format("%.*s%s", (int)(item.value - *text), *text, value);
    free(*text);
    *text = whole;
  }
}
