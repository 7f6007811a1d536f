#include "core/base/memory.h"
#include "results/run_dir.h"
#include "runners/launchers/slurm/submit_parts.h"

static uint64_t id_at(const pl_submitting *s, size_t i) { return s->plan->jobs[s->order[i]].id; }

static void cancel_again(const pl_submitting *s, size_t first, size_t count) {
  for (size_t i = first; i < first + count; i++)
    if (s->reopened[i]) (void)!pl_run_cancel(s->dir, id_at(s, i), NULL); /* what went wrong is said already */
}

pl_status pl_submit_reopen(pl_submitting *s, pl_err *e) {
  pl_status st = PL_OK;
  if (s->args->chosen == NULL || s->args->dry_run) return PL_OK;
  PL_TRY(pl_alloc(s->order_count, sizeof *s->reopened, "the runs to submit", &s->reopened, e));
  for (size_t i = 0; i < s->order_count; i++) {
    s->reopened[i] = pl_run_is_cancelled(s->dir, id_at(s, i));
    PL_TRY(pl_run_revive(s->dir, id_at(s, i), e));
  }
out:
  if (st != PL_OK && s->reopened != NULL) cancel_again(s, 0, s->order_count);
  return st;
}

void pl_submit_close_unsent(const pl_submitting *s) {
  for (size_t i = 0; i < s->piece_count && s->reopened != NULL; i++)
    if (!s->pieces[i].out) cancel_again(s, s->pieces[i].first, s->pieces[i].count);
}
