/* A run configuration seen as a list of parameter tables, for naming and comparing runs. */
#ifndef PL_ANALYSIS_CONFIG_VIEW_H
#define PL_ANALYSIS_CONFIG_VIEW_H

#include "core/config/run_config.h"

typedef enum pl_slot {
  PL_SLOT_MODEL,
  PL_SLOT_DATA,
  PL_SLOT_TRAIN,
  PL_SLOT_LR_SCHEDULE,
  PL_SLOT_PIPELINE,
  PL_SLOT_ROOT,
  PL_SLOT_OPTIMIZER,
  PL_SLOT_CORRECTION
} pl_slot;

/* One component's table and the values it describes; borrowed from the config. */
typedef struct pl_config_part {
  pl_slot slot;
  const char *prefix; /* "model", "train.lr_schedule", "" for the root */
  const char *type;   /* the component's name; NULL for train, pipeline and the root */
  const pl_param *table;
  const void *config;
} pl_config_part;

enum { PL_CONFIG_PARTS = PL_SLOT_CORRECTION + PL_MAX_CORRECTIONS };

/* Fills out[] in the order of pl_slot and returns how many parts there are. */
size_t pl_config_parts(const pl_run_config *c, pl_config_part out[PL_CONFIG_PARTS]);

/* The number at a dotted key ("optimizer.lr", "train.steps"); false when this run has no such key or no number there.
 */
bool pl_config_number(const pl_run_config *c, const char *key, double *out);

/* Appends the value of a key as a table shows it: "optimizer" and other sections by their type, "correction" by its
 * chain, "delay" by its name, any other dotted key by its value. False, and nothing appended, when this run has no such
 * key. */
bool pl_config_text(const pl_run_config *c, const char *key, pl_str *out);

/* Identity of an arm's configuration without some keys ("delay", "optimizer.beta1"; the list is closed by NULL) and
 * without seed, learning rate and what never counts. "correction" and other sections stand for their type. scratch is
 * cleared; its `failed` tells of missing memory. */
uint64_t pl_config_hash_without(const pl_run_config *c, const char *const *keys, pl_str *scratch);

/* Appends the dotted key of a row: "train.steps". */
void pl_config_key(const pl_config_part *part, const pl_param *row, pl_str *out);

/* The value of a row as text, strings without quotes. Appended. */
void pl_config_value(const pl_config_part *part, const pl_param *row, pl_str *out);

#endif
