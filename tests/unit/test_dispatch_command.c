/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/dispatch/command.h"
#include "overlays/dispatch/words.h"

static char folder[] = "/tmp/cudafs-command-XXXXXX";

static int enter(void **state)
{
  (void)state;
  return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave(void **state)
{
  (void)state;
  static const char *const names[] = {"a", "b", "c", "self"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    unlink(names[i]);
  return chdir("/") == 0 ? rmdir(folder) : -1;
}

static void write_file(const char *name, const char *text)
{
  assert_int_equal(cfs_file_write(name, text, strlen(text)), 0);
}

/* The words of c with '|' between. */
static char *flat(const cfs_command *c)
{
  cfs_buffer b = {0};
  cfs_buffer_text(&b, "");
  for (size_t i = 0; i < c->count; i++)
    cfs_buffer_format(&b, "%s%s", i ? "|" : "", c->words[i].text);
  return b.data;
}

/* line is split at blanks into argv. expected is NULL for a broken command. */
static void assert_words(const char *line, const char *prepend, const char *append, const char *expected)
{
  cleanup_strings cfs_strings argv = {0};
  cleanup_command cfs_command c = {0};
  cfs_strings_split(&argv, line, " ");
  cfs_strings_take(&argv, NULL);
  cfs_command_read(&c, &cfs_nvcc_options, argv.items, prepend, append);
  argv.count--;
  cleanup_free char *words = flat(&c);
  if (!expected)
    assert_true(c.broken);
  else
    assert_string_equal(words, expected);
  if (expected)
    assert_false(c.broken);
}

static void test_flags_come_before_and_after(void **state)
{
  (void)state;
  assert_words("-c k.cu", "-DA=\"x y\"  -O3", "\t-G\n", "-DA=\"x y\"|-O3|-c|k.cu|-G");
  /* The last option of the variable takes its value from the command. */
  assert_words("sm_90 k.cu -I", "-arch", "/x", "-arch|sm_90|k.cu|-I|/x");
  assert_words("k.cu", "-DA\\ b", NULL, NULL);
  assert_words("k.cu", "\"open", NULL, NULL);
}

static void test_files_are_expanded_in_place(void **state)
{
  (void)state;
  write_file("a", "-DA=\"1 2\"\r\n-I /x\\ y\t\"\"-optf b\n# k.cu");
  write_file("b", "-G'");
  write_file("c", "");
  assert_words("-O2 -optf a,c x.cu", NULL, NULL, "-O2|-DA=1 2|-I|/x y|-G'|#|k.cu|x.cu");
  write_file("a", "-DA -optf b -DC");
  assert_words("--options-file=a", NULL, NULL, "-DA|-G'|-DC");
  assert_words("k.cu", "-optf a", NULL, "-DA|-G'|-DC|k.cu");
  /* Here -optf is the value of -I. */
  assert_words("-I -optf a", NULL, NULL, "-I|-optf|a");
}

static void test_what_the_tool_refuses_is_broken(void **state)
{
  (void)state;
  write_file("self", "-optf self -optf self");
  write_file("a", "-arch");
  write_file("b", "-DA=\"open");
  assert_words("-optf self", NULL, NULL, NULL);
  assert_words("-optf a sm_90", NULL, NULL, NULL);
  assert_words("-optf b", NULL, NULL, NULL);
  assert_words("-optf missing", NULL, NULL, NULL);
  assert_words("-optf /", NULL, NULL, NULL);
  assert_words("k.cu -arch", NULL, NULL, NULL);
  assert_words("k.cu -Ofc", NULL, NULL, "k.cu|-Ofc");
}

static void test_a_pipe_can_still_be_read(void **state)
{
  (void)state;
  int ends[2];
  char text[32] = "", path[32];
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(write(ends[1], "-DA -DB", 7), 7);
  close(ends[1]);
  snprintf(path, sizeof(path), "-optf=/dev/fd/%d", ends[0]);
  assert_words(path, NULL, NULL, "-DA|-DB");
  assert_int_equal(read(ends[0], text, sizeof(text)), 7);
  close(ends[0]);
}

static void assert_match(const char *word, const char *name, const char *value, bool next, bool unknown)
{
  struct cfs_match m = cfs_option_match(&cfs_nvcc_options, word);
  assert_int_equal(m.unknown, unknown);
  assert_int_equal(m.takes_next, next);
  if (!name)
    assert_null(m.option);
  else
    assert_string_equal(m.option ? m.option->name : "(none)", name);
  if (value)
    assert_string_equal(m.value, value);
  else
    assert_null(m.value);
}

static void test_options_are_exact(void **state)
{
  (void)state;
  assert_match("-arch", "-arch", NULL, true, false);
  assert_match("-arch=sm_90", "-arch", "sm_90", false, false);
  assert_match("--gpu-architecture=", "--gpu-architecture", "", false, false);
  assert_match("--arch=sm_90", NULL, NULL, false, true);
  assert_match("-gpu-architecture=sm_90", NULL, NULL, false, true);
  assert_match("-archsm_90", NULL, NULL, false, true);
  assert_match("-I/x", "-I", "/x", false, false);
  assert_match("-I=/x", "-I", "/x", false, false);
  assert_match("-include", "-include", NULL, true, false);
  assert_match("-link", "-link", NULL, false, false);
  assert_match("-lfoo", "-l", "foo", false, false);
  assert_match("-DX=1", "-D", "X=1", false, false);
  assert_match("-t4", "-t", "4", false, false);
  assert_match("-m64", "-m64", NULL, false, false);
  assert_match("-xcu", NULL, NULL, false, true);
  assert_match("--", NULL, NULL, false, true);
  assert_match("-c=1", NULL, NULL, false, true);
  assert_match("-", NULL, NULL, false, false);
  assert_match("k.cu", NULL, NULL, false, false);
  assert_match("", NULL, NULL, false, false);
  /* ptxas takes -O3 and -O=3, but in -O 3 the 3 is an input. */
  assert_false(cfs_option_match(&cfs_ptxas_options, "-O").takes_next);
  assert_true(cfs_option_match(&cfs_ptxas_options, "--opt-level").takes_next);
}

static void test_tables_are_sorted(void **state)
{
  (void)state;
  const struct cfs_option_table *tables[] = {&cfs_nvcc_options, &cfs_ptxas_options, &cfs_nvlink_options};
  for (size_t t = 0; t < 3; t++)
    for (size_t i = 0; i < tables[t]->count; i++) {
      const char *name = tables[t]->options[i].name;
      if (i && strcmp(tables[t]->options[i - 1].name, name) >= 0)
        fail_msg("%s is out of order", name);
      assert_ptr_equal(cfs_option_match(tables[t], name).option, &tables[t]->options[i]);
    }
}

static void test_quoted_words_come_back(void **state)
{
  (void)state;
  static const char alphabet[] = "ab \t\r\n\"\\'#-";
  srand(2);
  for (int round = 0; round < 2000; round++) {
    cleanup_strings cfs_strings words = {0}, back = {0};
    cleanup_buffer cfs_buffer b = {0};
    for (int n = rand() % 5; n >= 0; n--) {
      char word[8] = "";
      for (int i = rand() % 8; i > 0; i--)
        word[i - 1] = alphabet[(size_t)rand() % (sizeof(alphabet) - 1)];
      cfs_strings_add(&words, word);
      cfs_words_quote(&b, word);
      cfs_buffer_text(&b, "\n");
    }
    assert_int_equal(cfs_words_split_file(&back, b.data, b.size), 0);
    assert_int_equal(back.count, words.count);
    for (size_t i = 0; i < words.count; i++)
      assert_string_equal(back.items[i], words.items[i]);
  }
}

/* Random words through the whole walk; the sanitizers watch. */
static void test_no_command_crashes(void **state)
{
  (void)state;
  srand(3);
  write_file("a", "-optf b \"x");
  write_file("b", "-I");
  for (int round = 0; round < 20000; round++) {
    char words[6][12] = {{0}};
    char *argv[7] = {0};
    for (int n = rand() % 7; n > 0; n--) {
      for (size_t i = 0; i < sizeof(words[0]); i++)
        words[n - 1][i] = "-=,abcoptfIarch\"\\ "[rand() % 18];
      words[n - 1][rand() % 12] = '\0';
      argv[n - 1] = words[n - 1];
      if (rand() % 4 == 0)
        argv[n - 1] = (char *)(uintptr_t)cfs_nvcc_options.options[(size_t)rand() % cfs_nvcc_options.count].name;
    }
    cleanup_command cfs_command c = {0};
    struct cfs_item item;
    cfs_command_read(&c, round % 2 ? &cfs_nvcc_options : &cfs_ptxas_options, argv,
                     words[5][0] == '-' ? "-optf a" : NULL, NULL);
    for (size_t at = 0; cfs_command_next(&c, &at, &item);)
      assert_true(item.word < c.count);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_flags_come_before_and_after),
      cmocka_unit_test(test_files_are_expanded_in_place),
      cmocka_unit_test(test_what_the_tool_refuses_is_broken),
      cmocka_unit_test(test_a_pipe_can_still_be_read),
      cmocka_unit_test(test_options_are_exact),
      cmocka_unit_test(test_tables_are_sorted),
      cmocka_unit_test(test_quoted_words_come_back),
      cmocka_unit_test(test_no_command_crashes),
  };
  return cmocka_run_group_tests_name("dispatch_command", tests, enter, leave);
}
