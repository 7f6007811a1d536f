#include "core/base/memory.h"
#include "core/pipeline/build.h"

static pl_status make(const pl_schedule_args *a, pl_schedule *out, pl_err *e) {
  pl_status st = PL_OK;
  int64_t *delay = NULL;
  if (a->stages % 2 != 0)
    return pl_fail(e, PL_BAD, "wpipe: saw %zu stages; allowed: an even number (two groups of stages)", a->stages);
  PL_TRY(pl_alloc(a->stages, sizeof *delay, "a schedule", &delay, e));
  for (size_t p = 0; p < a->stages / 2; p++) delay[p] = 1;
  PL_TRY(pl_schedule_lagged(a->stages, a->microbatches, delay, out, e));
  pl_build_rename("wpipe", out);
out:
  pl_free(delay);
  return st;
}

const pl_schedule_type pl_schedule_type_wpipe = {
    .name = "wpipe",
    .summary =
        "a profile of lagged: delay 1 in the front half, 0 in the back half; WPipe's order is not published in full",
    .source = "WPipe, ICLR 2022 (OpenReview cw-EmNq5zfD), abstract",
    .chunks = 1,
    .one_process = true,
    .make = make};
