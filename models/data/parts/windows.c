#include "models/data/parts/windows.h"

size_t pl_window_positions(size_t tokens, size_t context) { return tokens > context ? tokens - context : 0; }

pl_rng pl_window_rng(uint64_t data_seed, int64_t step, size_t index) {
  return pl_rng_at(data_seed, PL_STREAM_DATA, (uint64_t)step, (uint32_t)index);
}

pl_status pl_window_count(size_t context, int64_t val_tokens, size_t *out, pl_err *e) {
  *out = val_tokens < 0 ? 0 : (size_t)val_tokens / context;
  if (*out == 0)
    return pl_fail(e, PL_BAD, "train.val_tokens is %lld, less than one sequence of %zu tokens", (long long)val_tokens,
                   context);
  return PL_OK;
}

pl_status pl_window_check(size_t positions, size_t context, size_t windows, pl_err *e) {
  if (positions > (windows - 1) * context) return PL_OK;
  size_t fit = positions == 0 ? 0 : (positions - 1) / context + 1;
  return pl_fail(
      e, PL_BAD,
      "the validation text holds %zu sequences of %zu tokens (%zu tokens), but train.val_tokens asks for %zu "
      "(%zu tokens)",
      fit, context, fit * context, windows, windows * context);
}

size_t pl_window_spaced(size_t positions, size_t windows, size_t index) {
  return windows > 1 ? index * (positions - 1) / (windows - 1) : 0;
}
