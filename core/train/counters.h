/* Everything about a run that is no array and must survive a resume, and the rules that read a verdict from it. */
#ifndef PL_TRAIN_COUNTERS_H
#define PL_TRAIN_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PL_SKIPS_IN_A_ROW = 20 };

/* Stored as it is in checkpoints: members of 8 bytes only. */
typedef struct pl_counters {
  int64_t step;           /* updates applied or skipped: version of the newest weights */
  int64_t applied;        /* updates that the optimizer has made */
  int64_t delayed;        /* of those, since delay_start */
  int64_t skipped;        /* non-finite updates that were skipped */
  int64_t skipped_in_row; /* the latest of them, without an applied one after them */
  int64_t first_bad_step; /* -1: none */
  int64_t far_above;      /* updates whose loss was more than 1.0 above the best before them */
  double initial_val_loss, val_loss, best_val_loss; /* NaN: not measured */
  double train_loss, best_train_loss;               /* NaN: none yet */
} pl_counters;

pl_counters pl_counters_new(void);
void pl_counters_train_loss(pl_counters *c, double loss);
void pl_counters_val_loss(pl_counters *c, double loss);

/* Whether the run counts as diverged (docs/delay.md); writes the rule and its figures to reason[size]. `finished`: all
 * steps were made and the final validation loss is in val_loss. */
bool pl_counters_diverged(const pl_counters *c, int64_t steps, bool finished, char *reason, size_t size);

#endif
