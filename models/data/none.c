/* No data: for models that draw their own problem, like the quadratic one. */
#include "core/train/dataset.h"

static const pl_param params[] = {{.type = PL_END}};

const pl_dataset_type pl_dataset_none = {
    .base = {.name = "none",
             .summary = "no data, for models that draw their own",
             .source = "pipelag",
             .params = params,
             .config_size = 0},
    .has_tokens = false,
};
