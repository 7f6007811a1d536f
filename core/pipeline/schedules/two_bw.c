#include "core/pipeline/build.h"

/* Every microbatch of update t reads version t - 1 on every stage, also where version t is there already. */
static int64_t delay(const pl_schedule *s, size_t stage, size_t microbatch) {
  (void)s, (void)stage, (void)microbatch;
  return 1;
}

static pl_status make(const pl_schedule_args *a, pl_schedule *out, pl_err *e) {
  size_t least = a->allow_min_microbatches && a->stages > 1 ? a->stages - 1 : a->stages;
  if (a->microbatches < least)
    return pl_fail(e, PL_BAD, "2bw: saw %zu microbatches with %zu stages; allowed: at least %zu%s", a->microbatches,
                   a->stages, least,
                   a->allow_min_microbatches ? ", two weight versions carry no fewer"
                                             : ", or one less with allow_min_microbatches");
  return pl_build_continuous("2bw", a, delay, out, e);
}

const pl_schedule_type pl_schedule_type_two_bw = {
    .name = "2bw",
    .summary = "asynchronous: continuous 1f1b, two weight versions, delay 1 everywhere",
    .source = "PipeDream-2BW, arXiv 2006.09503",
    .chunks = 1,
    .make = make};
