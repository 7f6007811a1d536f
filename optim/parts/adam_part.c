#include "optim/parts/adam_part.h"

#include <math.h>

void pl_adam_displace(const pl_adam *a, pl_device *d, size_t n, const pl_real *g, int64_t t, double lr, pl_real *m,
                      pl_real *v, pl_real *u) {
  double updates = (double)(t + 1);
  double bias1 = 1 - pow(a->beta1, updates), bias2 = 1 - pow(a->beta2, updates);
  d->ops->adamw(d, n, g, a->beta1, a->beta2, bias1, bias2, a->eps, lr, m, v, u);
}
