/* SPDX-License-Identifier: MIT */
#include "cli/table.h"

#include <stdlib.h>

#include "base/memory.h"

enum { INDENT = 2, GAP = 2 };

void cfs_table_add(cfs_table *t, enum cfs_style style, char *text)
{
  t->cells = cfs_grow(t->cells, t->n_cells + 1, sizeof(*t->cells));
  t->cells[t->n_cells++] = (struct cfs_cell){text, style};
}

void cfs_table_done(cfs_table *t)
{
  for (size_t i = 0; i < t->n_cells; i++)
    free(t->cells[i].text);
  free(t->cells);
  *t = (cfs_table){0};
}

static const char *text_of(const cfs_table *t, size_t i)
{
  return i < t->n_cells && t->cells[i].text ? t->cells[i].text : "";
}

static size_t *natural_widths(const cfs_table *t)
{
  size_t *widths = cfs_zalloc(t->n_columns * sizeof(*widths));
  for (size_t c = 0; c < t->n_columns; c++)
    widths[c] = cfs_text_width(t->columns[c].title);
  for (size_t i = 0; t->n_columns && i < t->n_cells; i++) {
    size_t width = cfs_text_width(text_of(t, i));
    if (width > widths[i % t->n_columns])
      widths[i % t->n_columns] = width;
  }
  return widths;
}

/* Takes from the widest shrinkable column until the line fits or nothing gives. */
static void fit(const cfs_table *t, size_t *widths, size_t columns)
{
  for (;;) {
    size_t total = INDENT + GAP * (t->n_columns - 1), widest = t->n_columns;
    for (size_t c = 0; c < t->n_columns; c++) {
      total += widths[c];
      bool gives = t->columns[c].least && widths[c] > t->columns[c].least;
      if (gives && (widest == t->n_columns || widths[c] > widths[widest]))
        widest = c;
    }
    if (total <= columns || widest == t->n_columns)
      return;
    widths[widest]--;
  }
}

static void put_cell(FILE *to, const struct cfs_column *column, enum cfs_style style, const char *text, size_t width,
                     bool last)
{
  cleanup_free char *shown = cfs_text_shorten(text, width, column->keep_end);
  cfs_put(to, *shown ? style : CFS_PLAIN, shown);
  if (!last)
    fprintf(to, "%*s", (int)(width - cfs_text_width(shown) + GAP), "");
}

static size_t last_filled(const cfs_table *t, size_t row)
{
  size_t last = 0;
  for (size_t c = 0; c < t->n_columns; c++)
    if (*text_of(t, row * t->n_columns + c))
      last = c;
  return last;
}

static bool has_titles(const cfs_table *t)
{
  for (size_t c = 0; c < t->n_columns; c++)
    if (*t->columns[c].title)
      return true;
  return false;
}

void cfs_table_print(const cfs_table *t, FILE *to)
{
  cleanup_free size_t *widths = natural_widths(t);
  fit(t, widths, cfs_columns(to));
  if (has_titles(t)) {
    fprintf(to, "%*s", INDENT, "");
    for (size_t c = 0; c < t->n_columns; c++)
      put_cell(to, &t->columns[c], CFS_DIM, t->columns[c].title, widths[c], c + 1 == t->n_columns);
    fputc('\n', to);
  }
  for (size_t row = 0; row * t->n_columns < t->n_cells; row++) {
    size_t last = last_filled(t, row);
    fprintf(to, "%*s", INDENT, "");
    for (size_t c = 0; c <= last; c++) {
      size_t i = row * t->n_columns + c;
      put_cell(to, &t->columns[c], i < t->n_cells ? t->cells[i].style : CFS_PLAIN, text_of(t, i), widths[c], c == last);
    }
    fputc('\n', to);
  }
}
