#include "core/pipeline/library.h"

#include <string.h>

#include "core/base/str.h"

#define PL_SCHEDULE(file, name) extern const pl_schedule_type pl_schedule_type_##file;
#include "core/pipeline/schedules/list.def"
#undef PL_SCHEDULE

#define PL_SCHEDULE(file, name) &pl_schedule_type_##file,
static const pl_schedule_type *const types[] = {
#include "core/pipeline/schedules/list.def"
};
#undef PL_SCHEDULE

enum { TYPES = sizeof types / sizeof *types };

const pl_schedule_type *const *pl_schedule_types(size_t *count) {
  *count = TYPES;
  return types;
}

const pl_schedule_type *pl_schedule_find(const char *name, pl_err *e) {
  const char *names[TYPES];
  pl_str all = {0};
  for (size_t i = 0; i < TYPES; i++) {
    names[i] = types[i]->name;
    if (strcmp(name, names[i]) == 0) {
      pl_str_free(&all);
      return types[i];
    }
    pl_str_printf(&all, "%s%s", i > 0 ? ", " : "", names[i]);
  }
  size_t near = pl_nearest(name, names, TYPES);
  pl_fail(e, PL_BAD, "unknown schedule \"%.100s\"%s%s%s; allowed: %s", name, near < TYPES ? "; did you mean \"" : "",
          near < TYPES ? names[near] : "", near < TYPES ? "\"?" : "", pl_str_text(&all));
  pl_str_free(&all);
  return NULL;
}

static pl_status check_range(const char *schedule, const char *what, size_t seen, size_t most, pl_err *e) {
  if (seen >= 1 && seen <= most) return PL_OK;
  return pl_fail(e, PL_BAD, "%s: saw %zu %s; allowed: 1 to %zu", schedule, seen, what, most);
}

pl_status pl_schedule_make(const pl_schedule_type *type, const pl_schedule_args *a, pl_schedule *out, pl_err *e) {
  pl_status st = PL_OK;
  pl_schedule_args args = *a;
  *out = (pl_schedule){0};
  if (args.chunks == 0) args.chunks = type->chunks;
  PL_TRY(check_range(type->name, "stages", args.stages, PL_SCHEDULE_STAGES, e));
  PL_TRY(check_range(type->name, "microbatches", args.microbatches, PL_SCHEDULE_MICROBATCHES, e));
  PL_TRY(check_range(type->name, "chunks a stage", args.chunks, type->chunks == 1 ? 1 : PL_SCHEDULE_CHUNKS, e));
  if (type->takes_delay && !args.delay)
    PL_TRY(pl_fail(e, PL_BAD, "%s: the delay is missing; allowed: one number of updates per stage", type->name));
  if (!type->takes_delay && args.delay)
    PL_TRY(pl_fail(e, PL_BAD, "%s: a delay is given, but it follows from the schedule; allowed: none", type->name));
  PL_TRY(type->make(&args, out, e));
out:
  return st;
}
