/* What the sweep tests share: the real registries, sweeps from text, runs as labels. */
#ifndef PL_TESTS_SWEEP_SUPPORT_H
#define PL_TESTS_SWEEP_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/memory.h"
#include "models/models.h"
#include "optim/optim.h"
#include "sweeps/sweep.h"

static inline pl_registries registries(void) {
  return (pl_registries){pl_models, pl_datasets, pl_optimizers, pl_corrections, pl_lr_schedules};
}

/* The sweep keeps a pointer to its registries. */
typedef struct fixture {
  pl_registries registries;
  pl_sweep *sweep;
  pl_err e;
} fixture;

#define BASE "\"base\":{\"model\":\"quadratic\",\"optimizer\":\"sgd\",\"train\":{\"steps\":10}}"

/* Loads {TEXT} as the file "dir/demo.json", with single quotes for double ones where that reads better. */
static inline pl_status load(fixture *f, const char *text, const char *const *sets, size_t set_count) {
  pl_json *document = NULL;
  pl_str quoted = {0};
  *f = (fixture){.registries = registries()};
  pl_str_append(&quoted, text);
  for (size_t i = 0; i < quoted.length; i++)
    if (quoted.text[i] == '\'') quoted.text[i] = '"';
  assert_int_equal(pl_json_parse(quoted.text, quoted.length, "dir/demo.json", &document, &f->e), PL_OK);
  pl_sets all = {sets, set_count};
  pl_status st = pl_sweep_from_json(&f->registries, document, "dir/demo.json", all, &f->sweep, &f->e);
  pl_json_release(document);
  pl_str_free(&quoted);
  return st;
}

static inline void unload(fixture *f) { pl_sweep_free(f->sweep); }

/* Loads and expands to the end or to the first failure; labels, one a line, and ids are optional. */
static inline pl_status expand(fixture *f, const char *text, pl_str *labels, uint64_t *ids, size_t room) {
  const pl_sweep_run *run = NULL;
  pl_status st = load(f, text, NULL, 0);
  size_t count = 0;
  while (st == PL_OK) {
    st = pl_sweep_next(f->sweep, &run, &f->e);
    if (st != PL_OK || run == NULL) break;
    assert_int_equal(run->index, count);
    if (labels != NULL) {
      pl_sweep_label(f->sweep, run, labels);
      pl_str_append(labels, "\n");
    }
    if (count < room) ids[count] = run->id;
    count++;
  }
  return st;
}

/* The labels of all runs, one a line, are these. */
static inline void expect_labels(const char *text, const char *labels) {
  fixture f;
  pl_str seen = {0};
  pl_status st = expand(&f, text, &seen, NULL, 0);
  assert_string_equal(f.e.text, "");
  assert_int_equal(st, PL_OK);
  assert_string_equal(pl_str_text(&seen), labels);
  pl_str_free(&seen);
  unload(&f);
}

/* Loading or expanding ends as PL_BAD with exactly this message. */
static inline void expect_error(const char *text, const char *message) {
  fixture f;
  pl_status st = expand(&f, text, NULL, NULL, 0);
  assert_string_equal(f.e.text, message);
  assert_int_equal(st, PL_BAD);
  unload(&f);
}

#endif
