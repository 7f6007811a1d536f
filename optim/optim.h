/* The registries of this floor, made from the list.def files. */
#ifndef PL_OPTIM_OPTIM_H
#define PL_OPTIM_OPTIM_H

#include "core/config/registry.h"

extern const pl_registry pl_optimizers;   /* of pl_optimizer_type */
extern const pl_registry pl_corrections;  /* of pl_correction_type */
extern const pl_registry pl_lr_schedules; /* of pl_lr_schedule_type */

#endif
