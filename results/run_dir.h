/* One run's folder: DIR/runs/<first two hex>/<id>/ with config.json, meta.json, journal, curves.h5, result.json,
 * log.<attempt>.txt, ckpt/, claim. */
#ifndef PL_RESULTS_RUN_DIR_H
#define PL_RESULTS_RUN_DIR_H

#include "core/config/run_config.h"
#include "core/train/trainer.h"
#include "results/claim.h"

typedef enum pl_run_state {
  PL_RUN_PENDING, /* nothing there yet */
  PL_RUN_RUNNING, /* claimed by a live process */
  PL_RUN_DONE,
  PL_RUN_DIVERGED,
  PL_RUN_FAILED,
  PL_RUN_STOPPED, /* checkpointed or interrupted; resumable */
  PL_RUN_CANCELLED,
  PL_RUN_LOST, /* its process is gone without a word; resumable */
  PL_RUN_STATES
} pl_run_state;

const char *pl_run_state_name(pl_run_state s);

/* Path of a run's folder or of a file in it ("" for the folder itself); released by pl_free. */
PL_MUST_CHECK pl_status pl_run_path(const char *sweep_dir, uint64_t id, const char *file, char **out, pl_err *e);

/* Makes the folder and writes config.json when absent, without waiting for the disk: pl_sync_all afterwards. */
PL_MUST_CHECK pl_status pl_run_create(const char *sweep_dir, uint64_t id, const pl_run_config *c, pl_err *e);

/* State from the folder alone: result.json, the claim and whether its process lives (same host), the mark of a
 * cancelled run, the journal. */
pl_run_state pl_run_state_of(const char *sweep_dir, uint64_t id);

/* Moves the run's empty marker to DIR/state/<state>/<id>. A hint for cheap looks at a large sweep, so failing to do so
 * is no error; taking a claim and writing a result do it. */
void pl_run_mark(const char *sweep_dir, uint64_t id, pl_run_state state);

/* Claims the run for this process, see results/claim.h. *taken is false, without error, when a live process holds it; a
 * dead process's claim on this host is taken over, exactly one taker wins, and removes what the dead process was
 * writing. Released by pl_run_release. */
PL_MUST_CHECK pl_status pl_run_claim(const char *sweep_dir, uint64_t id, bool *taken, pl_err *e);
PL_MUST_CHECK pl_status pl_run_claim_by(const char *sweep_dir, uint64_t id, const pl_claim_rules *rules, bool *taken,
                                        pl_err *e);
void pl_run_release(const char *sweep_dir, uint64_t id);

/* Cancelling: a marker file in the run's folder, which no end of a run removes. A run that has it is not started, not
 * requeued, and ends as cancelled instead of stopped. Only revive takes it away (and what was counted of restarts). */
PL_MUST_CHECK pl_status pl_run_cancel(const char *sweep_dir, uint64_t id, pl_err *e);
PL_MUST_CHECK pl_status pl_run_revive(const char *sweep_dir, uint64_t id, pl_err *e);
bool pl_run_is_cancelled(const char *sweep_dir, uint64_t id);

/* "process 4711 on host node3": who holds the run, for messages; appended. */
void pl_run_claimed_by(const char *sweep_dir, uint64_t id, pl_str *out);

/* Attempts that begin at the same checkpoint, counted in the run's folder. Counts the one that is about to begin at
 * `step` (-1: from nothing); *count is how many there were with it. Clearing forgets them. */
PL_MUST_CHECK pl_status pl_run_count_attempt(const char *sweep_dir, uint64_t id, int64_t step, int64_t *count,
                                             pl_err *e);
void pl_run_clear_attempts(const char *sweep_dir, uint64_t id);

/* result.json, written last by atomic replacement. A cancelled run that stopped is written as cancelled. `o` may be
 * NULL when nothing was trained; `error` is the sentence of a failed run, NULL otherwise. */
PL_MUST_CHECK pl_status pl_run_write_result(const char *sweep_dir, uint64_t id, pl_run_state state, const pl_outcome *o,
                                            const char *error, pl_err *e);

/* What result.json says. */
typedef struct pl_result {
  pl_run_state state;
  pl_outcome outcome;
  char error[PL_ERR_TEXT];
  char ended[32]; /* when it was written, 2026-11-30T18:00:00Z; "" when it does not say */
  int64_t attempts;
} pl_result;

/* PL_NOTHING, without text, when there is no result.json; PL_FAIL when it is damaged. */
PL_MUST_CHECK pl_status pl_run_read_result(const char *sweep_dir, uint64_t id, pl_result *out, pl_err *e);

#endif
