/* SPDX-License-Identifier: MIT */
#include "overlays/problem.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/memory.h"

const char *cfs_severity_name(enum cfs_severity s)
{
  return s == CFS_PROBLEM ? "error" : s == CFS_WARNING ? "warning" : "note";
}

static cfs_problem *append(cfs_problems *list)
{
  list->items = cfs_grow(list->items, list->count + 1, sizeof(*list->items));
  cfs_problem *p = &list->items[list->count++];
  *p = (cfs_problem){0};
  return p;
}

cfs_problem *cfs_problems_add(cfs_problems *list, const char *code, enum cfs_severity severity, const char *component,
                              const char *message_format, ...)
{
  cfs_problem *p = append(list);
  va_list ap;
  va_start(ap, message_format);
  p->message = cfs_vformat(message_format, ap);
  va_end(ap);
  p->code = cfs_strdup(code);
  p->severity = severity;
  p->component = component ? cfs_strdup(component) : NULL;
  return p;
}

static char *copy_or_null(const char *s)
{
  return s ? cfs_strdup(s) : NULL;
}

void cfs_problems_copy(cfs_problems *list, const cfs_problem *p)
{
  cfs_problem *q = append(list);
  q->code = cfs_strdup(p->code);
  q->severity = p->severity;
  q->component = copy_or_null(p->component);
  q->source = copy_or_null(p->source);
  q->release = copy_or_null(p->release);
  q->message = cfs_strdup(p->message);
  for (size_t i = 0; i < p->fix.count; i++)
    cfs_strings_add(&q->fix, p->fix.items[i]);
}

size_t cfs_problems_errors(const cfs_problems *list)
{
  size_t n = 0;
  for (size_t i = 0; i < list->count; i++)
    n += list->items[i].severity == CFS_PROBLEM;
  return n;
}

void cfs_problems_done(cfs_problems *list)
{
  for (size_t i = 0; i < list->count; i++) {
    cfs_problem *p = &list->items[i];
    free(p->code);
    free(p->component);
    free(p->source);
    free(p->release);
    free(p->message);
    cfs_strings_done(&p->fix);
  }
  free(list->items);
  *list = (cfs_problems){0};
}
