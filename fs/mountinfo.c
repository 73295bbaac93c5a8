/* SPDX-License-Identifier: MIT */
#include "fs/mountinfo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The kernel writes space, tab, newline and backslash as \ooo. */
static void decode_octal(char *s)
{
  char *to = s;
  while (*s) {
    if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' && s[3] <= '7') {
      *to++ = (char)((s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0'));
      s += 4;
    } else {
      *to++ = *s++;
    }
  }
  *to = '\0';
}

static uid_t option_user(const char *options)
{
  const char *p = strstr(options, "user_id=");
  if (!p || (p != options && p[-1] != ','))
    return 0;
  return (uid_t)strtoul(p + strlen("user_id="), NULL, 10);
}

static bool read_number(const char *text, int base, const char **ret_end, unsigned *ret)
{
  char *end;
  *ret = (unsigned)strtoul(text, &end, base);
  *ret_end = end;
  return end != text;
}

bool cfs_device_parse(const char *text, int base, uint32_t *ret_major, uint32_t *ret_minor)
{
  const char *end;
  return read_number(text, base, &end, ret_major) && *end == ':' && read_number(end + 1, base, &end, ret_minor);
}

int cfs_mountinfo_parse(char *line, struct cfs_mountinfo *ret)
{
  struct cfs_mountinfo m = {0};
  const char *end;
  char *save = NULL, *words[6], *word;
  line[strcspn(line, "\n")] = '\0';
  for (int i = 0; i < 6; i++)
    if (!(words[i] = strtok_r(i ? NULL : line, " ", &save)))
      return -EINVAL;
  if (!read_number(words[0], 10, &end, &m.id) || !read_number(words[1], 10, &end, &m.parent) ||
      !cfs_device_parse(words[2], 10, &m.dev_major, &m.dev_minor))
    return -EINVAL;
  /* Optional fields, as many as the kernel likes, end with a single "-". */
  do
    word = strtok_r(NULL, " ", &save);
  while (word && strcmp(word, "-") != 0);
  m.root = words[3];
  m.path = words[4];
  m.type = strtok_r(NULL, " ", &save);
  m.source = strtok_r(NULL, " ", &save);
  char *options = strtok_r(NULL, " ", &save);
  if (!word || !m.type || !m.source || !options)
    return -EINVAL;
  m.user = option_user(options);
  decode_octal(m.root);
  decode_octal(m.path);
  decode_octal(m.type);
  decode_octal(m.source);
  *ret = m;
  return 0;
}

int cfs_mountinfo_open(struct cfs_mountinfo_reader *r)
{
  *r = (struct cfs_mountinfo_reader){.file = fopen("/proc/self/mountinfo", "re")};
  return r->file ? 0 : -errno;
}

int cfs_mountinfo_next(struct cfs_mountinfo_reader *r, struct cfs_mountinfo *ret)
{
  while (getline(&r->line, &r->room, r->file) > 0)
    if (cfs_mountinfo_parse(r->line, ret) == 0)
      return 1;
  return 0;
}

void cfs_mountinfo_close(struct cfs_mountinfo_reader *r)
{
  if (r->file)
    fclose(r->file);
  free(r->line);
  *r = (struct cfs_mountinfo_reader){0};
}

bool cfs_mountinfo_is_ours(const struct cfs_mountinfo *m)
{
  return strcmp(m->type, CFS_MOUNT_TYPE) == 0;
}
