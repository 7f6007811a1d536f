/* What tests of whole analyses share. Includes cmocka. */
#ifndef PL_TESTS_UNIT_ANALYSIS_HELP_H
#define PL_TESTS_UNIT_ANALYSIS_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "fake_sweep.h"

static inline int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at) {
  (void)info, (void)type, (void)at;
  return remove(path);
}

static inline void remove_folder(const char *dir) {
  assert_int_equal(nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static inline void near(double seen, double expected) {
  if (!(fabs(seen - expected) <= 1e-9)) fail_msg("%.17g instead of %.17g", seen, expected);
}

static inline pl_analysis compute(const pl_catalog *c, const pl_gap_options *o) {
  pl_analysis a = {0};
  pl_err e = {0};
  if (pl_analysis_run(c, NULL, o, &a, &e) != PL_OK) fail_msg("%s", e.text);
  return a;
}

static inline bool warned(const pl_analysis *a, const char *part) {
  for (size_t i = 0; i < a->warnings.count; i++)
    if (strstr(a->warnings.texts[i], part)) return true;
  return false;
}

static inline const pl_gap_row *row(const pl_analysis *a, const char *optimizer, const char *delay,
                                    const char *correction) {
  for (size_t i = 0; i < a->gap.count; i++) {
    const pl_gap_row *r = &a->gap.rows[i];
    if (r->reading == PL_READING_BEST && strcmp(r->optimizer, optimizer) == 0 && strcmp(r->delay, delay) == 0 &&
        strcmp(r->correction, correction) == 0)
      return r;
  }
  fail_msg("no row %s, delay %s, %s", optimizer, delay, correction);
  return NULL;
}

static inline const pl_reach_row *reach(const pl_analysis *a, const char *delay, const char *correction) {
  for (size_t i = 0; i < a->reach.count; i++) {
    const pl_reach_row *r = &a->reach.rows[i];
    if (strcmp(r->arm->delay, delay) == 0 && strcmp(r->arm->correction, correction) == 0) return r;
  }
  fail_msg("no row with delay %s, %s", delay, correction);
  return NULL;
}

static inline char *sheet_csv(const pl_analysis *a, pl_sheet_kind kind) {
  pl_sheets s = {0};
  pl_err e = {0};
  pl_str text = {0};
  assert_int_equal(pl_sheets_make(a, &s, &e), PL_OK);
  pl_sheet_csv(&s.list[kind], &text);
  pl_sheets_free(&s);
  assert_false(text.failed);
  return text.text;
}

static inline char *sheet_text(const pl_analysis *a, pl_sheet_kind kind) {
  pl_sheets s = {0};
  pl_err e = {0};
  pl_str text = {0};
  assert_int_equal(pl_sheets_make(a, &s, &e), PL_OK);
  pl_sheet_text(&s.list[kind], &text);
  pl_sheets_free(&s);
  assert_false(text.failed);
  return text.text;
}

#endif
