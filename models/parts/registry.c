#include "models/models.h"

#include "core/train/dataset.h"
#include "core/train/model.h"

#define PL_MODEL(name) extern const pl_model_type pl_model_##name;
#define PL_DATASET(name) extern const pl_dataset_type pl_dataset_##name;
#include "models/data/list.def"
#include "models/list.def"
#undef PL_MODEL
#undef PL_DATASET

#define PL_MODEL(name) &pl_model_##name.base,
#define PL_DATASET(name) &pl_dataset_##name.base,

static const pl_component *const models[] = {
#include "models/list.def"
};
static const pl_component *const datasets[] = {
#include "models/data/list.def"
};

const pl_registry pl_models = {.kind = "model", .items = models, .count = sizeof models / sizeof *models};
const pl_registry pl_datasets = {.kind = "dataset", .items = datasets, .count = sizeof datasets / sizeof *datasets};
