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

const char *pl_device_name(const pl_run_config *c) {
  static const char *const names[] = {"cpu", "paranoid", "cuda"};
  return names[c->root.device];
}
