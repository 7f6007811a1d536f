#include "runners/launchers/slurm/cancel.h"

#include <inttypes.h>
#include <string.h>

#include "runners/launchers/slurm/call.h"

enum { SPEC_LENGTH = 30000, SCANCEL_SECONDS = 60 };

/* What is to be told to scancel next: "12_[0-3,7", still open. */
typedef struct batch {
  pl_str spec;
  int64_t first, last; /* the range at its end; -1: none yet */
} batch;

static bool is_over(const pl_shown_run *r, const bool *chosen) {
  return chosen[r->index] || r->kept == PL_RUN_DONE || r->kept == PL_RUN_DIVERGED || r->kept == PL_RUN_CANCELLED;
}

static void put_range(batch *b) {
  if (b->first < 0) return;
  const char *between = b->spec.text[b->spec.length - 1] == '[' ? "" : ",";
  pl_str_printf(&b->spec, "%s%" PRId64, between, b->first);
  if (b->last > b->first) pl_str_printf(&b->spec, "-%" PRId64, b->last);
  b->first = b->last = -1;
}

static pl_status send(batch *b, pl_err *e) {
  char sentence[256];
  pl_call call;
  if (b->first < 0 && b->spec.length == 0) return PL_OK;
  put_range(b);
  pl_str_append(&b->spec, "]");
  pl_status st = pl_str_check(&b->spec, e);
  const char *argv[] = {"scancel", pl_str_text(&b->spec), NULL};
  if (st == PL_OK) st = pl_call_run(argv, NULL, SCANCEL_SECONDS, &call, e);
  if (st == PL_OK) {
    if (call.exit_code != 0)
      st = pl_fail(e, PL_FAIL, "scancel %.100s: %s; the runs are marked, run the same again", pl_str_text(&b->spec),
                   pl_call_sentence(&call, sentence));
    pl_call_free(&call);
  }
  pl_str_free(&b->spec);
  return st;
}

static pl_status add(batch *b, const char *job, int64_t task, pl_err *e) {
  if (b->spec.length > SPEC_LENGTH) {
    pl_status st = send(b, e);
    if (st != PL_OK) return st;
  }
  if (b->spec.length == 0) {
    pl_str_printf(&b->spec, "%s_[", job);
    b->first = b->last = task;
  } else if (task == b->last + 1) {
    b->last = task;
  } else {
    put_range(b);
    b->first = b->last = task;
  }
  return b->spec.failed ? pl_str_check(&b->spec, e) : PL_OK;
}

/* A task that Slurm may have: it lists it as live, or could not say. */
static bool may_live(const pl_shown_run *r) {
  if (r->queued != NULL) return pl_queue_kind_of(r->queued->state) != PL_QUEUE_ENDED;
  return r->verdict.shown == PL_SHOWN_QUEUED;
}

/* Rows [from, to) of a submission are the runs of one task. */
static pl_status cancel_task(const pl_states *s, const pl_submission *sub, size_t from, size_t to, const bool *chosen,
                             batch *b, pl_slurm_cancelled *out, pl_err *e) {
  const pl_shown_run *any = NULL;
  size_t wanted = 0, staying = 0;
  for (size_t k = from; k < to; k++) {
    const pl_shown_run *r = sub->rows[k].index < s->count ? &s->runs[sub->rows[k].index] : NULL;
    if (r == NULL || r->submission != sub) continue;
    staying += !is_over(r, chosen);
    if (!chosen[r->index] || !may_live(r)) continue;
    wanted++;
    any = r;
  }
  if (any == NULL) return PL_OK;
  if (staying > 0) out->shared += wanted;
  const char *job = any->queued != NULL ? any->queued->job : sub->job;
  if (staying > 0 || job[0] == '\0') return PL_OK;
  out->tasks++;
  return add(b, job, sub->rows[from].task, e);
}

static pl_status cancel_submission(const pl_states *s, const pl_submission *sub, const bool *chosen,
                                   pl_slurm_cancelled *out, pl_err *e) {
  batch b = {.first = -1, .last = -1};
  pl_status st = PL_OK;
  for (size_t from = 0, to; from < sub->count && st == PL_OK; from = to) {
    for (to = from + 1; to < sub->count && sub->rows[to].task == sub->rows[from].task;) to++;
    st = cancel_task(s, sub, from, to, chosen, &b, out, e);
  }
  if (st == PL_OK) st = send(&b, e);
  pl_str_free(&b.spec);
  return st;
}

pl_status pl_slurm_cancel(const pl_states *s, const bool *chosen, pl_slurm_cancelled *out, pl_err *e) {
  *out = (pl_slurm_cancelled){0};
  for (size_t i = 0; i < s->submissions.count; i++) {
    if (s->submissions.items[i].sent == PL_SENT_REFUSED) continue;
    pl_status st = cancel_submission(s, &s->submissions.items[i], chosen, out, e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}
