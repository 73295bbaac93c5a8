/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/memory.h"
#include "overlays/plan.h"

static json_t *text_or_null(const char *s)
{
  return s ? json_string(s) : json_null();
}

static json_t *strings_to_json(const cfs_strings *s)
{
  json_t *array = json_array();
  for (size_t i = 0; i < s->count; i++)
    json_array_append_new(array, json_string(s->items[i]));
  return array;
}

static json_t *component_to_json(const cfs_choice *c)
{
  json_t *o = json_object();
  json_object_set_new(o, "name", json_string(c->part->info->name));
  json_object_set_new(o, "version", text_or_null(c->part->version));
  json_object_set_new(o, "release", text_or_null(c->part->release));
  json_object_set_new(o, "source", json_string(c->source->id));
  json_object_set_new(o, "kind", json_string(cfs_source_kind_name(c->source->kind)));
  json_object_set_new(o, "path", json_string(c->source->path));
  json_object_set_new(o, "package", text_or_null(c->part->package));
  json_object_set_new(o, "package_version", text_or_null(c->part->package_version));
  json_object_set_new(o, "files", json_integer((json_int_t)c->part->n_files));
  json_object_set_new(o, "reason", json_string(c->reason));
  return o;
}

static json_t *components_to_json(const cfs_toolchain *t)
{
  json_t *array = json_array();
  for (size_t i = 0; i < t->n_choices; i++)
    json_array_append_new(array, component_to_json(&t->choices[i]));
  return array;
}

static json_t *toolchain_to_json(const cfs_toolchain *t)
{
  json_t *can = json_array();
  if (t->compiles)
    json_array_append_new(can, json_string("compile"));
  if (t->assembles)
    json_array_append_new(can, json_string("assemble"));
  json_t *o = json_object();
  json_object_set_new(o, "release", json_string(t->release));
  json_object_set_new(o, "primary", json_boolean(t->primary));
  json_object_set_new(o, "version", text_or_null(t->tool_version));
  json_object_set_new(o, "max_ptx", text_or_null(t->max_ptx));
  json_object_set_new(o, "archs", strings_to_json(&t->targets));
  json_object_set_new(o, "can", can);
  json_object_set_new(o, "components", components_to_json(t));
  return o;
}

static json_t *problem_to_json(const cfs_problem *p)
{
  json_t *o = json_object();
  json_object_set_new(o, "code", json_string(p->code));
  json_object_set_new(o, "severity", json_string(cfs_severity_name(p->severity)));
  json_object_set_new(o, "component", text_or_null(p->component));
  json_object_set_new(o, "source", text_or_null(p->source));
  json_object_set_new(o, "release", text_or_null(p->release));
  json_object_set_new(o, "message", json_string(p->message));
  json_object_set_new(o, "fix", strings_to_json(&p->fix));
  return o;
}

static json_t *problems_to_json(const cfs_problems *list)
{
  json_t *array = json_array();
  for (size_t i = 0; i < list->count; i++)
    json_array_append_new(array, problem_to_json(&list->items[i]));
  return array;
}

static json_t *repairs_to_json(const cfs_plan *plan)
{
  json_t *array = json_array();
  for (size_t i = 0; i < plan->n_repairs; i++) {
    json_t *o = json_object();
    json_object_set_new(o, "release", json_string(plan->repairs[i].release));
    json_object_set_new(o, "changes", json_integer((json_int_t)plan->repairs[i].changes));
    json_object_set_new(o, "fix", strings_to_json(&plan->repairs[i].fix));
    json_array_append_new(array, o);
  }
  return array;
}

static json_t *entry_to_json(const cfs_entry *e)
{
  static const char *const kinds[] = {"file", "link", "made", "dispatcher", "directory"};
  json_t *o = json_object();
  json_object_set_new(o, "kind", json_string(kinds[e->kind]));
  if (e->choice) {
    json_object_set_new(o, "source", json_string(e->choice->source->id));
    json_object_set_new(o, "component", json_string(e->choice->part->info->name));
  }
  if (e->file) {
    json_object_set_new(o, "from", json_string(e->file->path));
    json_object_set_new(o, "size", json_integer((json_int_t)e->file->id.size));
    if (e->file->sha256)
      json_object_set_new(o, "sha256", json_string(e->file->sha256));
  }
  if (e->link)
    json_object_set_new(o, e->kind == CFS_ENTRY_DISPATCHER ? "tool" : "to", json_string(e->link));
  if (e->why)
    json_object_set_new(o, "why", json_string(e->why));
  return o;
}

static json_t *sources_to_json(const cfs_plan *plan)
{
  json_t *array = json_array();
  for (size_t i = 0; i < plan->n_sources; i++) {
    json_t *o = json_object();
    json_object_set_new(o, "id", json_string(plan->sources[i]->id));
    json_object_set_new(o, "kind", json_string(cfs_source_kind_name(plan->sources[i]->kind)));
    json_object_set_new(o, "path", json_string(plan->sources[i]->path));
    json_array_append_new(array, o);
  }
  return array;
}

json_t *cfs_plan_to_json(const cfs_plan *plan, bool with_files)
{
  json_t *root = json_object(), *toolchains = json_array();
  for (size_t i = 0; i < plan->n_toolchains; i++)
    json_array_append_new(toolchains, toolchain_to_json(&plan->toolchains[i]));
  json_object_set_new(root, "cudafs", json_integer(1));
  json_object_set_new(root, "verdict", json_string(plan->coherent ? "coherent" : "refused"));
  json_object_set_new(root, "name", text_or_null(plan->name));
  json_object_set_new(root, "release", text_or_null(plan->release));
  json_object_set_new(root, "digest", text_or_null(plan->digest));
  json_object_set_new(root, "targets", strings_to_json(&plan->targets));
  json_object_set_new(root, "consumers", strings_to_json(&plan->consumers));
  json_object_set_new(root, "sources", sources_to_json(plan));
  json_object_set_new(root, "components", plan->n_toolchains ? components_to_json(&plan->toolchains[0]) : json_array());
  json_object_set_new(root, "toolchains", toolchains);
  json_object_set_new(root, "problems", problems_to_json(&plan->problems));
  json_object_set_new(root, "repairs", repairs_to_json(plan));
  if (with_files) {
    json_t *files = json_object();
    for (size_t i = 0; i < plan->n_entries; i++)
      json_object_set_new(files, plan->entries[i].path, entry_to_json(&plan->entries[i]));
    json_object_set_new(root, "files", files);
  }
  return root;
}
