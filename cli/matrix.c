/* SPDX-License-Identifier: MIT */
#include "cli/matrix.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/table.h"

enum { INDENT = 2, GAP = 2, LEAST_WIDTH = 8 };

struct matrix {
  const cfs_plan *plan;
  const cfs_tables *tables;
};

/* The nth part of a component in a source (a venv may hold wheels of two CUDA majors), or NULL. */
static const cfs_part *part_of(const cfs_inventory *source, const cfs_component_info *info, size_t n)
{
  for (size_t i = 0; i < source->n_parts; i++)
    if (source->parts[i].info == info && n-- == 0)
      return &source->parts[i];
  return NULL;
}

static size_t rows_of(const struct matrix *m, const cfs_component_info *info)
{
  size_t rows = 0;
  for (size_t i = 0; i < m->plan->n_sources; i++)
    while (part_of(m->plan->sources[i], info, rows))
      rows++;
  return rows;
}

static bool is_about(const cfs_problem *p, const cfs_component_info *info, const char *source)
{
  return p->severity == CFS_PROBLEM && p->component && strcmp(p->component, info->name) == 0 &&
         (!source || (p->source && strcmp(p->source, source) == 0));
}

static bool has_problem(const struct matrix *m, const cfs_component_info *info, const char *source)
{
  for (size_t i = 0; i < m->plan->problems.count; i++)
    if (is_about(&m->plan->problems.items[i], info, source))
      return true;
  return false;
}

enum use { UNUSED, USED_BESIDE, USED_BY_FACE };

static enum use use_of(const struct matrix *m, const cfs_part *part)
{
  enum use use = UNUSED;
  for (size_t i = 0; i < m->plan->n_toolchains; i++) {
    const cfs_toolchain *t = &m->plan->toolchains[i];
    for (size_t j = 0; j < t->n_choices; j++)
      if (t->choices[j].part == part)
        use = t->primary ? USED_BY_FACE : use > USED_BESIDE ? use : USED_BESIDE;
  }
  return use;
}

struct look {
  enum cfs_style style;
  const char *mark;
};

static struct look look_of(const struct matrix *m, const cfs_part *part, const cfs_inventory *source)
{
  if (has_problem(m, part->info, source->id))
    return (struct look){CFS_RED, " !"};
  switch (use_of(m, part)) {
  case USED_BY_FACE:
    return (struct look){CFS_BOLD, " *"};
  case USED_BESIDE:
    return (struct look){CFS_CYAN, " +"};
  default:
    return (struct look){CFS_DIM, ""};
  }
}

/* What a cell says: the version, and the release where that is another number. */
static char *text_of(const cfs_part *part, const char *mark)
{
  const char *version = part->version ? part->version : "?";
  size_t n = part->release ? strlen(part->release) : 0;
  bool plain = !part->release || (strncmp(version, part->release, n) == 0 && (!version[n] || version[n] == '.'));
  return plain ? cfs_format("%s%s", version, mark) : cfs_format("%s (%s)%s", version, part->release, mark);
}

static void add_cell(const struct matrix *m, cfs_table *table, const cfs_inventory *source,
                     const cfs_component_info *info, size_t row)
{
  const cfs_part *part = part_of(source, info, row);
  if (part) {
    struct look look = look_of(m, part, source);
    cfs_table_add(table, look.style, text_of(part, look.mark));
  } else {
    cfs_table_add(table, CFS_DIM, cfs_strdup(row ? "" : "-"));
  }
}

static size_t width_of(const struct matrix *m, const cfs_inventory *source)
{
  size_t width = cfs_text_width(source->id);
  for (size_t i = 0; i < source->n_parts; i++) {
    cleanup_free char *text = text_of(&source->parts[i], look_of(m, &source->parts[i], source).mark);
    if (cfs_text_width(text) > width)
      width = cfs_text_width(text);
  }
  return width;
}

/* The wanted and absent: nobody's cell, so it gets a row of its own. */
static void add_missing(const struct matrix *m, cfs_table *table, const cfs_component_info *info)
{
  cfs_table_add(table, CFS_PLAIN, cfs_strdup(info->name));
  cfs_table_add(table, CFS_RED, cfs_strdup("missing !"));
  for (size_t i = 2; i < table->n_columns; i++)
    cfs_table_add(table, CFS_PLAIN, NULL);
  (void)m;
}

static void add_component(const struct matrix *m, cfs_table *table, const cfs_component_info *info, size_t first,
                          size_t end)
{
  size_t rows = rows_of(m, info);
  if (!rows && has_problem(m, info, NULL))
    add_missing(m, table, info);
  for (size_t row = 0; row < rows; row++) {
    enum cfs_style style = has_problem(m, info, NULL) ? CFS_RED : CFS_PLAIN;
    cfs_table_add(table, style, cfs_strdup(row ? "" : info->name));
    for (size_t i = first; i < end; i++)
      add_cell(m, table, m->plan->sources[i], info, row);
  }
}

/* Sources first..end of the matrix, as many as fit beside each other. */
static void print_block(const struct matrix *m, size_t first, size_t end, FILE *to)
{
  struct cfs_column *columns = cfs_zalloc((end - first + 1) * sizeof(*columns));
  columns[0] = (struct cfs_column){"component", 0, false};
  for (size_t i = first; i < end; i++)
    columns[i - first + 1] = (struct cfs_column){m->plan->sources[i]->id, LEAST_WIDTH, true};
  cfs_table table = {.columns = columns, .n_columns = end - first + 1};
  for (size_t i = 0; i < m->tables->n_components; i++)
    add_component(m, &table, &m->tables->components[i], first, end);
  cfs_table_print(&table, to);
  cfs_table_done(&table);
  free(columns);
}

static size_t name_width(const struct matrix *m)
{
  size_t width = strlen("component");
  for (size_t i = 0; i < m->tables->n_components; i++)
    if (rows_of(m, &m->tables->components[i]) && strlen(m->tables->components[i].name) > width)
      width = strlen(m->tables->components[i].name);
  return width;
}

void cfs_matrix_print(const cfs_plan *plan, const cfs_tables *tables, FILE *to)
{
  struct matrix m = {plan, tables};
  size_t columns = cfs_columns(to), names = name_width(&m);
  for (size_t first = 0; first < plan->n_sources;) {
    size_t end = first, width = INDENT + names;
    do
      width += GAP + width_of(&m, plan->sources[end++]);
    while (end < plan->n_sources && width + GAP + width_of(&m, plan->sources[end]) <= columns);
    if (first)
      fputc('\n', to);
    print_block(&m, first, end, to);
    first = end;
  }
}
