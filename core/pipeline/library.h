/* The schedules that have a name: one file in schedules/ and one line in its list.def each. */
#ifndef PL_PIPELINE_LIBRARY_H
#define PL_PIPELINE_LIBRARY_H

#include "core/pipeline/schedule.h"

typedef struct pl_schedule_args {
  size_t stages, microbatches;
  size_t chunks;               /* virtual stages in a stage; 0: what the schedule takes when none is given */
  const int64_t *delay;        /* [stages], of `lagged` alone; NULL: not given */
  bool allow_min_microbatches; /* 2bw with one microbatch less than stages */
} pl_schedule_args;

typedef struct pl_schedule_type {
  const char *name; /* as users write it; the same in list.def */
  const char *summary, *source;
  size_t chunks;    /* that it takes when none is given; 1: it takes no other number */
  bool takes_delay; /* args.delay */
  bool one_process; /* its delay is simulated by definition: it has no order that several stages could follow */
  /* args.chunks is filled in. PL_BAD in one sentence that starts with the schedule's name for numbers that it does not
   * allow. The caller frees *out, also after a failure. */
  pl_status (*make)(const pl_schedule_args *a, pl_schedule *out, pl_err *e);
} pl_schedule_type;

const pl_schedule_type *const *pl_schedule_types(size_t *count);

/* NULL with a message that names the nearest and all known ones. */
const pl_schedule_type *pl_schedule_find(const char *name, pl_err *e);

/* Makes the schedule of that type; checks what holds for all of them. The caller frees *out, also after a failure. */
PL_MUST_CHECK pl_status pl_schedule_make(const pl_schedule_type *type, const pl_schedule_args *a, pl_schedule *out,
                                         pl_err *e);

#endif
