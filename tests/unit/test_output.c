/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/table.h"

/* What a function writes, as text. */
struct capture {
  char *text;
  size_t size;
  FILE *to;
};

static void capture_start(struct capture *c)
{
  *c = (struct capture){0};
  c->to = open_memstream(&c->text, &c->size);
  assert_non_null(c->to);
}

static char *capture_end(struct capture *c)
{
  fclose(c->to);
  return c->text;
}

static void test_width_counts_characters(void **state)
{
  (void)state;
  assert_int_equal(cfs_text_width(""), 0);
  assert_int_equal(cfs_text_width("abc"), 3);
  assert_int_equal(cfs_text_width("gr\xc3\xbc\xc3\x9f"), 4);
}

static void test_shorten_keeps_what_matters(void **state)
{
  (void)state;
  cleanup_free char *same = cfs_text_shorten("/usr/local", 10, true);
  cleanup_free char *end = cfs_text_shorten("/usr/local/cuda-13.0", 8, true);
  cleanup_free char *start = cfs_text_shorten("headers-release-mismatch", 8, false);
  cleanup_free char *none = cfs_text_shorten("abc", 1, false);
  assert_string_equal(same, "/usr/local");
  assert_true(cfs_has_suffix(end, "-13.0"));
  assert_true(cfs_text_width(end) <= 8);
  assert_true(cfs_has_prefix(start, "header"));
  assert_true(cfs_text_width(start) <= 8);
  assert_true(strlen(none) <= 3);
}

static void test_shorten_never_splits_a_character(void **state)
{
  (void)state;
  for (size_t columns = 3; columns < 8; columns++) {
    cleanup_free char *text =
        cfs_text_shorten("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f", columns, false);
    for (const char *c = text; *c; c++)
      if ((unsigned char)*c == 0xc3)
        assert_true(((unsigned char)c[1] & 0xc0) == 0x80);
  }
}

static void test_wrapping(void **state)
{
  (void)state;
  struct capture c;
  setenv("COLUMNS", "40", 1);
  capture_start(&c);
  cfs_put_wrapped(c.to, "one two three four five six seven eight nine ten", 10, 4);
  cleanup_free char *text = capture_end(&c);
  cleanup_strings cfs_strings lines = {0};
  cfs_strings_split(&lines, text, "\n");
  assert_true(lines.count > 1);
  assert_true(strlen(lines.items[0]) <= 30);
  for (size_t i = 1; i < lines.count; i++) {
    assert_true(cfs_has_prefix(lines.items[i], "    "));
    assert_true(strlen(lines.items[i]) <= 40);
  }
}

/* A command to paste is one word to the wrapper when it has no blanks; a tab is a blank that holds. */
static void test_a_tab_is_not_broken_at(void **state)
{
  (void)state;
  struct capture c;
  setenv("COLUMNS", "40", 1);
  capture_start(&c);
  cfs_put_wrapped(c.to, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa cuda_nvcc\t13.2.78", 0, 2);
  cleanup_free char *text = capture_end(&c);
  assert_non_null(strstr(text, "\n  cuda_nvcc 13.2.78\n"));
}

static void test_table_fits_and_shrinks_only_what_may(void **state)
{
  (void)state;
  static const struct cfs_column columns[] = {{"name", 0, false}, {"path", 10, true}};
  cleanup_table cfs_table table = {.columns = columns, .n_columns = 2};
  struct capture c;
  setenv("COLUMNS", "40", 1);
  cfs_table_add(&table, CFS_BOLD, cfs_strdup("cuda_nvcc_is_long"));
  cfs_table_add(&table, CFS_PLAIN, cfs_strdup("/srv/somewhere/far/away/site-packages"));
  cfs_table_add(&table, CFS_PLAIN, cfs_strdup("x"));
  cfs_table_add(&table, CFS_PLAIN, NULL);
  capture_start(&c);
  cfs_table_print(&table, c.to);
  cleanup_free char *text = capture_end(&c);
  cleanup_strings cfs_strings lines = {0};
  cfs_strings_split(&lines, text, "\n");
  assert_int_equal(lines.count, 3);
  for (size_t i = 0; i < lines.count; i++)
    assert_true(cfs_text_width(lines.items[i]) <= 40);
  assert_non_null(strstr(lines.items[1], "cuda_nvcc_is_long"));
  assert_non_null(strstr(lines.items[1], "site-packages"));
  assert_null(strstr(text, "\033")); /* a file is no terminal */
  assert_string_equal(lines.items[2], "  x");
}

static void test_json_of_bytes_that_are_no_text(void **state)
{
  (void)state;
  json_t *good = cfs_json_text("\xc3\xa4"),
         *bad = cfs_json_text("a\xff"
                              "b"),
         *none = cfs_json_text(NULL);
  assert_string_equal(json_string_value(good), "\xc3\xa4");
  assert_string_equal(json_string_value(bad), "a?b");
  assert_true(json_is_null(none));
  json_decref(good);
  json_decref(bad);
  json_decref(none);
}

struct given {
  bool json, force;
  char *wait;
  cfs_strings targets, words;
};

static int parse(struct given *g, size_t least, size_t most, const char *const *words)
{
  struct cfs_usage usage = {
      .name = "test", .synopsis = "DIR", .summary = "", .help = "help", .least = least, .most = most};
  const struct cfs_option options[] = {
      {"json", 0, NULL, "json", &g->json},
      {"force", 'f', NULL, "force", &g->force},
      {"wait", 'w', "SECONDS", "wait", NULL, &g->wait},
      {"target", 0, "TARGET", "target", NULL, NULL, &g->targets},
  };
  int argc = 0;
  while (words[argc])
    argc++;
  return cfs_arguments(&usage, options, 4, argc, (char *const *)(uintptr_t)words, &g->words);
}

static void given_done(struct given *g)
{
  free(g->wait);
  cfs_strings_done(&g->targets);
  cfs_strings_done(&g->words);
}

static void test_arguments_in_any_order(void **state)
{
  (void)state;
  struct given g = {0};
  const char *const words[] = {"test",     "a",       "--json", "-fw", "5", "--target=sm_90",
                               "--target", "sm_120a", "--",     "-b",  NULL};
  assert_int_equal(parse(&g, 0, 9, words), -1);
  assert_true(g.json && g.force);
  assert_string_equal(g.wait, "5");
  assert_int_equal(g.targets.count, 2);
  assert_string_equal(g.targets.items[1], "sm_120a");
  assert_int_equal(g.words.count, 2);
  assert_string_equal(g.words.items[1], "-b");
  given_done(&g);
}

static void test_the_last_value_counts(void **state)
{
  (void)state;
  struct given g = {0};
  const char *const words[] = {"test", "-w1", "--wait=2", NULL};
  assert_int_equal(parse(&g, 0, 0, words), -1);
  assert_string_equal(g.wait, "2");
  given_done(&g);
}

static void test_wrong_arguments_are_usage_errors(void **state)
{
  (void)state;
  static const char *const wrong[][5] = {
      {"test", NULL},
      {"test", "a", "b", "c", NULL},
      {"test", "a", "--jsno", NULL},
      {"test", "a", "-x", NULL},
      {"test", "a", "--wait", NULL},
      {"test", "a", "--json=1", NULL},
  };
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
    struct given g = {0};
    assert_int_equal(parse(&g, 1, 2, wrong[i]), CFS_INVALID);
    given_done(&g);
  }
}

int main(void)
{
  setlocale(LC_CTYPE, "C.UTF-8");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_width_counts_characters),
      cmocka_unit_test(test_shorten_keeps_what_matters),
      cmocka_unit_test(test_shorten_never_splits_a_character),
      cmocka_unit_test(test_wrapping),
      cmocka_unit_test(test_a_tab_is_not_broken_at),
      cmocka_unit_test(test_table_fits_and_shrinks_only_what_may),
      cmocka_unit_test(test_json_of_bytes_that_are_no_text),
      cmocka_unit_test(test_arguments_in_any_order),
      cmocka_unit_test(test_the_last_value_counts),
      cmocka_unit_test(test_wrong_arguments_are_usage_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
