/* What the tests of schedules share. Includes cmocka. */
#ifndef PL_TESTS_CONFORM_SCHEDULES_RIG_H
#define PL_TESTS_CONFORM_SCHEDULES_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/pipeline/library.h"
#include "core/pipeline/timeline.h"

static inline void must(pl_status st, const pl_err *e) {
  if (st != PL_OK) fail_msg("%s", e->text);
}

static inline void make(const char *name, size_t stages, size_t microbatches, size_t chunks, pl_schedule *out) {
  static const int64_t delay[] = {3, 0, 2, 1, 1, 1, 1, 5};
  pl_err e = {0};
  const pl_schedule_type *type = pl_schedule_find(name, &e);
  if (!type) fail_msg("%s", e.text);
  const pl_schedule_args a = {.stages = stages,
                              .microbatches = microbatches,
                              .chunks = chunks,
                              .delay = type->takes_delay ? delay : NULL,
                              .allow_min_microbatches = true};
  must(pl_schedule_make(type, &a, out, &e), &e);
}

static inline pl_schedule_facts check(const pl_schedule *s) {
  pl_schedule_facts facts;
  pl_err e = {0};
  must(pl_schedule_check(s, &facts, &e), &e);
  return facts;
}

static inline pl_timeline timeline(const pl_schedule *s, int64_t updates) {
  const pl_costs costs = pl_costs_unit();
  pl_timeline t;
  pl_err e = {0};
  must(pl_timeline_make(s, &costs, updates, &t, &e), &e);
  return t;
}

static inline pl_bubble bubble(const pl_schedule *s, int64_t updates) {
  const pl_costs costs = pl_costs_unit();
  pl_bubble b;
  pl_err e = {0};
  must(pl_schedule_bubble(s, &costs, updates, &b, &e), &e);
  return b;
}

/* Every schedule with numbers that it allows. */
static inline void for_each(void (*body)(const pl_schedule *s)) {
  size_t count = 0;
  const pl_schedule_type *const *types = pl_schedule_types(&count);
  assert_int_equal(count, 10);
  for (size_t i = 0; i < count; i++)
    for (size_t stages = 2; stages <= 8; stages *= 2) {
      bool one = strncmp(types[i]->name, "pipedream", 9) == 0;
      pl_schedule s;
      make(types[i]->name, stages, one ? 1 : 2 * stages, 0, &s);
      body(&s);
      pl_schedule_free(&s);
    }
}

#endif
