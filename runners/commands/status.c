/* pipelag status DIR: what the runs are doing; changes nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "runners/command.h"
#include "runners/say.h"
#include "runners/status_text.h"

enum { WATCH_SECONDS = 5 };

static pl_status print_json(const pl_options *o, const pl_states *s, const pl_status_counts *c, bool list, pl_err *e) {
  pl_str text = {0};
  pl_json *json = pl_status_json(s, c, o->all, list);
  text.failed = json == NULL;
  pl_json_write_canonical(json, &text);
  pl_str_append(&text, "\n");
  pl_json_release(json);
  return pl_print(&text, e);
}

static pl_status print_text(const pl_options *o, const pl_states *s, const pl_status_counts *c, bool list, pl_err *e) {
  pl_str text = {0};
  bool screen = o->watch && isatty(STDOUT_FILENO) == 1;
  if (screen) pl_str_append(&text, "\033[H\033[J");
  if (o->watch && !screen && !list)
    pl_status_line(s, c, &text);
  else
    pl_status_print(s, c, &text);
  if (list) pl_status_runs(s, o->all, &text);
  pl_status st = pl_print(&text, e);
  if (fflush(stdout) != 0 && st == PL_OK) st = pl_fail(e, PL_FAIL, "standard output could not be written");
  return st;
}

/* A marker that says running is no promise that the process still lives. */
static size_t verify(const pl_states *s) {
  size_t wrong = 0;
  for (size_t i = 0; i < s->count; i++) {
    const pl_shown_run *r = &s->runs[i];
    pl_run_state found = pl_run_state_of(s->dir, r->id);
    if (found == r->marked || (found == PL_RUN_LOST && r->marked == PL_RUN_RUNNING)) continue;
    fprintf(stderr, "pipelag: run %" PRIu64 " %016" PRIx64 ": its marker says %s, its folder says %s\n", r->index,
            r->id, pl_run_state_name(r->marked), pl_run_state_name(found));
    wrong++;
  }
  return wrong;
}

/* One look; *moving tells whether anything is running or will. */
static pl_status look(const pl_options *o, bool *moving, pl_err *e) {
  pl_states s;
  pl_status_counts c;
  pl_status st = pl_states_read(o->args[0], &s, e);
  if (st != PL_OK) return st;
  pl_status_count(&s, o->all, &c);
  bool list = o->runs || o->verbose > 0;
  st = o->json ? print_json(o, &s, &c, list, e) : print_text(o, &s, &c, list, e);
  size_t wrong = o->verify && st == PL_OK ? verify(&s) : 0;
  if (wrong > 0) st = pl_fail(e, PL_FAIL, "%s: %zu state markers differ from the run folders", o->args[0], wrong);
  *moving = c.shown[PL_SHOWN_RUNNING] + c.shown[PL_SHOWN_QUEUED] > 0;
  if (st == PL_OK && c.shown[PL_SHOWN_FAILED] + c.shown[PL_SHOWN_LOST] > 0) st = PL_FAIL;
  pl_states_free(&s);
  return st;
}

static pl_status run(const pl_options *o, pl_err *e) {
  const struct timespec pause = {.tv_sec = WATCH_SECONDS};
  bool moving = false;
  for (;;) {
    pl_status st = look(o, &moving, e);
    if (!o->watch || !moving || e->text[0] != '\0') return st;
    nanosleep(&pause, NULL);
  }
}

const pl_command pl_command_status = {
    .name = "status",
    .arguments = "DIR",
    .summary = "Show what the runs of a result directory are doing; --runs (or -v) lists them",
    .options = "JvAWRc",
    .min_args = 1,
    .max_args = 1,
    .run = run};
