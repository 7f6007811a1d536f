/* Relations between the sections of a run file that the trainer cannot work with, and their messages. */
#include "tests/conform/train_rig.h"

static void refuse(const char *json, const char *text) {
  rig r;
  pl_err e = {0};
  pl_status st = rig_config(&r, NULL, json, &e);
  if (st != PL_BAD || !strstr(e.text, text))
    fail_msg("%s: status %d, \"%s\" lacks \"%s\"", json, (int)st, e.text, text);
  pl_json_release(r.json);
}

static void accept(const char *json) {
  rig r;
  pl_err e = {0};
  rig_must(rig_config(&r, NULL, json, &e), &e);
  pl_json_release(r.json);
}

#define Q "'model': {'type': 'quadratic', 'layers': 4}, 'data': 'none', 'optimizer': 'sgd'"
#define M "'model': {'type': 'mlp', 'context': 64}, 'data': 'synthetic', 'optimizer': 'sgd'"
#define T4                                                                                                             \
  "'model': {'type': 'transformer', 'layers': 4, 'd_model': 16, 'heads': 2, 'tied': true, 'context': 64}, 'data': "    \
  "'synthetic', 'optimizer': 'sgd'"

static void bad_configs(void **state) {
  (void)state;
  refuse("{" M ", 'train': {'steps': 20, 'batch_tokens': 100}}", "train.batch_tokens: 100");
  refuse("{" M ", 'train': {'steps': 20, 'batch_tokens': 32}}", "train.batch_tokens: 32");
  refuse("{" M ", 'train': {'steps': 20, 'batch_tokens': 128}, 'pipeline': {'microbatches': 3}}",
         "pipeline.microbatches: 3");
  refuse("{" M ", 'train': {'steps': 20, 'val_tokens': 63}}", "train.val_tokens: 63");
  refuse("{" Q ", 'train': {'steps': 20}, 'pipeline': {'stages': 5}}", "pipeline.stages: 5");
  refuse("{" Q ", 'train': {'steps': 20, 'clip': 0}, 'delay': [1, 0], 'pipeline': {'stages': 4}}", "delay: ");
  refuse("{" Q ", 'train': {'steps': 20}, 'delay_start': 21}", "delay_start: 21");
  refuse("{" Q ", 'train': {'steps': 20, 'warmup': 20}}", "train.warmup: 20");
  refuse("{" Q ", 'train': {'steps': 20, 'warmup': 1e300}}", "train.warmup: ");
  refuse("{'model': 'quadratic', 'data': 'synthetic', 'optimizer': 'sgd', 'train': {'steps': 2}}", "data: ");
  refuse("{'model': 'mlp', 'data': 'none', 'optimizer': 'sgd', 'train': {'steps': 2}}", "data: ");
  accept("{" Q ", 'train': {'steps': 20}, 'delay_start': 20, 'delay': 3}");
}

static void slack(void **state) {
  (void)state;
  refuse(
      "{" Q ", 'train': {'steps': 20}, 'delay': 'pipedream', 'pipeline': {'stages': 4}}",
      "train.clip_scope: a global clip needs gradients of every stage, but with the delays pipedream update t of stage "
      "3 needs data of stage 0 that does not exist yet; allowed: clip_scope \"stage\", clip 0, the same delay for "
      "every "
      "stage, or simulate_only true");
  refuse("{" Q ", 'train': {'steps': 20}, 'delay': [1, 1, 0, 1], 'pipeline': {'stages': 4}}", "update t of stage 2");
  refuse("{" T4 ", 'train': {'steps': 20, 'clip': 0}, 'delay': [1, 1, 0, 1], 'pipeline': {'stages': 4}}",
         "model: a tied head");
  accept("{" Q ", 'train': {'steps': 20}, 'delay': 'pipedream', 'pipeline': {'stages': 4}, 'simulate_only': true}");
  accept("{" Q ", 'train': {'steps': 20}, 'delay': 'pipedream'}");
  accept("{" Q ", 'train': {'steps': 20, 'clip': 0}, 'delay': 'pipedream', 'pipeline': {'stages': 4}}");
  accept("{" Q ", 'train': {'steps': 20, 'clip_scope': 'stage'}, 'delay': [2, 1], 'pipeline': {'stages': 2}}");
  accept("{" Q ", 'train': {'steps': 20}, 'delay': [2, 2], 'pipeline': {'stages': 2}}");
  accept("{" T4 ", 'train': {'steps': 20}, 'delay': 7, 'pipeline': {'stages': 4}}");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bad_configs), cmocka_unit_test(slack)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
