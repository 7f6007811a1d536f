#include "core/train/counters.h"

#include <math.h>
#include <stdio.h>

static const double far_above = 1.0;       /* nats per token above the best train loss */
static const double share_of_steps = 0.05; /* that may be far above */

pl_counters pl_counters_new(void) {
  double none = (double)NAN;
  return (pl_counters){.first_bad_step = -1,
                       .initial_val_loss = none,
                       .val_loss = none,
                       .best_val_loss = none,
                       .train_loss = none,
                       .best_train_loss = none};
}

void pl_counters_train_loss(pl_counters *c, double loss) {
  c->train_loss = loss;
  if (!isfinite(loss)) return;
  if (loss > c->best_train_loss + far_above) c->far_above++;
  if (!(loss >= c->best_train_loss)) c->best_train_loss = loss; /* also when there is none yet */
}

void pl_counters_val_loss(pl_counters *c, double loss) {
  if (c->step == 0) c->initial_val_loss = loss;
  c->val_loss = loss;
  if (isfinite(loss) && !(loss >= c->best_val_loss)) c->best_val_loss = loss;
}

bool pl_counters_diverged(const pl_counters *c, int64_t steps, bool finished, char *reason, size_t size) {
  if (c->skipped_in_row >= PL_SKIPS_IN_A_ROW)
    snprintf(reason, size, "%lld updates in a row were not finite, the last is update %lld",
             (long long)c->skipped_in_row, (long long)(c->step - 1));
  else if (!finished)
    snprintf(reason, size, "update %lld has a loss or gradient that is not finite", (long long)c->step);
  else if (!isfinite(c->val_loss))
    snprintf(reason, size, "the final validation loss is not finite");
  else if (c->val_loss > c->initial_val_loss)
    snprintf(reason, size, "the final validation loss %.6g is above the initial one, %.6g", c->val_loss,
             c->initial_val_loss);
  else if (c->far_above > 0 && (double)c->far_above >= share_of_steps * (double)steps)
    snprintf(reason, size, "%lld of %lld updates had a train loss more than %.1f above the best before them",
             (long long)c->far_above, (long long)steps, far_above);
  else
    return false;
  return true;
}
