/* The runs: the ones behind a row of another table, and a table of all of them. */
#include <math.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/config_view.h"
#include "analysis/key_values.h"

static void show_differences(const pl_key_values *own, const pl_key_values *other, const pl_arm *baseline,
                             pl_str *detail) {
  bool any = false;
  for (size_t i = 0; i < own->count; i++) {
    const pl_key_set *k = &own->sets[i];
    pl_str theirs = {0};
    if (strcmp(k->key, "seed") == 0 || strcmp(k->key, "optimizer.lr") == 0 ||
        pl_key_sets_equal(k, pl_key_values_find(other, k->key)))
      continue;
    bool known = pl_config_text(baseline->config, k->key, &theirs);
    pl_str_printf(detail, "%s%s %s", any ? ", " : "  differs from sync in: ", k->key, k->values[0]);
    if (known) pl_str_printf(detail, " (not %s)", pl_str_text(&theirs));
    if (theirs.failed) detail->failed = true;
    pl_str_free(&theirs);
    any = true;
  }
  if (any) pl_str_append(detail, "\n");
}

static void compare_with_sync(const pl_arm *a, pl_str *detail) {
  pl_key_values own = {0}, other = {0};
  if (pl_key_values_add(&own, a->config, NULL) == PL_OK &&
      pl_key_values_add(&other, a->baseline->config, NULL) == PL_OK)
    show_differences(&own, &other, a->baseline, detail);
  else
    detail->failed = true;
  pl_key_values_free(&own);
  pl_key_values_free(&other);
}

static void show_cell(const char *head, const pl_arm_cell *cell, pl_str *detail) {
  char id[PL_ID_SIZE], lr[32];
  pl_str_printf(detail, "  %s", head);
  if (!isnan(pl_arm_cell_rate(cell))) pl_str_printf(detail, ", lr %s", pl_format_number(cell->lr, lr));
  pl_str_append(detail, ":");
  for (size_t i = 0; i < cell->count; i++) {
    const pl_arm_run *r = &cell->runs[i];
    pl_hash_hex(r->run->id, id);
    pl_str_printf(detail, "%s %s (seed %lld, ", i > 0 ? "," : "", id, (long long)r->seed);
    if (pl_arm_finished(r))
      pl_show_number(r->loss, r->loss, false, detail);
    else
      pl_str_append(detail, pl_run_state_name(r->run->state));
    pl_str_append(detail, ")");
  }
  pl_str_append(detail, "\n");
}

void pl_show_runs(const pl_arm *a, const pl_arm_cell *cell, const pl_arm_cell *sync, pl_str *detail) {
  pl_str_printf(detail, "%s\n", a->name);
  if (a->baseline && a->baseline != a) compare_with_sync(a, detail);
  if (cell) show_cell("runs", cell, detail);
  if (sync && sync != cell) show_cell("synchronous runs", sync, detail);
}

/* What tells this run from the others, and how it went. */
static void show_run(const pl_catalog_run *run, const pl_key_values *keys, pl_str *detail) {
  const char *between = "";
  for (size_t i = 0; run->config && i < keys->count; i++) {
    pl_str value = {0};
    if (keys->sets[i].count < 2 || !pl_config_text(run->config, keys->sets[i].key, &value)) continue;
    pl_str_printf(detail, "%s%s %s", between, keys->sets[i].key, pl_str_text(&value));
    if (value.failed) detail->failed = true;
    pl_str_free(&value);
    between = ", ";
  }
  if (between[0]) pl_str_append(detail, "\n");
  if (!run->has_result) return;
  pl_str_printf(detail, "attempts %lld", (long long)run->result.attempts);
  if (run->result.ended[0]) pl_str_printf(detail, ", ended %s", run->result.ended);
  pl_str_append(detail, "\n");
  if (run->result.outcome.reason[0]) pl_str_printf(detail, "%s\n", run->result.outcome.reason);
  if (run->result.error[0]) pl_str_printf(detail, "%s\n", run->result.error);
}

static double final_loss(const pl_catalog_run *run) {
  double loss = run->has_result ? run->result.outcome.final_val_loss : (double)NAN;
  return isfinite(loss) ? loss : (double)NAN;
}

/* NaN without a result, and where an imported run states none. */
static double steps_of(const pl_catalog_run *run) {
  int64_t steps = run->has_result ? run->result.outcome.steps : 0;
  return !run->has_result || (steps == 0 && run->imported) ? (double)NAN : (double)steps;
}

static double tokens_of(const pl_catalog_run *run) { return run->has_result ? pl_arm_run_tokens(run) : (double)NAN; }

static pl_json *run_json(const pl_catalog_run *run, const char *id) {
  const pl_outcome *o = run->has_result ? &run->result.outcome : NULL;
  pl_json *j = pl_json_new_object();
  return pl_json_keep(j,
                      j && pl_json_set(j, "index", pl_json_new_int((int64_t)run->index)) &&
                          pl_json_set(j, "id", pl_json_new_string(id)) &&
                          pl_json_set(j, "configuration", pl_json_new_string(run->label)) &&
                          pl_json_set(j, "state", pl_json_new_string(pl_run_state_name(run->state))) &&
                          pl_json_set(j, "final_val_loss", pl_json_number_or_null(final_loss(run))) &&
                          pl_json_set(j, "best_val_loss", pl_json_number_or_null(o ? o->best_val_loss : (double)NAN)) &&
                          pl_json_set(j, "steps", pl_json_number_or_null(steps_of(run))) &&
                          pl_json_set(j, "tokens", pl_json_number_or_null(tokens_of(run))) &&
                          pl_json_set(j, "seconds", pl_json_number_or_null(o ? o->seconds : (double)NAN)));
}

static pl_status add_run(const pl_catalog_run *run, const pl_key_values *keys, pl_sheet *s, pl_err *e) {
  char id[PL_ID_SIZE];
  pl_sheet_row *row = NULL;
  pl_hash_hex(run->id, id);
  pl_status st = pl_sheet_add(s, "Runs", "", run_json(run, id), &row, e);
  if (st != PL_OK) return st;
  const pl_outcome *o = run->has_result ? &run->result.outcome : NULL;
  pl_str *c = row->cells;
  double loss = final_loss(run);
  pl_str_printf(&c[0], "%llu", (unsigned long long)run->index);
  pl_str_append(&c[1], id);
  pl_str_append(&c[2], run->label);
  pl_str_append(&c[3], pl_run_state_name(run->state));
  pl_show_number(loss, loss, false, &c[4]);
  pl_show_count(steps_of(run), &c[5]);
  pl_show_count(tokens_of(run), &c[6]);
  pl_show_count(o ? o->seconds : (double)NAN, &c[7]);
  show_run(run, keys, &row->detail);
  return PL_OK;
}

pl_status pl_sheet_fill_runs(const pl_catalog *c, bool all, pl_sheet *s, pl_err *e) {
  static const pl_sheet_column columns[] = {
      {"index", true},          {"id", false},   {"configuration", false}, {"state", false},
      {"final val loss", true}, {"steps", true}, {"tokens", true},         {"seconds", true}};
  pl_status st = PL_OK;
  pl_key_values keys = {0};
  *s = (pl_sheet){.name = "runs", .file = "runs", .columns = columns, .column_count = sizeof columns / sizeof *columns};
  for (size_t i = 0; i < c->count; i++)
    if ((all || c->runs[i].current) && c->runs[i].config) PL_TRY(pl_key_values_add(&keys, c->runs[i].config, e));
  for (size_t i = 0; i < c->count; i++)
    if (all || c->runs[i].current) PL_TRY(add_run(&c->runs[i], &keys, s, e));
  PL_TRY(pl_note(&s->notes, e, "configuration: the values of the sweep's axes."));
  PL_TRY(pl_sheet_check(s, e));
out:
  pl_key_values_free(&keys);
  return st;
}
