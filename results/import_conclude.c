/* The outcome of a run that is imported. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/hash.h"
#include "results/figures.h"
#include "results/import_run.h"

/* Without tokens in the files they follow from the batch, where it is stated; else they are 0. */
static void fill_tokens(pl_import_run *run) {
  const pl_run_config *c = pl_imported_config(run->imported);
  bool stated = pl_params_find(c->tables->train, "batch_tokens") != SIZE_MAX;
  int64_t last = 0;
  for (size_t i = 0; i < run->table.count; i++) {
    pl_point *p = &run->table.rows[i].point;
    int64_t follows = 0;
    if (stated && __builtin_mul_overflow(p->step, c->train.batch_tokens, &follows)) follows = INT64_MAX;
    if (p->tokens < 0) p->tokens = run->table.found[PL_IMPORT_TOKENS] ? last : follows;
    last = p->tokens;
  }
}

static void note_validation(pl_outcome *o, const pl_point *p) {
  double loss = p->values[PL_SERIES_val_loss];
  if (p->step == 0) o->initial_val_loss = loss;
  o->final_val_loss = loss;
  o->best_val_loss = fmin(o->best_val_loss, loss);
}

static void read_curve(pl_import_run *run) {
  pl_outcome *o = &run->outcome;
  *o = pl_outcome_nothing;
  o->end = PL_END_DONE;
  for (size_t i = 0; i < run->table.count; i++) {
    const pl_point *p = &run->table.rows[i].point;
    o->steps = p->step;
    o->tokens = p->tokens;
    if (!isnan(p->values[PL_SERIES_val_loss])) note_validation(o, p);
    if (!isnan(p->values[PL_SERIES_train_loss])) o->final_train_loss = p->values[PL_SERIES_train_loss];
    if (!isnan(p->values[PL_SERIES_seconds])) o->seconds = p->values[PL_SERIES_seconds];
  }
}

/* Figures that are stated win over those of the curve. */
static pl_status take_figure(pl_outcome *o, const char *key, const pl_json *value, const char *where, pl_err *e) {
  char shown[80];
  size_t i = 0;
  while (i < PL_FIGURES && strcmp(pl_figures[i].name, key) != 0) i++;
  if (i == PL_FIGURES) {
    pl_str names = {0};
    for (size_t k = 0; k < PL_FIGURES; k++) pl_str_printf(&names, "%s, ", pl_figures[k].name);
    pl_fail(e, PL_BAD, "%s.final: unknown figure \"%s\"; allowed: %sstate, reason", where, key, pl_str_text(&names));
    pl_str_free(&names);
    return PL_BAD;
  }
  const pl_figure *f = &pl_figures[i];
  pl_json_kind kind = pl_json_kind_of(value);
  const double number = pl_json_number(value);
  const int64_t integer = kind == PL_JSON_INT ? pl_json_int(value) : (int64_t)(fabs(number) < 0x1p53 ? number : 0);
  bool numeric = kind == PL_JSON_INT || kind == PL_JSON_REAL || (kind == PL_JSON_STRING && !f->integer && number != 0);
  if (!numeric || (f->integer && (double)integer != number))
    return pl_fail(e, PL_BAD, "%s.final.%s: must be a %snumber, not %s", where, key, f->integer ? "whole " : "",
                   pl_json_show(value, shown));
  memcpy((char *)o + f->offset, f->integer ? (const void *)&integer : (const void *)&number, 8);
  return PL_OK;
}

static pl_status take_state(pl_import_run *run, const pl_json *value, const char *where, pl_err *e) {
  const char *word = pl_json_string(value);
  char shown[80];
  if (word && strcmp(word, "diverged") == 0)
    run->state = PL_RUN_DIVERGED;
  else if (!word || strcmp(word, "done") != 0)
    return pl_fail(e, PL_BAD, "%s.final.state: saw %s; allowed: done, diverged", where, pl_json_show(value, shown));
  return PL_OK;
}

static pl_status take_final(pl_import_run *run, const pl_json *final, const char *where, pl_err *e) {
  pl_status st = PL_OK;
  if (final && pl_json_kind_of(final) != PL_JSON_OBJECT)
    return pl_fail(e, PL_BAD, "%s.final: must be an object", where);
  for (void *it = pl_json_iter(final); it; it = pl_json_iter_next(final, it)) {
    const char *key = pl_json_iter_key(it);
    const pl_json *value = pl_json_iter_value(it);
    if (strcmp(key, "state") == 0)
      PL_TRY(take_state(run, value, where, e));
    else if (strcmp(key, "reason") == 0)
      snprintf(run->outcome.reason, sizeof run->outcome.reason, "%s",
               pl_json_string(value) ? pl_json_string(value) : "");
    else
      PL_TRY(take_figure(&run->outcome, key, value, where, e));
  }
out:
  return st;
}

/* A loss that was written as NaN or infinity and never became a number again. */
static bool was_lost(const pl_import_run *run) {
  for (size_t i = run->table.count; i-- > 0;)
    if (!isnan(run->table.rows[i].point.values[PL_SERIES_val_loss]))
      return run->table.bad_step >= run->table.rows[i].point.step;
  return run->table.bad_step >= 0;
}

static pl_status judge(pl_import_run *run, bool stated, const char *where, pl_err *e) {
  pl_outcome *o = &run->outcome;
  bool lost = !stated && was_lost(run);
  if (lost)
    snprintf(o->reason, sizeof o->reason, "the loss is not finite at step %lld", (long long)run->table.bad_step);
  else if (o->final_val_loss > o->initial_val_loss)
    snprintf(o->reason, sizeof o->reason, "the final validation loss is above the initial one");
  if (lost) o->final_val_loss = NAN;
  if (lost || o->final_val_loss > o->initial_val_loss || isinf(o->final_val_loss)) run->state = PL_RUN_DIVERGED;
  if (run->state != PL_RUN_DIVERGED && isnan(o->final_val_loss))
    return pl_fail(e, PL_BAD, "%s: has no validation loss; allowed: a column val/loss, or final_val_loss of a manifest",
                   where);
  o->end = run->state == PL_RUN_DIVERGED ? PL_END_DIVERGED : PL_END_DONE;
  return PL_OK;
}

static uint64_t join_number(uint64_t hash, const char *name, double value) {
  uint64_t bits;
  if (isnan(value)) return hash;
  memcpy(&bits, &value, sizeof bits);
  return pl_hash_join(hash, pl_hash_join(pl_hash_text(name), bits));
}

/* By names, and of what there is alone: figures and series that later versions add change nothing. */
static uint64_t hash_figures(const pl_import_run *run) {
  uint64_t hash = pl_hash_text(pl_run_state_name(run->state));
  for (size_t i = 0; i < PL_FIGURES; i++) {
    const pl_figure *f = &pl_figures[i];
    double value = f->integer ? (double)pl_figure_int(f, &run->outcome) : pl_figure_number(f, &run->outcome);
    hash = join_number(hash, f->name, value);
  }
  for (size_t i = 0; i < run->table.count; i++) {
    const pl_point *p = &run->table.rows[i].point;
    hash = join_number(join_number(hash, "step", (double)p->step), "tokens", (double)p->tokens);
    for (size_t k = 0; k < PL_SERIES_COUNT; k++) hash = join_number(hash, pl_series_names[k], p->values[k]);
  }
  return hash;
}

/* What plots and tables need to know of the curve without reading it. */
static bool add_hints(pl_import_run *run) {
  size_t validations = 0;
  for (size_t i = 0; i < run->table.count; i++)
    validations += run->table.rows[i].point.step > 0 && !isnan(run->table.rows[i].point.values[PL_SERIES_val_loss]);
  int64_t steps = run->outcome.steps, every = validations > 0 ? steps / (int64_t)validations : 0;
  pl_json *hints = pl_json_new_object();
  bool ok =
      pl_json_set(hints, "steps", pl_json_new_int(steps)) && pl_json_set(hints, "val_every", pl_json_new_int(every));
  return pl_json_set(run->document, PL_IMPORTED_KEY, hints) && ok;
}

pl_status pl_import_conclude(pl_import_run *run, const pl_json *final, const char *where, pl_err *e) {
  run->state = PL_RUN_DONE;
  fill_tokens(run);
  read_curve(run);
  pl_status st = take_final(run, final, where, e);
  if (st != PL_OK) return st;
  st = judge(run, pl_json_get(final, "final_val_loss") != NULL, where, e);
  if (st != PL_OK) return st;
  run->figures = hash_figures(run);
  return add_hints(run) ? PL_OK : pl_fail(e, PL_FAIL, "%s: out of memory", where);
}

pl_json *pl_import_provenance(const pl_import_run *run) {
  char hex[PL_ID_SIZE];
  pl_json *object = pl_json_new_object();
  pl_hash_hex(run->figures, hex);
  return pl_json_keep(object, object && pl_json_set(object, "sources", pl_json_retain(run->sources)) &&
                                  pl_json_set(object, "figures", pl_json_new_string(hex)));
}
