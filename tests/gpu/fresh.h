/* device_bed.h with other numbers each time: what the tests of tests/conform compare is then compared on numbers that
 * nobody chose. Include it before those tests, whose main becomes one of the two below. */
#ifndef PL_TESTS_GPU_FRESH_H
#define PL_TESTS_GPU_FRESH_H

#define PL_TEST_CUDA 1
#define numbers chosen_numbers
#include "tests/conform/device_bed.h"
#undef numbers

/* What they are drawn from. */
extern uint64_t fresh_seed;

/* Uniform in [-1, 1], exact in the working precision; independent for each `stream`. Released by free. */
double *numbers(size_t n, double stream);

int device_test_main(void);
int products_test_main(void);

/* Returns the largest deviation from float64 on `d`. */
typedef struct fresh_check {
  const char *name;
  bool low;    /* with precision bf16 other kernels make it */
  bool rounds; /* which round what they multiply, while the reference does not */
  double (*run)(pl_device *d);
} fresh_check;

/* fresh_large: at the sizes of models, which many blocks compute; they take seconds. */
extern const fresh_check fresh_small[], fresh_large[];
extern const size_t fresh_small_count, fresh_large_count;

/* Products as the device's precision makes them, and symmetric ones. */
double fresh_products(pl_device *d);
double fresh_symmetric(pl_device *d);

#endif
