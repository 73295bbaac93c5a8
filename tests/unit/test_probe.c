/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "overlays/elf.h"
#include "overlays/probe.h"
#include "overlays/runner.h"

/* The tools under test: this program itself, which acts as a ptxas when it is called by that name; shell
 * scripts, where a tool is to misbehave or to be counted; and the real one that CUDAFS_TEST_PTXAS names. */

static char directory[64];
static char self[4096];

/* Knows sm_75, sm_90 and sm_90a, of which --help conceals sm_90a. Fails when it was not given the
 * empty surroundings that a probe promises. */
static int act_as_ptxas(int argc, char **argv)
{
  static const char *const known[] = {"-arch=sm_75", "-arch=sm_90", "-arch=sm_90a"};
  bool version = false;
  if (environ[0] || getchar() != EOF)
    return 99;
  for (int i = 1; i < argc; i++) {
    size_t k = 0;
    if (strcmp(argv[i], "-ias") == 0) {
      fputs("ptxas application ptx input, line 1; fatal   : Unsupported .version 99.0; current version is '9.2'\n",
            stderr);
      return 255;
    }
    if (strcmp(argv[i], "--help") == 0)
      puts("--gpu-name <gpu name> (-arch)\n Allowed values: 'compute_75','lto_75','sm_75',\n 'sm_90', 'sm_', 'sm_x'\n"
           " Default value:  'sm_75'. It's that");
    version |= strcmp(argv[i], "--version") == 0;
    while (k < 3 && strcmp(argv[i], known[k]) != 0)
      k++;
    if (k == 3 && cfs_has_prefix(argv[i], "-arch=")) {
      fprintf(stderr, "ptxas fatal   : Value '%s' is not defined for option 'gpu-name'\n", argv[i] + 6);
      return 255;
    }
  }
  if (version)
    puts("ptxas: Ptx optimizing assembler\nCuda compilation tools, release 13.2, V13.2.78\nBuild cuda_13.2.r13.2/c");
  return 0;
}

static char *in_directory(const char *name)
{
  return cfs_path_join(directory, name);
}

static int set_up(void **state)
{
  snprintf(directory, sizeof(directory), "/tmp/cudafs-test-probe-XXXXXX");
  (void)state;
  /* By its name: the link itself leads a child that runs under valgrind to valgrind. */
  ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
  return n > 0 && mkdtemp(directory) ? 0 : -1;
}

static int tear_down(void **state)
{
  (void)state;
  cleanup_free char *command = cfs_format("rm -rf '%s'", directory);
  return system(command);
}

static char *write_script(const char *name, const char *body)
{
  char *path = in_directory(name);
  cleanup_free char *text = cfs_format("#!/bin/sh\n%s\n", body);
  assert_int_equal(cfs_file_write(path, text, strlen(text)), 0);
  assert_int_equal(chmod(path, 0755), 0);
  return path;
}

/* A well-behaved ptxas that leaves a line in the file `calls` each time it runs. */
static char *write_counted(const char *name, const char *calls)
{
  cleanup_free char *body =
      cfs_format("echo call >>'%s'\n"
                 "case \"$*\" in\n"
                 "*-ias*) echo \"current version is '8.7'\"; exit 255;;\n"
                 "*=sm_1*) echo \"Value 'sm_1' is not defined for option 'gpu-name'\"; exit 255;;\n"
                 "*--help*) echo \"'sm_90'\";;\n"
                 "*) echo 'Cuda compilation tools, release 12.8, V12.8.93';;\n"
                 "esac",
                 calls);
  return write_script(name, body);
}

static size_t count_lines(const char *path)
{
  cleanup_free char *text = NULL;
  size_t size, lines = 0;
  if (cfs_file_read(path, 1 << 20, &text, &size) < 0)
    return 0;
  for (size_t i = 0; i < size; i++)
    lines += text[i] == '\n';
  return lines;
}

static void universe_of(cfs_strings *universe, const char *words)
{
  cfs_strings_split(universe, words, " ");
}

static void assert_probe(const struct cfs_probe *probe, const char *version, const char *max_ptx, const char *targets)
{
  cleanup_free char *joined = cfs_strings_join(&probe->targets, " ");
  assert_string_equal(probe->version, version);
  assert_string_equal(probe->max_ptx, max_ptx);
  assert_string_equal(joined, targets);
}

static void test_probe_asks_the_tool(void **state)
{
  (void)state;
  cleanup_strings cfs_strings universe = {0};
  cleanup_probe struct cfs_probe *probe = NULL, *bare = NULL;
  cleanup_free char *cache = in_directory("cache-asks");
  universe_of(&universe, "sm_90a sm_52 sm_90 sm_120f sm_90 nonsense --version sm_");
  assert_int_equal(cfs_probe_ptxas(self, &universe, cache, &probe, NULL), 0);
  assert_probe(probe, "13.2.78", "9.2", "sm_75 sm_90 sm_90a");
  cleanup_free char *other = in_directory("cache-other");
  assert_int_equal(cfs_probe_ptxas(self, NULL, other, &bare, NULL), 0);
  assert_probe(bare, "13.2.78", "9.2", "sm_75 sm_90");
}

/* Readable but not executable, as a wheel's tools are to other users (mode 0744). */
static void test_unexecutable_tool_runs_from_memory(void **state)
{
  (void)state;
  cleanup_free char *copy = in_directory("ptxas-0644"), *cache = in_directory("cache-copy"), *program = NULL;
  size_t size;
  assert_int_equal(cfs_file_read(self, 1 << 28, &program, &size), 0);
  assert_int_equal(cfs_file_write(copy, program, size), 0);
  assert_int_equal(access(copy, X_OK), -1);
  cleanup_probe struct cfs_probe *probe = NULL;
  assert_int_equal(cfs_probe_ptxas(copy, NULL, cache, &probe, NULL), 0);
  assert_probe(probe, "13.2.78", "9.2", "sm_75 sm_90");
}

static void test_cache_spares_the_tool(void **state)
{
  (void)state;
  cleanup_free char *calls = in_directory("calls"), *tool = write_counted("counted", calls);
  cleanup_free char *cache = in_directory("cache/deep");
  cleanup_probe struct cfs_probe *first = NULL, *second = NULL, *third = NULL, *fourth = NULL;
  assert_int_equal(cfs_probe_ptxas(tool, NULL, cache, &first, NULL), 0);
  assert_probe(first, "12.8.93", "8.7", "sm_90");
  size_t asked = count_lines(calls);
  assert_true(asked > 0);
  assert_int_equal(cfs_probe_ptxas(tool, NULL, cache, &second, NULL), 0);
  assert_probe(second, "12.8.93", "8.7", "sm_90");
  assert_int_equal(count_lines(calls), asked);
  /* A target that was not asked about, then a changed file. */
  cleanup_strings cfs_strings universe = {0};
  universe_of(&universe, "sm_1");
  assert_int_equal(cfs_probe_ptxas(tool, &universe, cache, &third, NULL), 0);
  assert_true(count_lines(calls) > asked);
  asked = count_lines(calls);
  assert_int_equal(utimensat(AT_FDCWD, tool, (struct timespec[]){{1, 0}, {1, 0}}, 0), 0);
  assert_int_equal(cfs_probe_ptxas(tool, &universe, cache, &fourth, NULL), 0);
  assert_true(count_lines(calls) > asked);
}

static void overwrite_all(const char *dir, const char *text)
{
  cleanup_closedir DIR *d = opendir(dir);
  assert_non_null(d);
  for (struct dirent *e; (e = readdir(d));) {
    if (e->d_name[0] == '.')
      continue;
    cleanup_free char *path = cfs_path_join(dir, e->d_name);
    assert_int_equal(cfs_file_write(path, text, strlen(text)), 0);
  }
}

static void test_damaged_cache_is_made_anew(void **state)
{
  (void)state;
  static const char *const damages[] = {"", "{", "[]", "{\"cudafs-probe\": 1}", "{\"cudafs-probe\": \"x\"}"};
  cleanup_free char *calls = in_directory("calls-damaged"), *tool = write_counted("damaged", calls);
  cleanup_free char *cache = in_directory("cache-damaged");
  for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
    cleanup_probe struct cfs_probe *probe = NULL, *again = NULL;
    size_t asked = count_lines(calls);
    assert_int_equal(cfs_probe_ptxas(tool, NULL, cache, &probe, NULL), 0);
    assert_probe(probe, "12.8.93", "8.7", "sm_90");
    assert_true(count_lines(calls) > asked);
    asked = count_lines(calls);
    assert_int_equal(cfs_probe_ptxas(tool, NULL, cache, &again, NULL), 0);
    assert_int_equal(count_lines(calls), asked);
    overwrite_all(cache, damages[i]);
  }
}

static void test_cache_that_cannot_be_written(void **state)
{
  (void)state;
  cleanup_probe struct cfs_probe *probe = NULL;
  assert_int_equal(cfs_probe_ptxas(self, NULL, "/proc/self/nowhere", &probe, NULL), 0);
  assert_probe(probe, "13.2.78", "9.2", "sm_75 sm_90");
}

static void assert_fails(const char *path, int expected)
{
  cleanup_free char *cache = in_directory("cache-fails");
  cleanup_error cfs_error *err = NULL;
  struct cfs_probe *probe = NULL;
  assert_int_equal(cfs_probe_ptxas(path, NULL, cache, &probe, &err), expected);
  assert_null(probe);
  assert_string_equal(err->what, path);
}

static void test_what_cannot_run(void **state)
{
  (void)state;
  cleanup_free char *garbage = in_directory("garbage");
  assert_int_equal(cfs_file_write(garbage, "\177ELF garbage", 12), 0);
  assert_fails(garbage, -ENOEXEC);
  assert_int_equal(chmod(garbage, 0755), 0);
  assert_fails(garbage, -ENOEXEC);
  assert_fails(directory, -ENOEXEC);
  assert_fails("/nonexistent/ptxas", -ENOENT);
}

static void test_missing_loader(void **state)
{
  (void)state;
  cleanup_free char *loader = write_script("loader", "");
  assert_int_equal(cfs_file_write(loader, "#!/nonexistent/loader\n", 22), 0);
  assert_int_equal(chmod(loader, 0755), 0);
  assert_fails(loader, -ENOEXEC);
}

static void test_root_does_not_run_what_others_may_change(void **state)
{
  (void)state;
  if (geteuid() != 0) {
    if (getenv("CUDAFS_MUST_RUN"))
      fail_msg("this test needs root");
    print_message("SKIP: this test needs root\n");
    skip();
  }
  cleanup_free char *calls = in_directory("calls-root"), *tool = write_counted("of-another", calls);
  assert_int_equal(chown(tool, 65534, 65534), 0);
  assert_fails(tool, -ENOEXEC);
  assert_int_equal(chown(tool, 0, 65534), 0);
  assert_int_equal(chmod(tool, 0775), 0);
  assert_fails(tool, -ENOEXEC);
  assert_int_equal(chown(tool, 0, 0), 0);
  assert_int_equal(chmod(tool, 0757), 0);
  assert_fails(tool, -ENOEXEC);
  assert_int_equal(count_lines(calls), 0);
}

static void test_what_is_no_ptxas(void **state)
{
  (void)state;
  static const char *const bodies[] = {
      "exit 0",
      "kill -9 $$",
      "echo \"current version is 'x'\"",
      "while :; do echo yesyesyesyesyesyesyesyesyesyesyesyesyesyesyesyesyes; done",
      "echo \"current version is '9.2'\"; echo \"'sm_90'\"; exit 1",
      "echo \"current version is '9.2'\"; echo \"'sm_90'\"; exit 0",
      "echo \"current version is '9.2'\"; echo \"Value 'sm_1' is not defined for option 'gpu-name'\"; exit 255",
      "echo \"current version is '9.2'\"; echo 'Cuda compilation tools, release 13.2, V13.2.78'",
  };
  for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
    cleanup_free char *name = cfs_format("no-ptxas-%zu", i), *tool = write_script(name, bodies[i]);
    assert_fails(tool, -ENODATA);
  }
}

static void test_run_kills_what_hangs(void **state)
{
  (void)state;
  /* Silent, silent with its output closed, and a child that keeps the pipe. */
  static const char *const bodies[] = {"sleep 60", "exec >&- 2>&-; sleep 60", "sleep 60 & echo $! >child; echo done"};
  for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
    cleanup_free char *body = cfs_format("cd '%s'; %s", directory, bodies[i]), *tool = write_script("hangs", body);
    struct cfs_call call = {.argv = (const char *[]){"hangs", NULL}};
    assert_int_equal(cfs_run(tool, &call, 1, 300), -ETIMEDOUT);
    assert_null(call.output);
  }
  cleanup_free char *child = in_directory("child"), *text = NULL;
  assert_int_equal(cfs_file_read(child, 100, &text, NULL), 0);
  for (int i = 0; i < 100 && kill(atoi(text), 0) == 0; i++)
    usleep(20 * 1000);
  assert_int_equal(kill(atoi(text), 0), -1);
}

static void test_run_two_at_once(void **state)
{
  (void)state;
  /* Each waits for the other: one after the other they would time out. */
  cleanup_free char *body =
      cfs_format("cd '%s'; echo $1; echo problem >&2; touch $1; while ! test -e $2; do sleep 0.01; "
                 "done; exit $3",
                 directory);
  cleanup_free char *tool = write_script("pair", body);
  struct cfs_call calls[] = {{.argv = (const char *[]){"x", "one", "two", "3", NULL}},
                             {.argv = (const char *[]){"x", "two", "one", "4", NULL}}};
  assert_int_equal(cfs_run(tool, calls, 2, 10000), 0);
  assert_string_equal(calls[0].output, "one\nproblem\n");
  assert_string_equal(calls[1].output, "two\nproblem\n");
  assert_int_equal(calls[0].status, 3);
  assert_int_equal(calls[1].status, 4);
  free(calls[0].output);
  free(calls[1].output);
}

/* Whether the tool assembles a kernel for the target. */
static bool assembles(const char *tool, const char *max_ptx, const char *target)
{
  cleanup_free char *ptx =
      cfs_format(".version %s\n.target %s\n.address_size 64\n.visible .entry k()\n{\n  ret;\n}\n", max_ptx, target);
  cleanup_free char *arch = cfs_format("-arch=%s", target), *out = in_directory("k.cubin");
  struct cfs_call call = {.argv = (const char *[]){"ptxas", arch, "-ias", ptx, "-o", out, NULL}};
  assert_int_equal(cfs_run(tool, &call, 1, 60000), 0);
  free(call.output);
  return call.status == 0;
}

/* What the probe found by asking is what the real tool really does. */
static void test_real_ptxas(void **state)
{
  (void)state;
  const char *tool = getenv("CUDAFS_TEST_PTXAS");
  cleanup_strings cfs_strings universe = {0};
  universe_of(&universe, "sm_50 sm_70 sm_75 sm_88 sm_90a sm_100f sm_101a sm_107a sm_120f sm_999");
  cleanup_free char *cache = in_directory("cache-real"), *version = NULL;
  cleanup_probe struct cfs_probe *probe = NULL;
  assert_int_equal(cfs_probe_ptxas(tool, &universe, cache, &probe, NULL), 0);
  assert_int_equal(cfs_elf_tool_version(tool, &version, NULL, NULL), 0);
  assert_string_equal(probe->version, version);
  for (size_t i = 0; i < probe->targets.count; i++)
    if (!assembles(tool, probe->max_ptx, probe->targets.items[i]))
      fail_msg("%s does not assemble for %s", tool, probe->targets.items[i]);
  for (size_t i = 0; i < universe.count; i++)
    assert_int_equal(cfs_strings_has(&probe->targets, universe.items[i]),
                     assembles(tool, probe->max_ptx, universe.items[i]));
}

int main(int argc, char **argv)
{
  if (strcmp(argv[0], "ptxas") == 0)
    return act_as_ptxas(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_probe_asks_the_tool),
      cmocka_unit_test(test_unexecutable_tool_runs_from_memory),
      cmocka_unit_test(test_cache_spares_the_tool),
      cmocka_unit_test(test_damaged_cache_is_made_anew),
      cmocka_unit_test(test_cache_that_cannot_be_written),
      cmocka_unit_test(test_what_cannot_run),
      cmocka_unit_test(test_root_does_not_run_what_others_may_change),
      cmocka_unit_test(test_what_is_no_ptxas),
      cmocka_unit_test(test_run_kills_what_hangs),
      cmocka_unit_test(test_run_two_at_once),
  };
  /* Valgrind gives up on an interpreter that is not there. */
  const struct CMUnitTest native[] = {cmocka_unit_test(test_missing_loader)};
  const char *preload = getenv("LD_PRELOAD");
  bool under_valgrind = preload && strstr(preload, "vgpreload");
  /* The mount suite has real tools, and runs this on each of them. */
  const struct CMUnitTest real[] = {cmocka_unit_test(test_real_ptxas)};
  if (getenv("CUDAFS_TEST_PTXAS"))
    return cmocka_run_group_tests(real, set_up, tear_down);
  int failed = cmocka_run_group_tests(tests, set_up, tear_down);
  return under_valgrind ? failed : failed + cmocka_run_group_tests(native, set_up, tear_down);
}
