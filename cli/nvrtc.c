/* SPDX-License-Identifier: MIT */
#include "overlays/nvrtc.h"

#include <stdio.h>

#include "base/memory.h"
#include "cli/command.h"
#include "cli/output.h"

enum { LIBRARY = 1, ROOT, SOURCE, OUTPUT, OPTIONS };

int cfs_command_nvrtc(int argc, char *const *argv)
{
  if (argc < OPTIONS)
    return cfs_report_format(CFS_INVALID, CFS_NVRTC_COMMAND, NULL, "words are missing");
  struct cfs_nvrtc_request request = {
      .library = argv[LIBRARY], .root = argv[ROOT], .source = argv[SOURCE], .output = argv[OUTPUT]};
  for (int i = OPTIONS; i < argc; i++)
    cfs_strings_add(&request.options, argv[i]);
  cleanup_free char *version = NULL;
  cfs_error *err = NULL;
  int r = cfs_nvrtc_compile(&request, &version, &err);
  cfs_strings_done(&request.options);
  if (r < 0)
    return cfs_report(err);
  puts(version ? version : "unknown");
  return 0;
}
