/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/strings.h"
#include "overlays/dispatch/rewrite.h"

#define VIEW ".cudafs/toolchains/13.5"

/* A root in the working folder, the shape of a real one: root/include -> targets/x/include. */
static char folder[] = "/tmp/cudafs-rewrite-XXXXXX";
static struct cfs_rewrite rw;

static int plant(const char *top)
{
  cleanup_free char *include = cfs_path_join(top, "targets/x/include/cccl");
  cleanup_free char *lib = cfs_path_join(top, "targets/x/lib");
  cleanup_free char *bin = cfs_path_join(top, "bin");
  cleanup_free char *archive = cfs_path_join(top, "targets/x/lib/libcudart.so");
  cleanup_free char *include_link = cfs_path_join(top, "include");
  cleanup_free char *lib_link = cfs_path_join(top, "lib64");
  if (cfs_mkdir_all(include, 0755) < 0 || cfs_mkdir_all(lib, 0755) < 0 || cfs_mkdir_all(bin, 0755) < 0)
    return -1;
  if (symlink("targets/x/include", include_link) < 0 || symlink("targets/x/lib", lib_link) < 0)
    return -1;
  return cfs_file_write(archive, "", 0);
}

static int enter(void **state)
{
  (void)state;
  if (!mkdtemp(folder) || chdir(folder) < 0 || plant("root/" VIEW) < 0 || plant("root") < 0)
    return -1;
  if (cfs_mkdir_all("root/extra", 0755) < 0 || cfs_mkdir_all("other", 0755) < 0)
    return -1;
  if (symlink("root", "link") < 0 || symlink("root/include", "inside") < 0)
    return -1;
  return cfs_rewrite_init(&rw, "root", VIEW);
}

static int leave(void **state)
{
  (void)state;
  cleanup_free char *command = cfs_format("rm -rf %s", folder);
  return chdir("/") == 0 ? system(command) : -1;
}

static void assert_path(const char *path, const char *expected)
{
  cleanup_free char *moved = cfs_rewrite_path(&rw, path);
  if (!expected != !moved || (expected && strcmp(moved, expected) != 0))
    fail_msg("%s became %s, not %s", path, moved ? moved : "(stays)", expected ? expected : "(stays)");
}

static void test_paths_in_any_spelling(void **state)
{
  (void)state;
  assert_path("root", "root/" VIEW);
  assert_path("root/", "root/" VIEW);
  assert_path("root/include", "root/" VIEW "/include");
  assert_path("./root//include/cccl/", "./root/" VIEW "/include/cccl/");
  assert_path("root/bin/../include", "root/bin/../" VIEW "/include");
  assert_path("root/targets/x/include", "root/" VIEW "/targets/x/include");
  assert_path("link/include", "link/" VIEW "/include");
  assert_path("root/lib64/libcudart.so", "root/" VIEW "/lib64/libcudart.so");
  cleanup_free char *whole = cfs_format("%s/root/include", folder);
  cleanup_free char *moved = cfs_format("%s/root/" VIEW "/include", folder);
  assert_path(whole, moved);
}

static void test_links_into_the_root(void **state)
{
  (void)state;
  cleanup_free char *expected = cfs_format("%s/root/" VIEW "/targets/x/include/cccl", folder);
  assert_path("inside/cccl", expected);
}

static void test_what_stays(void **state)
{
  (void)state;
  assert_path("", NULL);
  assert_path("/", NULL);
  assert_path("other", NULL);
  assert_path("/usr/include", NULL);
  assert_path("root/" VIEW "/include", NULL);
  assert_path("root/.cudafs/env", NULL);
  assert_path("root/extra", NULL);
  assert_path("root/missing", NULL);
  assert_path("rooted/include", NULL);
}

/* '|' parts the words. */
static void assert_command(const char *line, const char *expected)
{
  cleanup_strings cfs_strings argv = {0}, words = {0};
  cleanup_command cfs_command c = {0};
  cfs_strings_split(&argv, line, "|");
  cfs_strings_take(&argv, NULL);
  cfs_command_read(&c, &cfs_nvcc_options, argv.items, NULL, NULL);
  argv.count--;
  cfs_rewrite_command(&rw, &c);
  for (size_t i = 0; i < c.count; i++)
    cfs_strings_add(&words, c.words[i].text);
  cleanup_free char *joined = cfs_strings_join(&words, "|");
  if (strcmp(joined, expected) != 0)
    fail_msg("%s\nbecame %s\nnot    %s", line, joined, expected);
}

#define INC "root/" VIEW "/include"
#define LIB "root/" VIEW "/lib64"

static void test_options_that_read(void **state)
{
  (void)state;
  assert_command("-Iroot/include|-I|root/include|-I=root/include", "-I" INC "|-I|" INC "|-I=" INC);
  assert_command("-isystem|other,root/include,x|--library-path=root/lib64",
                 "-isystem|other," INC ",x|--library-path=" LIB);
  assert_command("root/lib64/libcudart.so|k.cu", LIB "/libcudart.so|k.cu");
}

static void test_options_that_write_or_name(void **state)
{
  (void)state;
  static const char *const same[] = {"-o|root/include",
                                     "-o=root/include",
                                     "-MF|root/include",
                                     "-odir|root/include",
                                     "-MT|root/include",
                                     "-Droot/include",
                                     "-ccbin|root/bin",
                                     "-Xptxas|root/include",
                                     "-Xlinker|-rpath|-Xlinker|root/lib64",
                                     "-Xlinker|-rpath,root/lib64",
                                     "-Xlinker=-rpath=root/lib64",
                                     "-Xcompiler|-Wl,-rpath,root/lib64",
                                     "-Xcompiler|\"-Wl\\,-rpath\\,root/lib64\"",
                                     "-Xcompiler|-o,root/include",
                                     "-Xcompiler|-DA=root/include",
                                     "-Xcompiler|-D root/include"};
  for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
    assert_command(same[i], same[i]);
}

static void test_words_for_the_host(void **state)
{
  (void)state;
  assert_command("-Xcompiler|-Iroot/include,-isystem,root/include", "-Xcompiler|-I" INC ",-isystem," INC);
  assert_command("-Xcompiler|-isystem root/include -O2", "-Xcompiler|-isystem " INC " -O2");
  assert_command("-Xcompiler|-isystem|-Xcompiler=root/include", "-Xcompiler|-isystem|-Xcompiler=" INC);
  assert_command("-Xcompiler|-isystemroot/include,-iquoteroot/include", "-Xcompiler|-isystem" INC ",-iquote" INC);
  assert_command("-Xlinker|-Lroot/lib64|-Xlinker|root/lib64/libcudart.so",
                 "-Xlinker|-L" LIB "|-Xlinker|" LIB "/libcudart.so");
  assert_command("-Xcompiler|\"-Wl\\,-Lroot/lib64\"", "-Xcompiler|\"-Wl\\,-L" LIB "\"");
  assert_command("-forward-unknown-opts|-iquoteroot/include", "-forward-unknown-opts|-iquote" INC);
}

static void test_lists(void **state)
{
  (void)state;
  cleanup_free char *moved = cfs_rewrite_list(&rw, "other:root/include:", ':');
  assert_string_equal(moved, "other:" INC ":");
  assert_null(cfs_rewrite_list(&rw, "other::", ':'));
  assert_null(cfs_rewrite_list(&rw, "", ':'));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_paths_in_any_spelling),
      cmocka_unit_test(test_links_into_the_root),
      cmocka_unit_test(test_what_stays),
      cmocka_unit_test(test_options_that_read),
      cmocka_unit_test(test_options_that_write_or_name),
      cmocka_unit_test(test_words_for_the_host),
      cmocka_unit_test(test_lists),
  };
  return cmocka_run_group_tests_name("dispatch_rewrite", tests, enter, leave);
}
