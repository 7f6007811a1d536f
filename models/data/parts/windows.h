/* Where windows of context + 1 tokens start in a text. A position is the index of a possible start: a text of n tokens
 * has n - context of them. */
#ifndef PL_MODELS_DATA_PARTS_WINDOWS_H
#define PL_MODELS_DATA_PARTS_WINDOWS_H

#include <stdint.h>

#include "core/base/rng.h"
#include "core/base/status.h"

/* Possible window starts in a text of that many tokens; 0 when it is shorter than one window. */
size_t pl_window_positions(size_t tokens, size_t context);

/* The random numbers that draw training window `index` of batch `step`. */
pl_rng pl_window_rng(uint64_t data_seed, int64_t step, size_t index);

/* Validation windows that train.val_tokens asks for: val_tokens / context; PL_BAD when that is none. */
PL_MUST_CHECK pl_status pl_window_count(size_t context, int64_t val_tokens, size_t *out, pl_err *e);

/* PL_BAD when a validation text with that many positions does not hold `windows` windows whose targets do not overlap.
 */
PL_MUST_CHECK pl_status pl_window_check(size_t positions, size_t context, size_t windows, pl_err *e);

/* Start of validation window `index` of `windows`, evenly spaced from the first position to the last. */
size_t pl_window_spaced(size_t positions, size_t windows, size_t index);

#endif
