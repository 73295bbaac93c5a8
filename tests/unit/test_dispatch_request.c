/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/dispatch/arch.h"
#include "overlays/dispatch/request.h"

static char folder[] = "/tmp/cudafs-request-XXXXXX";

static void write_file(const char *name, const char *text)
{
  assert_int_equal(cfs_file_write(name, text, strlen(text)), 0);
}

static int enter(void **state)
{
  (void)state;
  if (!mkdtemp(folder) || chdir(folder) < 0)
    return -1;
  write_file("old.ptx", "// c\n.version 8.0\n.target sm_90\n");
  write_file("new.ptx", ".version 9.4\n.target sm_107a\n");
  write_file("binary.ptx", "\177ELF");
  return 0;
}

static int leave(void **state)
{
  (void)state;
  unlink("old.ptx");
  unlink("new.ptx");
  unlink("long.ptx");
  unlink("binary.ptx");
  return chdir("/") == 0 ? rmdir(folder) : -1;
}

typedef void (*reader)(const cfs_command *c, cfs_request *ret);

/* '|' parts the words of line. */
static void read_line(reader read, const struct cfs_option_table *table, const char *line, const char *prepend,
                      const char *append, cfs_request *ret)
{
  cleanup_strings cfs_strings argv = {0};
  cleanup_command cfs_command c = {0};
  cfs_strings_split(&argv, line, "|");
  cfs_strings_take(&argv, NULL);
  cfs_command_read(&c, table, argv.items, prepend, append);
  argv.count--;
  read(&c, ret);
}

static void assert_archs(const char *line, const char *prepend, const char *append, const char *expected)
{
  cleanup_request cfs_request q = {0};
  read_line(cfs_request_nvcc, &cfs_nvcc_options, line, prepend, append, &q);
  cleanup_free char *archs = cfs_strings_join(&q.archs, ",");
  if (strcmp(archs, expected) != 0)
    fail_msg("%s: %s, not %s", line, archs, expected);
}

static void test_nvcc_archs(void **state)
{
  (void)state;
  assert_archs("-c|k.cu", NULL, NULL, "");
  assert_archs("-arch=sm_90|-arch|sm_100a|k.cu", NULL, NULL, "100a");
  assert_archs("-arch=sm_90", "-arch=sm_80", "--gpu-architecture=compute_120f", "120f");
  assert_archs("-arch=compute_80|-code=sm_80,sm_86|--gpu-code|\"lto_89,compute_80\"", NULL, NULL, "80,86,89");
  assert_archs("-gencode=arch=compute_90a,code=sm_90a|--generate-code|code=[sm_100, compute_100],arch=compute_100",
               NULL, NULL, "90a,100");
  assert_archs("-gencode|arch=compute_80,code=\"sm_80,sm_86\"", NULL, "-gencode arch=compute_120,code=sm_120",
               "80,86,120");
  assert_archs("-arch=native", NULL, NULL, "");
  assert_archs("-arch=all-major|-arch=all", NULL, NULL, "");
  assert_archs("-I|-arch=sm_90|-Xptxas|-arch=sm_80|-D|-code=sm_75|-o|-arch=sm_86|k.cu", NULL, NULL, "");
  assert_archs("-I/a,-arch=sm_90|-MT|-arch=sm_80|-Xcicc|-gencode", NULL, NULL, "");
  assert_archs("-Ofc|-arch=sm_80|-hls|-code=sm_80", NULL, NULL, "80");
  assert_archs("-arch=sm_|-code=sm_90x9,sm_90|-gencode=arch=compute_1234567", NULL, NULL, "90");
}

static bool is_broken(const char *line)
{
  cleanup_request cfs_request q = {0};
  read_line(cfs_request_nvcc, &cfs_nvcc_options, line, NULL, NULL, &q);
  return q.broken;
}

static void test_nvcc_errors(void **state)
{
  (void)state;
  assert_true(is_broken("--arch=sm_90|k.cu"));
  assert_true(is_broken("-zzz|k.cu"));
  assert_false(is_broken("-zzz|k.cu|-forward-unknown-to-host-compiler"));
  assert_true(is_broken("k.cu|-o"));
  assert_false(is_broken("k.cu|-o|-zzz"));
}

static void assert_ptxas(const char *line, const char *archs, const char *targets, int major, int minor, bool undecided)
{
  cleanup_request cfs_request q = {0};
  read_line(cfs_request_ptxas, &cfs_ptxas_options, line, NULL, NULL, &q);
  cleanup_free char *a = cfs_strings_join(&q.archs, ","), *t = cfs_strings_join(&q.targets, ",");
  assert_string_equal(a, archs);
  assert_string_equal(t, targets);
  assert_int_equal(q.ptx.major, major);
  assert_int_equal(q.ptx.minor, minor);
  assert_int_equal(q.undecided, undecided);
}

static void test_ptxas_inputs(void **state)
{
  (void)state;
  assert_ptxas("-arch=sm_90|old.ptx|-o|x", "90", "90", 8, 0, false);
  assert_ptxas("-arch=sm_80|--gpu-name|sm_120|old.ptx|new.ptx", "120", "90,107a", 9, 4, false);
  assert_ptxas("-arch=sm_90|-o|new.ptx|old.ptx", "90", "90", 8, 0, false);
  assert_ptxas("-arch=sm_90|-ias|.version 9.1\n.target sm_90 \n|old.ptx", "90", "90", 9, 1, false);
  assert_ptxas("-arch=sm_90|binary.ptx", "90", "", 0, 0, true);
  assert_ptxas("-arch=sm_90|old.ptx|missing.ptx", "90", "90", 8, 0, true);
  assert_ptxas("-arch=sm_90|old.ptx,new.ptx", "90", "", 0, 0, true);
  assert_ptxas("-arch=sm_90", "90", "", 0, 0, false);
  /* -O 3: the 3 is an input. */
  assert_ptxas("-arch=sm_90|-O|3|old.ptx", "90", "90", 8, 0, true);
}

static void test_ptxas_long_comment(void **state)
{
  (void)state;
  cleanup_buffer cfs_buffer b = {0};
  for (int i = 0; i < 20000; i++)
    cfs_buffer_text(&b, "// comment\n");
  cfs_buffer_text(&b, ".version 9.2\n.target sm_100a\n");
  write_file("long.ptx", b.data);
  assert_ptxas("-arch=sm_100a|long.ptx", "100a", "100a", 9, 2, false);
}

static void test_ptxas_standard_input_stays(void **state)
{
  (void)state;
  int ends[2], kept = dup(STDIN_FILENO);
  char text[64] = "";
  const char ptx[] = ".version 9.3\n.target sm_90\n";
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(write(ends[1], ptx, strlen(ptx)), strlen(ptx));
  close(ends[1]);
  dup2(ends[0], STDIN_FILENO);
  close(ends[0]);
  /* A wrong command must not wait for an input. */
  cleanup_request cfs_request q = {0};
  read_line(cfs_request_ptxas, &cfs_ptxas_options, "--arch=sm_90|-", NULL, NULL, &q);
  assert_true(q.broken);
  assert_ptxas("-arch=sm_90|-", "90", "90", 9, 3, false);
  assert_int_equal(read(STDIN_FILENO, text, sizeof(text)), strlen(ptx));
  assert_string_equal(text, ptx);
  dup2(kept, STDIN_FILENO);
  close(kept);
}

/* The writer is slow and the pipe does not block: nothing may be taken for the end. */
static void test_ptxas_waits_for_a_slow_writer(void **state)
{
  (void)state;
  int ends[2];
  char line[64];
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
  pid_t pid = fork();
  if (pid == 0) {
    static const char *const parts[] = {".version ", "9.3\n", ".target sm_90\n"};
    for (size_t i = 0; i < 3; i++) {
      usleep(30000);
      if (write(ends[1], parts[i], strlen(parts[i])) < 0)
        _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  snprintf(line, sizeof(line), "-arch=sm_90|/dev/fd/%d", ends[0]);
  assert_ptxas(line, "90", "90", 9, 3, false);
  close(ends[0]);
  assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_reports(void **state)
{
  (void)state;
  cleanup_request cfs_request nvcc = {0}, ptxas = {0}, nvlink = {0};
  read_line(cfs_request_nvcc, &cfs_nvcc_options, "-V", NULL, NULL, &nvcc);
  read_line(cfs_request_ptxas, &cfs_ptxas_options, "--version|-", NULL, NULL, &ptxas);
  read_line(cfs_request_nvlink, &cfs_nvlink_options, "--arch=sm_90|-cpu-arch=X86_64|x.o|--host-ccbin|gcc", NULL, NULL,
            &nvlink);
  assert_true(nvcc.report && ptxas.report && !nvlink.report);
  assert_string_equal(nvlink.archs.items[0], "90");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nvcc_archs),
      cmocka_unit_test(test_nvcc_errors),
      cmocka_unit_test(test_ptxas_inputs),
      cmocka_unit_test(test_ptxas_long_comment),
      cmocka_unit_test(test_ptxas_standard_input_stays),
      cmocka_unit_test(test_ptxas_waits_for_a_slow_writer),
      cmocka_unit_test(test_reports),
  };
  return cmocka_run_group_tests_name("dispatch_request", tests, enter, leave);
}
