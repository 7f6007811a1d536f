#include <math.h>

#include "core/base/memory.h"
#include "core/pipeline/timeline.h"

/* [updates * stages]: when a stage has its whole gradient of an update, and when it first reads weights that the update
 * made. */
typedef struct times {
  size_t stages;
  double *ready, *use;
} times;

static pl_status note(void *self, const pl_event *event, pl_err *e) {
  (void)e;
  times *t = self;
  pl_op op = event->in->op;
  if (op == PL_OP_UPDATE) return PL_OK;
  double *ready = &t->ready[(size_t)event->update * t->stages + event->stage];
  if (op != PL_OP_FORWARD && event->end > *ready) *ready = event->end;
  if (event->version == 0) return PL_OK;
  double *use = &t->use[(size_t)(event->version - 1) * t->stages + event->stage];
  if (event->start < *use) *use = event->start;
  return PL_OK;
}

static void compare(const times *t, size_t update, pl_slack *out) {
  const double *ready = t->ready + update * t->stages, *use = t->use + update * t->stages;
  for (size_t p = 0; p < t->stages; p++)
    for (size_t q = 0; q < t->stages; q++) {
      if (p == q || use[p] - ready[q] >= out->least) continue;
      *out = (pl_slack){.stage = p, .other = q, .least = use[p] - ready[q]};
    }
}

pl_status pl_schedule_slack(const pl_schedule *s, pl_slack *out, pl_err *e) {
  pl_status st = PL_OK;
  /* Whole numbers for a chunk too, so that the comparison is exact. */
  const double chunks = (double)pl_schedule_chunks(s);
  const pl_costs costs = {.all = {.forward = chunks, .backward = 2 * chunks, .weight = chunks}};
  size_t updates = (size_t)(pl_schedule_ramp(s) + pl_schedule_tail(s)) + 3;
  times t = {.stages = s->stages};
  *out = (pl_slack){.least = (double)INFINITY};
  PL_TRY(pl_alloc(updates * s->stages, sizeof *t.ready, "the schedule's times", &t.ready, e));
  PL_TRY(pl_alloc(updates * s->stages, sizeof *t.use, "the schedule's times", &t.use, e));
  for (size_t i = 0; i < updates * s->stages; i++) t.use[i] = (double)INFINITY;
  PL_TRY(pl_schedule_simulate(s, &costs, 0, (int64_t)updates, note, &t, e));
  for (size_t u = 0; u < updates; u++) compare(&t, u, out);
  out->least /= chunks;
  out->exists = out->least >= 0;
out:
  pl_free(t.ready);
  pl_free(t.use);
  return st;
}

pl_status pl_schedule_allow_global(const pl_schedule *s, const char *what, pl_err *e) {
  pl_slack slack;
  pl_status st = pl_schedule_slack(s, &slack, e);
  if (st != PL_OK || slack.exists) return st;
  return pl_fail(e, PL_BAD,
                 "%s needs every stage, but in schedule %s update t of stage %zu needs data of stage %zu that does not "
                 "exist yet; allowed: clipping by stage and an untied head",
                 what, s->name, slack.stage, slack.other);
}
