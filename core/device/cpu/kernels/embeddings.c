/* Rows that are looked up or repeated: token, position and rotary embeddings, biases. */
#include <string.h>

#include "core/device/cpu/kernels/kernels.h"

static void add_row(size_t width, const pl_real *restrict from, pl_real *restrict to) {
  for (size_t j = 0; j < width; j++) to[j] += from[j];
}

void PL_KERNEL(embedding_forward)(pl_device *d, size_t rows, size_t width, const int32_t *ids, const pl_real *table,
                                  pl_real *out) {
  (void)d;
  for (size_t r = 0; r < rows; r++) memcpy(out + r * width, table + (size_t)ids[r] * width, width * sizeof *out);
}

void PL_KERNEL(embedding_backward)(pl_device *d, size_t rows, size_t width, const int32_t *ids, const pl_real *dout,
                                   pl_real *dtable) {
  (void)d;
  for (size_t r = 0; r < rows; r++) add_row(width, dout + r * width, dtable + (size_t)ids[r] * width);
}

void PL_KERNEL(add_rows_forward)(pl_device *d, size_t rows, size_t width, size_t period, const pl_real *table,
                                 pl_real *x) {
  (void)d;
  for (size_t r = 0; r < rows; r++) add_row(width, table + r % period * width, x + r * width);
}

void PL_KERNEL(add_rows_backward)(pl_device *d, size_t rows, size_t width, size_t period, const pl_real *dx,
                                  pl_real *dtable) {
  (void)d;
  for (size_t r = 0; r < rows; r++) add_row(width, dx + r * width, dtable + r % period * width);
}

static void rotate(size_t half, const pl_real *restrict cosine, const pl_real *restrict sine, pl_real sign,
                   pl_real *restrict low, pl_real *restrict high) {
  for (size_t i = 0; i < half; i++) {
    const pl_real a = low[i], b = high[i], c = cosine[i], s = sign * sine[i];
    low[i] = a * c - b * s;
    high[i] = b * c + a * s;
  }
}

void PL_KERNEL(rope)(pl_device *d, size_t rows, size_t time, size_t heads, size_t head_dim, const pl_real *table,
                     bool inverse, pl_real *x) {
  (void)d;
  const size_t half = head_dim / 2;
  const pl_real sign = inverse ? -1 : 1;
  for (size_t r = 0; r < rows; r++) {
    const pl_real *angles = table + r % time * head_dim;
    for (size_t h = 0; h < heads; h++, x += head_dim) rotate(half, angles, angles + half, sign, x, x + half);
  }
}
