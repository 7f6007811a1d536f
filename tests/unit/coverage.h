/* How often the intervals of the gap and of the part won back hold the truth, over made-up experiments. */
#ifndef COVERAGE_H
#define COVERAGE_H

#include <math.h>
#include <stdio.h>

#include "analysis/stats.h"
#include "core/base/rng.h"

typedef struct coverage {
  double gap, won_back; /* shares of the experiments; won_back: of those that show an interval */
  double resolved;      /* share of the experiments that show one */
  double narrow;        /* the control: an interval with the normal quantile instead of t */
} coverage;

static inline coverage coverage_of(size_t experiments, size_t n, double gap_over_sd, uint64_t seed) {
  const double part = 0.6;
  size_t gap = 0, resolved = 0, won = 0, narrow = 0;
  pl_rng r = pl_rng_at(seed, PL_STREAM_NOISE, n, (uint32_t)gap_over_sd);
  for (size_t k = 0; k < experiments; k++) {
    double top[10], bottom[10];
    for (size_t i = 0; i < n; i++) { /* what is won back goes partly along with the gap of the seed */
      double own = pl_rng_normal(&r), other = pl_rng_normal(&r);
      bottom[i] = gap_over_sd + own;
      top[i] = part * gap_over_sd + 0.5 * own + 0.8 * other;
    }
    bool shown = false;
    pl_estimate g = pl_estimate_of(bottom, n), w = pl_ratio_of_means(top, bottom, n, &shown);
    gap += g.low <= gap_over_sd && gap_over_sd <= g.high;
    narrow += fabs(g.mean - gap_over_sd) <= 1.96 * g.sd / sqrt((double)n);
    resolved += shown;
    won += shown && w.low <= part && part <= w.high;
  }
  return (coverage){.gap = (double)gap / (double)experiments,
                    .won_back = (double)won / (double)resolved,
                    .resolved = (double)resolved / (double)experiments,
                    .narrow = (double)narrow / (double)experiments};
}

static inline void check_coverage(size_t experiments, double tolerance) {
  static const size_t sizes[] = {3, 5, 10};
  static const double gaps[] = {3, 10};
  for (size_t g = 0; g < 2; g++)
    for (size_t s = 0; s < 3; s++) {
      coverage c = coverage_of(experiments, sizes[s], gaps[g], 5);
      if (!(fabs(c.gap - 0.95) <= tolerance && fabs(c.won_back - 0.95) <= tolerance))
        fail_msg(
            "gap/sd %g, n %zu: the gap's interval holds it in %.4f, that of the part won back in %.4f of the cases",
            gaps[g], sizes[s], c.gap, c.won_back);
      /* Three seeds at gap/sd = 3 leave the gap open in a quarter of the experiments; that is said, not guessed. */
      assert_true(gaps[g] == 3 && sizes[s] == 3 ? c.resolved > 0.7 && c.resolved < 0.8 : c.resolved > 0.99);
      assert_true(c.narrow < 0.95 - tolerance || sizes[s] == 10);
    }
}

#endif
