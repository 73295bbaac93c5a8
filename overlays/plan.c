/* SPDX-License-Identifier: MIT */
#include "overlays/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/memory.h"
#include "overlays/entries.h"
#include "overlays/routes.h"

void cfs_repairs_done(cfs_repair *repairs, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    free(repairs[i].release);
    cfs_strings_done(&repairs[i].fix);
  }
  free(repairs);
}

void cfs_toolchain_done(cfs_toolchain *t)
{
  for (size_t i = 0; i < t->n_choices; i++)
    free(t->choices[i].reason);
  free(t->choices);
  free(t->release);
  free(t->tool_version);
  free(t->max_ptx);
  cfs_strings_done(&t->targets);
}

void cfs_plan_free(cfs_plan *plan)
{
  if (!plan)
    return;
  for (size_t i = 0; i < plan->n_entries; i++)
    cfs_entry_done(&plan->entries[i]);
  free(plan->entries);
  for (size_t i = 0; i < plan->n_toolchains; i++)
    cfs_toolchain_done(&plan->toolchains[i]);
  free(plan->toolchains);
  for (size_t i = 0; i < plan->n_sources; i++)
    cfs_inventory_free(plan->sources[i]);
  free(plan->sources);
  cfs_repairs_done(plan->repairs, plan->n_repairs);
  cfs_problems_done(&plan->problems);
  cfs_strings_done(&plan->targets);
  cfs_strings_done(&plan->consumers);
  free(plan->name);
  free(plan->release);
  free(plan->digest);
  free(plan);
}

const cfs_choice *cfs_toolchain_choice(const cfs_toolchain *t, const char *component)
{
  for (size_t i = 0; i < t->n_choices; i++)
    if (strcmp(t->choices[i].part->info->name, component) == 0)
      return &t->choices[i];
  return NULL;
}

const cfs_file *cfs_toolchain_file(const cfs_toolchain *t, const char *face, const cfs_choice **ret_choice)
{
  for (size_t i = 0; i < t->n_choices; i++) {
    const cfs_file *file = cfs_part_file(t->choices[i].part, face);
    if (!file)
      continue;
    if (ret_choice)
      *ret_choice = &t->choices[i];
    return file;
  }
  return NULL;
}

const cfs_entry *cfs_plan_entry(const cfs_plan *plan, const char *path)
{
  const cfs_entries all = {plan->entries, plan->n_entries};
  return cfs_entries_find(&all, path);
}

static void canonical_entry(cfs_buffer *b, const cfs_entry *e)
{
  char digest[CFS_DIGEST_TEXT] = "";
  switch (e->kind) {
  case CFS_ENTRY_FILE:
    cfs_buffer_format(b, "f %s %llu %lld.%09u %d %s\n", e->path, (unsigned long long)e->file->id.size,
                      (long long)e->file->id.mtime_sec, e->file->id.mtime_nsec, e->executable,
                      e->file->sha256 ? e->file->sha256 : "-");
    break;
  case CFS_ENTRY_BLOB:
    cfs_digest(e->data, e->size, digest);
    cfs_buffer_format(b, "b %s %zu %s\n", e->path, e->size, digest);
    break;
  case CFS_ENTRY_LINK:
    cfs_buffer_format(b, "l %s %s\n", e->path, e->link);
    break;
  case CFS_ENTRY_DISPATCHER:
    cfs_buffer_format(b, "d %s %s\n", e->path, e->link);
    break;
  case CFS_ENTRY_DIR:
    cfs_buffer_format(b, "D %s\n", e->path);
    break;
  }
}

static void canonical_toolchain(cfs_buffer *b, const cfs_toolchain *t)
{
  cleanup_free char *targets = cfs_strings_join(&t->targets, ",");
  cfs_buffer_format(b, "t %s %s %s %d%d%d %s\n", t->release, t->tool_version ? t->tool_version : "-",
                    t->max_ptx ? t->max_ptx : "-", t->compiles, t->assembles, t->links, targets);
}

/* Lines rather than JSON: the entries are sorted already, and 10,000 of them are hashed in a few
 * milliseconds. Places on this machine's disk are left out: moving a source changes no byte served. */
int cfs_plan_seal(cfs_plan *plan, const cfs_tables *tables, const void *dispatcher, size_t dispatcher_size,
                  cfs_error **err)
{
  char digest[CFS_DIGEST_TEXT];
  cleanup_buffer cfs_buffer b = {0};
  free(plan->digest); /* sealing again starts from nothing */
  plan->digest = NULL;
  cfs_buffer_format(&b, "cudafs plan 1\nface %s\n", plan->release);
  if (cfs_digest(dispatcher, dispatcher_size, digest) < 0)
    return cfs_error_set(err, CFS_FAILED, EIO, "the plan", NULL, "SHA-256 is not available in libcrypto");
  cfs_buffer_format(&b, "dispatcher %s\n", digest);
  /* What was asked for is part of the plan: a mount that answers to other targets is another one. */
  cleanup_free char *targets = cfs_strings_join(&plan->targets, ","),
                    *consumers = cfs_strings_join(&plan->consumers, ",");
  cfs_buffer_format(&b, "name %s\ntargets %s\nconsumers %s\n", plan->name ? plan->name : "", targets, consumers);
  cleanup_free char *routes = cfs_routes_text(plan, tables, "", "");
  cfs_buffer_text(&b, routes);
  for (size_t i = 0; i < plan->n_toolchains; i++)
    canonical_toolchain(&b, &plan->toolchains[i]);
  for (size_t i = 0; i < plan->n_entries; i++)
    canonical_entry(&b, &plan->entries[i]);
  cfs_digest(b.data, b.size, digest);
  plan->digest = cfs_strdup(digest);
  return 0;
}
