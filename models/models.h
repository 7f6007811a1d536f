/* The registries of this floor, made from the list.def files. */
#ifndef PL_MODELS_MODELS_H
#define PL_MODELS_MODELS_H

#include "core/config/registry.h"

extern const pl_registry pl_models;   /* of pl_model_type */
extern const pl_registry pl_datasets; /* of pl_dataset_type */

#endif
