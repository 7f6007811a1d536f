#include <math.h>

#include "core/config/run_config.h"

static const char *const precisions[] = {"fp32", NULL};
static const char *const devices[] = {"cpu", "paranoid", NULL};
static const char *const delay_words[] = {[PL_DELAY_PIPEDREAM] = "pipedream", NULL};
static const char *const clip_scopes[] = {[PL_CLIP_GLOBAL] = "global", [PL_CLIP_STAGE] = "stage", NULL};
static const char *const decay_forms[] = {[PL_DECAY_DECOUPLED] = "decoupled", [PL_DECAY_L2] = "l2", NULL};
static const char *const nonfinites[] = {[PL_NONFINITE_STOP] = "stop", [PL_NONFINITE_SKIP] = "skip", NULL};
static const char *const schedules[] = {[PL_SCHEDULE_LAGGED] = "lagged", NULL};

#define ROOT(field) .name = #field, .offset = offsetof(pl_root_config, field)
const pl_param pl_root_params[] = {
    {ROOT(name), .type = PL_TEXT, .not_identity = true, .help = "name of the run or sweep"},
    {ROOT(notes), .type = PL_TEXT, .not_identity = true, .help = "free text, kept with the results"},
    {ROOT(seed), .type = PL_INT, .max = (double)INFINITY,
     .help = "names the weights, and the data order when train.data_seed is -1"},
    {ROOT(delay), .type = PL_INT_LIST, .max = 1024, .choices = delay_words,
     .help = "gradient delay in updates: one value, one per stage, or pipedream (stages - 1 - p)"},
    {ROOT(delay_start), .type = PL_INT, .max = (double)INFINITY, .help = "updates without delay at the start"},
    {ROOT(simulate_only), .type = PL_BOOL,
     .help = "allows a global clip or a tied head on a per-stage delay, which no real pipeline can do"},
    {ROOT(precision), .type = PL_CHOICE, .choices = precisions, .help = "working precision"},
    {ROOT(device), .type = PL_CHOICE, .choices = devices,
     .help = "where the arithmetic runs; paranoid checks every access, for tests"},
    {0},
};

#define TRAIN(field) .name = #field, .offset = offsetof(pl_train_config, field)
const pl_param pl_train_params[] = {
    {TRAIN(steps), .type = PL_INT, .required = true, .min = 1, .max = 1e9, .help = "updates"},
    {TRAIN(batch_tokens), .type = PL_INT, .def = 1024, .min = 1, .max = (double)INFINITY,
     .help = "tokens per update (samples for models without tokens)"},
    {TRAIN(warmup), .type = PL_REAL, .def = 0.1, .max = (double)INFINITY,
     .help = "linear warm-up: updates when >= 1, share of steps when below 1"},
    {TRAIN(clip), .type = PL_REAL, .def = 1, .max = (double)INFINITY, .help = "largest gradient norm; 0 = no clipping"},
    {TRAIN(clip_scope), .type = PL_CHOICE, .def = PL_CLIP_GLOBAL, .choices = clip_scopes,
     .help = "norm over all stages, or of each stage alone"},
    {TRAIN(weight_decay), .type = PL_REAL, .def = 0.1, .max = (double)INFINITY,
     .help = "weight decay, times the learning rate per update"},
    {TRAIN(weight_decay_form), .type = PL_CHOICE, .def = PL_DECAY_DECOUPLED, .choices = decay_forms,
     .help = "shrinks the weights, or adds to the gradient after clipping"},
    {TRAIN(nonfinite), .type = PL_CHOICE, .def = PL_NONFINITE_STOP, .choices = nonfinites,
     .help = "at a non-finite loss or gradient: end as diverged, or skip the update (20 in a row end it)"},
    {TRAIN(data_seed), .type = PL_INT, .def = -1, .min = -1, .max = (double)INFINITY,
     .help = "names the data order; -1 = the run's seed"},
    {TRAIN(val_every), .type = PL_INT, .max = (double)INFINITY,
     .help = "updates between validations; 0 = before the first update and at the end"},
    {TRAIN(val_tokens), .type = PL_INT, .def = 131072, .max = (double)INFINITY,
     .help = "tokens of the fixed validation set"},
    {TRAIN(log_every), .type = PL_INT, .def = 1, .min = 1, .max = (double)INFINITY, .not_identity = true,
     .help = "updates between logged points"},
    {TRAIN(checkpoint_every), .type = PL_INT, .max = (double)INFINITY, .not_identity = true,
     .help = "updates between checkpoints; 0 = only on a signal"},
    {0},
};

#define PIPELINE(field) .name = #field, .offset = offsetof(pl_pipeline_config, field)
const pl_param pl_pipeline_params[] = {
    {PIPELINE(stages), .type = PL_INT, .def = 1, .min = 1, .max = PL_MAX_STAGES, .help = "contiguous groups of layers"},
    {PIPELINE(microbatches), .type = PL_INT, .def = 1, .min = 1, .max = 65536,
     .help = "equal parts of an update's batch"},
    {PIPELINE(schedule), .type = PL_CHOICE, .def = PL_SCHEDULE_LAGGED, .choices = schedules,
     .help = "who reads which weight version; lagged takes `delay`"},
    {0},
};
