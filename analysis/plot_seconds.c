/* Mean loss curves against the time that training took, one panel per optimizer. */
#include <math.h>

#include "analysis/plot_lines.h"
#include "core/base/memory.h"

static const double shown_from = 0.2; /* share of the time whose losses set the vertical range */

/* Adds a run's seconds at the steps of the mean curve to sum[]. *counts: it has them all. Of several attempts none
 * tells the time since the start. */
static pl_status add_seconds(const pl_arm_run *r, const pl_mean_curve *m, double *sum, bool *counts, pl_err *e) {
  pl_curve c = {0};
  size_t at = 0, found = 0;
  pl_status st = pl_arm_run_curve(r, &c, e);
  if (st != PL_OK) return st;
  for (size_t i = 0; i < c.count && at < m->count; i++) {
    const pl_point *p = &c.rows[i].point;
    if (p->step != m->steps[at]) continue;
    if (!isnan(p->values[PL_SERIES_seconds])) found++;
    at++;
  }
  *counts = c.attempts == 1 && found == m->count;
  at = 0;
  for (size_t i = 0; *counts && i < c.count && at < m->count; i++)
    if (c.rows[i].point.step == m->steps[at]) sum[at++] += c.rows[i].point.values[PL_SERIES_seconds];
  pl_curve_free(&c);
  return PL_OK;
}

/* Mean seconds at the steps of the curve, over the *runs finished runs in one attempt. */
static pl_status read_seconds(const pl_arm_cell *cell, const pl_mean_curve *m, double *out, size_t *runs, pl_err *e) {
  *runs = 0;
  for (size_t i = 0; i < cell->count; i++) {
    bool counts = false;
    if (!pl_arm_finished(&cell->runs[i])) continue;
    pl_status st = add_seconds(&cell->runs[i], m, out, &counts, e);
    if (st != PL_OK) return st;
    *runs += counts;
  }
  for (size_t i = 0; i<m->count && * runs> 0; i++) out[i] /= (double)*runs;
  return PL_OK;
}

static pl_status add_arm(const pl_plot_input *in, const pl_arm *a, bool validation, pl_line_panel *panel, pl_plot *p,
                         pl_err *e) {
  const pl_arm_cell *cell = NULL;
  pl_mean_curve m = {0};
  double *seconds = NULL;
  size_t runs = 0;
  pl_status st = PL_OK;
  PL_TRY(pl_plot_arm_curve(in, a, validation, &cell, &m, e));
  if (m.count < 2) goto out;
  PL_TRY(pl_alloc(m.count, sizeof seconds[0], "seconds", &seconds, e));
  PL_TRY(read_seconds(cell, &m, seconds, &runs, e));
  if (runs > 0) pl_line_panel_add(panel, a, cell, runs, "", &m, seconds, shown_from, p);
out:
  pl_free(seconds);
  pl_mean_curve_free(&m);
  return st;
}

static void append_panel(const pl_arm *a, bool validation, const pl_line_panel *panel, pl_str *body) {
  pl_str label = {0};
  pl_plot_loss_label(validation, &label);
  pl_line_panel_draw(panel, a->optimizer, "wall-clock time (s)", pl_str_text(&label), body);
  body->failed |= label.failed;
  pl_str_free(&label);
}

pl_status pl_plot_loss_vs_seconds(const pl_plot_input *in, pl_arm_range group, pl_plot *p, pl_err *e) {
  pl_status st = PL_OK;
  const pl_arm *arms = in->arms->arms;
  const bool validation = pl_plot_has_validation(in, group);
  size_t panels = 0, most_curves = 0;
  pl_str body = {0};
  pl_line_panel panel = pl_line_panel_new();
  p->columns = "seconds,loss";
  for (size_t i = group.first; i < group.last; i = pl_arms_of_optimizer(in->arms, i).last) {
    const pl_arm_range range = pl_arms_of_optimizer(in->arms, i);
    panel = pl_line_panel_new();
    for (size_t j = range.first; j < range.last; j++) PL_TRY(add_arm(in, &arms[j], validation, &panel, p, e));
    if (panel.curves > 0) {
      append_panel(&arms[i], validation, &panel, &body);
      panels++;
    }
    if (panel.curves > most_curves) most_curves = panel.curves;
    pl_line_panel_free(&panel);
  }
  if (panels > 0)
    pl_plot_panels(p, "Loss against wall-clock time, mean over seeds", arms[group.first].group, panels, most_curves,
                   &body);
  pl_str_append(
      &p->caption,
      "Loss against wall-clock time, both the mean over the seeds (n in the legends); time of runs in one attempt, "
      "validation included; delay that is simulated in one process takes no less time");
  pl_plot_smoothing_text(validation, &p->caption);
  p->script.failed |= body.failed;
out:
  pl_line_panel_free(&panel);
  pl_str_free(&body);
  return st;
}
