/* SPDX-License-Identifier: MIT */
#include "fs/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/serve.h"
#include "fs/why.h"

static int parse_number(const char *option, const char *value, unsigned max, unsigned *ret, char **ret_why)
{
  char *end = NULL;
  errno = 0;
  unsigned long n = isdigit((unsigned char)value[0]) ? strtoul(value, &end, 10) : 0;
  if (!end || *end || errno || !n || n > max)
    return cfs_why(ret_why, -EINVAL, "the option %s takes a number from 1 to %u", option, max);
  *ret = (unsigned)n;
  return 0;
}

static int parse_fsname(const char *value, struct cfs_mount_options *o, char **ret_why)
{
  size_t n = strlen(value);
  if (!n || n >= sizeof(o->fsname) || strpbrk(value, "\\\n\t "))
    return cfs_why(ret_why, -EINVAL, "the option fsname takes a short name without spaces");
  memcpy(o->fsname, value, n + 1);
  return 0;
}

static int parse_valued(const char *word, const char *value, struct cfs_mount_options *o, char **ret_why)
{
  size_t n = (size_t)(value - word);
  value++;
  if (n == 7 && strncmp(word, "threads", n) == 0)
    return parse_number("threads", value, CFS_THREADS_MAX, &o->threads, ret_why);
  if (n == 13 && strncmp(word, "read_ahead_kb", n) == 0)
    return parse_number("read_ahead_kb", value, 1u << 20, &o->read_ahead_kb, ret_why);
  if (n == 6 && strncmp(word, "fsname", n) == 0)
    return parse_fsname(value, o, ret_why);
  if (n == 7 && strncmp(word, "subtype", n) == 0 && strcmp(value, "cudafs") == 0)
    return 0;
  return cfs_why(ret_why, -EINVAL, "the mount option %s is unknown", word);
}

static int parse_word(const char *word, struct cfs_mount_options *o, char **ret_why)
{
  /* What holds anyway, and what mount(8) adds from an fstab line. */
  static const char *const implied[] = {"ro",   "nosuid", "nodev",   "noatime", "exec",     "default_permissions",
                                        "auto", "noauto", "_netdev", "nofail",  "defaults", "user"};
  static const char *const refused[] = {"rw", "suid", "dev"};
  const char *value = strchr(word, '=');
  if (value)
    return parse_valued(word, value, o, ret_why);
  for (size_t i = 0; i < sizeof(implied) / sizeof(*implied); i++)
    if (strcmp(word, implied[i]) == 0)
      return 0;
  for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
    if (strcmp(word, refused[i]) == 0)
      return cfs_why(ret_why, -EINVAL, "the mount option %s is not possible: the mount is always ro,nosuid,nodev",
                     word);
  if (strcmp(word, "allow_other") == 0)
    o->allow_other = CFS_ALLOW_YES;
  else if (strcmp(word, "noallow_other") == 0)
    o->allow_other = CFS_ALLOW_NO;
  else if (strcmp(word, "nonempty") == 0)
    o->nonempty = true;
  else if (strcmp(word, "passthrough") == 0)
    return cfs_why(ret_why, -EINVAL,
                   "the mount option passthrough is reserved: this version serves through the page cache");
  else
    return cfs_why(ret_why, -EINVAL, "the mount option %s is unknown", word);
  return 0;
}

int cfs_mount_options_parse(const char *text, struct cfs_mount_options *ret, char **ret_why)
{
  struct cfs_mount_options o = {.read_ahead_kb = 1024, .fsname = "cudafs"};
  char word[256];
  while (text && *text) {
    size_t n = strcspn(text, ",");
    if (n >= sizeof(word))
      return cfs_why(ret_why, -EINVAL, "a mount option is longer than %zu characters", sizeof(word) - 1);
    memcpy(word, text, n);
    word[n] = '\0';
    int r = n ? parse_word(word, &o, ret_why) : 0;
    if (r < 0)
      return r;
    text += n;
    text += *text == ',';
  }
  *ret = o;
  return 0;
}

int cfs_mount_options_check(const char *options, char **ret_why)
{
  struct cfs_mount_options o;
  return cfs_mount_options_parse(options, &o, ret_why);
}
