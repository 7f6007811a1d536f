/* Devices: where arrays live and what computes on them. Models and optimizers are written once against this table.
 *
 * All matrices are row-major. Pointers are device memory from alloc unless said otherwise. No operation allocates,
 * fails or synchronises unless said; reductions have a fixed order that depends on the shape only. Elementwise results
 * do not depend on an element's position in the array. */
#ifndef PL_DEVICE_DEVICE_H
#define PL_DEVICE_DEVICE_H

#include <stdint.h>

#include "core/base/real.h"
#include "core/base/status.h"

typedef struct pl_device pl_device;

/* Shape of causal attention with grouped queries: query head h uses key-value head h * kv_heads / heads. Rows are
 * sequences of `time` tokens; q and out are [batch * time, heads * head_dim], k and v are [batch * time, kv_heads *
 * head_dim]. */
typedef struct pl_attention {
  size_t batch, time, heads, kv_heads, head_dim;
} pl_attention;

enum { PL_MAX_THREADS = 64 };

/* Of the products that models make with gemm_low. */
typedef enum pl_precision { PL_PRECISION_FP32, PL_PRECISION_BF16 } pl_precision;

/* Every member is REQUIRED unless marked OPTIONAL; an OPTIONAL one may be NULL and is then composed from required ones
 * by its caller. */
typedef struct pl_ops {
  const char *name; /* "cpu", "paranoid", "cuda" */
  /* Elements of an array that stay in the cache from one elementwise operation to the next; 0: no limit. */
  size_t stretch;
  bool on_host; /* the host may read and write the device's memory */

  /* Memory. alloc: zeroed (paranoid: NaN), PL_ALIGN-aligned; the message names `what` and the bytes. */
  pl_status (*alloc)(pl_device *d, size_t bytes, const char *what, void **out, pl_err *e);
  void (*free)(pl_device *d, void *p);
  /* OPTIONAL: one line about what alloc has given so far and what there is, for a memory that is not the host's. */
  void (*memory)(pl_device *d, char *line, size_t size);
  void (*upload)(pl_device *d, void *to_device, const void *from_host, size_t bytes);
  void (*download)(pl_device *d, void *to_host, const void *from_device, size_t bytes); /* synchronises */
  void (*copy)(pl_device *d, void *to, const void *from, size_t bytes);                 /* device to device */
  void (*zero)(pl_device *d, void *p, size_t bytes);
  /* PL_FAIL with the device's own words once anything went wrong on it, which the operations cannot say; numbers that
   * were read since are then not to be used. Does not synchronise: it knows of what was read from the device. */
  pl_status (*check)(pl_device *d, pl_err *e);

  /* c[m,n] = alpha * op(a)[m,k] * op(b)[k,n] + beta * c; op(x) = x or its transpose; ld* = row stride of the stored
   * matrix. beta 0 does not read c. */
  void (*gemm)(pl_device *d, bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, pl_real alpha,
               const pl_real *a, size_t lda, const pl_real *b, size_t ldb, pl_real beta, pl_real *c, size_t ldc);
  /* The same in the device's precision. bf16: the elements of a and b are rounded to bfloat16 (to nearest, ties to
   * even; subnormal numbers become 0) before they are multiplied; products, sums and c keep full precision. */
  void (*gemm_low)(pl_device *d, bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, pl_real alpha,
                   const pl_real *a, size_t lda, const pl_real *b, size_t ldb, pl_real beta, pl_real *c, size_t ldc);
  /* c[n,n] = alpha * a a^T + beta * c for a [n,k], or alpha * a^T a + beta * c for a stored [k,n] (transpose). c is
   * symmetric: with beta other than 0 it must be so before, and it is so, to the bit, afterwards. In full precision. */
  void (*syrk)(pl_device *d, bool transpose, size_t n, size_t k, pl_real alpha, const pl_real *a, size_t lda,
               pl_real beta, pl_real *c, size_t ldc);

  /* out[r,:] = table[ids[r],:];  dtable[ids[r],:] += dout[r,:] in ascending r. */
  void (*embedding_forward)(pl_device *d, size_t rows, size_t width, const int32_t *ids, const pl_real *table,
                            pl_real *out);
  void (*embedding_backward)(pl_device *d, size_t rows, size_t width, const int32_t *ids, const pl_real *dout,
                             pl_real *dtable);
  /* x[r,:] += table[r mod period,:];  dtable[r mod period,:] += dx[r,:]. period 1 is a bias. */
  void (*add_rows_forward)(pl_device *d, size_t rows, size_t width, size_t period, const pl_real *table, pl_real *x);
  void (*add_rows_backward)(pl_device *d, size_t rows, size_t width, size_t period, const pl_real *dx, pl_real *dtable);

  /* out = x * rstd * weight, rstd[r] = 1/sqrt(mean(x^2) + eps).  Backward: dx += ..., dweight += .... */
  void (*rmsnorm_forward)(pl_device *d, size_t rows, size_t width, const pl_real *x, const pl_real *weight, double eps,
                          pl_real *out, pl_real *rstd);
  void (*rmsnorm_backward)(pl_device *d, size_t rows, size_t width, const pl_real *x, const pl_real *weight,
                           const pl_real *rstd, const pl_real *dout, pl_real *dx, pl_real *dweight);
  /* out = (x - mean) * rstd * weight + bias; biased variance. Backward adds. */
  void (*layernorm_forward)(pl_device *d, size_t rows, size_t width, const pl_real *x, const pl_real *weight,
                            const pl_real *bias, double eps, pl_real *out, pl_real *mean, pl_real *rstd);
  void (*layernorm_backward)(pl_device *d, size_t rows, size_t width, const pl_real *x, const pl_real *weight,
                             const pl_real *mean, const pl_real *rstd, const pl_real *dout, pl_real *dx,
                             pl_real *dweight, pl_real *dbias);

  /* Half-split rotary embedding of x [rows, heads * head_dim] in place; row r is position r mod time. `table` is [time,
   * head_dim]: cos then sin, head_dim/2 each. inverse = true rotates back (the backward pass). */
  void (*rope)(pl_device *d, size_t rows, size_t time, size_t heads, size_t head_dim, const pl_real *table,
               bool inverse, pl_real *x);

  /* Scale 1/sqrt(head_dim), causal. `saved` carries what the backward pass needs from the forward pass, `scratch` is
   * overwritten freely; their sizes in elements depend on the shape and the device only. Backward overwrites dq,
   * dk, dv. */
  size_t (*attention_saved_size)(const pl_attention *s);
  size_t (*attention_scratch_size)(pl_device *d, const pl_attention *s);
  void (*attention_forward)(pl_device *d, const pl_attention *s, const pl_real *q, const pl_real *k, const pl_real *v,
                            pl_real *out, pl_real *saved, pl_real *scratch);
  void (*attention_backward)(pl_device *d, const pl_attention *s, const pl_real *q, const pl_real *k, const pl_real *v,
                             const pl_real *out, const pl_real *saved, const pl_real *dout, pl_real *dq, pl_real *dk,
                             pl_real *dv, pl_real *scratch);

  /* out = silu(gate) * up.  Backward overwrites dgate, dup (which may be gate, up themselves). */
  void (*swiglu_forward)(pl_device *d, size_t n, const pl_real *gate, const pl_real *up, pl_real *out);
  void (*swiglu_backward)(pl_device *d, size_t n, const pl_real *gate, const pl_real *up, const pl_real *dout,
                          pl_real *dgate, pl_real *dup);
  /* GELU, tanh form (GPT-2).  Backward overwrites dx (which may be dout). */
  void (*gelu_forward)(pl_device *d, size_t n, const pl_real *x, pl_real *out);
  void (*gelu_backward)(pl_device *d, size_t n, const pl_real *x, const pl_real *dout, pl_real *dx);

  /* loss[r] = -log softmax(logits[r,:])[targets[r]] in nats (double). With gradient, logits become scale * (softmax -
   * onehot). */
  void (*cross_entropy)(pl_device *d, size_t rows, size_t classes, const int32_t *targets, bool gradient, double scale,
                        pl_real *logits, double *loss);

  /* Vectors. */
  void (*axpby)(pl_device *d, size_t n, double a, const pl_real *x, double b,
                pl_real *y); /* y = a x + b y; b 0 does not read y */
  void (*shrink_subtract)(pl_device *d, size_t n, double s, const pl_real *x, const pl_real *v,
                          pl_real *out);                                     /* out = s x - v; out may be x */
  double (*sum_squares)(pl_device *d, size_t n, const pl_real *x);           /* in double; synchronises */
  double (*dot)(pl_device *d, size_t n, const pl_real *x, const pl_real *y); /* in double; synchronises */
  double (*sum_double)(pl_device *d, size_t n, const double *x);             /* synchronises */
  /* OPTIONAL: squared norms of `count` parts of x into out, which is the host's: part i begins at offset[i] and has
   * size[i] elements. For devices where asking for each alone takes longer than the sum; synchronises. */
  void (*sum_squares_parts)(pl_device *d, size_t count, const size_t *offset, const size_t *size, const pl_real *x,
                            double *out);

  /* Optimizer steps: write the displacement u (learning rate included), update the state in place. bias1 = 1 - beta1^t,
   * bias2 = 1 - beta2^t. */
  void (*adamw)(pl_device *d, size_t n, const pl_real *g, double beta1, double beta2, double bias1, double bias2,
                double eps, double lr, pl_real *m, pl_real *v, pl_real *u);
  /* buf = mu buf + take g;  u = lr * (nesterov ? take_direct g + mu buf : buf). */
  void (*momentum)(pl_device *d, size_t n, const pl_real *g, double mu, double take, bool nesterov, double take_direct,
                   double lr, pl_real *buf, pl_real *u);
} pl_ops;

struct pl_device {
  const pl_ops *ops;
  void *state; /* of the implementation */
  pl_precision precision;
  size_t threads;             /* that compute, 1 or more */
  struct pl_profile *profile; /* set on the device of core/device/profile.h; else NULL */
  char kernel[96];            /* what computes: "avx512, OpenBLAS 0.3.21 SkylakeX"; recorded in meta.json */
};

/* Opens "cpu", "paranoid" (the CPU made hostile, for tests: a wrong argument aborts the process) or "cuda" (a GPU, by
 * core/device/cuda, which is in a file of its own beside the program); PL_BAD for a device that this build or machine
 * does not have, and for bf16 where it has no instructions for it. The kernels are chosen
 * once, here: the best that the machine has, or those that the environment variable PIPELAG_ISA names (base, avx2,
 * avx512; PL_BAD when they are absent). The BLAS chooses its own (OPENBLAS_CORETYPE). With several threads the larger
 * operations run on all of them and products in full precision are made without the BLAS, so that last bits differ from
 * those of one thread; with the same number they are the same. */
PL_MUST_CHECK pl_status pl_device_open(const char *name, pl_precision precision, size_t threads, pl_device **out,
                                       pl_err *e);
void pl_device_close(pl_device *d); /* NULL allowed */

#endif
