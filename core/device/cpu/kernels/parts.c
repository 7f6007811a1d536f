#include "core/device/cpu/kernels/parts.h"

const pl_cpu_parts PL_KERNEL(cpu_parts) = {
    .packed_size = PL_KERNEL(packed_size),
    .gemm_packed = PL_KERNEL(gemm_packed),
    .syrk_rows = PL_KERNEL(syrk_rows),
    .attention_forward_units = PL_KERNEL(attention_forward_units),
    .attention_backward_units = PL_KERNEL(attention_backward_units),
};
