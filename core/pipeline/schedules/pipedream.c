#include "core/pipeline/build.h"

static int64_t delay(const pl_schedule *s, size_t stage, size_t microbatch) {
  (void)microbatch;
  return (int64_t)pl_build_warmup(s, stage);
}

static pl_status make(const pl_schedule_args *a, pl_schedule *out, pl_err *e) {
  pl_status st = pl_build_one_microbatch("pipedream", a, e);
  return st == PL_OK ? pl_build_continuous("pipedream", a, delay, out, e) : st;
}

const pl_schedule_type pl_schedule_type_pipedream = {
    .name = "pipedream",
    .summary = "asynchronous: update after every microbatch, weights stashed, delay stages - 1 - stage",
    .source = "PipeDream, arXiv 1806.03377",
    .chunks = 1,
    .make = make};
