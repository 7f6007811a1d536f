#include "runners/registries.h"

#include "models/models.h"
#include "optim/optim.h"

pl_registries pl_registries_all(void) {
  return (pl_registries){.models = pl_models,
                         .datasets = pl_datasets,
                         .optimizers = pl_optimizers,
                         .corrections = pl_corrections,
                         .lr_schedules = pl_lr_schedules};
}
