/* SPDX-License-Identifier: MIT */
#include "cli/arguments.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/output.h"
#include "manifests/suggest.h"

struct parse {
  const struct cfs_usage *usage;
  const struct cfs_option *options;
  size_t n_options;
  int argc;
  char *const *argv;
  int next;
};

static void print_option(const struct cfs_option *o)
{
  cleanup_free char *names = o->letter ? cfs_format("-%c, --%s", o->letter, o->name) : cfs_format("    --%s", o->name);
  cleanup_free char *left = o->value ? cfs_format("%s %s", names, o->value) : cfs_strdup(names);
  printf("  %-24s", left);
  if (strlen(left) > 22)
    printf("\n%26s", "");
  cfs_put_wrapped(stdout, o->help, 26, 26);
}

static void print_help(const struct parse *p)
{
  const struct cfs_usage *u = p->usage;
  printf("usage: cudafs %s%s%s%s\n\n", u->name, p->n_options ? " [OPTIONS]" : "", *u->synopsis ? " " : "", u->synopsis);
  printf("%s\n", u->help);
  if (p->n_options)
    printf("\noptions:\n");
  for (size_t i = 0; i < p->n_options; i++)
    print_option(&p->options[i]);
}

static int invalid(const struct parse *p, const char *what, const char *why)
{
  cleanup_free char *command = cfs_format("%s%s%s", p->usage->name, what ? ": " : "", what ? what : "");
  cleanup_free char *fix = cfs_format("usage: cudafs %s%s %s; see cudafs %s --help", p->usage->name,
                                      p->n_options ? " [OPTIONS]" : "", p->usage->synopsis, p->usage->name);
  return cfs_report_format(CFS_INVALID, command, fix, "%s", why);
}

static int unknown(const struct parse *p, const char *word)
{
  cleanup_free char *name = cfs_strndup(word, strcspn(word, "="));
  cfs_suggestion near = {.word = name};
  for (size_t i = 0; cfs_has_prefix(word, "--") && i < p->n_options; i++) {
    near.word = name + 2;
    cfs_suggestion_offer(&near, p->options[i].name);
  }
  cleanup_free char *why = near.best ? cfs_format("there is no such option; did you mean --%s?", near.best)
                                     : cfs_strdup("there is no such option");
  return invalid(p, name, why);
}

static int store(struct parse *p, const struct cfs_option *o, const char *word, const char *value)
{
  if (!o->value && value)
    return invalid(p, word, "this option takes no value");
  if (!o->value) {
    *o->flag = true;
    return -1;
  }
  if (!value && p->next < p->argc)
    value = p->argv[p->next++];
  if (!value)
    return invalid(p, word, "this option needs a value");
  if (o->texts) {
    cfs_strings_add(o->texts, value);
  } else {
    free(*o->text);
    *o->text = cfs_strdup(value);
  }
  return -1;
}

static int take_long(struct parse *p, const char *word)
{
  const char *name = word + 2, *equals = strchr(name, '=');
  size_t n = equals ? (size_t)(equals - name) : strlen(name);
  for (size_t i = 0; i < p->n_options; i++)
    if (strncmp(p->options[i].name, name, n) == 0 && p->options[i].name[n] == '\0')
      return store(p, &p->options[i], word, equals ? equals + 1 : NULL);
  return unknown(p, word);
}

static int take_short(struct parse *p, const char *word)
{
  for (const char *c = word + 1; *c; c++) {
    const struct cfs_option *found = NULL;
    for (size_t i = 0; i < p->n_options; i++)
      if (p->options[i].letter == *c)
        found = &p->options[i];
    if (!found)
      return unknown(p, word);
    int r = store(p, found, word, found->value && c[1] ? c + 1 : NULL);
    if (r >= 0 || found->value)
      return r;
  }
  return -1;
}

static int take(struct parse *p, const char *word, bool *ended, cfs_strings *ret)
{
  /* An unset variable in a script must not come to mean the working directory. */
  if (!*word)
    return invalid(p, NULL, "an empty word stands where a path is wanted");
  if (*ended || word[0] != '-' || word[1] == '\0') {
    cfs_strings_add(ret, word);
    return -1;
  }
  if (strcmp(word, "--") == 0) {
    *ended = true;
    return -1;
  }
  if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
    print_help(p);
    return 0;
  }
  return word[1] == '-' ? take_long(p, word) : take_short(p, word);
}

int cfs_arguments(const struct cfs_usage *usage, const struct cfs_option *options, size_t n_options, int argc,
                  char *const *argv, cfs_strings *ret)
{
  struct parse p = {usage, options, n_options, argc, argv, 1};
  bool ended = false;
  while (p.next < argc) {
    int r = take(&p, argv[p.next++], &ended, ret);
    if (r >= 0)
      return r;
  }
  if (ret->count < usage->least)
    return invalid(&p, NULL, usage->most == 1 ? "one more word is needed" : "words are missing");
  if (ret->count > usage->most)
    return invalid(&p, ret->items[usage->most], "this is one word too many");
  return -1;
}
