/* Inside the CPU devices: opening them, and the operations that are not compiled per instruction set. */
#ifndef PL_DEVICE_CPU_CPU_H
#define PL_DEVICE_CPU_CPU_H

#include "core/device/device.h"

/* Kernels that work on a part of an operation for one of several threads, each with a device of its own. */
typedef struct pl_cpu_parts {
  size_t (*packed_size)(void); /* elements of pl_cpu_state packed */
  /* gemm without the BLAS; needs packed. An element's bits do not depend on where a caller cuts c. */
  __typeof__(((const pl_ops *)0)->gemm) gemm_packed;
  /* Rows first..end-1 of syrk, from the diagonal on; what is below it is then undefined. Needs packed. */
  void (*syrk_rows)(pl_device *d, size_t first, size_t end, bool transpose, size_t n, size_t k, pl_real alpha,
                    const pl_real *a, size_t lda, pl_real beta, pl_real *c, size_t ldc);
  /* Attention of units first..end-1; a unit is a sequence's key-value head with its query heads, batch * kv_heads of
   * them in all. `scratch` as for one thread. */
  void (*attention_forward_units)(pl_device *d, size_t first, size_t end, const pl_attention *s, const pl_real *q,
                                  const pl_real *k, const pl_real *v, pl_real *out, pl_real *saved, pl_real *scratch);
  void (*attention_backward_units)(pl_device *d, size_t first, size_t end, const pl_attention *s, const pl_real *q,
                                   const pl_real *k, const pl_real *v, const pl_real *out, const pl_real *saved,
                                   const pl_real *dout, pl_real *dq, pl_real *dk, pl_real *dv, pl_real *scratch);
} pl_cpu_parts;

/* Of a device that computes in one thread. */
typedef struct pl_cpu_state {
  const pl_cpu_parts *parts;
  struct pl_bf16_room *bf16; /* NULL in fp32 */
  pl_real *packed;           /* NULL where the BLAS makes the products */
} pl_cpu_state;

/* Fill a zeroed device whose precision and threads are set; on failure nothing is held. */
PL_MUST_CHECK pl_status pl_cpu_open(pl_device *d, pl_err *e);
void pl_cpu_close(pl_device *d);
/* The one of a thread: `packed` is there, and the caller gives it a table without the BLAS. */
PL_MUST_CHECK pl_status pl_cpu_open_part(pl_device *d, pl_err *e);
void pl_cpu_close_part(pl_device *d);
PL_MUST_CHECK pl_status pl_threaded_open(pl_device *d, pl_err *e);
void pl_threaded_close(pl_device *d);
PL_MUST_CHECK pl_status pl_paranoid_open(pl_device *d, pl_err *e);
void pl_paranoid_close(pl_device *d);

/* Members of pl_ops, with its signatures. */
#define PL_CPU_DECLARE(name) __typeof__(*((const pl_ops *)0)->name) pl_cpu_##name
PL_CPU_DECLARE(alloc);
PL_CPU_DECLARE(free);
PL_CPU_DECLARE(upload);
PL_CPU_DECLARE(download);
PL_CPU_DECLARE(copy);
PL_CPU_DECLARE(zero);
PL_CPU_DECLARE(check);
PL_CPU_DECLARE(gemm);
PL_CPU_DECLARE(gemm_low);
PL_CPU_DECLARE(syrk);
#undef PL_CPU_DECLARE

/* Rows first..end-1 of the lower triangle from the upper one. */
void pl_cpu_mirror(size_t first, size_t end, pl_real *c, size_t ldc);

/* Keeps the BLAS to one thread and writes what it is, like "OpenBLAS 0.3.21 SkylakeX". */
void pl_blas_start(char *description, size_t size);

/* The whole table, once per instruction set that was built (PL_HAVE_ISA_*). */
extern const pl_ops pl_cpu_ops_base, pl_cpu_ops_avx2, pl_cpu_ops_avx512;
extern const pl_cpu_parts pl_cpu_parts_base, pl_cpu_parts_avx2, pl_cpu_parts_avx512;

#endif
