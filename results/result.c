#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/figures.h"
#include "results/journal_format.h"
#include "results/json_file.h"
#include "results/run_dir.h"

#define INTEGER(name)                                                                                                  \
  { #name, true, offsetof(pl_outcome, name) }
#define NUMBER(name)                                                                                                   \
  { #name, false, offsetof(pl_outcome, name) }
const pl_figure pl_figures[PL_FIGURES] = {
    INTEGER(steps),           INTEGER(tokens),         NUMBER(seconds),       NUMBER(tokens_per_second),
    NUMBER(initial_val_loss), NUMBER(final_val_loss),  NUMBER(best_val_loss), NUMBER(final_train_loss),
    NUMBER(val_loss_y),       INTEGER(first_bad_step), INTEGER(skipped),      INTEGER(resumed_from)};

const pl_outcome pl_outcome_nothing = {.end = PL_END_STOPPED,
                                       .first_bad_step = -1,
                                       .initial_val_loss = NAN,
                                       .final_val_loss = NAN,
                                       .best_val_loss = NAN,
                                       .final_train_loss = NAN,
                                       .val_loss_y = NAN,
                                       .seconds = NAN,
                                       .tokens_per_second = NAN,
                                       .resumed_from = -1};

int64_t pl_figure_int(const pl_figure *f, const pl_outcome *o) {
  int64_t value;
  memcpy(&value, (const char *)o + f->offset, sizeof value);
  return value;
}

double pl_figure_number(const pl_figure *f, const pl_outcome *o) {
  double value;
  memcpy(&value, (const char *)o + f->offset, sizeof value);
  return value;
}

static pl_json *figure_json(const pl_figure *f, const pl_outcome *o) {
  return f->integer ? pl_json_new_int(pl_figure_int(f, o)) : pl_json_new_number(pl_figure_number(f, o));
}

static bool write_figures(pl_json *object, const pl_outcome *o) {
  bool ok = true;
  for (size_t i = 0; i < PL_FIGURES && ok; i++)
    ok = pl_json_set(object, pl_figures[i].name, figure_json(&pl_figures[i], o));
  return ok;
}

static pl_json *result_document(pl_run_state state, const pl_outcome *o, const char *error, int64_t attempts) {
  char stamp[32];
  pl_clock_stamp(stamp);
  pl_json *object = pl_json_new_object();
  bool ok = object && pl_json_set(object, "state", pl_json_new_string(pl_run_state_name(state))) &&
            write_figures(object, o) && pl_json_set(object, "reason", pl_json_new_string(o->reason)) &&
            pl_json_set(object, "error", error ? pl_json_new_string(error) : pl_json_new_null()) &&
            pl_json_set(object, "attempts", pl_json_new_int(attempts)) &&
            pl_json_set(object, "ended", pl_json_new_string(stamp));
  if (ok) return object;
  pl_json_release(object);
  return NULL;
}

pl_status pl_run_write_result(const char *sweep_dir, uint64_t id, pl_run_state state, const pl_outcome *o,
                              const char *error, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL, *journal = NULL;
  pl_json *document = NULL;
  PL_TRY(pl_run_path(sweep_dir, id, "result.json", &path, e));
  PL_TRY(pl_run_path(sweep_dir, id, "journal", &journal, e));
  if (state == PL_RUN_STOPPED && pl_run_is_cancelled(sweep_dir, id)) state = PL_RUN_CANCELLED;
  document = result_document(state, o ? o : &pl_outcome_nothing, error, pl_journal_last_attempt(journal));
  PL_TRY(pl_json_file_write(path, document, e));
  pl_run_mark(sweep_dir, id, state);
out:
  pl_json_release(document);
  pl_free(journal);
  pl_free(path);
  return st;
}

static bool find_state(const char *name, pl_run_state *out) {
  for (pl_run_state s = 0; s < PL_RUN_STATES; s++)
    if (strcmp(name, pl_run_state_name(s)) == 0) {
      *out = s;
      return true;
    }
  return false;
}

static void read_figures(const pl_json *object, pl_outcome *o) {
  for (size_t i = 0; i < PL_FIGURES; i++) {
    const pl_figure *f = &pl_figures[i];
    const int64_t integer = f->integer ? pl_json_get_int(object, f->name, pl_figure_int(f, o)) : 0;
    const double number = f->integer ? 0 : pl_json_get_number(object, f->name, NAN);
    memcpy((char *)o + f->offset, f->integer ? (const void *)&integer : (const void *)&number, 8);
  }
}

static pl_status fill_result(const pl_json *object, const char *path, pl_result *out, pl_err *e) {
  const char *state = pl_json_get_string(object, "state", "");
  *out = (pl_result){.outcome = pl_outcome_nothing};
  if (!find_state(state, &out->state))
    return pl_fail(e, PL_FAIL, "%s: is no result of a run (its \"state\" is \"%s\")", path, state);
  read_figures(object, &out->outcome);
  if (out->state == PL_RUN_DONE) out->outcome.end = PL_END_DONE;
  if (out->state == PL_RUN_DIVERGED) out->outcome.end = PL_END_DIVERGED;
  snprintf(out->outcome.reason, sizeof out->outcome.reason, "%s", pl_json_get_string(object, "reason", ""));
  snprintf(out->error, sizeof out->error, "%s", pl_json_get_string(object, "error", ""));
  snprintf(out->ended, sizeof out->ended, "%s", pl_json_get_string(object, "ended", ""));
  out->attempts = pl_json_get_int(object, "attempts", 0);
  return PL_OK;
}

pl_status pl_run_read_result(const char *sweep_dir, uint64_t id, pl_result *out, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL;
  pl_json *document = NULL;
  PL_TRY(pl_run_path(sweep_dir, id, "result.json", &path, e));
  if (!pl_path_exists(path)) {
    st = PL_NOTHING;
    goto out;
  }
  PL_TRY(pl_json_file_read(path, &document, e));
  PL_TRY(fill_result(document, path, out, e));
out:
  pl_json_release(document);
  pl_free(path);
  return st;
}
