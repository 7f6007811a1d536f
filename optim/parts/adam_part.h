/* AdamW on a range of elements, shared by every optimizer that leaves some segments to it. */
#ifndef PL_OPTIM_PARTS_ADAM_PART_H
#define PL_OPTIM_PARTS_ADAM_PART_H

#include <stdint.h>

#include "core/device/device.h"

typedef struct pl_adam {
  double beta1, beta2; /* in [0, 1) */
  double eps;          /* above 0: added to sqrt(v) after its bias correction, so a zero gradient gives 0 */
} pl_adam;

enum { PL_ADAM_STATE = 2 }; /* arrays: m, v */

/* u = lr / (1 - beta1^(t+1)) * m / (sqrt(v) / sqrt(1 - beta2^(t+1)) + eps) with the updated m and v (torch's AdamW
 * without decay; arXiv 1711.05101, as PyTorch). Arrays of n elements in device memory; t counts earlier updates. */
void pl_adam_displace(const pl_adam *a, pl_device *d, size_t n, const pl_real *g, int64_t t, double lr, pl_real *m,
                      pl_real *v, pl_real *u);

#endif
