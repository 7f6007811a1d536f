/* Which parameters an optimizer treats by which rule, for the run's log. */
#ifndef PL_TRAIN_RULE_TABLE_H
#define PL_TRAIN_RULE_TABLE_H

#include "core/config/run_config.h"
#include "core/train/layout.h"
#include "core/train/optimizer.h"

/* Says one line for each rule and learning-rate factor, in the order of their first segments: "optimizer muon: rule
 * adamw takes 16544 parameters: embedding, layers.*.attention_norm, ...". Numbers in names are written *; tied copies
 * are left out. */
PL_MUST_CHECK pl_status pl_rule_table_say(const pl_run_config *config, const pl_layout *const *layouts, size_t count,
                                          void (*say)(void *self, const char *line), void *say_self, pl_err *e);

#endif
