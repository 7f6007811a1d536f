/* Which values each key of the configuration has among some runs. */
#ifndef PL_ANALYSIS_KEY_VALUES_H
#define PL_ANALYSIS_KEY_VALUES_H

#include "core/config/run_config.h"

typedef struct pl_key_set {
  char *key;
  uint64_t *hashes; /* of the distinct values, in order of appearance */
  char **values;    /* their texts */
  size_t count, capacity;
} pl_key_set;

/* {0} is empty; released by pl_key_values_free. */
typedef struct pl_key_values {
  pl_key_set *sets; /* in the order in which a configuration is written */
  size_t count, capacity;
} pl_key_values;

/* Adds what a run's identity rests on: "model" and other sections by their type, "correction" by its chain, every other
 * key by its value. */
PL_MUST_CHECK pl_status pl_key_values_add(pl_key_values *k, const pl_run_config *c, pl_err *e);
void pl_key_values_free(pl_key_values *k);

const pl_key_set *pl_key_values_find(const pl_key_values *k, const char *key); /* or NULL */
bool pl_key_sets_equal(const pl_key_set *a, const pl_key_set *b);              /* either may be NULL */

/* "0.004, 0.008, 0.016", or the first ones and their number; "-" for NULL. Appended. */
void pl_key_set_text(const pl_key_set *s, pl_str *out);

#endif
