/* Drift and gradient cosine of the delayed arms against updates: for each optimizer a panel of each that was logged. */
#include <math.h>

#include "analysis/plots.h"

enum { MOST_POINTS = 600 };

static const struct {
  pl_series series;
  const char *title, *label;
} kinds[] = {{PL_SERIES_gradient_cos, "gradient cosine", "cos(stale, fresh gradient)"},
             {PL_SERIES_drift, "drift", "|x_t - x_s| / |x_t|"}};
enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct mechanism_panel {
  pl_str lines; /* of the plot command */
  size_t curves;
  double low, high, last;
} mechanism_panel;

static void add_curve(const pl_arm *a, const pl_mean_curve *m, const char *kind, mechanism_panel *panel, pl_plot *p) {
  const size_t stride = m->count / MOST_POINTS + 1;
  pl_str label = {0}, series = {0};
  pl_plot_arm_label(a, &label);
  pl_str_printf(&series, "%s of %s, %s, lr %.4g", kind, a->optimizer, pl_str_text(&label), a->best->lr);
  pl_str_printf(&label, " (lr %.4g, n=%zu)", a->best->lr, m->seeds);
  pl_plot_series(p, pl_str_text(&series));
  for (size_t i = 0; i < m->count; i++) {
    const double point[] = {(double)m->steps[i], m->values[i]};
    if (i % stride == 0 || i + 1 == m->count) pl_plot_numbers(p, point, 2);
    panel->low = fmin(panel->low, m->values[i]);
    panel->high = fmax(panel->high, m->values[i]);
  }
  panel->last = fmax(panel->last, (double)m->steps[m->count - 1]);
  pl_str_printf(&panel->lines, ", \\\n  '%s.dat' index %zu using 1:2 with lines lw 2", p->name, pl_plot_end_block(p));
  pl_plot_arm_style(a, &panel->lines);
  pl_str_append(&panel->lines, " title ");
  pl_plot_quote(&panel->lines, pl_str_text(&label));
  panel->curves++;
  panel->lines.failed |= label.failed || series.failed;
  pl_str_free(&series);
  pl_str_free(&label);
}

static pl_status add_arm(const pl_arm *a, size_t kind, mechanism_panel *panel, pl_plot *p, pl_err *e) {
  pl_mean_curve m = {0};
  if (a->sync || !a->best) return PL_OK;
  pl_status st = pl_mean_curve_read(a->best, kinds[kind].series, &m, e);
  if (st != PL_OK) return st;
  if (m.count > 1) add_curve(a, &m, kinds[kind].title, panel, p);
  pl_mean_curve_free(&m);
  return PL_OK;
}

static void append_panel(const pl_arm *a, size_t kind, const mechanism_panel *panel, pl_str *body) {
  pl_str title = {0};
  pl_str_printf(&title, "%s, %s", a->optimizer, kinds[kind].title);
  pl_str_append(body, "set title ");
  pl_plot_quote(body, pl_str_text(&title));
  pl_str_append(body, "\nset xlabel \"updates\\n \" offset 0,0.6\nset ylabel ");
  pl_plot_quote(body, kinds[kind].label);
  pl_str_append(body, "\n");
  pl_plot_vertical(body, panel->low, panel->high, 0.05);
  pl_str_printf(body, "set xrange [0:%.9g]\nplot NaN notitle%s\n", panel->last, pl_str_text(&panel->lines));
  body->failed |= title.failed || panel->lines.failed;
  pl_str_free(&title);
}

pl_status pl_plot_mechanism(const pl_plot_input *in, pl_arm_range group, pl_plot *p, pl_err *e) {
  pl_status st = PL_OK;
  const pl_arm *arms = in->arms->arms;
  size_t panels = 0, most_curves = 0;
  pl_str body = {0};
  mechanism_panel panel = {0};
  p->columns = "updates,value";
  for (size_t i = group.first; i < group.last; i = pl_arms_of_optimizer(in->arms, i).last) {
    const pl_arm_range range = pl_arms_of_optimizer(in->arms, i);
    for (size_t kind = 0; kind < KINDS; kind++) {
      panel = (mechanism_panel){.low = INFINITY, .high = -INFINITY};
      for (size_t j = range.first; j < range.last; j++) PL_TRY(add_arm(&arms[j], kind, &panel, p, e));
      if (panel.curves > 0) {
        append_panel(&arms[i], kind, &panel, &body);
        panels++;
      }
      if (panel.curves > most_curves) most_curves = panel.curves;
      pl_str_free(&panel.lines);
    }
  }
  if (panels > 0)
    pl_plot_panel_rows(p, "What delay does, mean over seeds", arms[group.first].group, panels, panels > 1 ? 2 : 1,
                       most_curves, &body);
  pl_str_append(&p->caption,
                "Cosine between the gradient that an update used and that of its batch at the newest weights, and how "
                "far the weights went since the gradient read them, mean over the seeds that finished (n in the "
                "legends), each arm at its own best learning rate; without delay they are 1 and 0");
  p->script.failed |= body.failed;
out:
  pl_str_free(&panel.lines);
  pl_str_free(&body);
  return st;
}
