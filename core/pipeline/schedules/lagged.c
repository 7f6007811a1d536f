#include "core/pipeline/library.h"

static pl_status make(const pl_schedule_args *a, pl_schedule *out, pl_err *e) {
  for (size_t p = 0; p < a->stages; p++)
    if (a->delay[p] < 0)
      return pl_fail(e, PL_BAD, "lagged: saw delay %lld of stage %zu; allowed: 0 or more", (long long)a->delay[p], p);
  return pl_schedule_lagged(a->stages, a->microbatches, a->delay, out, e);
}

const pl_schedule_type pl_schedule_type_lagged = {.name = "lagged",
                                                  .summary = "any delay per stage, by definition, in one process",
                                                  .source = "x_{t+1} = apply(x_t, g_t(x_{t-k})), k per stage",
                                                  .chunks = 1,
                                                  .takes_delay = true,
                                                  .one_process = true,
                                                  .make = make};
