/* SPDX-License-Identifier: MIT */
#include "overlays/doctor.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "overlays/doctor_private.h"
#include "overlays/source.h"

const char *cfs_check_status_name(enum cfs_check_status s)
{
  static const char *const names[] = {"ok", "note", "warning", "error"};
  return names[s];
}

const char *cfs_verdict_name(enum cfs_verdict v)
{
  static const char *const names[] = {"ok", "limited", "shadowed", "incomplete", "policy-unmet", "no-cuda"};
  return names[v];
}

struct cfs_check *cfs_check_add(struct cfs_examination *x, const char *code, enum cfs_check_status status,
                                const char *format, ...)
{
  cfs_diagnosis *d = x->diagnosis;
  d->checks = cfs_grow(d->checks, d->n_checks + 1, sizeof(*d->checks));
  struct cfs_check *c = &d->checks[d->n_checks++];
  *c = (struct cfs_check){.code = cfs_strdup(code), .status = status};
  va_list ap;
  va_start(ap, format);
  c->message = cfs_vformat(format, ap);
  va_end(ap);
  return c;
}

static void say(const struct cfs_examination *x, const char *what)
{
  if (x->request->progress)
    x->request->progress(x->request->data, what);
}

static void add_wheels(struct cfs_examination *x, char *path)
{
  struct cfs_manifest_source source = {.id = path, .kind = CFS_SOURCE_SITE_PACKAGES, .path = path};
  cfs_inventory *inventory = NULL;
  if (cfs_source_read(&source, NULL, x->tables, &inventory, NULL) < 0)
    return;
  x->wheels = cfs_grow(x->wheels, x->n_wheels + 1, sizeof(cfs_inventory *));
  x->wheels[x->n_wheels++] = inventory;
}

/* The wheels that a program would import: those of the environment that is active, or of the manifest. */
static void find_wheels(struct cfs_examination *x)
{
  const cfs_build *build = x->request->build;
  for (size_t i = 0; build && i < build->plan->n_sources; i++)
    if (build->plan->sources[i]->kind == CFS_SOURCE_SITE_PACKAGES)
      add_wheels(x, build->plan->sources[i]->path);
  for (size_t i = 0; !build && i < x->n_found; i++)
    if (x->found[i].kind == CFS_SOURCE_SITE_PACKAGES && strstr(x->found[i].how, "active virtual environment"))
      add_wheels(x, x->found[i].path);
}

static int examine(struct cfs_examination *x, cfs_error **err)
{
  say(x, "looking at the environment...");
  cfs_scan(NULL, 0, &x->found, &x->n_found);
  find_wheels(x);
  cfs_examine_environment(x);
  say(x, "looking for strays...");
  cfs_examine_strays(x);
  say(x, "reading the sources...");
  cfs_examine_sources(x);
  say(x, "looking at the machine...");
  cfs_examine_machine(x);
  return cfs_examine_consumers(x, err);
}

int cfs_doctor(const struct cfs_doctor_request *request, cfs_diagnosis *ret, cfs_error **err)
{
  cfs_tables *own = NULL;
  if (!request->build) {
    int r = cfs_tables_load(&own, err);
    if (r < 0)
      return r;
  }
  const cfs_tables *tables = request->build ? request->build->tables : own;
  struct cfs_examination x = {.request = request, .tables = tables, .diagnosis = ret};
  int r = examine(&x, err);
  for (size_t i = 0; i < x.n_wheels; i++)
    cfs_inventory_free(x.wheels[i]);
  free(x.wheels);
  cfs_found_free(x.found, x.n_found);
  cfs_tables_free(own);
  if (r < 0)
    cfs_diagnosis_done(ret);
  return r;
}

void cfs_diagnosis_done(cfs_diagnosis *d)
{
  for (size_t i = 0; i < d->n_checks; i++) {
    free(d->checks[i].code);
    free(d->checks[i].message);
    cfs_strings_done(&d->checks[i].fix);
  }
  for (size_t i = 0; i < d->n_consumers; i++) {
    free(d->consumers[i].name);
    free(d->consumers[i].cuda_home);
    free(d->consumers[i].version);
    free(d->consumers[i].reason);
  }
  free(d->checks);
  free(d->consumers);
  *d = (cfs_diagnosis){0};
}
