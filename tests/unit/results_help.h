/* Shared by the tests of results/: a folder that is removed, files, points with distinct figures, a tiny run config. */
#ifndef PL_TESTS_RESULTS_HELP_H
#define PL_TESTS_RESULTS_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "core/config/run_config.h"
#include "core/train/log_sink.h"

static inline int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at) {
  (void)info, (void)type, (void)at;
  return remove(path);
}

/* *state is the folder's path. */
static inline int make_temp(void **state) {
  char *path = strdup("/tmp/pl_results_XXXXXX");
  *state = path;
  return path && mkdtemp(path) ? 0 : -1;
}

static inline int remove_temp(void **state) {
  int rc = nftw(*state, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
  free(*state);
  return rc;
}

/* "<folder>/<name>" in `out`, which holds 256 bytes. */
static inline char *in_temp(void **state, const char *name, char *out) {
  snprintf(out, 256, "%s/%s", (const char *)*state, name);
  return out;
}

static inline size_t read_bytes(const char *path, char **out) {
  size_t length;
  assert_int_equal(pl_file_read(path, (size_t)1 << 30, out, &length, NULL), PL_OK);
  return length;
}

static inline void write_bytes(const char *path, const void *bytes, size_t count) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, count, f), count);
  assert_int_equal(fclose(f), 0);
}

/* Every figure of every step and every attempt is another one; weight_norm is measured at every tenth step only. */
static inline pl_point point_at(int64_t step, int64_t attempt) {
  pl_point p = {.step = step, .tokens = step * 1024};
  for (int i = 0; i < PL_SERIES_COUNT; i++)
    p.values[i] = (double)step + 0.001 * (double)(i + 1) + 0.0001 * (double)attempt;
  if (step % 10 != 0) p.values[PL_SERIES_weight_norm] = (double)NAN;
  return p;
}

static inline void assert_point(const pl_point *p, int64_t step, int64_t attempt) {
  const pl_point expected = point_at(step, attempt);
  assert_memory_equal(p, &expected, sizeof expected);
}

/* A sentence, naming the file, that ends without a line break. */
static inline void assert_says(const pl_err *e, const char *part) {
  if (!strstr(e->text, part)) fail_msg("\"%s\" does not say \"%s\"", e->text, part);
  assert_null(strchr(e->text, '\n'));
}

/* Runs `child` in `count` forked processes at once and gives the sum of their exit statuses, each at most 100. */
static inline int fork_all(int count, int (*child)(void *self, int number), void *self) {
  pid_t pids[64];
  int sum = 0;
  fflush(NULL);
  for (int i = 0; i < count; i++) {
    pids[i] = fork();
    assert_true(pids[i] >= 0);
    if (pids[i] == 0) _exit(child(self, i));
  }
  for (int i = 0; i < count; i++) {
    int status;
    assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
    assert_true(WIFEXITED(status));
    assert_true(WEXITSTATUS(status) <= 100);
    sum += WEXITSTATUS(status);
  }
  return sum;
}

/* Components with just enough to make a configuration. */
typedef struct toy_config {
  double lr;
  int64_t steps;
  bool nesterov;
} toy_config;

static const pl_param toy_params[] = {
    {.name = "lr", .type = PL_REAL, .offset = offsetof(toy_config, lr), .def = 0.01, .max = 10, .help = "rate"},
    {.name = "steps", .type = PL_INT, .offset = offsetof(toy_config, steps), .def = 5, .max = 9, .help = "steps"},
    {.name = "nesterov", .type = PL_BOOL, .offset = offsetof(toy_config, nesterov), .def = 1, .help = "look ahead"},
    {0}};
static const pl_component toy_muon = {"muon", "toy", "test", toy_params, sizeof(toy_config), NULL},
                          toy_adamw = {"adamw", "toy", "test", toy_params, sizeof(toy_config), NULL},
                          toy_ef = {"ef", "toy", "test", toy_params, sizeof(toy_config), NULL},
                          toy_cosine = {"cosine", "toy", "test", toy_params, sizeof(toy_config), NULL},
                          toy_data = {"none", "toy", "test", toy_params, sizeof(toy_config), NULL},
                          toy_model = {"quadratic", "toy", "test", toy_params, sizeof(toy_config), NULL};
static const pl_component *const toy_models[] = {&toy_model}, *const toy_datasets[] = {&toy_data},
                                 *const toy_optimizers[] = {&toy_muon, &toy_adamw},
                                 *const toy_corrections[] = {&toy_ef}, *const toy_schedules[] = {&toy_cosine};
static const pl_registries toys = {.models = {"model", toy_models, 1},
                                   .datasets = {"dataset", toy_datasets, 1},
                                   .optimizers = {"optimizer", toy_optimizers, 2},
                                   .corrections = {"correction", toy_corrections, 1},
                                   .lr_schedules = {"lr_schedule", toy_schedules, 1}};

/* The document must outlive the config; released by pl_json_release. */
static inline pl_json *toy_run(const char *optimizer, double lr, int seed, pl_run_config *out) {
  char text[512];
  pl_err e = {0};
  pl_json *document = NULL;
  snprintf(text, sizeof text,
           "{\"name\": \"d\\u00e9lai\", \"model\": \"quadratic\", \"data\": \"none\", \"seed\": %d, \"delay\": [3,1,0],"
           "\"pipeline\": {\"stages\": 3}, \"optimizer\": {\"type\": \"%s\", \"lr\": %.17g}, \"correction\": \"ef\","
           "\"train\": {\"steps\": 100, \"lr_schedule\": \"cosine\"}}",
           seed, optimizer, lr);
  assert_int_equal(pl_json_parse(text, strlen(text), "toy", &document, &e), PL_OK);
  if (pl_run_config_from_json(&toys, document, "toy", out, &e) != PL_OK) fail_msg("%s", e.text);
  return document;
}

#endif
