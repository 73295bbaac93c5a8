/* SPDX-License-Identifier: MIT */
#include "overlays/dispatch/launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/dispatch/input.h"
#include "overlays/dispatch/rewrite.h"
#include "overlays/dispatch/trailer.h"
#include "overlays/dispatch/words.h"

/* Beyond this an expanded command goes through an options file in memory: the kernel limits what argv and
 * the environment hold together, and nobody knows how large the environment is. */
#define MAX_ARGV (128 * 1024)

static const char *const flag_variables[CFS_ORIGINS] = {"NVCC_PREPEND_FLAGS", NULL, "NVCC_APPEND_FLAGS"};

static char *view_of(const struct cfs_launch *l)
{
  return cfs_format("%s/%s", CFS_VIEWS_PATH, l->choice->route->release);
}

char *cfs_launch_path(const struct cfs_launch *l)
{
  cleanup_free char *view = view_of(l);
  cleanup_free char *below = cfs_format("%s/bin/%s", view, l->routing->tool);
  return cfs_path_join(l->root, below);
}

static bool is_face(const struct cfs_launch *l)
{
  return l->choice->route == &l->routing->routes[0];
}

static int execute(const char *path, char **argv)
{
  execv(path, argv);
  return -errno;
}

static size_t add_words(cfs_strings *argv, const cfs_command *c, enum cfs_origin origin)
{
  size_t size = 0;
  for (size_t i = 0; i < c->count; i++) {
    if (c->words[i].origin != origin)
      continue;
    cfs_strings_add(argv, c->words[i].text);
    size += strlen(c->words[i].text) + 1;
  }
  return size;
}

/* A flags variable whose options files were expanded cannot take them back, having neither quotes nor
 * escapes: its words then stand in argv, at the end where it would have been. */
static size_t add_flags(cfs_strings *argv, const cfs_command *c, enum cfs_origin origin)
{
  const char *variable = flag_variables[origin];
  cleanup_strings cfs_strings words = {0};
  if (!getenv(variable))
    return 0;
  if (c->has_files[origin]) {
    unsetenv(variable);
    return add_words(argv, c, origin);
  }
  add_words(&words, c, origin);
  cleanup_free char *text = cfs_strings_join(&words, " ");
  setenv(variable, text, 1);
  return 0;
}

/* Replaces argv[1...] by one options file. */
static int shorten(cfs_strings *argv)
{
  cleanup_buffer cfs_buffer b = {0};
  for (size_t i = 1; i < argv->count; i++) {
    cfs_words_quote(&b, argv->items[i]);
    cfs_buffer_text(&b, "\n");
  }
  int fd = cfs_input_memory(b.data, b.size);
  if (fd < 0)
    return fd;
  while (argv->count > 1)
    free(argv->items[--argv->count]);
  cfs_strings_add(argv, "-optf");
  cfs_strings_take(argv, cfs_format("/dev/fd/%d", fd));
  return 0;
}

static int execute_strings(const char *path, cfs_strings *argv)
{
  cleanup_free char **list = cfs_zalloc((argv->count + 1) * sizeof(char *));
  for (size_t i = 0; i < argv->count; i++)
    list[i] = argv->items[i];
  return execute(path, list);
}

/* The host compiler and linker read these as well. */
static void rewrite_variables(const struct cfs_rewrite *rw)
{
  static const char *const variables[] = {"CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"};
  for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
    const char *value = getenv(variables[i]);
    cleanup_free char *moved = value ? cfs_rewrite_list(rw, value, ':') : NULL;
    if (moved)
      setenv(variables[i], moved, 1);
  }
}

/* nvcc finds its world from the folder of argv[0], never from its own place. */
static int launch_nvcc_as_given(const struct cfs_launch *l, const char *path)
{
  cleanup_free char *name = is_face(l) ? cfs_path_join(l->root, "bin/nvcc") : cfs_strdup(path);
  char *own = l->argv[0];
  l->argv[0] = name;
  int r = execute(path, l->argv);
  l->argv[0] = own;
  return r;
}

static int launch_nvcc_view(const struct cfs_launch *l, const char *path)
{
  struct cfs_rewrite rw;
  cleanup_free char *view = view_of(l);
  cleanup_strings cfs_strings argv = {0};
  int r = cfs_rewrite_init(&rw, l->root, view);
  if (r < 0)
    return r;
  cfs_rewrite_command(&rw, l->command);
  rewrite_variables(&rw);
  cfs_strings_add(&argv, path);
  size_t size = add_flags(&argv, l->command, CFS_FROM_PREPEND);
  size += add_words(&argv, l->command, CFS_FROM_ARGV);
  size += add_flags(&argv, l->command, CFS_FROM_APPEND);
  /* Only files can have made it longer; what was given as arguments has already passed the kernel. */
  if (size > MAX_ARGV && l->command->files)
    shorten(&argv);
  return execute_strings(path, &argv);
}

/* libnvvm must be the linker's own release, else device LTO ends in "elfLink nvvm error". */
static int launch_nvlink(const struct cfs_launch *l, const char *path)
{
  cleanup_free char *view = view_of(l);
  cleanup_free char *below = cfs_format("%s/nvvm", view);
  cleanup_free char *nvvm = cfs_path_join(l->root, below);
  cleanup_strings cfs_strings argv = {0};
  struct cfs_item item;
  for (size_t at = 0; cfs_command_next(l->command, &at, &item);) {
    if (!item.match.option || item.match.option->role != CFS_ROLE_NVVM || !item.value)
      continue;
    char **text = &l->command->words[item.word].text;
    char *whole = cfs_format("%.*s%s", (int)(item.value - *text), *text, nvvm);
    free(*text);
    *text = whole;
  }
  cfs_strings_add(&argv, l->argv[0]);
  if (add_words(&argv, l->command, CFS_FROM_ARGV) > MAX_ARGV && l->command->files)
    shorten(&argv);
  return execute_strings(path, &argv);
}

int cfs_launch(const struct cfs_launch *l)
{
  /* nvcc takes these from the environment into its own search paths. */
  unsetenv("INCLUDES");
  unsetenv("SYSTEM_INCLUDES");
  unsetenv("LIBRARIES");
  cleanup_free char *path = cfs_launch_path(l);
  bool nvcc = strcmp(l->routing->tool, "nvcc") == 0;
  if (nvcc && (is_face(l) || l->command->broken))
    return launch_nvcc_as_given(l, path);
  if (nvcc)
    return launch_nvcc_view(l, path);
  if (strcmp(l->routing->tool, "nvlink") == 0 && !is_face(l) && !l->command->broken)
    return launch_nvlink(l, path);
  return execute(path, l->argv);
}
