/* Where the time of a run went, for people and for programs. */
#ifndef PL_RUNNERS_PROFILE_VIEW_H
#define PL_RUNNERS_PROFILE_VIEW_H

#include "core/base/json.h"
#include "core/device/profile.h"

/* A table with a line for every part that had anything; one line when nothing was trained. */
void pl_profile_write(const pl_profile *p, pl_str *out);

/* {"seconds": ..., "parts": {"gemm": {"seconds": ..., "share": ..., "calls": ..., "gflops_per_second": ...}, ...}} with
 * the same parts; gflops_per_second only where there were any. NULL when memory is out. */
pl_json *pl_profile_json(const pl_profile *p);

#endif
