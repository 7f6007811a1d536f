#include "runners/options.h"

#include <argp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runners/command.h"

/* Keys of options without a short form; commands name them by the letter. */
enum { LONG = 256 };

/* -f is --follow where logs are read, --fail-fast where runs are started. */
enum { FOLLOW = LONG + 'F' };

static const struct argp_option all_options[] = {
    {"set", 'S', "KEY=VALUE", 0,
     "Override a key (dotted, repeatable); a=1,2,3 makes an axis in a sweep, a=[3,2] is a value", 0},
    {"output", 'o', "DIR", 0, "Result directory (default results/NAME), or the file or folder to write", 0},
    {"dry-run", 'n', NULL, 0, "Check everything, print what would be done, change nothing", 0},
    {"json", 'J', NULL, 0, "Print JSON", 0},
    {"csv", 'C', NULL, 0, "Print CSV", 0},
    {"quiet", 'q', NULL, 0, "Print only results and errors", 0},
    {"verbose", 'v', NULL, 0, "Print more", 0},
    {"yes", 'y', NULL, 0, "Go on without asking, also above --max-runs", 0},
    {"jobs", 'j', "N", 0,
     "Runs at the same time (default: one per CPU that this process may use, per GPU for runs on GPUs)", 0},
    {"fail-fast", 'f', NULL, 0, "Stop the sweep when a run fails", 0},
    {"no-pin", LONG + '0', NULL, 0, "Leave it to the system on which CPU a run is", 0},
    {"strict-diverged", 'D', NULL, 0, "Exit with 1 when a run diverged", 0},
    {"data-root", 'r', "DIR", 0, "Folder of relative data paths (default: PIPELAG_DATA, else the sweep file's folder)",
     0},
    {"at", 'a', "KEY=VALUE", 0, "Also compare the arms at this fixed value, e.g. optimizer.lr=8e-3", 0},
    {"all", 'A', NULL, 0, "Also runs that are no longer part of the sweep file", 0},
    {"select-on", LONG + '1', "SEED", 0, "Choose learning rates on this seed, compare the other seeds", 0},
    {"target", LONG + '2', "LOSS", 0, "Count tokens to this loss (default: the worst synchronous final loss)", 0},
    {"against", LONG + '3', "KEY", 0, "Gaps as a function of a number, e.g. delay; KEY,KEY: the others go along", 0},
    {"resolve", LONG + '4', "X", 0, "Pairs of seeds needed to see this difference (default 0.005)", 0},
    {"table", LONG + '5', "NAME", 0, "Only this table, e.g. gap, rates, reach", 0},
    {"extend", LONG + '6', "FILE", 0, "Write the sweep that goes on beyond the edges at which optima lie", 0},
    {"heat", LONG + '7', "KEY,KEY", 0, "Axes of the heat map (default: optimizer.lr,delay), e.g. optimizer.beta1,delay",
     0},
    {"map", LONG + 'k', "SERIES=NAME", 0,
     "Which column, key or tag is a series (repeatable): step, tokens, val/loss, train/loss, lr, ...", 0},
    {"format", LONG + 'i', "FORMAT", 0,
     "Form of the curves: csv, jsonl, tensorboard; read also: llmc, nanogpt, auto (default)", 0},
    {"max-runs", 'm', "N", 0, "Ask for -y above this number of runs (default 100000)", 0},
    {"runs", LONG + 'R', NULL, 0, "A line for each run", 0},
    {"watch", LONG + 'W', NULL, 0,
     "Look again: status every 2 seconds until nothing runs, report every 5 seconds until interrupted", 0},
    {"verify", LONG + 'c', NULL, 0, "Compare the state markers with the run directories", 0},
    {"follow", FOLLOW, NULL, 0, "Go on printing until the run has ended", 0},
    {"failed", LONG + 'x', NULL, 0, "Runs that failed", 0},
    {"timeout", LONG + 'T', NULL, 0, "Runs that reached their time limit", 0},
    {"lost", LONG + 'l', NULL, 0, "Runs that ended without a word", 0},
    {"cancelled", LONG + 'X', NULL, 0, "Runs that were cancelled", 0},
    {"slurm", LONG + 's', NULL, 0, "Submit to Slurm, also from a directory that never was", 0},
    {"stages", LONG + 'P', "P", 0, "Pipeline stages", 0},
    {"microbatches", LONG + 'M', "M", 0, "Microbatches of an update", 0},
    {"updates", LONG + 'U', "N", 0, "Updates from start to stop (default 3)", 0},
    {"chunks", LONG + 'K', "V", 0, "Chunks of layers in a stage (interleaved-1f1b: default 2)", 0},
    {"delay", LONG + 'd', "K[,K...]", 0, "Delay of lagged: one number, or one per stage", 0},
    {"allow-min-microbatches", LONG + 'N', NULL, 0, "2bw also with P-1 microbatches", 0},
    {"forward", LONG + 'p', "T", 0, "Time of a microbatch's forward in a stage (default 1)", 0},
    {"backward", LONG + 'b', "T", 0, "Time of its backward (default 2)", 0},
    {"backward-weight", LONG + 'g', "T", 0, "Part of it that computes weight gradients (default half)", 0},
    {"latency", LONG + 'e', "T", 0, "Time from sending a message to its arrival (default 0)", 0},
    {"transfer", LONG + 'u', "T", 0, "Time that a message occupies its link: size / bandwidth (default 0)", 0},
    {"file", LONG + 'I', "FILE", 0, "A schedule from a text file", 0},
    {"text", LONG + 'E', NULL, 0, "Print the schedule's text form, which --file reads", 0},
    {"svg", LONG + 'G', "FILE", 0, "Write the grid as SVG", 0},
    {"plan", LONG + 'L', NULL, 0,
     "Step time, bubble, memory and links, and the token overhead up to which asynchronous training pays", 0},
    {"costs", LONG + 'O', "FILE", 0, "With --plan: times, sizes and links from a JSON file", 0},
    {"model", LONG + 'H', "RUN.json", 0,
     "Which layers a run's stages have; with --plan: costs from the model's operations", 0},
    {"flops-per-second", LONG + 'z', "F", 0, "Floating-point operations a second of a stage, for --plan --model", 0},
    {"bandwidth", LONG + 'B', "B", 0, "Bytes a second of a link in each direction, for --plan --model", 0},
    {"measured", LONG + 'Z', "DIR", 0,
     "What the run NAME of this result directory did, from its traces (pipeline.trace), beside the ideal", 0},
    {"restart-ring", LONG + 'Q', NULL, 0,
     "Convert although delays change: every stage begins with its newest weights alone, delays ramp anew", 0},
    {"profile", LONG + '8', NULL, 0, "Print too where the time went", 0},
    {"shard-tokens", 't', "N", 0, "Tokens of a shard (default 100000000)", 0},
    {"write-shards", 'w', "PREFIX", 0, "Write llm.c shards PREFIX_val_000000.bin, PREFIX_train_000001.bin, ...", 0},
};

static const struct argp_option short_help = {NULL, 'h', NULL, OPTION_HIDDEN, NULL, -1};

enum { OPTION_COUNT = sizeof all_options / sizeof *all_options };

typedef struct parse_state {
  const pl_command *command;
  pl_options *out;
} parse_state;

static int64_t whole_number(struct argp_state *state, const char *option, const char *text, int64_t most) {
  int64_t value = 0;
  if (pl_parse_int(text, &value) && value >= 1 && value <= most) return value;
  if (most == INT64_MAX)
    argp_error(state, "%s: saw \"%.100s\"; allowed: a whole number from 1", option, text);
  else
    argp_error(state, "%s: saw \"%.100s\"; allowed: a whole number from 1 to %" PRId64, option, text, most);
  return 0;
}

/* An unset shell variable must not name the working folder. */
static const char *path_text(struct argp_state *state, const char *what, const char *text) {
  if (text[0] == '\0') argp_error(state, "%s: saw an empty text; allowed: a path", what);
  return text;
}

static void set_text(struct argp_state *state, pl_options *o, const char *arg) {
  if (o->set_count == PL_MAX_SETS) {
    argp_error(state, "--set: given more than %d times; allowed: at most %d", PL_MAX_SETS, PL_MAX_SETS);
    return;
  }
  o->set_texts[o->set_count++] = arg;
}

static void set_map(struct argp_state *state, pl_options *o, const char *arg) {
  if (o->map_count == PL_MAX_SETS)
    argp_error(state, "--map: given more than %d times; allowed: at most %d", PL_MAX_SETS, PL_MAX_SETS);
  else
    o->map_texts[o->map_count++] = arg;
}

static void set_argument(struct argp_state *state, const pl_command *command, pl_options *o, const char *arg) {
  if (arg[0] == '\0') argp_error(state, "saw an empty argument; allowed: %s", command->arguments);
  if (o->arg_count < command->max_args && o->arg_count < PL_MAX_ARGS) {
    o->args[o->arg_count++] = arg;
    return;
  }
  argp_error(state, "unexpected argument \"%.100s\"; allowed: %s", arg,
             command->max_args == 0 ? "no argument" : command->arguments);
}

/* The switch that an option turns on; NULL for an option with a value. */
static bool *find_flag(const pl_command *command, pl_options *o, int key) {
  switch (key) {
  case 'n':
    return &o->dry_run;
  case 'J':
    return &o->json;
  case 'C':
    return &o->csv;
  case 'q':
    return &o->quiet;
  case 'y':
    return &o->yes;
  case LONG + '0':
    return &o->no_pin;
  case 'D':
    return &o->strict_diverged;
  case 'A':
    return &o->all;
  case LONG + 'R':
    return &o->runs;
  case LONG + 'W':
    return &o->watch;
  case LONG + 'c':
    return &o->verify;
  case LONG + 'x':
    return &o->failed;
  case LONG + 'T':
    return &o->timeout;
  case LONG + 'l':
    return &o->lost;
  case LONG + 'X':
    return &o->cancelled;
  case LONG + 's':
    return &o->slurm;
  case LONG + 'N':
    return &o->schedule.allow_min_microbatches;
  case LONG + 'Q':
    return &o->restart_ring;
  case LONG + '8':
    return &o->profile;
  case LONG + 'E':
    return &o->schedule.text;
  case LONG + 'L':
    return &o->schedule.plan;
  case 'f':
    return strchr(command->options, FOLLOW & 0xff) != NULL ? &o->follow : &o->fail_fast;
  default:
    return NULL;
  }
}

static double real_number(struct argp_state *state, const char *option, const char *text) {
  double value = 0;
  if (!pl_parse_real(text, &value) || !(value >= 0 && value <= 1e12))
    argp_error(state, "--%s: saw \"%.100s\"; allowed: a number from 0 to 1e12", option, text);
  return value;
}

static double rate(struct argp_state *state, const char *option, const char *text) {
  double value = 0;
  if (!pl_parse_real(text, &value) || !(value > 0 && value <= 1e21))
    argp_error(state, "--%s: saw \"%.100s\"; allowed: a number above 0, at most 1e21", option, text);
  return value;
}

static error_t set_schedule(struct argp_state *state, pl_schedule_options *o, int key, const char *arg) {
  switch (key) {
  case LONG + 'P':
    o->stages = (size_t)whole_number(state, "--stages", arg, PL_SCHEDULE_STAGES);
    break;
  case LONG + 'M':
    o->microbatches = (size_t)whole_number(state, "--microbatches", arg, PL_SCHEDULE_MICROBATCHES);
    break;
  case LONG + 'U':
    o->updates = whole_number(state, "--updates", arg, 1000000);
    break;
  case LONG + 'K':
    o->chunks = (size_t)whole_number(state, "--chunks", arg, PL_SCHEDULE_CHUNKS);
    break;
  case LONG + 'd':
    o->delay = arg;
    break;
  case LONG + 'p':
    o->forward = real_number(state, "forward", arg);
    break;
  case LONG + 'b':
    o->backward = real_number(state, "backward", arg);
    break;
  case LONG + 'g':
    o->weight = real_number(state, "backward-weight", arg);
    break;
  case LONG + 'e':
    o->latency = real_number(state, "latency", arg);
    break;
  case LONG + 'u':
    o->transfer = real_number(state, "transfer", arg);
    break;
  case LONG + 'I':
    o->file = path_text(state, "--file", arg);
    break;
  case LONG + 'G':
    o->svg = path_text(state, "--svg", arg);
    break;
  case LONG + 'O':
    o->costs = path_text(state, "--costs", arg);
    break;
  case LONG + 'H':
    o->model = path_text(state, "--model", arg);
    break;
  case LONG + 'z':
    o->flops_per_second = rate(state, "flops-per-second", arg);
    break;
  case LONG + 'B':
    o->bandwidth = rate(state, "bandwidth", arg);
    break;
  case LONG + 'Z':
    o->measured = path_text(state, "--measured", arg);
    break;
  default:
    return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static error_t parse_one(int key, char *arg, struct argp_state *state) {
  parse_state *p = state->input;
  pl_options *o = p->out;
  bool *flag = find_flag(p->command, o, key);
  if (flag != NULL) {
    *flag = true;
    return 0;
  }
  switch (key) {
  case 'h':
    argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
    break;
  case 'S':
    set_text(state, o, arg);
    break;
  case 'o':
    o->output = path_text(state, "--output", arg);
    break;
  case 'v':
    o->verbose++;
    break;
  case 'j':
    o->jobs = (int)whole_number(state, "--jobs", arg, PL_MAX_JOBS);
    break;
  case 'r':
    o->data_root = path_text(state, "--data-root", arg);
    break;
  case 'a':
    o->at = arg;
    break;
  case LONG + '1':
    o->select_on = arg;
    break;
  case LONG + '2':
    o->target = arg;
    break;
  case LONG + '3':
    o->against = arg;
    break;
  case LONG + '4':
    o->resolve = arg;
    break;
  case LONG + '5':
    o->table = arg;
    break;
  case LONG + '6':
    o->extend = path_text(state, "--extend", arg);
    break;
  case LONG + '7':
    o->heat = arg;
    break;
  case LONG + 'k':
    set_map(state, o, arg);
    break;
  case LONG + 'i':
    o->format = arg;
    break;
  case 'm':
    o->max_runs = (uint64_t)whole_number(state, "--max-runs", arg, INT64_MAX);
    break;
  case 't':
    o->shard_tokens = whole_number(state, "--shard-tokens", arg, INT32_MAX);
    break;
  case 'w':
    o->prefix = path_text(state, "--write-shards", arg);
    break;
  case ARGP_KEY_ARG:
    set_argument(state, p->command, o, arg);
    break;
  case ARGP_KEY_END:
    if (o->arg_count < p->command->min_args)
      argp_error(state, "an argument is missing; allowed: %s", p->command->arguments);
    break;
  default:
    return set_schedule(state, &o->schedule, key, arg);
  }
  return 0;
}

void pl_options_parse(const pl_command *command, int argc, char **argv, int usage_status, pl_options *out) {
  *out = (pl_options){.max_runs = 100000,
                      .shard_tokens = 100000000,
                      .schedule = {.updates = 3, .forward = 1, .backward = 2, .weight = -1}};
  struct argp_option table[OPTION_COUNT + 2] = {0};
  size_t count = 0;
  for (size_t i = 0; i < OPTION_COUNT; i++)
    if (strchr(command->options, all_options[i].key & 0xff) != NULL) {
      table[count] = all_options[i];
      if (table[count].key == FOLLOW) table[count].key = 'f';
      count++;
    }
  table[count] = short_help;
  char name[64];
  snprintf(name, sizeof name, "pipelag %s", command->name);
  argv[0] = name;
  parse_state state = {.command = command, .out = out};
  struct argp argp = {.options = table, .parser = parse_one, .args_doc = command->arguments, .doc = command->summary};
  argp_err_exit_status = usage_status;
  argp_parse(&argp, argc, argv, 0, NULL, &state);
}

pl_sets pl_options_sets(const pl_options *o) { return (pl_sets){.texts = o->set_texts, .count = o->set_count}; }
