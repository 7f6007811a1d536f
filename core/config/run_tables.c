#include <math.h>

#include "core/config/run_config.h"
#include "core/device/device.h"

static const char *const precisions[] = {[PL_PRECISION_FP32] = "fp32", [PL_PRECISION_BF16] = "bf16", NULL};
static const char *const devices[] = {"cpu", "paranoid", "cuda", NULL};
static const char *const delay_words[] = {[PL_DELAY_PIPEDREAM] = "pipedream", NULL};
static const char *const clip_scopes[] = {[PL_CLIP_GLOBAL] = "global", [PL_CLIP_STAGE] = "stage", NULL};
static const char *const decay_forms[] = {[PL_DECAY_DECOUPLED] = "decoupled", [PL_DECAY_L2] = "l2", NULL};
static const char *const nonfinites[] = {[PL_NONFINITE_STOP] = "stop", [PL_NONFINITE_SKIP] = "skip", NULL};
static const char *const partitions[] = {[PL_PARTITION_FLOPS] = "flops", [PL_PARTITION_EVEN] = "even", NULL};
#define PL_SCHEDULE(file, name) name,
static const char *const schedules[] = {
#include "core/pipeline/schedules/list.def"
    "custom", NULL};
#undef PL_SCHEDULE

#define ROOT(field) .name = #field, .offset = offsetof(pl_root_config, field)
const pl_param pl_root_params[] = {
    {ROOT(name), .type = PL_TEXT, .not_identity = true, .help = "name of the run or sweep"},
    {ROOT(notes), .type = PL_TEXT, .not_identity = true, .help = "free text, kept with the results"},
    {ROOT(seed), .type = PL_INT, .max = (double)INFINITY,
     .help = "names the weights, and the data order when train.data_seed is -1"},
    {ROOT(delay), .type = PL_INT_LIST, .max = 1024, .choices = delay_words,
     .help = "gradient delay in updates: one value, one per stage, or pipedream (stages - 1 - p); follows from the "
             "schedule unless that is lagged or custom"},
    {ROOT(delay_start), .type = PL_INT, .max = (double)INFINITY, .help = "updates without delay at the start"},
    {ROOT(simulate_only), .type = PL_BOOL,
     .help = "allows a global clip or a tied head on a per-stage delay, which no real pipeline can do"},
    {ROOT(precision), .type = PL_CHOICE, .choices = precisions,
     .help = "of the models' matrix products: bf16 rounds what is multiplied; sums, weights and optimizers stay fp32"},
    {ROOT(threads), .type = PL_INT, .def = 1, .min = 1, .max = PL_MAX_THREADS,
     .help = "that compute one process of a run; with several the last bits of results differ from those of one"},
    {ROOT(device), .type = PL_CHOICE, .choices = devices,
     .help = "where the arithmetic runs: cpu, cuda (a GPU), or paranoid, which checks every access, for tests"},
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
    {TRAIN(probe_every), .type = PL_INT, .max = (double)INFINITY, .not_identity = true,
     .help =
         "updates between logged points that have gradient_cos, which costs a second forward and backward of the "
         "batch; 0 = never; NaN in runs of several processes and in schedules whose stages do not wait for each other"},
    {0},
};

#define PIPELINE(field) .name = #field, .offset = offsetof(pl_pipeline_config, field)
const pl_param pl_pipeline_params[] = {
    {PIPELINE(stages), .type = PL_INT, .def = 1, .min = 1, .max = PL_MAX_STAGES, .help = "contiguous groups of layers"},
    {PIPELINE(microbatches), .type = PL_INT, .def = 1, .min = 1, .max = 65536,
     .help = "equal parts of a replica's share of an update's batch"},
    {PIPELINE(schedule), .type = PL_CHOICE, .choices = schedules,
     .help = "who reads which weight version, and when: see pipelag schedule; lagged takes `delay`"},
    {PIPELINE(schedule_file), .type = PL_TEXT,
     .help = "text form of the schedule, of custom alone; relative like data files"},
    {PIPELINE(chunks), .type = PL_INT, .max = PL_MAX_STAGES,
     .help = "groups of layers in a stage, of schedules that take several; 0 = the schedule's own number"},
    {PIPELINE(replicas), .type = PL_INT, .def = 1, .min = 1, .max = 1024,
     .help = "data-parallel copies; a batch has replicas * microbatches parts"},
    {PIPELINE(allow_min_microbatches), .type = PL_BOOL, .help = "lets 2bw run with one microbatch less than stages"},
    {PIPELINE(partition), .type = PL_INT_LIST, .min = 1, .max = 65536, .def_text = "flops", .choices = partitions,
     .help = "layers of each stage (of each chunk, in layer order), or split by work (flops) or number (even)"},
    {PIPELINE(trace), .type = PL_INT, .max = (double)INFINITY, .not_identity = true,
     .help = "updates whose instructions are timed, for `pipelag schedule --measured`"},
    {PIPELINE(watchdog), .type = PL_REAL, .def = 600, .max = (double)INFINITY, .not_identity = true,
     .help = "seconds without any progress after which a pipeline is given up; 0 = never"},
    {0},
};
