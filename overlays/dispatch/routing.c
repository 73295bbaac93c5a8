/* SPDX-License-Identifier: MIT */
#include "overlays/dispatch/routing.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "overlays/dispatch/trailer.h"

static bool number_parse(const char **text, int *ret)
{
  const char *s = *text;
  int n = 0;
  for (; *s >= '0' && *s <= '9'; s++) {
    if (n > 99999)
      return false;
    n = n * 10 + (*s - '0');
  }
  if (s == *text)
    return false;
  *text = s;
  *ret = n;
  return true;
}

bool cfs_version_parse(const char *text, int *ret_major, int *ret_minor)
{
  return number_parse(&text, ret_major) && *text++ == '.' && number_parse(&text, ret_minor) && *text == '\0';
}

/* Cuts the next blank-separated word off *text; NULL when none is left. The caller owns it. */
static char *take_word(const char **text)
{
  size_t size = strcspn(*text, " ");
  if (!size)
    return NULL;
  char *word = cfs_strndup(*text, size);
  *text += size;
  if (**text == ' ')
    ++*text;
  return word;
}

static bool take_archs(const char **text, cfs_strings *archs)
{
  cleanup_free char *word = take_word(text);
  if (!word)
    return false;
  cfs_strings_split(archs, word, ",");
  return true;
}

static bool take_ptx(const char **text, struct cfs_ptx_version *ret)
{
  cleanup_free char *word = take_word(text);
  return word && cfs_version_parse(word, &ret->major, &ret->minor);
}

/* A release becomes part of a path, so it must be two numbers and nothing else. */
static bool take_release(const char **text, char **ret, int *ret_major, int *ret_minor)
{
  *ret = take_word(text);
  return *ret && cfs_version_parse(*ret, ret_major, ret_minor);
}

static bool parse_route(cfs_routing *r, const char *rest)
{
  r->routes = cfs_grow(r->routes, r->n_routes + 1, sizeof(*r->routes));
  struct cfs_route *route = &r->routes[r->n_routes++];
  *route = (struct cfs_route){0};
  return take_release(&rest, &route->release, &route->major, &route->minor) && (route->version = take_word(&rest)) &&
         take_ptx(&rest, &route->ptx) && (route->can = take_word(&rest)) && take_archs(&rest, &route->archs);
}

static bool parse_hint(cfs_routing *r, const char *rest)
{
  r->hints = cfs_grow(r->hints, r->n_hints + 1, sizeof(*r->hints));
  struct cfs_route *hint = &r->hints[r->n_hints++];
  *hint = (struct cfs_route){0};
  return take_release(&rest, &hint->release, &hint->major, &hint->minor) && take_ptx(&rest, &hint->ptx) &&
         take_archs(&rest, &hint->archs);
}

static bool parse_avoid(cfs_routing *r, const char *rest)
{
  int major, minor;
  r->avoids = cfs_grow(r->avoids, r->n_avoids + 1, sizeof(*r->avoids));
  struct cfs_avoid *avoid = &r->avoids[r->n_avoids++];
  *avoid = (struct cfs_avoid){0};
  if (!take_release(&rest, &avoid->release, &major, &minor) || !take_archs(&rest, &avoid->archs))
    return false;
  avoid->text = cfs_strdup(rest);
  return true;
}

static bool take_line(char **field, const char *rest)
{
  if (*field || !*rest)
    return false;
  *field = cfs_strdup(rest);
  return true;
}

/* Lines with other keys are left to newer dispatchers. */
static bool parse_line(cfs_routing *r, const char *line)
{
  const char *rest = strchr(line, ' ');
  if (!rest)
    return false;
  size_t size = (size_t)(rest++ - line);
  if (size == 4 && strncmp(line, "tool", size) == 0)
    return take_line(&r->tool, rest);
  if (size == 2 && strncmp(line, "id", size) == 0)
    return take_line(&r->id, rest);
  if (size == 4 && strncmp(line, "root", size) == 0)
    return take_line(&r->root, rest);
  if (size == 4 && strncmp(line, "face", size) == 0)
    return take_line(&r->face, rest);
  if (size == 5 && strncmp(line, "route", size) == 0)
    return parse_route(r, rest);
  if (size == 5 && strncmp(line, "avoid", size) == 0)
    return parse_avoid(r, rest);
  if (size == 4 && strncmp(line, "hint", size) == 0)
    return parse_hint(r, rest);
  return true;
}

static bool is_id(const char *s)
{
  return strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64;
}

static const char *check(const cfs_routing *r)
{
  if (!r->tool || (strcmp(r->tool, "nvcc") != 0 && strcmp(r->tool, "ptxas") != 0 && strcmp(r->tool, "nvlink") != 0))
    return "its trailer names no tool";
  if (!r->id || !is_id(r->id))
    return "its trailer has no plan id";
  if (!r->root || r->root[0] != '/')
    return "its trailer has no root";
  if (!r->face || !r->n_routes || strcmp(r->routes[0].release, r->face) != 0)
    return "its trailer has no route for the face";
  return NULL;
}

int cfs_routing_parse(const char *text, size_t size, cfs_routing *ret, const char **ret_why)
{
  *ret_why = "its trailer is damaged";
  if (memchr(text, '\0', size))
    return -EINVAL;
  while (size) {
    const char *end = memchr(text, '\n', size);
    if (!end)
      return -EINVAL;
    cleanup_free char *line = cfs_strndup(text, (size_t)(end - text));
    if (!parse_line(ret, line))
      return -EINVAL;
    size -= (size_t)(end + 1 - text);
    text = end + 1;
  }
  *ret_why = check(ret);
  return *ret_why ? -EINVAL : 0;
}

static int read_exactly(int fd, void *data, size_t size, off_t offset)
{
  char *p = data;
  while (size) {
    ssize_t n = pread(fd, p, size, offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return n < 0 ? -errno : -EIO;
    p += n;
    offset += n;
    size -= (size_t)n;
  }
  return 0;
}

static uint64_t little_endian(const unsigned char *bytes)
{
  uint64_t n = 0;
  for (int i = 7; i >= 0; i--)
    n = n << 8 | bytes[i];
  return n;
}

int cfs_routing_read(int fd, cfs_routing *ret, const char **ret_why)
{
  unsigned char footer[CFS_TRAILER_FOOTER_SIZE];
  struct stat st;
  *ret_why = "its own file cannot be read";
  if (fstat(fd, &st) < 0)
    return -errno;
  int r = st.st_size < (off_t)sizeof(footer)
              ? -EINVAL
              : read_exactly(fd, footer, sizeof(footer), st.st_size - (off_t)sizeof(footer));
  if (r < 0)
    return r;
  if (memcmp(footer + 8, CFS_TRAILER_MAGIC, CFS_TRAILER_MAGIC_SIZE) != 0) {
    *ret_why = "it has no trailer (only the copies in a cudafs tree have one; strip removes it)";
    return -EINVAL;
  }
  uint64_t size = little_endian(footer);
  *ret_why = "its trailer is damaged";
  if (size > CFS_TRAILER_MAX || size > (uint64_t)st.st_size - sizeof(footer))
    return -EINVAL;
  cleanup_free char *text = cfs_zalloc(size + 1);
  r = read_exactly(fd, text, size, st.st_size - (off_t)sizeof(footer) - (off_t)size);
  return r < 0 ? r : cfs_routing_parse(text, size, ret, ret_why);
}

static void routes_done(struct cfs_route *routes, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    free(routes[i].release);
    free(routes[i].version);
    free(routes[i].can);
    cfs_strings_done(&routes[i].archs);
  }
  free(routes);
}

void cfs_routing_done(cfs_routing *r)
{
  routes_done(r->routes, r->n_routes);
  routes_done(r->hints, r->n_hints);
  for (size_t i = 0; i < r->n_avoids; i++) {
    free(r->avoids[i].release);
    free(r->avoids[i].text);
    cfs_strings_done(&r->avoids[i].archs);
  }
  free(r->avoids);
  free(r->tool);
  free(r->id);
  free(r->root);
  free(r->face);
  *r = (cfs_routing){0};
}
