/* Kernels for several threads, once per instruction set like the others: each works on a part of an operation, on a
 * device of its thread's own. */
#ifndef PL_DEVICE_CPU_KERNELS_PARTS_H
#define PL_DEVICE_CPU_KERNELS_PARTS_H

#include "core/device/cpu/cpu.h"
#include "core/device/cpu/kernels/kernels.h"

/* A member of pl_cpu_parts, with its type. */
#define PL_KERNEL_PART(name) __typeof__(*((const pl_cpu_parts *)0)->name) PL_KERNEL(name)
PL_KERNEL_PART(packed_size);
PL_KERNEL_PART(gemm_packed);
PL_KERNEL_PART(syrk_rows);
PL_KERNEL_PART(attention_forward_units);
PL_KERNEL_PART(attention_backward_units);
#undef PL_KERNEL_PART

#endif
