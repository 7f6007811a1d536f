/* pipelag checkpoint ACTION DIR [RUN]: a run's checkpoints are shown, merged into one file, or made into those of
 * another number of stages. */
#include <string.h>

#include "runners/checkpoint_actions.h"
#include "runners/command.h"

typedef struct action {
  const char *name;
  pl_status (*run)(const pl_options *o, pl_err *e);
} action;

static const action actions[] = {
    {"repartition", pl_checkpoint_repartition}, {"merge", pl_checkpoint_merge}, {"show", pl_checkpoint_show}};

enum { ACTIONS = sizeof actions / sizeof *actions };

static pl_status say_unknown(const char *name, pl_err *e) {
  const char *names[ACTIONS];
  for (size_t i = 0; i < ACTIONS; i++) names[i] = actions[i].name;
  size_t near = pl_nearest(name, names, ACTIONS);
  return pl_fail(e, PL_BAD, "checkpoint: saw \"%.100s\"%s%s%s; allowed: repartition, merge, show", name,
                 near < ACTIONS ? " (did you mean \"" : "", near < ACTIONS ? names[near] : "",
                 near < ACTIONS ? "\"?)" : "");
}

/* Options that mean something for one action only. */
static pl_status check_use(const pl_options *o, pl_err *e) {
  const char *name = o->args[0];
  const bool repartition = strcmp(name, "repartition") == 0;
  const char *alone = o->schedule.stages > 0 ? "--stages"
                      : o->restart_ring      ? "--restart-ring"
                      : o->set_count > 0     ? "--set"
                      : o->dry_run           ? "--dry-run"
                                             : NULL;
  if (alone && !repartition)
    return pl_fail(e, PL_BAD, "checkpoint %s: %s is given; allowed: with repartition", name, alone);
  if (o->output && strcmp(name, "show") == 0)
    return pl_fail(e, PL_BAD, "checkpoint show: --output is given; allowed: with repartition and merge");
  return PL_OK;
}

static pl_status run(const pl_options *o, pl_err *e) {
  size_t i = 0;
  while (i < ACTIONS && strcmp(o->args[0], actions[i].name) != 0) i++;
  if (i == ACTIONS) return say_unknown(o->args[0], e);
  pl_status st = check_use(o, e);
  return st == PL_OK ? actions[i].run(o, e) : st;
}

const pl_command pl_command_checkpoint = {.name = "checkpoint",
                                          .arguments = "repartition|merge|show DIR [RUN]",
                                          .summary =
                                              "Make a run's checkpoint into one of --stages P, or one file of its "
                                              "weights (-o FILE), or show what there is",
                                          .options = "PQSonrJq",
                                          .min_args = 2,
                                          .max_args = 3,
                                          .run = run};
