/* What the schedules in schedules/ are made of. */
#ifndef PL_PIPELINE_BUILD_H
#define PL_PIPELINE_BUILD_H

#include "core/pipeline/library.h"

/* An empty schedule of the arguments' size. */
void pl_build_start(const char *name, const pl_schedule_args *a, pl_schedule *out);

void pl_build_rename(const char *name, pl_schedule *out);

/* PL_BAD unless there is one microbatch an update. */
PL_MUST_CHECK pl_status pl_build_one_microbatch(const char *name, const pl_schedule_args *a, pl_err *e);

/* A forward or a (part of a) backward of stage `stage` with the messages that belong to it: it is received before,
 * and sent on after. */
PL_MUST_CHECK pl_status pl_build_compute(const pl_schedule *s, size_t stage, pl_instruction in, pl_instructions *list,
                                         pl_err *e);
PL_MUST_CHECK pl_status pl_build_update(pl_instructions *list, pl_err *e);

/* Forwards that a stage runs before its first backward in 1F1B: one for each stage behind it. */
size_t pl_build_warmup(const pl_schedule *s, size_t stage);

/* Continuous 1F1B without a flush, an update after every m-th backward. `delay` gives the updates by which the weights
 * of a microbatch are behind when its gradient is applied; forward and backward read the same ones. */
typedef int64_t (*pl_build_delay)(const pl_schedule *s, size_t stage, size_t microbatch);
PL_MUST_CHECK pl_status pl_build_continuous(const char *name, const pl_schedule_args *a, pl_build_delay delay,
                                            pl_schedule *out, pl_err *e);

#endif
