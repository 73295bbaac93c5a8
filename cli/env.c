/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/session.h"
#include "overlays/dispatch/trailer.h"

static const struct cfs_usage usage = {
    .name = "env",
    .synopsis = "DIR",
    .summary = "print the shell lines that lead programs to a mount",
    .help = "Prints export lines for everything that CUDA programs look at, for eval \"$(cudafs env DIR)\".",
    .least = 1,
    .most = 1,
};

/* Takes the shell's quotes out, in place. */
static void unquote(char *text)
{
  char *to = text;
  bool single = false;
  for (const char *from = text; *from; from++) {
    if (*from == '\'')
      single = !single;
    else if (*from == '\\' && !single && from[1])
      *to++ = *++from;
    else if (*from != '"' || single)
      *to++ = *from;
  }
  *to = '\0';
}

/* "export NAME=VALUE" lines as an object. What a value says of other variables stays as it is: the object
 * says what to set, not what this shell has. */
static json_t *to_json(const char *text)
{
  json_t *variables = json_object();
  cleanup_strings cfs_strings lines = {0};
  cfs_strings_split(&lines, text, "\n");
  for (size_t i = 0; i < lines.count; i++) {
    char *name = lines.items[i];
    char *value = strchr(name, '=');
    if (!cfs_has_prefix(name, "export ") || !value)
      continue;
    *value++ = '\0';
    unquote(value);
    json_object_set_new(variables, name + strlen("export "), cfs_json_text(value));
  }
  return variables;
}

static int run(int argc, char *const *argv)
{
  bool json = false;
  cleanup_strings cfs_strings words = {0};
  const struct cfs_option options[] = {{"json", 0, NULL, "print one JSON object", &json}};
  int code = cfs_arguments(&usage, options, 1, argc, argv, &words);
  if (code >= 0)
    return code;
  cleanup_free char *path = cfs_session_absolute(words.items[0]);
  cleanup_free char *id = cfs_path_join(path, CFS_ID_PATH);
  if (!cfs_path_exists(id))
    return cfs_report_format(CFS_FAILED, path, "cudafs status lists the mounts", "it is no cudafs mount");
  cleanup_free char *text = cfs_layout_env(path);
  if (!json)
    return fputs(text, stdout) == EOF ? CFS_FAILED : 0;
  return cfs_print_json(json_pack("{s:o, s:o}", "path", cfs_json_text(path), "variables", to_json(text)));
}

const struct cfs_command cfs_command_env = {&usage, run};
