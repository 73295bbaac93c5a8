/* SPDX-License-Identifier: MIT */
#ifndef CUDAFS_MANIFESTS_TABLES_H
#define CUDAFS_MANIFESTS_TABLES_H

/* Every fact about CUDA releases, components, consumers and known-bad builds, read from the data
 * files. Code never holds such a fact: a new release or a new JIT library is a data change.
 *
 * The files are looked for in $CUDAFS_DATA, else in the installed data folder, else in the
 * source tree that the program was built from. */

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strings.h"

/* How a component's version can be read from its own files. */
enum cfs_identify_kind {
  CFS_IDENTIFY_PACKAGE, /* only the package that brought it knows */
  CFS_IDENTIFY_TOOL,    /* "Cuda compilation tools, release X.Y, VX.Y.Z" in .rodata of file */
  CFS_IDENTIFY_MACROS,  /* macros in a header: X, Y, Z each, or one packed number */
};

struct cfs_identify {
  enum cfs_identify_kind kind;
  char *file;         /* face path, e.g. "bin/nvcc", "include/cuda_runtime_api.h" */
  cfs_strings macros; /* one packed macro, or one per version element */
  int divisor[3];     /* for a packed macro: major = n / divisor[0], minor = n % divisor[0] / divisor[1], and, when
                         divisor[2] is not 0, patch = n % divisor[1] / divisor[2] */
};

typedef struct cfs_component_info {
  char *name;  /* redist key, e.g. "cuda_cudart": the canonical id */
  char *title; /* for version.json, e.g. "CUDA Runtime (cudart)" */
  cfs_strings aliases;
  cfs_strings wheels;            /* distribution names, normalised (lower case, '-'), e.g. "nvidia-cuda-runtime" */
  cfs_strings debs;              /* NVIDIA package name stems, e.g. "cuda-cudart", "cuda-cudart-dev" */
  cfs_strings paths;             /* globs over face paths that tell whose file it is in an unpackaged toolkit:
                                    fnmatch without FNM_PATHNAME, first matching component in file order wins */
  struct cfs_identify *identify; /* tried in order; the first that can be read gives the version */
  size_t n_identify;
  bool unit;           /* belongs to the compiler unit: must equal its release */
  bool runtime;        /* CUDART_VERSION must equal the unit's release */
  bool required;       /* a toolchain that compiles is refused without it */
  char *since, *until; /* releases between which it exists on its own, or NULL; outside these it is part of `within` */
  char *within;        /* component that holds its files outside [since, until], or NULL */
} cfs_component_info;

/* One exact pin of a release's own metapackage. */
struct cfs_pin {
  char *component; /* canonical id */
  char *wheel;     /* "nvidia-cuda-runtime" */
  char *version;   /* "13.0.96", without ==, .* ; for a range its lower bound */
  bool exact;      /* false: the metapackage gives a range with this lower bound */
  char *toolkit;   /* the metapackage version that pins it, "13.2.2" */
};

typedef struct cfs_release_info {
  char *release;       /* "13.2" */
  char *toolkit;       /* newest metapackage of it, "13.2.2": pins are its pins */
  char *max_ptx;       /* "9.2" */
  int cudart;          /* CUDART_VERSION, 13020 */
  int gcc_max;         /* newest gcc major that crt/host_config.h takes */
  int clang_limit;     /* first clang major that it refuses */
  cfs_strings targets; /* "sm_75" ... */
  char *cccl;          /* CCCL version of its newest toolkit, "3.2.0", or NULL */
  char *glibc_limit;   /* first glibc whose headers clash with its own ("2.42"), or NULL when none is known */
  struct cfs_pin *pins;
  size_t n_pins;
  struct cfs_pin *older_pins; /* pins of its other metapackages, in file order */
  size_t n_older_pins;
  cfs_strings toolkits; /* every metapackage version known of this release, ascending */
} cfs_release_info;

struct cfs_advisory {
  char *id;            /* short name */
  char *component;     /* e.g. "cuda_nvcc" */
  char *versions;      /* requirement on the component's version, e.g. ">=13.1,<13.1.100" */
  cfs_strings targets; /* empty: any */
  char *summary;
  char *reference;
};

/* What a consumer needs of a CUDA_HOME, by target where it differs. */
struct cfs_consumer_rule {
  char *target;      /* glob over targets ("sm_12*"), or "*" */
  char *min_release; /* or NULL */
  char *max_release; /* exclusive, or NULL */
  char *reason;
};
typedef struct cfs_consumer_info {
  char *name;  /* "flashinfer" */
  char *title; /* "FlashInfer" */
  cfs_strings
      env; /* variables in the order that it asks; "PATH:nvcc" for a PATH search, "/usr/local/cuda" for a fixed path */
  cfs_strings needs;       /* face paths that must exist; libraries as "lib/...", as in the components' globs */
  cfs_strings shadowed_by; /* wheels that it prefers to any CUDA_HOME */
  struct cfs_consumer_rule *rules;
  size_t n_rules;
} cfs_consumer_info;

/* What a problem code means, for people. */
struct cfs_problem_info {
  char *code;
  char *title;       /* a few words */
  char *explanation; /* why it matters and what to do, a few sentences */
};

typedef struct cfs_tables {
  cfs_component_info *components;
  size_t n_components;
  cfs_release_info *releases; /* ascending */
  size_t n_releases;
  struct cfs_advisory *advisories;
  size_t n_advisories;
  cfs_consumer_info *consumers;
  size_t n_consumers;
  cfs_strings placeholder_versions;  /* "0.0.0a0", "0.0.1" ... */
  cfs_strings problem_codes;         /* every code that policy.allow may name */
  struct cfs_problem_info *problems; /* the same codes with their meaning, in the same order */
  size_t n_problems;
  char *dir; /* where they were read */
} cfs_tables;

/* Reads all tables. *ret is the caller's. Errors name the file, line and key. */
int cfs_tables_load(cfs_tables **ret, cfs_error **err);
void cfs_tables_free(cfs_tables *t);

const cfs_component_info *cfs_tables_component(const cfs_tables *t, const char *name_or_alias); /* or NULL */
/* By distribution name, any spelling (PEP 503 normalisation; a "-cu12"/"-cu13" suffix is ignored). */
const cfs_component_info *cfs_tables_component_of_wheel(const cfs_tables *t, const char *distribution);
/* By face path ("lib/libcudart.so.13"); NULL when no glob matches. */
const cfs_component_info *cfs_tables_component_of_path(const cfs_tables *t, const char *face_path);
const cfs_release_info *cfs_tables_release(const cfs_tables *t, const char *release);
const cfs_consumer_info *cfs_tables_consumer(const cfs_tables *t, const char *name);
/* The pin of a component in a release, or NULL. */
const struct cfs_pin *cfs_release_pin(const cfs_release_info *r, const char *component);
/* Likewise in one metapackage of the release ("13.2.1"). */
const struct cfs_pin *cfs_release_toolkit_pin(const cfs_release_info *r, const char *toolkit, const char *component);
bool cfs_release_has_target(const cfs_release_info *r, const char *target);
const struct cfs_problem_info *cfs_tables_problem(const cfs_tables *t, const char *code); /* or NULL */

/* The component that a component's files belong to in a release: itself, or (for the ones that NVIDIA split
 * off later, or joined) the one that holds them. NULL when name is not known. */
const cfs_component_info *cfs_tables_component_in_release(const cfs_tables *t, const char *name, const char *release);
/* The version that macro values give: one value per macro of the rule. The caller owns the result; NULL
 * when the rule does not fit (wrong count, negative values). */
char *cfs_identify_version(const struct cfs_identify *rule, const long *values, size_t n);
/* A distribution name as the tables spell it: lower case, runs of "-_." as one "-", "-cuNN" taken off.
 * The caller owns the result. */
char *cfs_wheel_name_normalise(const char *distribution);

#endif
