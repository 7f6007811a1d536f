#include "optim/optim.h"

#include "core/train/correction.h"
#include "core/train/lr_schedule.h"
#include "core/train/optimizer.h"

#define PL_OPTIMIZER(name) extern const pl_optimizer_type pl_optimizer_##name;
#define PL_CORRECTION(name) extern const pl_correction_type pl_correction_##name;
#define PL_LR_SCHEDULE(name) extern const pl_lr_schedule_type pl_lr_schedule_##name;
#include "optim/corrections/list.def"
#include "optim/lr_schedules/list.def"
#include "optim/optimizers/list.def"
#undef PL_OPTIMIZER
#undef PL_CORRECTION
#undef PL_LR_SCHEDULE

#define PL_OPTIMIZER(name) &pl_optimizer_##name.base,
#define PL_CORRECTION(name) &pl_correction_##name.base,
#define PL_LR_SCHEDULE(name) &pl_lr_schedule_##name.base,

static const pl_component *const optimizers[] = {
#include "optim/optimizers/list.def"
};
static const pl_component *const corrections[] = {
#include "optim/corrections/list.def"
};
static const pl_component *const lr_schedules[] = {
#include "optim/lr_schedules/list.def"
};

#define PL_REGISTRY(kind_name, list)                                                                                   \
  { .kind = kind_name, .items = list, .count = sizeof list / sizeof *list }
const pl_registry pl_optimizers = PL_REGISTRY("optimizer", optimizers);
const pl_registry pl_corrections = PL_REGISTRY("correction", corrections);
const pl_registry pl_lr_schedules = PL_REGISTRY("lr_schedule", lr_schedules);
