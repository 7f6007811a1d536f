/* What delay does to gradients and corrections to displacements, as a sheet with columns for what was logged. */
#include "analysis/analysis.h"
#include "core/base/memory.h"

enum { OPTIMIZER, DELAY, CORRECTION, LR, RUNS, FIRST_MECHANISM };

static const pl_sheet_column leading[FIRST_MECHANISM] = {
    {"optimizer", false}, {"delay", false}, {"correction", false}, {"lr", true}, {"n", true}};

static const struct {
  const char *heading, *name;
} kinds[PL_MECHANISMS] = {[PL_MECHANISM_DRIFT] = {"drift", "drift"},
                          [PL_MECHANISM_DISPLACEMENT] = {"displacement ratio", "displacement_ratio"},
                          [PL_MECHANISM_COSINE] = {"gradient cos", "gradient_cos"},
                          [PL_MECHANISM_CLIPPED] = {"clipped", "clipped"}};

static pl_json *mechanism_json(const pl_mechanism_table *t, const pl_mechanism_row *r) {
  pl_json *o = pl_json_new_object();
  bool ok = pl_json_set_arm(o, r->arm) &&
            pl_json_set(o, "lr", pl_json_number_or_null(pl_arm_cell_rate(r->arm->best))) &&
            pl_json_set(o, "runs", pl_json_count(r->runs));
  for (pl_mechanism m = 0; ok && m < PL_MECHANISMS; m++)
    if (t->logged[m]) ok = pl_json_set(o, kinds[m].name, pl_json_estimate(&r->of[m]));
  return pl_json_keep(o, ok);
}

static void show_mean(pl_mechanism m, const pl_estimate *x, pl_str *out) {
  if (x->n == 0)
    pl_str_append(out, "-");
  else if (m == PL_MECHANISM_CLIPPED)
    pl_str_printf(out, "%.1f%%", 100 * x->mean);
  else
    pl_str_printf(out, m == PL_MECHANISM_DRIFT ? "%.3g" : "%.4f", x->mean);
}

static void show_mechanism(const pl_mechanism_table *t, const pl_mechanism_row *r, pl_str *c) {
  size_t column = FIRST_MECHANISM;
  pl_show_arm(r->arm, c);
  pl_show_rate(pl_arm_cell_rate(r->arm->best), &c[LR]);
  pl_str_printf(&c[RUNS], "%zu", r->runs);
  for (pl_mechanism m = 0; m < PL_MECHANISMS; m++)
    if (t->logged[m]) show_mean(m, &r->of[m], &c[column++]);
}

static pl_status make_columns(const pl_mechanism_table *t, pl_sheet *s, pl_sheet_column **columns, pl_err *e) {
  pl_status st = pl_alloc(FIRST_MECHANISM + PL_MECHANISMS, sizeof **columns, "the table of mechanisms", columns, e);
  if (st != PL_OK) return st;
  while (s->column_count < FIRST_MECHANISM) {
    (*columns)[s->column_count] = leading[s->column_count];
    s->column_count++;
  }
  for (pl_mechanism m = 0; m < PL_MECHANISMS; m++)
    if (t->logged[m]) (*columns)[s->column_count++] = (pl_sheet_column){kinds[m].heading, true};
  s->columns = *columns;
  return PL_OK;
}

pl_status pl_sheet_fill_mechanism(const pl_analysis *a, pl_sheet *s, pl_sheet_column **columns, pl_err *e) {
  const pl_mechanism_table *t = &a->mechanism;
  pl_status st = PL_OK;
  *s = (pl_sheet){.name = "mechanism", .file = "mechanism"};
  PL_TRY(make_columns(t, s, columns, e));
  for (size_t i = 0; i < t->count; i++) {
    const pl_mechanism_row *r = &t->rows[i];
    pl_sheet_row *row = NULL;
    PL_TRY(pl_sheet_add(s, "What delay does, each arm at its own best learning rate", r->arm->group,
                        mechanism_json(t, r), &row, e));
    show_mechanism(t, r, row->cells);
    pl_show_runs(r->arm, r->arm->best, NULL, &row->detail);
  }
  PL_TRY(
      pl_note(&s->notes, e,
              "means over the logged points of the second half of each run, then over the n runs that finished. "
              "drift: |x_t - x_s| / |x_t|, how far the weights went since the gradient read them; displacement ratio: "
              "|v_t| / |u_t|, after corrections over before."));
  PL_TRY(pl_note(&s->notes, e,
                 "gradient cos: between the gradient that an update used and that of its batch at the newest weights, "
                 "where train.probe_every asked for it; clipped: share of the logged updates."));
out:
  return st;
}
