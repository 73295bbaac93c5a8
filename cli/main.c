/* SPDX-License-Identifier: MIT */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/command.h"
#include "cli/output.h"
#include "manifests/suggest.h"
#include "overlays/nvrtc.h"

static const struct cfs_command *const commands[] = {
    &cfs_command_mount, &cfs_command_umount,  &cfs_command_reload, &cfs_command_status, &cfs_command_scan,
    &cfs_command_plan,  &cfs_command_explain, &cfs_command_verify, &cfs_command_doctor, &cfs_command_env,
};
enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

/* Words that belong to cudafs and that this version does not do. */
static const char *const reserved[] = {"lock", "exec", "export", "diff", "sbom", "cache", "fetch", "integrate"};

static void print_help(FILE *to)
{
  fputs("usage: cudafs COMMAND [ARGUMENTS]\n\n"
        "Composes one coherent CUDA toolkit out of the wheels and toolkits that are there, and serves it\n"
        "as a file system.\n\ncommands:\n",
        to);
  for (size_t i = 0; i < N_COMMANDS; i++)
    fprintf(to, "  %-9s %s\n", commands[i]->usage->name, commands[i]->usage->summary);
  fputs("  version   print the version\n"
        "  help      print this, or the help of a command\n\n"
        "Exit status: 0 done, 1 failed, 2 usage or invalid manifest, 3 refused (no coherent set, or a policy is\n"
        "not met), 4 degraded. cudafs COMMAND --help tells more.\n",
        to);
}

static const struct cfs_command *find(const char *name)
{
  for (size_t i = 0; i < N_COMMANDS; i++)
    if (strcmp(commands[i]->usage->name, name) == 0)
      return commands[i];
  return NULL;
}

static int unknown(const char *name)
{
  for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
    if (strcmp(reserved[i], name) == 0)
      return cfs_report_format(CFS_INVALID, name, "see cudafs help for what there is", "not part of this version");
  cfs_suggestion near = {.word = name};
  for (size_t i = 0; i < N_COMMANDS; i++)
    cfs_suggestion_offer(&near, commands[i]->usage->name);
  cleanup_free char *fix =
      near.best ? cfs_format("did you mean cudafs %s?", near.best) : cfs_strdup("see cudafs help for the commands");
  return cfs_report_format(CFS_INVALID, name, fix, "there is no such command");
}

static int help(int argc, char *const *argv)
{
  if (argc < 2) {
    print_help(stdout);
    return 0;
  }
  const struct cfs_command *command = find(argv[1]);
  char name[] = "help", option[] = "--help";
  char *const words[] = {name, option, NULL};
  return command ? command->run(2, words) : unknown(argv[1]);
}

static bool is_any(const char *word, const char *a, const char *b, const char *c)
{
  return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

static int dispatch(int argc, char **argv)
{
  if (argc < 2) {
    print_help(stderr);
    return CFS_INVALID;
  }
  const char *name = argv[1];
  if (is_any(name, "help", "--help", "-h"))
    return help(argc - 1, argv + 1);
  if (is_any(name, "version", "--version", "-V")) {
    puts("cudafs " CUDAFS_VERSION);
    return 0;
  }
  if (strcmp(name, CFS_NVRTC_COMMAND) == 0)
    return cfs_command_nvrtc(argc - 1, argv + 1);
  const struct cfs_command *command = find(name);
  return command ? command->run(argc - 1, argv + 1) : unknown(name);
}

int main(int argc, char **argv)
{
  setlocale(LC_CTYPE, "");
  int code = dispatch(argc, argv);
  if (fflush(stdout) == EOF && code == 0)
    code = cfs_report_format(CFS_FAILED, "standard output", NULL, "cannot be written");
  return code;
}
