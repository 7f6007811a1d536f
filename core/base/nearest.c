#include <string.h>

#include "core/base/str.h"

enum { LONGEST = 63 }; /* longer words get no hint */

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Damerau-Levenshtein distance (optimal string alignment): insert, delete, replace, swap of neighbours. */
static size_t distance(const char *a, size_t n, const char *b, size_t m) {
  size_t rows[3][LONGEST + 1];
  size_t *before = rows[0], *last = rows[1], *now = rows[2];
  for (size_t j = 0; j <= m; j++) last[j] = j;
  for (size_t i = 1; i <= n; i++) {
    now[0] = i;
    for (size_t j = 1; j <= m; j++) {
      size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
      best = smaller(best, smaller(last[j], now[j - 1]) + 1);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) best = smaller(best, before[j - 2] + 1);
      now[j] = best;
    }
    size_t *spare = before;
    before = last;
    last = now;
    now = spare;
  }
  return last[m];
}

size_t pl_nearest(const char *text, const char *const *candidates, size_t count) {
  size_t length = strlen(text), best = SIZE_MAX, best_distance = 2 + length / 3;
  if (length > LONGEST) return SIZE_MAX;
  for (size_t i = 0; i < count; i++) {
    size_t other = strlen(candidates[i]);
    size_t d = other > LONGEST ? SIZE_MAX : distance(text, length, candidates[i], other);
    if (d < best_distance) {
      best = i;
      best_distance = d;
    }
  }
  return best;
}
