#include "tests/gpu/fresh.h"

#define main products_test_main
#include "tests/conform/products_test.c"
#undef main

double fresh_products(pl_device *d) { return check_products(d, d->precision == PL_PRECISION_BF16 ? rounded : same); }

double fresh_symmetric(pl_device *d) {
  static const size_t sizes[][2] = {{1, 1}, {7, 5}, {33, 64}, {100, 70}};
  double worst = 0;
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int form = 0; form < 4; form++)
      worst = fmax(worst, syrk_case(d, form & 1, sizes[s][0], sizes[s][1], form / 2 * 0.5));
  return worst;
}
