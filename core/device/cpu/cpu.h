/* Inside the CPU devices: opening them, and the operations that are not compiled per instruction set. */
#ifndef PL_DEVICE_CPU_CPU_H
#define PL_DEVICE_CPU_CPU_H

#include "core/device/device.h"

/* Fill a zeroed device; on failure nothing is held. */
PL_MUST_CHECK pl_status pl_cpu_open(pl_device *d, pl_err *e);
void pl_cpu_close(pl_device *d);
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
PL_CPU_DECLARE(gemm);
PL_CPU_DECLARE(gemm_low);
PL_CPU_DECLARE(syrk);
#undef PL_CPU_DECLARE

/* Keeps the BLAS to one thread and writes what it is, like "OpenBLAS 0.3.21 SkylakeX". */
void pl_blas_start(char *description, size_t size);

/* The whole table, once per instruction set that was built (PL_HAVE_ISA_*). */
extern const pl_ops pl_cpu_ops_base, pl_cpu_ops_avx2, pl_cpu_ops_avx512;

#endif
