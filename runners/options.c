#include "runners/options.h"

#include <argp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runners/command.h"

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
    {"jobs", 'j', "N", 0, "Runs at the same time (default: one per CPU that this process may use)", 0},
    {"fail-fast", 'f', NULL, 0, "Stop the sweep when a run fails", 0},
    {"strict-diverged", 'D', NULL, 0, "Exit with 1 when a run diverged", 0},
    {"data-root", 'r', "DIR", 0, "Folder of relative data paths (default: PIPELAG_DATA, else the sweep file's folder)",
     0},
    {"at", 'a', "KEY=VALUE", 0, "Also compare the arms at this fixed value, e.g. optimizer.lr=8e-3", 0},
    {"all", 'A', NULL, 0, "Also runs that are no longer part of the sweep file", 0},
    {"max-runs", 'm', "N", 0, "Ask for -y above this number of runs (default 100000)", 0},
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

static void set_argument(struct argp_state *state, const pl_command *command, pl_options *o, const char *arg) {
  if (arg[0] == '\0') argp_error(state, "saw an empty argument; allowed: %s", command->arguments);
  if (o->arg_count < command->max_args && o->arg_count < PL_MAX_ARGS) {
    o->args[o->arg_count++] = arg;
    return;
  }
  argp_error(state, "unexpected argument \"%.100s\"; allowed: %s", arg,
             command->max_args == 0 ? "no argument" : command->arguments);
}

static error_t parse_one(int key, char *arg, struct argp_state *state) {
  parse_state *p = state->input;
  pl_options *o = p->out;
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
  case 'n':
    o->dry_run = true;
    break;
  case 'J':
    o->json = true;
    break;
  case 'C':
    o->csv = true;
    break;
  case 'q':
    o->quiet = true;
    break;
  case 'v':
    o->verbose++;
    break;
  case 'y':
    o->yes = true;
    break;
  case 'j':
    o->jobs = (int)whole_number(state, "--jobs", arg, PL_MAX_JOBS);
    break;
  case 'f':
    o->fail_fast = true;
    break;
  case 'D':
    o->strict_diverged = true;
    break;
  case 'r':
    o->data_root = path_text(state, "--data-root", arg);
    break;
  case 'a':
    o->at = arg;
    break;
  case 'A':
    o->all = true;
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
    return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

void pl_options_parse(const pl_command *command, int argc, char **argv, pl_options *out) {
  *out = (pl_options){.max_runs = 100000, .shard_tokens = 100000000};
  struct argp_option table[OPTION_COUNT + 2] = {0};
  size_t count = 0;
  for (size_t i = 0; i < OPTION_COUNT; i++)
    if (strchr(command->options, all_options[i].key) != NULL) table[count++] = all_options[i];
  table[count] = short_help;
  char name[64];
  snprintf(name, sizeof name, "pipelag %s", command->name);
  argv[0] = name;
  parse_state state = {.command = command, .out = out};
  struct argp argp = {.options = table, .parser = parse_one, .args_doc = command->arguments, .doc = command->summary};
  argp_err_exit_status = PL_BAD;
  argp_parse(&argp, argc, argv, 0, NULL, &state);
}

pl_sets pl_options_sets(const pl_options *o) { return (pl_sets){.texts = o->set_texts, .count = o->set_count}; }
