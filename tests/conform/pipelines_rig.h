/* Runs of a tiny model, 16 layers, in every pipeline that can be executed, for tests that compare them with the oracle.
 */
#ifndef PL_TESTS_CONFORM_PIPELINES_RIG_H
#define PL_TESTS_CONFORM_PIPELINES_RIG_H

#include "tests/conform/oracle.h"

typedef struct pipeline_case {
  const char *schedule, *optimizer, *correction;
  size_t stages, microbatches, replicas;
  bool tied, stage_clip;
  int64_t steps;
  const char *train, *pipeline; /* further keys, each with a comma before it */
} pipeline_case;

static const char *const pipeline_schedules[] = {"gpipe", "1f1b",      "interleaved-1f1b",   "zb-h1",
                                                 "2bw",   "pipedream", "pipedream-vertical", "accumulate-newest"};
enum { PIPELINE_SCHEDULES = sizeof pipeline_schedules / sizeof *pipeline_schedules };

static const char *const pipeline_optimizers[] = {"adamw", "muon", "sgd"};
static const char *const pipeline_corrections[] = {"none", "ef", "lookahead"};

/* Leaves no time for what needs every stage. */
static inline bool pipeline_runs_free(const char *schedule) {
  return strcmp(schedule, "pipedream") == 0 || strcmp(schedule, "accumulate-newest") == 0;
}

static inline bool pipeline_is_legal(const char *schedule, size_t stages, size_t microbatches) {
  if (strncmp(schedule, "pipedream", 9) == 0) return microbatches == 1;
  if (strcmp(schedule, "interleaved-1f1b") == 0) return stages > 1 && microbatches % stages == 0;
  if (strcmp(schedule, "2bw") == 0) return microbatches + 1 >= stages;
  return true;
}

/* Long enough that every version is read and left behind. */
static inline pipeline_case pipeline_make(const char *schedule, size_t stages, size_t microbatches) {
  return (pipeline_case){.schedule = schedule,
                         .optimizer = "adamw",
                         .correction = "ef",
                         .stages = stages,
                         .microbatches = microbatches,
                         .replicas = 1,
                         .stage_clip = pipeline_runs_free(schedule),
                         .steps = 7 + (int64_t)stages,
                         .train = "",
                         .pipeline = ""};
}

/* Microbatches of two sizes. */
static inline void pipeline_text(const pipeline_case *c, char *json) {
  static const struct { const char *name, *lr; } rates[] = {{"adamw", "0.01"}, {"muon", "0.02"}, {"sgd", "0.05"}};
  const char *lr = rates[0].lr;
  const size_t parts = c->microbatches * c->replicas, sequences = parts + (parts + 1) / 2;
  for (size_t i = 0; i < 3; i++)
    if (strcmp(rates[i].name, c->optimizer) == 0) lr = rates[i].lr;
  int length = snprintf(
      json, RIG_TEXT,
      "{'model': {'type': 'transformer', 'layers': 16, 'd_model': 16, 'heads': 2, 'context': 8, 'tied': %s}, "
      "'data': {'type': 'synthetic', 'vocab': 16}, 'optimizer': {'type': '%s', 'lr': %s}, 'correction': '%s', "
      "'train': {'steps': %lld, 'batch_tokens': %zu, 'warmup': 3, 'lr_schedule': 'constant', 'clip': 0.5, "
      "'clip_scope': '%s', 'val_tokens': 40%s}, 'pipeline': {'schedule': '%s', 'stages': %zu, 'microbatches': %zu, "
      "'replicas': %zu, 'allow_min_microbatches': %s%s}}",
      c->tied ? "true" : "false", c->optimizer, lr, c->correction, (long long)c->steps, 8 * sequences,
      c->stage_clip ? "stage" : "global", c->train, c->schedule, c->stages, c->microbatches, c->replicas,
      strcmp(c->schedule, "2bw") == 0 ? "true" : "false", c->pipeline);
  assert_true(length > 0 && length < RIG_TEXT);
}

static inline void pipeline_open(const pipeline_case *c, rig *r) {
  char json[RIG_TEXT];
  pipeline_text(c, json);
  rig_open(r, NULL, json);
}

/* Every schedule at that many stages, with every interesting number of microbatches. Returns how many cases it was. */
static inline size_t pipeline_for_each(size_t stages, void (*run)(const pipeline_case *c)) {
  const size_t microbatches[] = {1, stages - 1, stages, stages + 1, 2 * stages};
  size_t count = 0;
  for (size_t s = 0; s < PIPELINE_SCHEDULES; s++)
    for (size_t i = 0; i < sizeof microbatches / sizeof *microbatches; i++) {
      const char *name = pipeline_schedules[s];
      bool before = false;
      for (size_t j = 0; j < i; j++) before = before || microbatches[j] == microbatches[i];
      if (before || microbatches[i] == 0 || !pipeline_is_legal(name, stages, microbatches[i])) continue;
      const pipeline_case c = pipeline_make(name, stages, microbatches[i]);
      run(&c);
      count++;
    }
  return count;
}

#endif
