/* SPDX-License-Identifier: MIT */

/* The program itself, in a tree whose tools are scripts that say how they were started. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/strings.h"
#include "overlays/dispatch/trailer.h"

#define ID     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define NEW_ID "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static char folder[] = "/tmp/cudafs-program-XXXXXX";
static char *template;
static size_t template_size;

static const char script[] =
    "#!/bin/sh\n"
    "printf 'runs %s' \"$0\" | sed \"s,$TOP,TOP,\"\n"
    "for word; do printf '|%s' \"$word\" | sed \"s,$TOP,TOP,\"; done\n"
    "echo\n"
    "[ -n \"$INCLUDES$SYSTEM_INCLUDES$LIBRARIES$CUDAFS_AGAIN\" ] && echo leaked\n"
    "[ -n \"$NVCC_APPEND_FLAGS\" ] && echo \"append $NVCC_APPEND_FLAGS\" | sed \"s,$TOP,TOP,\"\n"
    "[ -n \"$CUDAFS_LEASE\" ] && [ ! -e /proc/self/fd/$CUDAFS_LEASE ] && echo 'no lease'\n"
    "for word; do [ \"$word\" = - ] && cat; done\n"
    "exit 3\n";

/* A served copy at path. damage, when it is not 0, is a byte of the trailer to change. */
static void write_copy(const char *path, const char *tool, const char *id, size_t damage)
{
  cleanup_buffer cfs_buffer b = {0};
  cleanup_free char *text = cfs_format("tool %s\nid %s\nroot %s\nface 13.0\nroute 13.0 13.0.88 9.0 cal 75,90\n"
                                       "route 12.9 12.9.86 8.8 a 50,75,90\nroute 13.4 13.4.92 9.4 cal 75,90,107a\n"
                                       "hint 13.5 9.5 75,90,999\n",
                                       tool, id, folder);
  size_t size = strlen(text);
  if (damage)
    text[damage % size] ^= 0x15;
  cfs_buffer_add(&b, template, template_size);
  cfs_buffer_add(&b, text, size);
  for (int i = 0; i < 8; i++)
    cfs_buffer_add(&b, &(char){(char)(size >> (8 * i))}, 1);
  cfs_buffer_add(&b, CFS_TRAILER_MAGIC, CFS_TRAILER_MAGIC_SIZE);
  assert_int_equal(cfs_file_write(path, b.data, b.size), 0);
  assert_int_equal(chmod(path, 0755), 0);
}

static int plant_view(const char *release)
{
  static const char *const tools[] = {"nvcc", "ptxas", "nvlink"};
  cleanup_free char *view = cfs_format(CFS_VIEWS_PATH "/%s", release);
  cleanup_free char *bin = cfs_path_join(view, "bin");
  cleanup_free char *include = cfs_path_join(view, "include");
  if (cfs_mkdir_all(bin, 0755) < 0 || cfs_mkdir_all(include, 0755) < 0)
    return -1;
  for (size_t i = 0; i < 3; i++) {
    cleanup_free char *tool = cfs_path_join(bin, tools[i]);
    if (cfs_file_write(tool, script, strlen(script)) < 0 || chmod(tool, 0755) < 0)
      return -1;
  }
  return 0;
}

static int enter(void **state)
{
  (void)state;
  const char *path = getenv("CUDAFS_TEST_DISPATCH");
  if (cfs_file_read(path ? path : CUDAFS_TEST_DISPATCH, 16 * 1024 * 1024, &template, &template_size) < 0)
    return -1;
  if (!mkdtemp(folder) || chdir(folder) < 0 || cfs_mkdir_all("bin", 0755) < 0 || cfs_mkdir_all("include", 0755) < 0)
    return -1;
  if (plant_view("13.0") < 0 || plant_view("13.4") < 0 || plant_view("12.9") < 0)
    return -1;
  cfs_file_write(CFS_GATE_PATH, "", 0);
  cfs_file_write(CFS_LEASE_PATH, "", 0);
  setenv("TOP", folder, 1);
  unsetenv("NVCC_PREPEND_FLAGS");
  unsetenv("NVCC_APPEND_FLAGS");
  unsetenv("CUDAFS_RELEASE");
  unsetenv("CUDAFS_TRACE");
  return 0;
}

static int leave(void **state)
{
  (void)state;
  free(template);
  cleanup_free char *command = cfs_format("rm -rf %s", folder);
  return chdir("/") == 0 ? system(command) : -1;
}

static int plant_copies(void **state)
{
  (void)state;
  write_copy("bin/nvcc", "nvcc", ID, 0);
  write_copy("bin/ptxas", "ptxas", ID, 0);
  write_copy("bin/nvlink", "nvlink", ID, 0);
  return cfs_file_write(CFS_ID_PATH, ID "\n", 65);
}

/* Runs a shell command; both its outputs must begin with expected. */
static void assert_run(const char *command, int status, const char *expected)
{
  cleanup_free char *both = cfs_format("{ %s; } 2>&1", command);
  char text[4096] = "";
  FILE *f = popen(both, "r");
  assert_non_null(f);
  size_t n = fread(text, 1, sizeof(text) - 1, f);
  text[n] = '\0';
  int r = pclose(f);
  if (!WIFEXITED(r) || WEXITSTATUS(r) != status || !cfs_has_prefix(text, expected))
    fail_msg("%s: status %x, output:\n%s\nexpected %d:\n%s", command, r, text, status, expected);
}

static void test_the_face(void **state)
{
  (void)state;
  assert_run("INCLUDES=x SYSTEM_INCLUDES=y LIBRARIES=z bin/nvcc -arch=sm_90 -Iinclude k.cu", 3,
             "runs TOP/.cudafs/toolchains/13.0/bin/nvcc|-arch=sm_90|-Iinclude|k.cu\n");
  assert_run("bin/nvcc", 3, "runs TOP/.cudafs/toolchains/13.0/bin/nvcc\n");
  assert_run("bin/nvcc --nonsense -arch=sm_107a", 3,
             "runs TOP/.cudafs/toolchains/13.0/bin/nvcc|--nonsense|-arch=sm_107a\n");
}

static void test_another_release(void **state)
{
  (void)state;
  assert_run(
      "bin/nvcc -arch=sm_107a -I./include -o ./include k.cu", 3,
      "runs "
      "TOP/.cudafs/toolchains/13.4/bin/nvcc|-arch=sm_107a|-I./.cudafs/toolchains/13.4/include|-o|./include|k.cu\n");
  assert_run(
      "NVCC_APPEND_FLAGS=\"-I $TOP/include -arch=sm_107a\" bin/nvcc k.cu", 3,
      "runs TOP/.cudafs/toolchains/13.4/bin/nvcc|k.cu\nappend -I TOP/.cudafs/toolchains/13.4/include -arch=sm_107a\n");
  assert_run("printf '%s' \"-I\\\"$TOP/include\\\" -DA=\\\\ b\" > words; NVCC_APPEND_FLAGS='-optf words' bin/nvcc "
             "-arch=sm_107a",
             3,
             "runs TOP/.cudafs/toolchains/13.4/bin/nvcc|-arch=sm_107a|-ITOP/.cudafs/toolchains/13.4/include|-DA= b\n");
}

/* 400 kB of options cannot stand in argv on every machine, so they come back as a file. */
static void test_long_options_go_through_memory(void **state)
{
  (void)state;
  assert_run("{ seq -f '-DNAME%.0f=1' 20000; echo -Iinclude; } > words; bin/nvcc -arch=sm_107a -optf words", 3,
             "runs TOP/.cudafs/toolchains/13.4/bin/nvcc|-optf|/dev/fd/");
}

static void test_ptxas(void **state)
{
  (void)state;
  const char *view = "runs TOP/.cudafs/toolchains/13.4/bin/ptxas|-arch=sm_90|-\n.version 9.2\n.target sm_90\n";
  assert_run("printf '.version 9.2\\n.target sm_90\\n' > k.ptx; bin/ptxas -arch=sm_90 - < k.ptx", 3, view);
  assert_run("cat k.ptx | bin/ptxas -arch=sm_90 -", 3, view);
  assert_run("cat k.ptx | bin/ptxas -arch=sm_90 - -o x", 3,
             "runs TOP/.cudafs/toolchains/13.4/bin/ptxas|-arch=sm_90|-|-o|x\n.version 9.2\n");
  assert_run("printf '.version 8.0\\n.target sm_50\\n' | bin/ptxas -arch=sm_50 -", 3,
             "runs TOP/.cudafs/toolchains/12.9/bin/ptxas|");
}

static void test_nvlink(void **state)
{
  (void)state;
  assert_run(
      "bin/nvlink --arch=sm_90 -nvvmpath=/face/nvvm x.o", 3,
      "runs TOP/.cudafs/toolchains/13.4/bin/nvlink|--arch=sm_90|-nvvmpath=TOP/.cudafs/toolchains/13.4/nvvm|x.o\n");
}

static void test_advice_and_trace(void **state)
{
  (void)state;
  assert_run("bin/nvcc -arch=sm_999", 3, "cudafs: sm_999 needs CUDA 13.5, which is not here: add its wheels");
  assert_run("CUDAFS_TRACE=1 bin/nvcc -arch=sm_107a", 3, "cudafs: trace: nvcc: ");
  assert_run("CUDAFS_TRACE=0 bin/nvcc", 3, "runs ");
  assert_run("CUDAFS_RELEASE=13.4 bin/nvcc", 3, "runs TOP/.cudafs/toolchains/13.4/bin/nvcc\n");
  assert_run("CUDAFS_RELEASE=12.9 bin/nvcc", 127,
             "cudafs: CUDAFS_RELEASE=12.9: no such release with nvcc here: it has 13.0, 13.4\n");
}

static void test_missing_tool(void **state)
{
  (void)state;
  assert_run(
      "mv .cudafs/toolchains/13.0/bin/nvcc gone; bin/nvcc; r=$?; mv gone .cudafs/toolchains/13.0/bin/nvcc; exit $r",
      127, "cudafs: ");
}

/* As when a reload comes between the start of a process and its lease. */
static void test_a_reload_under_the_start(void **state)
{
  (void)state;
  write_copy("bin/old", "nvcc", ID, 0);
  write_copy("bin/nvcc", "nvcc", NEW_ID, 0);
  assert_int_equal(cfs_file_write(CFS_ID_PATH, NEW_ID "\n", 65), 0);
  assert_run("bin/old -arch=sm_90", 3, "runs TOP/.cudafs/toolchains/13.0/bin/nvcc|-arch=sm_90\n");
  write_copy("bin/nvcc", "nvcc", ID, 0);
  assert_run("bin/nvcc -arch=sm_90", 127, "cudafs: ");
  unlink(CFS_ID_PATH);
  assert_run("bin/nvcc -arch=sm_90", 127, "cudafs: ");
}

static void test_no_trailer(void **state)
{
  (void)state;
  assert_int_equal(cfs_file_write("bin/bare", template, template_size), 0);
  assert_int_equal(chmod("bin/bare", 0755), 0);
  assert_run("bin/bare", 127, "cudafs: bin/bare: it has no trailer");
}

static void test_damage_never_crashes(void **state)
{
  (void)state;
  for (size_t i = 1; i < 120; i++) {
    write_copy("bin/bad", "nvcc", ID, i * 3);
    int r = system("bin/bad -arch=sm_107a >/dev/null 2>&1");
    if (!WIFEXITED(r) || (WEXITSTATUS(r) != 127 && WEXITSTATUS(r) != 3))
      fail_msg("byte %zu: status %x", i * 3, r);
  }
}

int main(void)
{
#define WITH_COPIES(test) cmocka_unit_test_setup(test, plant_copies)
  const struct CMUnitTest tests[] = {
      WITH_COPIES(test_the_face),
      WITH_COPIES(test_another_release),
      WITH_COPIES(test_long_options_go_through_memory),
      WITH_COPIES(test_ptxas),
      WITH_COPIES(test_nvlink),
      WITH_COPIES(test_advice_and_trace),
      WITH_COPIES(test_missing_tool),
      WITH_COPIES(test_a_reload_under_the_start),
      WITH_COPIES(test_no_trailer),
      WITH_COPIES(test_damage_never_crashes),
  };
  return cmocka_run_group_tests_name("dispatch_program", tests, enter, leave);
}
