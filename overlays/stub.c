/* SPDX-License-Identifier: MIT */
#include "overlays/stub.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "overlays/header.h"

/* One library: how its header declares functions, and what the stub's functions return. */
struct family {
  const char *soname;
  const char *call; /* the word every declaration has before the name */
  const char *prefix;
  unsigned short status;
  const char *const *extra;
};

/* cudaProfiler.h comes with another component than cuda.h and is often absent; the library has these
 * all the same. */
static const char *const driver_extra[] = {"cuProfilerInitialize", "cuProfilerStart", "cuProfilerStop", NULL};

static const struct family driver = {
    .soname = "libcuda.so.1",
    .call = "CUDAAPI",
    .prefix = "cu",
    .status = 34, /* CUDA_ERROR_STUB_LIBRARY */
    .extra = driver_extra,
};

static const struct family nvml = {
    .soname = "libnvidia-ml.so.1", .call = "DECLDIR", .prefix = "nvml", .status = 12, /* NVML_ERROR_LIBRARY_NOT_FOUND */
};

static bool is_word(char c)
{
  return isalnum((unsigned char)c) || c == '_';
}

static size_t word_length(const char *p)
{
  size_t n = 0;
  while (is_word(p[n]))
    n++;
  return n;
}

static bool is_function_name(const struct family *family, const char *name, size_t n)
{
  size_t prefix = strlen(family->prefix);
  return n > prefix && strncmp(name, family->prefix, prefix) == 0 && isupper((unsigned char)name[prefix]);
}

static int compare_names(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool has_sorted(const cfs_strings *names, const char *name)
{
  return bsearch(&name, names->items, names->count, sizeof(char *), compare_names);
}

static void sort_unique(cfs_strings *names)
{
  cfs_strings kept = {0};
  cfs_strings_sort(names);
  for (size_t i = 0; i < names->count; i++)
    if (!i || strcmp(names->items[i], names->items[i - 1]) != 0)
      cfs_strings_add(&kept, names->items[i]);
  cfs_strings_done(names);
  *names = kept;
}

/* The name a declaration gives, p standing behind its calling convention: the word before the first
 * bracket. *ret_pointer tells whether it returns a pointer. */
static char *declared_name(const struct family *family, const char *p, bool *ret_pointer)
{
  size_t n = strcspn(p, "(,;{}#)");
  if (p[n] != '(')
    return NULL;
  *ret_pointer = memchr(p, '*', n);
  while (n && isspace((unsigned char)p[n - 1]))
    n--;
  size_t start = n;
  while (start && is_word(p[start - 1]))
    start--;
  return is_function_name(family, p + start, n - start) ? cfs_strndup(p + start, n - start) : NULL;
}

static void scan_declarations(const struct family *family, const char *text, struct cfs_stub *stub)
{
  size_t n = strlen(family->call);
  for (const char *p = text; (p = strstr(p, family->call)); p += n) {
    if (is_word(p[n]) || (p > text && is_word(p[-1])))
      continue;
    bool pointer;
    char *name = declared_name(family, p + n, &pointer);
    if (!name)
      continue;
    cfs_strings_take(&stub->symbols, name);
    if (pointer)
      cfs_strings_add(&stub->pointers, name);
  }
}

/* "_ptds" for __CUDA_API_PTDS, which gives the name under a per-thread default stream; likewise "_ptsz". */
static const char *stream_suffix(const char *macro, size_t n)
{
  if (n >= 4 && memcmp(macro + n - 4, "PTDS", 4) == 0)
    return "_ptds";
  return n >= 4 && memcmp(macro + n - 4, "PTSZ", 4) == 0 ? "_ptsz" : NULL;
}

/* `#define cuMemAlloc cuMemAlloc_v2` and `#define cuMemcpy __CUDA_API_PTDS(cuMemcpy)`: objects call either
 * name, by the macros they were compiled with. */
static void scan_alias(const struct family *family, const char *define, const cfs_strings *declared, cfs_strings *names)
{
  size_t n = word_length(define);
  const char *target = define + n + strspn(define + n, " \t");
  size_t m = word_length(target);
  const char *suffix = NULL;
  if (target[m] == '(') {
    suffix = stream_suffix(target, m);
    target += suffix ? m + 1 : 0;
    m = word_length(target);
  }
  if (!is_function_name(family, define, n) || !is_function_name(family, target, m))
    return;
  cleanup_free char *name = cfs_strndup(define, n), *real = cfs_strndup(target, m);
  /* Type names and structure versions are renamed in the same way. */
  if (!has_sorted(declared, name) && !has_sorted(declared, real))
    return;
  cfs_strings_add(names, name);
  cfs_strings_add(names, real);
  if (suffix)
    cfs_strings_take(names, cfs_format("%s%s", real, suffix));
}

static void scan_aliases(const struct family *family, const char *text, const cfs_strings *declared, cfs_strings *names)
{
  for (const char *line = text; line; line = cfs_header_next_line(line)) {
    const char *define = cfs_header_directive(line, "define");
    if (define)
      scan_alias(family, define, declared, names);
  }
}

static int read_headers(const char *const *headers, size_t count, cfs_strings *texts, cfs_error **err)
{
  for (size_t i = 0; i < count; i++) {
    char *text;
    int r = cfs_header_read(headers[i], &text, err);
    if (r < 0)
      return r;
    cfs_strings_take(texts, text);
  }
  return 0;
}

static int scan_headers(const struct family *family, const char *const *headers, size_t count, struct cfs_stub *stub,
                        cfs_error **err)
{
  cleanup_strings cfs_strings texts = {0}, aliases = {0};
  int r = read_headers(headers, count, &texts, err);
  if (r < 0)
    return r;
  for (size_t i = 0; i < texts.count; i++)
    scan_declarations(family, texts.items[i], stub);
  if (!stub->symbols.count)
    return cfs_error_set(err, CFS_FAILED, ENODATA, count ? headers[0] : family->soname, NULL,
                         "no header declares a %s function", family->call);
  sort_unique(&stub->symbols);
  sort_unique(&stub->pointers);
  for (size_t i = 0; i < texts.count; i++)
    scan_aliases(family, texts.items[i], &stub->symbols, &aliases);
  for (size_t i = 0; i < aliases.count; i++)
    cfs_strings_add(&stub->symbols, aliases.items[i]);
  for (const char *const *extra = family->extra; extra && *extra; extra++)
    cfs_strings_add(&stub->symbols, *extra);
  sort_unique(&stub->symbols);
  return 0;
}

static int write_family(const struct family *family, const char *const *headers, size_t count, enum cfs_machine machine,
                        void **ret_elf, size_t *ret_size, cfs_error **err)
{
  cleanup_stub struct cfs_stub stub = {.soname = family->soname, .machine = machine, .status = family->status};
  int r = scan_headers(family, headers, count, &stub, err);
  return r < 0 ? r : cfs_stub_write(&stub, ret_elf, ret_size, err);
}

static int list_family(const struct family *family, const char *const *headers, size_t count, cfs_strings *ret_symbols,
                       cfs_error **err)
{
  cleanup_stub struct cfs_stub stub = {0};
  int r = scan_headers(family, headers, count, &stub, err);
  if (r < 0)
    return r;
  for (size_t i = 0; i < stub.symbols.count; i++)
    cfs_strings_add(ret_symbols, stub.symbols.items[i]);
  return 0;
}

int cfs_stub_driver(const char *const *headers, size_t count, enum cfs_machine machine, void **ret_elf,
                    size_t *ret_size, cfs_error **err)
{
  return write_family(&driver, headers, count, machine, ret_elf, ret_size, err);
}

int cfs_stub_nvml(const char *const *headers, size_t count, enum cfs_machine machine, void **ret_elf, size_t *ret_size,
                  cfs_error **err)
{
  return write_family(&nvml, headers, count, machine, ret_elf, ret_size, err);
}

int cfs_stub_driver_symbols(const char *const *headers, size_t count, cfs_strings *ret_symbols, cfs_error **err)
{
  return list_family(&driver, headers, count, ret_symbols, err);
}

int cfs_stub_nvml_symbols(const char *const *headers, size_t count, cfs_strings *ret_symbols, cfs_error **err)
{
  return list_family(&nvml, headers, count, ret_symbols, err);
}

enum cfs_machine cfs_machine_native(void)
{
#ifdef __aarch64__
  return CFS_MACHINE_AARCH64;
#else
  return CFS_MACHINE_X86_64;
#endif
}
