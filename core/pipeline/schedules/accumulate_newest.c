#include "core/pipeline/build.h"

/* The newest weights at entry, stashed until the backward: ceil((warm-up - microbatch) / microbatches), at least 0. */
static int64_t delay(const pl_schedule *s, size_t stage, size_t microbatch) {
  size_t warmup = pl_build_warmup(s, stage), m = s->microbatches;
  return warmup > microbatch ? (int64_t)((warmup - microbatch + m - 1) / m) : 0;
}

static pl_status make(const pl_schedule_args *a, pl_schedule *out, pl_err *e) {
  return pl_build_continuous("accumulate-newest", a, delay, out, e);
}

const pl_schedule_type pl_schedule_type_accumulate_newest = {
    .name = "accumulate-newest",
    .summary = "asynchronous: continuous 1f1b, newest weights at entry, stashed: mixed delays within an update",
    .source = "2BW's order with PipeDream's version rule; without the stash: PACI, arXiv 2606.07881",
    .chunks = 1,
    .make = make};
