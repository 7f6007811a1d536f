/* Folders, a made-up sweep and its report, for tests. Includes cmocka. */
#ifndef PL_TESTS_UNIT_REPORT_HELP_H
#define PL_TESTS_UNIT_REPORT_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include "analysis/gnuplot.h"
#include "analysis/mean_curve.h"
#include "analysis/pdf_date.h"
#include "analysis/plots.h"
#include "analysis/report_parts.h"
#include "fake_sweep.h"

static inline int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at) {
  (void)s;
  (void)kind;
  (void)at;
  return remove(path);
}

__attribute__((noinline)) static char *make_folder(void) {
  char text[] = "/tmp/pipelag-report-XXXXXX", *out = NULL;
  pl_err e = {0};
  assert_non_null(mkdtemp(text));
  assert_int_equal(pl_strdup(text, &out, &e), PL_OK);
  return out;
}

static inline void remove_folder(char *folder) {
  assert_int_equal(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
  pl_free(folder);
}

/* Two optimizers with three learning rates and three seeds, one arm that diverges, and a second group of arms. */
static inline pl_catalog sample(const char *dir) {
  pl_catalog c = fake_catalog(dir);
  const char *const optimizers[] = {"adamw", "muon"};
  for (int o = 0; o < 2; o++)
    for (int seed = 0; seed < 3; seed++)
      for (int l = 0; l < 3; l++) {
        double lr = 4e-3 * (1 << l), loss = 1.60 + 0.02 * o + 0.003 * seed + 0.01 * (l - 1) * (l - 1);
        double delayed = loss + (o == 0 ? 0.1 + 0.02 * l : 0.02) + 0.001 * ((seed * 5) % 3);
        fake_arm_run(&c, optimizers[o], lr, "0", "\"none\"", seed, loss);
        fake_arm_run(&c, optimizers[o], lr, "1", "\"none\"", seed,
                     o == 0 && l == 2 && seed == 1 ? (double)NAN : delayed);
        fake_arm_run(&c, optimizers[o], lr, "1", "\"ef\"", seed, 0.6 * loss + 0.4 * delayed);
      }
  for (int d = 0; d < 2; d++)
    fake_run(&c, PL_RUN_DONE, 1.7 + 0.3 * d,
             "\"optimizer\": \"adamw\", \"optimizer.lr\": 0.008, \"delay\": %s, \"simulate_only\": true, "
             "\"pipeline\": {\"stages\": 8}, \"train\": {\"steps\": 600}",
             d == 0 ? "0" : "\"pipedream\"");
  for (size_t i = 0; i < c.count; i++) fake_journal(&c, &c.runs[i]);
  return c;
}

static inline void note_line(void *self, const char *line) { pl_str_printf(self, "%s\n", line); }

static inline void write_report_of(const pl_report_input *in, const char *folder, pl_str *said) {
  pl_err e = {0};
  if (pl_report_write(in, folder, note_line, said, &e) != PL_OK) fail_msg("%s", e.text);
}

static inline void write_report(const pl_catalog *c, const char *folder, pl_str *said) {
  pl_gap_options o = {.at_key = "optimizer.lr", .at_value = 8e-3};
  write_report_of(&(pl_report_input){.catalog = c, .options = &o}, folder, said);
}

/* Sets an environment variable, or unsets it with NULL; the old value is released by put_back. */
static inline char *put(const char *name, const char *value) {
  char *old = NULL;
  const char *now = getenv(name);
  pl_err e = {0};
  if (now) assert_int_equal(pl_strdup(now, &old, &e), PL_OK);
  if (value)
    setenv(name, value, 1);
  else
    unsetenv(name);
  return old;
}

static inline void put_back(const char *name, char *old) {
  pl_free(put(name, old));
  pl_free(old);
}

/* Without plots, which take most of the time. */
static inline void write_plain_report(const pl_report_input *in, const char *folder, pl_str *said) {
  char *path = put("PATH", folder);
  write_report_of(in, folder, said);
  put_back("PATH", path);
}

static inline char *read_below(const char *folder, const char *name, size_t *length) {
  pl_err e = {0};
  char *path = NULL, *text = NULL;
  assert_int_equal(pl_path_join(folder, name, &path, &e), PL_OK);
  if (pl_file_read(path, (size_t)1 << 24, &text, length, &e) != PL_OK) fail_msg("%s", e.text);
  pl_free(path);
  return text;
}

static inline bool has_gnuplot(void) { return system("gnuplot --version > /dev/null 2>&1") == 0; }

static inline void write_below(const char *folder, const char *name, const char *text) {
  pl_err e = {0};
  char *path = NULL;
  assert_int_equal(pl_path_join(folder, name, &path, &e), PL_OK);
  assert_int_equal(pl_file_replace(path, text, strlen(text), &e), PL_OK);
  pl_free(path);
}

static inline size_t count_of(const char *text, const char *part) {
  size_t n = 0;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at++) n++;
  return n;
}

#endif
