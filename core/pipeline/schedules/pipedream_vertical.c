#include "core/pipeline/build.h"

/* The version is fixed when the microbatch enters the first stage. */
static int64_t delay(const pl_schedule *s, size_t stage, size_t microbatch) {
  (void)stage, (void)microbatch;
  return (int64_t)s->stages - 1;
}

static pl_status make(const pl_schedule_args *a, pl_schedule *out, pl_err *e) {
  pl_status st = pl_build_one_microbatch("pipedream-vertical", a, e);
  return st == PL_OK ? pl_build_continuous("pipedream-vertical", a, delay, out, e) : st;
}

const pl_schedule_type pl_schedule_type_pipedream_vertical = {
    .name = "pipedream-vertical",
    .summary = "asynchronous: pipedream with vertical sync, delay stages - 1 everywhere",
    .source = "PipeDream, arXiv 1806.03377",
    .chunks = 1,
    .make = make};
