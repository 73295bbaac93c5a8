/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/memory.h"
#include "manifests/json_position.h"
#include "manifests/manifest.h"
#include "manifests/suggest.h"

#define SUM "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef"

static int load_tables(void **state)
{
  cfs_tables *t = NULL;
  cleanup_error cfs_error *err = NULL;
  if (cfs_tables_load(&t, &err) < 0) {
    print_error("%s: %s\n", err->what, err->why);
    return -1;
  }
  *state = t;
  return 0;
}

static int free_tables(void **state)
{
  cfs_tables_free(*state);
  return 0;
}

static cfs_manifest *parse(void **state, const char *text)
{
  cfs_manifest *m = NULL;
  cleanup_error cfs_error *err = NULL;
  if (cfs_manifest_parse(text, strlen(text), "m.json", "/base", *state, &m, &err) < 0)
    fail_msg("%s: %s", err->what, err->why);
  return m;
}

/* The error must stand at the line, begin with the key and say why. fix may be NULL: none is asked for. */
static void assert_refused(void **state, const char *text, int line, const char *why, const char *fix)
{
  cfs_manifest *m = NULL;
  cleanup_error cfs_error *err = NULL;
  if (cfs_manifest_parse(text, strlen(text), "m.json", "/base", *state, &m, &err) == 0)
    fail_msg("accepted: %s", text);
  assert_null(m);
  cleanup_free char *what = line ? cfs_format("m.json:%d", line) : cfs_strdup("m.json");
  assert_int_equal(err->kind, CFS_INVALID);
  if (strcmp(err->what, what) != 0 || !cfs_has_prefix(err->why, why))
    fail_msg("expected \"%s: %s\", got \"%s: %s\"", what, why, err->what, err->why);
  if (fix && (!err->fix || !strstr(err->fix, fix)))
    fail_msg("expected the fix \"%s\", got \"%s\"", fix, err->fix ? err->fix : "none");
}

static void test_smallest(void **state)
{
  cfs_manifest *m = parse(state, "{ \"cudafs\": 1, \"sources\": [\"/usr/local/cuda-13.0\", \"/srv/venv\"] }");
  assert_int_equal(m->n_sources, 2);
  assert_int_equal(m->sources[0].kind, CFS_SOURCE_ANY);
  assert_string_equal(m->sources[0].id, "cuda-13.0");
  assert_string_equal(m->sources[1].id, "venv");
  assert_string_equal(m->release, "newest");
  assert_null(m->name);
  assert_null(m->path);
  assert_false(m->toolchains_given);
  assert_false(m->snapshot);
  assert_int_equal(m->on_drift, CFS_DRIFT_SERVE_PINNED);
  assert_int_equal(m->host_compiler, CFS_POLICY_CHECK);
  assert_int_equal(m->advisories, CFS_POLICY_CHECK);
  cfs_manifest_free(m);
}

static void test_everything(void **state)
{
  cfs_manifest *m =
      parse(state, "{ \"$schema\": \"./schema.json\", \"cudafs\": 1, \"name\": \"sm120\",\n"
                   "  \"sources\": [\n"
                   "    { \"id\": \"venv\", \"site-packages\": \"/srv/venv/lib/python3.12/site-packages\" },\n"
                   "    { \"id\": \"system\", \"toolkit\": \"/usr/local/cuda-13.0\" },\n"
                   "    { \"archive\": \"wheels/nvidia_cuda_nvcc-13.2.78-*.whl\", \"sha256\": \"" SUM "\" } ],\n"
                   "  \"release\": \"13.2\", \"targets\": [\"sm_120\", \"sm_121a\"],\n"
                   "  \"consumers\": [\"flashinfer\", \"torch\"],\n"
                   "  \"components\": { \"cupti\": { \"from\": \"system\" },\n"
                   "                    \"libcusparse\": { \"omit\": true } },\n"
                   "  \"toolchains\": [\"12.9\"], \"on-drift\": \"reload\", \"snapshot\": true,\n"
                   "  \"policy\": { \"host-compiler\": \"warn\", \"advisories\": \"ignore\",\n"
                   "                \"allow\": [\"compiler-unit-split\"] } }");
  assert_string_equal(m->name, "sm120");
  assert_int_equal(m->sources[0].kind, CFS_SOURCE_SITE_PACKAGES);
  assert_int_equal(m->sources[1].line, 4);
  assert_int_equal(m->sources[2].kind, CFS_SOURCE_ARCHIVE);
  assert_string_equal(m->sources[2].path, "/base/wheels/nvidia_cuda_nvcc-13.2.78-*.whl");
  assert_string_equal(m->sources[2].id, "nvidia_cuda_nvcc-13.2.78");
  assert_string_equal(m->sources[2].sha256, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
  assert_string_equal(m->release, "13.2");
  assert_string_equal(m->targets.items[1], "sm_121a");
  assert_string_equal(m->consumers.items[0], "flashinfer");
  assert_string_equal(cfs_manifest_component(m, "cuda_cupti")->from, "system");
  assert_true(cfs_manifest_component(m, "libcusparse")->omit);
  assert_null(cfs_manifest_component(m, "cupti"));
  assert_true(m->toolchains_given);
  assert_string_equal(m->toolchains.items[0], "12.9");
  assert_int_equal(m->on_drift, CFS_DRIFT_RELOAD);
  assert_true(m->snapshot);
  assert_int_equal(m->host_compiler, CFS_POLICY_WARN);
  assert_int_equal(m->advisories, CFS_POLICY_IGNORE);
  assert_string_equal(m->allow.items[0], "compiler-unit-split");
  cfs_manifest_free(m);
}

static void test_empty_toolchains_are_not_absent_ones(void **state)
{
  cfs_manifest *m = parse(state, "{\"cudafs\":1,\"sources\":[\"a\"],\"toolchains\":[]}");
  assert_true(m->toolchains_given);
  assert_int_equal(m->toolchains.count, 0);
  cfs_manifest_free(m);
}

static void test_kinds(void **state)
{
  static const struct {
    const char *key;
    enum cfs_source_kind kind;
  } kinds[] = {{"site-packages", CFS_SOURCE_SITE_PACKAGES},
               {"toolkit", CFS_SOURCE_TOOLKIT},
               {"debian", CFS_SOURCE_DEBIAN},
               {"conda", CFS_SOURCE_CONDA},
               {"hpcsdk", CFS_SOURCE_HPCSDK},
               {"redist", CFS_SOURCE_REDIST},
               {"archive", CFS_SOURCE_ARCHIVE},
               {"image", CFS_SOURCE_IMAGE}};
  for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
    cleanup_free char *text = cfs_format("{\"cudafs\":1,\"sources\":[{\"%s\":\"/a/b\"}]}", kinds[i].key);
    cfs_manifest *m = parse(state, text);
    assert_int_equal(m->sources[0].kind, kinds[i].kind);
    assert_string_equal(cfs_source_kind_name(kinds[i].kind), kinds[i].key);
    cfs_manifest_free(m);
  }
  assert_string_equal(cfs_source_kind_name(CFS_SOURCE_ANY), "source");
}

static void assert_path(void **state, const char *written, const char *path, const char *id)
{
  cleanup_free char *text = cfs_format("{\"cudafs\":1,\"sources\":[{\"archive\":\"%s\"}]}", written);
  cfs_manifest *m = parse(state, text);
  assert_string_equal(m->sources[0].path, path);
  assert_string_equal(m->sources[0].id, id);
  cfs_manifest_free(m);
}

static void test_paths_and_made_ids(void **state)
{
  assert_path(state, "a", "/base/a", "a");
  assert_path(state, "./a//b/", "/base/a/b", "b");
  assert_path(state, "../a", "/base/../a", "a");
  assert_path(state, "/", "/", "archive");
  assert_path(state, "..", "/base/..", "base");
  assert_path(state, "/srv/.venv/lib/python3.12/site-packages", "/srv/.venv/lib/python3.12/site-packages", "venv");
  assert_path(state, "/v/lib/python3/dist-packages/nvidia", "/v/lib/python3/dist-packages/nvidia", "v");
  assert_path(state, "/opt/pythonic", "/opt/pythonic", "pythonic");
  assert_path(state, "x/cuda nvcc.tar.xz", "/base/x/cuda nvcc.tar.xz", "cuda-nvcc");
  assert_path(state, "/***", "/***", "archive");
  assert_path(state, "\\u00e9\\u00e9", "/base/\xc3\xa9\xc3\xa9", "archive");
}

static void test_pattern_escapes_the_folder_alone(void **state)
{
  cfs_manifest *m = NULL;
  const char *text = "{\"cudafs\":1,\"sources\":[{\"archive\":\"*.whl\"},{\"archive\":\"a.whl\"},\"*\"]}";
  assert_int_equal(cfs_manifest_parse(text, strlen(text), "m", "/b[1]", *state, &m, NULL), 0);
  assert_string_equal(m->sources[0].path, "/b\\[1]/*.whl");
  assert_string_equal(m->sources[1].path, "/b[1]/a.whl");
  assert_string_equal(m->sources[2].path, "/b[1]/*");
  cfs_manifest_free(m);
}

static void test_made_ids_are_unique(void **state)
{
  cfs_manifest *m = parse(state, "{\"cudafs\":1,\"sources\":[\"/a/venv\",\"/b/venv\",\"/c/venv\","
                                 "{\"id\":\"venv\",\"toolkit\":\"/t\"},{\"id\":\"venv-2\",\"toolkit\":\"/u\"}]}");
  assert_string_equal(m->sources[0].id, "venv-3");
  assert_string_equal(m->sources[1].id, "venv-4");
  assert_string_equal(m->sources[2].id, "venv-5");
  assert_string_equal(m->sources[3].id, "venv");
  cfs_manifest_free(m);
}

static void test_from_paths(void **state)
{
  const char *const paths[] = {"/usr/local/cuda", "rel/", "/x/cuda"};
  (void)state;
  cfs_manifest *m = cfs_manifest_from_paths(paths, 3);
  cleanup_free char *cwd = getcwd(NULL, 0);
  cleanup_free char *rel = cfs_path_join(cwd, "rel");
  assert_int_equal(m->n_sources, 3);
  assert_string_equal(m->sources[0].id, "cuda");
  assert_string_equal(m->sources[1].path, rel);
  assert_string_equal(m->sources[2].id, "cuda-2");
  assert_string_equal(m->release, "newest");
  cfs_manifest_free(m);
  m = cfs_manifest_from_paths(NULL, 0);
  assert_int_equal(m->n_sources, 0);
  cfs_manifest_free(m);
}

static void test_text_that_is_not_json(void **state)
{
  assert_refused(state, "", 0, "the file is empty", "the least is");
  assert_refused(state, " \n\t", 0, "the file is empty", NULL);
  assert_refused(state, "\xef\xbb\xbf{}", 0, "the text begins with a byte order mark", NULL);
  assert_refused(state, "{\"cudafs\":1,\n\"sources\":[\"a\",]}", 2, "a comma stands before \"]\"", "remove the comma");
  assert_refused(state, "{\"cudafs\":1,\n\"sources\":[\"a\"],\n}", 3, "a comma stands before \"}\"", NULL);
  assert_refused(state, "{\"cudafs\":1, // one\n\"sources\":[\"a\"]}", 1, "a comment is not JSON", NULL);
  assert_refused(state, "{\n# one\n\"cudafs\":1}", 2, "a comment is not JSON", NULL);
  assert_refused(state, "{'cudafs':1}", 1, "a single quote is not JSON", "double quotes");
  assert_refused(state, "{\"cudafs\":1,\n\"name\":\"\xff\"}", 2, "the text is not UTF-8", "UTF-8");
  assert_refused(state, "{\"cudafs\":1", 1, "the text ends in the middle", NULL);
  assert_refused(state, "{\"cudafs\":1,\"sources\":[\"a\"]} {}", 1, "there is more after the end", NULL);
  assert_refused(state, "{\"cudafs\":1,\n\"name\":\"a\",\n\"name\":\"b\"}", 3, "duplicate object key", NULL);
  assert_refused(state, "{\"cudafs\":1,\"name\":\"a\\u0000b\"}", 1, "not JSON at column", NULL);
  assert_refused(state, "cudafs: 1", 1, "not JSON at column", NULL);
}

static void test_nesting_without_end(void **state)
{
  size_t depth = 200000;
  cleanup_free char *text = cfs_zalloc(depth + 1);
  memset(text, '[', depth);
  assert_refused(state, text, 1, "not JSON", NULL);
}

static void test_format_number_comes_first(void **state)
{
  assert_refused(state, "{\"sauces\":[]}", 1, "cudafs: expected 1", "\"cudafs\": 1");
  assert_refused(state, "{\"cudafs\":2,\"sauces\":[]}", 1, "cudafs: expected 1, the only format known here, got 2",
                 "newer cudafs");
  assert_refused(state, "{\"cudafs\":\"1\"}", 1, "cudafs: expected 1, the format's number, got \"1\"", NULL);
  assert_refused(state, "{\"cudafs\":1.0}", 1, "cudafs: expected 1", NULL);
  assert_refused(state, "[1]", 1, "expected an object, got a list", NULL);
}

static void test_unknown_keys(void **state)
{
  assert_refused(state, "{\"cudafs\":1,\"sources\":[\"a\"],\n\"relase\":\"13.2\"}", 2, "relase: unknown key",
                 "did you mean \"release\"?");
  assert_refused(state, "{\"cudafs\":1,\"sources\":[\"a\"],\n\"colour\":1}", 2, "colour: unknown key",
                 "known keys here: cudafs, name, sources");
  assert_refused(state, "{\"cudafs\":1,\"sources\":[\"a\"],\n\"policy\":{\n\"alow\":[]}}", 3,
                 "policy.alow: unknown key", "\"allow\"");
  assert_refused(state, "{\"cudafs\":1,\"sources\":[\n{\"tolkit\":\"a\"}]}", 2, "sources[0].tolkit: unknown key",
                 "\"toolkit\"");
  assert_refused(state, "{\"cudafs\":1,\"sources\":[\"a\"],\"components\":{\"nvcc\":{\n\"form\":\"a\"}}}", 2,
                 "components.nvcc.form: unknown key", "\"from\"");
  assert_refused(state, "{\"cudafs\":1,\"sources\":[\"a\"],\n\"on_drift\":\"stop\"}", 2, "on_drift: unknown key",
                 "\"on-drift\"");
}

static void test_sources_refused(void **state)
{
  assert_refused(state, "{\"cudafs\":1}", 1, "sources: expected a list, got nothing", NULL);
  assert_refused(state, "{\"cudafs\":1,\n\"sources\":\"a\"}", 2, "sources: expected a list, got \"a\"", NULL);
  assert_refused(state, "{\"cudafs\":1,\n\"sources\":[]}", 2, "sources: expected at least one source", NULL);
  assert_refused(state, "{\"cudafs\":1,\"sources\":[\"a\",\n\"\"]}", 2, "sources[1]: expected a path, got \"\"", NULL);
  assert_refused(state, "{\"cudafs\":1,\"sources\":[\"a\",\n7]}", 2, "sources[1]: expected a path or an object", NULL);
  assert_refused(state, "{\"cudafs\":1,\"sources\":[\"~/cuda\"]}", 1, "sources[0]: \"~\" is not expanded", NULL);
  assert_refused(state, "{\"cudafs\":1,\"sources\":[{\"toolkit\":3}]}", 1, "sources[0].toolkit: expected a path, got 3",
                 NULL);
  assert_refused(state, "{\"cudafs\":1,\"sources\":[{}]}", 1, "sources[0]: expected exactly one of", NULL);
  assert_refused(state, "{\"cudafs\":1,\"sources\":[{\"id\":\"x\"}]}", 1, "sources[0]: expected exactly one of", NULL);
  assert_refused(state, "{\"cudafs\":1,\"sources\":[{\"toolkit\":\"a\",\n\"conda\":\"b\"}]}", 2,
                 "sources[0].conda: a source is one place, but \"toolkit\"", "two sources");
  assert_refused(state,
                 "{\"cudafs\":1,\"sources\":[{\"id\":\"x\",\"toolkit\":\"a\"},\n{\"id\":\"x\",\"conda\":\"b\"}]}", 2,
                 "sources[1].id: another source has the id \"x\"", NULL);
  assert_refused(state, "{\"cudafs\":1,\"sources\":[{\"id\":\"a/b\",\"toolkit\":\"a\"}]}", 1,
                 "sources[0].id: expected a name", NULL);
  assert_refused(state, "{\"cudafs\":1,\"sources\":[{\"id\":\"\",\"toolkit\":\"a\"}]}", 1,
                 "sources[0].id: expected a name", NULL);
}

static void test_checksums_refused(void **state)
{
  assert_refused(state, "{\"cudafs\":1,\"sources\":[{\"toolkit\":\"a\",\n\"sha256\":\"" SUM "\"}]}", 2,
                 "sources[0].sha256: only an \"archive\" has one checksum", "remove it");
  assert_refused(state, "{\"cudafs\":1,\"sources\":[{\"archive\":\"a\",\"sha256\":\"12\"}]}", 1,
                 "sources[0].sha256: expected 64 hexadecimal digits, got \"12\"", NULL);
  assert_refused(state, "{\"cudafs\":1,\"sources\":[{\"archive\":\"a\",\"sha256\":\"" SUM "0\"}]}", 1,
                 "sources[0].sha256: expected 64 hexadecimal digits", NULL);
  assert_refused(state, "{\"cudafs\":1,\"sources\":[{\"archive\":\"a\",\"sha256\":7}]}", 1,
                 "sources[0].sha256: expected 64 hexadecimal digits, got 7", NULL);
}

static void test_too_many_sources(void **state)
{
  cleanup_buffer cfs_buffer b = {0};
  cfs_buffer_text(&b, "{\"cudafs\":1,\"sources\":[\"a\"");
  for (int i = 0; i < 1000; i++)
    cfs_buffer_text(&b, ",\"a\"");
  cfs_buffer_text(&b, "]}");
  assert_refused(state, b.data, 1, "sources: expected at most 1000 sources, got 1001", NULL);
}

/* VALUE of "KEY" in an otherwise good manifest, on line 2. */
static void assert_value_refused(void **state, const char *key, const char *value, const char *why, const char *fix)
{
  cleanup_free char *text =
      cfs_format("{\"cudafs\":1,\"sources\":[{\"id\":\"v\",\"toolkit\":\"a\"}],\n\"%s\":%s}", key, value);
  assert_refused(state, text, 2, why, fix);
}

static void test_releases_refused(void **state)
{
  assert_value_refused(state, "release", "\"latest\"", "release: expected \"newest\"", NULL);
  assert_value_refused(state, "release", "13.2", "release: expected \"newest\"", NULL);
  assert_value_refused(state, "release", "\"\"", "release: expected \"newest\"", NULL);
  assert_value_refused(state, "toolchains", "[\"12.9\",\"12\"]", "toolchains[1]: expected a release", NULL);
  assert_value_refused(state, "toolchains", "[\"12.9.1\"]", "toolchains[0]: expected a release", NULL);
  assert_value_refused(state, "toolchains", "[12.9]", "toolchains[0]: expected a string, got 12.9", NULL);
  assert_value_refused(state, "toolchains", "[\"12.9\",\"12.9\"]", "toolchains[1]: \"12.9\" is there twice", NULL);
}

static void test_targets_refused(void **state)
{
  assert_value_refused(state, "targets", "\"sm_120\"", "targets: expected a list", NULL);
  assert_value_refused(state, "targets", "[\"sm_12O\"]", "targets[0]: expected a target", "\"sm_120\"");
  assert_value_refused(state, "targets", "[\"12.0\"]", "targets[0]: expected a target", "\"sm_120\"");
  assert_value_refused(state, "targets", "[\"compute_121a\"]", "targets[0]: expected a target", "\"sm_121a\"");
  assert_value_refused(state, "targets", "[\"120f\"]", "targets[0]: expected a target", "\"sm_120f\"");
  assert_value_refused(state, "targets", "[\"sm_122\"]", "targets[0]: no known release compiles for \"sm_122\"",
                       "\"sm_12");
  assert_value_refused(state, "targets", "[\"sm_120b\"]", "targets[0]: expected a target", "\"sm_120");
  assert_value_refused(state, "targets", "[\"native\"]", "targets[0]: expected a target", NULL);
  assert_value_refused(state, "targets", "[\"sm_90\",\"sm_90\"]", "targets[1]: \"sm_90\" is there twice", NULL);
}

static void test_consumers_refused(void **state)
{
  assert_value_refused(state, "consumers", "[\"flashinfr\"]", "consumers[0]: no consumer is called \"flashinfr\"",
                       "did you mean \"flashinfer\"?");
  assert_value_refused(state, "consumers", "[\"something\"]", "consumers[0]: no consumer", "known consumers: bits");
  assert_value_refused(state, "consumers", "[null]", "consumers[0]: expected a string, got null", NULL);
}

static void test_components_refused(void **state)
{
  assert_value_refused(state, "components", "[]", "components: expected an object, got a list", NULL);
  assert_value_refused(state, "components", "{\"cuda_nvc\":{\"omit\":true}}", "components.cuda_nvc: no component",
                       "\"cuda_nvcc\"");
  assert_value_refused(state, "components", "{\"nvcc\":{\"from\":\"w\"}}", "components.nvcc.from: no source has the id",
                       "\"v\"");
  assert_value_refused(state, "components", "{\"nvcc\":{\"from\":\"v\",\"omit\":true}}",
                       "components.nvcc: \"from\" and \"omit\" exclude each other", NULL);
  assert_value_refused(state, "components", "{\"nvcc\":{}}", "components.nvcc: expected \"from\"", NULL);
  assert_value_refused(state, "components", "{\"nvcc\":{\"omit\":\"yes\"}}",
                       "components.nvcc.omit: expected true or false, got \"yes\"", NULL);
  assert_value_refused(state, "components", "{\"nvcc\":\"v\"}", "components.nvcc: expected an object, got \"v\"", NULL);
  assert_value_refused(state, "components", "{\"cccl\":{\"omit\":true},\"cuda_cccl\":{\"omit\":true}}",
                       "components.cuda_cccl: \"cuda_cccl\" is another name", NULL);
}

static void test_policy_refused(void **state)
{
  assert_value_refused(state, "on-drift", "\"panic\"",
                       "on-drift: expected one of \"serve-pinned\", \"reload\", \"stop\", got \"panic\"", NULL);
  assert_value_refused(state, "policy", "true", "policy: expected an object, got true", NULL);
  assert_value_refused(state, "policy", "{\"host-compiler\":\"refuse\"}",
                       "policy.host-compiler: expected one of \"check\", \"warn\", \"ignore\"", NULL);
  assert_value_refused(state, "policy", "{\"advisories\":\"check\"}",
                       "policy.advisories: expected one of \"refuse\", \"warn\", \"ignore\"", NULL);
  assert_value_refused(state, "policy", "{\"allow\":[\"compiler-unit-splt\"]}", "policy.allow[0]: no problem has",
                       "\"compiler-unit-split\"");
  assert_value_refused(state, "snapshot", "1", "snapshot: expected true or false, got 1", NULL);
  assert_value_refused(state, "name", "\"\"", "name: expected a string that is not empty", NULL);
}

static void test_long_values_are_cut(void **state)
{
  cleanup_free char *value = cfs_format("\"%0500d\"", 7);
  assert_value_refused(state, "on-drift", value, "on-drift: expected one of", NULL);
}

static void test_escaped_keys_are_found(void **state)
{
  assert_refused(state, "{\"cudafs\":1,\"sources\":[\"a\"],\n\n\"r\\u0065lase\":1}", 3, "relase: unknown key", NULL);
  assert_refused(state, "{\"cudafs\":1,\"name\":\"\\\"}]\",\"sources\":[\"[{\\\\\",\n9]}", 2,
                 "sources[1]: expected a path or an object", NULL);
}

static void test_load_from_files(void **state)
{
  char dir[] = "/tmp/cudafs-manifest-XXXXXX";
  assert_non_null(mkdtemp(dir));
  cleanup_free char *path = cfs_path_join(dir, "m.json");
  const char *text = "{\"cudafs\":1,\"sources\":[\"a\"]}";
  assert_int_equal(cfs_file_write(path, text, strlen(text)), 0);
  cleanup_free char *source = cfs_path_join(dir, "a");
  cfs_manifest *m = NULL;
  assert_int_equal(cfs_manifest_load(path, *state, &m, NULL), 0);
  assert_string_equal(m->path, path);
  assert_string_equal(m->sources[0].path, source);
  cfs_manifest_free(m);
  unlink(path);
  rmdir(dir);
}

static void assert_load_refused(void **state, const char *path, const char *why)
{
  cfs_manifest *m = NULL;
  cleanup_error cfs_error *err = NULL;
  assert_true(cfs_manifest_load(path, *state, &m, &err) < 0);
  assert_int_equal(err->kind, CFS_INVALID);
  assert_string_equal(err->what, path);
  assert_non_null(strstr(err->why, why));
}

static void test_load_refused(void **state)
{
  char dir[] = "/tmp/cudafs-manifest-XXXXXX";
  assert_non_null(mkdtemp(dir));
  assert_load_refused(state, dir, "is a directory, not a file");
  assert_load_refused(state, "/nonexistent/m.json", "cannot be read: No such file");
  assert_load_refused(state, "/dev/null", "is not a regular file");
  cleanup_free char *path = cfs_path_join(dir, "large.json");
  cleanup_free char *large = cfs_zalloc((1 << 20) + 1);
  memset(large, ' ', (1 << 20) + 1);
  assert_int_equal(cfs_file_write(path, large, (1 << 20) + 1), 0);
  assert_load_refused(state, path, "is larger than 1024 KiB");
  assert_int_equal(cfs_file_write(path, "{}", 2), 0);
  chmod(path, 0);
  if (geteuid() != 0) /* root reads everything */
    assert_load_refused(state, path, "cannot be read: Permission denied");
  unlink(path);
  rmdir(dir);
}

static void test_fifo_does_not_block(void **state)
{
  char dir[] = "/tmp/cudafs-manifest-XXXXXX";
  assert_non_null(mkdtemp(dir));
  cleanup_free char *path = cfs_path_join(dir, "fifo");
  assert_int_equal(mkfifo(path, 0600), 0);
  alarm(20);
  assert_load_refused(state, path, "is not a regular file");
  alarm(0);
  unlink(path);
  rmdir(dir);
}

static void test_examples(void **state)
{
  static const char *const names[] = {"minimal", "sm120", "two-toolchains", "archives", "container"};
  const char *root = getenv("CUDAFS_SOURCE_ROOT");
  assert_non_null(root);
  for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
    cleanup_free char *path = cfs_format("%s/manifests/examples/%s.json", root, names[i]);
    cfs_manifest *m = NULL;
    cleanup_error cfs_error *err = NULL;
    if (cfs_manifest_load(path, *state, &m, &err) < 0)
      fail_msg("%s: %s", err->what, err->why);
    cfs_manifest_free(m);
  }
}

static void assert_position(const char *text, const struct cfs_json_step *steps, size_t n, bool complete, int line,
                            int column)
{
  struct cfs_json_position p;
  assert_int_equal(cfs_json_position_find(text, strlen(text), steps, n, &p), complete);
  assert_int_equal(p.line, line);
  assert_int_equal(p.column, column);
}

static void test_positions(void **state)
{
  static const char text[] = "\n { \"a\" : [ 1 , {\n \"b\" : {} } ,\n [ ] ] , \"c\" : null }";
  (void)state;
  assert_position(text, NULL, 0, true, 2, 2);
  assert_position(text, (struct cfs_json_step[]){{"a", 0}}, 1, true, 2, 4);
  assert_position(text, (struct cfs_json_step[]){{"a", 0}, {NULL, 0}}, 2, true, 2, 12);
  assert_position(text, (struct cfs_json_step[]){{"a", 0}, {NULL, 1}, {"b", 0}}, 3, true, 3, 2);
  assert_position(text, (struct cfs_json_step[]){{"a", 0}, {NULL, 2}}, 2, true, 4, 2);
  assert_position(text, (struct cfs_json_step[]){{"c", 0}}, 1, true, 4, 10);
  assert_position(text, (struct cfs_json_step[]){{"d", 0}}, 1, false, 2, 2);
  assert_position(text, (struct cfs_json_step[]){{"a", 0}, {NULL, 3}}, 2, false, 2, 4);
  assert_position(text, (struct cfs_json_step[]){{"a", 0}, {NULL, 2}, {NULL, 0}}, 3, false, 4, 2);
  assert_position(text, (struct cfs_json_step[]){{"c", 0}, {"x", 0}}, 2, false, 4, 10);
}

static void test_suggestions(void **state)
{
  (void)state;
  assert_int_equal(cfs_edit_distance("", ""), 0);
  assert_int_equal(cfs_edit_distance("abc", ""), 3);
  assert_int_equal(cfs_edit_distance("kitten", "sitting"), 3);
  assert_int_equal(cfs_edit_distance("form", "from"), 1);
  cfs_suggestion s = {.word = "relaese"};
  cfs_suggestion_offer(&s, "sources");
  cfs_suggestion_offer(&s, "release");
  assert_string_equal(s.best, "release");
  cfs_suggestion none = {.word = "zzz"};
  cfs_suggestion_offer(&none, "release");
  cleanup_free char *text = cfs_suggestion_text(&none, "otherwise");
  assert_string_equal(text, "otherwise");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_smallest),
      cmocka_unit_test(test_everything),
      cmocka_unit_test(test_empty_toolchains_are_not_absent_ones),
      cmocka_unit_test(test_kinds),
      cmocka_unit_test(test_paths_and_made_ids),
      cmocka_unit_test(test_pattern_escapes_the_folder_alone),
      cmocka_unit_test(test_made_ids_are_unique),
      cmocka_unit_test(test_from_paths),
      cmocka_unit_test(test_text_that_is_not_json),
      cmocka_unit_test(test_nesting_without_end),
      cmocka_unit_test(test_format_number_comes_first),
      cmocka_unit_test(test_unknown_keys),
      cmocka_unit_test(test_sources_refused),
      cmocka_unit_test(test_checksums_refused),
      cmocka_unit_test(test_too_many_sources),
      cmocka_unit_test(test_releases_refused),
      cmocka_unit_test(test_targets_refused),
      cmocka_unit_test(test_consumers_refused),
      cmocka_unit_test(test_components_refused),
      cmocka_unit_test(test_policy_refused),
      cmocka_unit_test(test_long_values_are_cut),
      cmocka_unit_test(test_escaped_keys_are_found),
      cmocka_unit_test(test_load_from_files),
      cmocka_unit_test(test_load_refused),
      cmocka_unit_test(test_fifo_does_not_block),
      cmocka_unit_test(test_examples),
      cmocka_unit_test(test_positions),
      cmocka_unit_test(test_suggestions),
  };
  return cmocka_run_group_tests(tests, load_tables, free_tables);
}
