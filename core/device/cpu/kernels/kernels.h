/* The compute kernels. Every file of this folder is compiled once per instruction set with PL_ISA = base, avx2 or
 * avx512, and each extern name carries it: PL_KERNEL(rope) is pl_rope_avx512. The order of additions is the same in all
 * of them; only exp rounds differently in base, which has no fused multiply-add. */
#ifndef PL_DEVICE_CPU_KERNELS_KERNELS_H
#define PL_DEVICE_CPU_KERNELS_KERNELS_H

#include "core/device/device.h"

#define PL_KERNEL_JOIN(name, isa) pl_##name##_##isa
#define PL_KERNEL_EXPAND(name, isa) PL_KERNEL_JOIN(name, isa)
#define PL_KERNEL(name) PL_KERNEL_EXPAND(name, PL_ISA)

/* Before a loop whose iterations are independent although arrays may be the same one: a store touches only the index
 * that its iteration has read. */
#define PL_INDEPENDENT _Pragma("GCC ivdep")

/* A function with the signature of the member of pl_ops that has its name. */
#define PL_KERNEL_DECLARE(name) __typeof__(*((const pl_ops *)0)->name) PL_KERNEL(name)
PL_KERNEL_DECLARE(embedding_forward);
PL_KERNEL_DECLARE(embedding_backward);
PL_KERNEL_DECLARE(add_rows_forward);
PL_KERNEL_DECLARE(add_rows_backward);
PL_KERNEL_DECLARE(rmsnorm_forward);
PL_KERNEL_DECLARE(rmsnorm_backward);
PL_KERNEL_DECLARE(layernorm_forward);
PL_KERNEL_DECLARE(layernorm_backward);
PL_KERNEL_DECLARE(rope);
PL_KERNEL_DECLARE(attention_saved_size);
PL_KERNEL_DECLARE(attention_scratch_size);
PL_KERNEL_DECLARE(attention_forward);
PL_KERNEL_DECLARE(attention_backward);
PL_KERNEL_DECLARE(swiglu_forward);
PL_KERNEL_DECLARE(swiglu_backward);
PL_KERNEL_DECLARE(gelu_forward);
PL_KERNEL_DECLARE(gelu_backward);
PL_KERNEL_DECLARE(cross_entropy);
PL_KERNEL_DECLARE(axpby);
PL_KERNEL_DECLARE(shrink_subtract);
PL_KERNEL_DECLARE(sum_squares);
PL_KERNEL_DECLARE(dot);
PL_KERNEL_DECLARE(sum_double);
PL_KERNEL_DECLARE(adamw);
PL_KERNEL_DECLARE(momentum);
#undef PL_KERNEL_DECLARE

#endif
