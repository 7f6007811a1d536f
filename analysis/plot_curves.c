/* Mean loss curves with the band of their seeds: for each optimizer a panel of all updates and one of the last. */
#include <math.h>
#include <string.h>

#include "analysis/mean_curve.h"
#include "analysis/plots.h"
#include "core/base/memory.h"

enum { MOST_POINTS = 600, LEAST_VALIDATIONS = 10 };
static const double smoothing = 0.95;
static const double shown_from = 0.2; /* share of the steps whose losses set the vertical range */
static const double end_from = 0.8;   /* where the panel of the last updates begins */

/* The vertical range of what is shown from some step on. */
typedef struct window {
  double from; /* share of the steps */
  double low, high;
} window;

typedef struct curve_panel {
  pl_str bands, lines, end_lines; /* of the plot commands; the second panel has no legend */
  size_t curves, least_seeds, most_seeds;
  double last; /* step */
  window whole, end;
} curve_panel;

static void curve_panel_free(curve_panel *p) {
  pl_str_free(&p->bands);
  pl_str_free(&p->lines);
  pl_str_free(&p->end_lines);
}

/* The learning rate at which an arm is drawn: the fixed one, where there is one, else its best. */
static const pl_arm_cell *drawn_cell(const pl_plot_input *in, const pl_arm *a) {
  const char *key = in->options->at_key;
  const pl_arm_cell *fixed = key && strcmp(key, "optimizer.lr") == 0 ? pl_arm_cell_at(a, in->options->at_value) : NULL;
  return fixed ? fixed : a->best;
}

bool pl_plot_has_validation(const pl_plot_input *in, pl_arm_range range) {
  for (size_t i = range.first; i < range.last; i++) {
    const pl_train_config *t = &in->arms->arms[i].config->train;
    if (t->val_every <= 0 || t->steps / t->val_every < LEAST_VALIDATIONS) return false;
  }
  return true;
}

/* The lowest value counts wherever it is, the highest one from where the window begins. */
static void widen(window *w, const pl_mean_curve *m) {
  double from = w->from * (double)m->steps[m->count - 1];
  bool band = m->seeds > 1;
  for (size_t i = 0; i < m->count; i++) {
    bool inside = (double)m->steps[i] >= from;
    if (inside || w->from < end_from) w->low = fmin(w->low, band ? m->low[i] : m->values[i]);
    if (inside) w->high = fmax(w->high, band ? m->high[i] : m->values[i]);
  }
}

static size_t add_points(const pl_mean_curve *m, const char *series, pl_plot *p) {
  size_t stride = m->count / MOST_POINTS + 1;
  pl_plot_series(p, series);
  for (size_t i = 0; i < m->count; i++) {
    double point[] = {(double)m->steps[i], m->values[i], m->low[i], m->high[i]};
    if (i % stride == 0 || i + 1 == m->count) pl_plot_numbers(p, point, 4);
  }
  return pl_plot_end_block(p);
}

static void append_line(const pl_arm *a, const char *file, size_t block, const char *label, pl_str *lines) {
  pl_str_printf(lines, ", \\\n  '%s.dat' index %zu using 1:2 with lines lw 2", file, block);
  pl_plot_arm_style(a, lines);
  pl_str_append(lines, label ? " title " : " notitle");
  if (label) pl_plot_quote(lines, label);
}

static void add_curve(const pl_arm *a, const pl_arm_cell *cell, const pl_mean_curve *m, curve_panel *panel,
                      pl_plot *p) {
  pl_str label = {0}, series = {0};
  pl_plot_cell_names(a, cell, m->seeds, &series, &label);
  size_t block = add_points(m, pl_str_text(&series), p);
  if (m->seeds > 1)
    pl_str_printf(&panel->bands,
                  ", \\\n  '%s.dat' index %zu using 1:3:4 with filledcurves fs transparent solid 0.15 noborder lc rgb "
                  "'%s' notitle",
                  p->name, block, pl_plot_color(a->delay_rank));
  append_line(a, p->name, block, pl_str_text(&label), &panel->lines);
  append_line(a, p->name, block, NULL, &panel->end_lines);
  widen(&panel->whole, m);
  widen(&panel->end, m);
  panel->last = fmax(panel->last, (double)m->steps[m->count - 1]);
  if (m->seeds < panel->least_seeds) panel->least_seeds = m->seeds;
  if (m->seeds > panel->most_seeds) panel->most_seeds = m->seeds;
  panel->curves++;
  pl_str_free(&label);
  pl_str_free(&series);
}

pl_status pl_plot_arm_curve(const pl_plot_input *in, const pl_arm *a, bool validation, const pl_arm_cell **cell,
                            pl_mean_curve *out, pl_err *e) {
  *out = (pl_mean_curve){0};
  *cell = drawn_cell(in, a);
  if (!*cell) return PL_OK;
  return pl_mean_curve_read_smooth(*cell, validation ? PL_SERIES_val_loss : PL_SERIES_train_loss,
                                   validation ? 0 : smoothing, out, e);
}

static pl_status add_arm(const pl_plot_input *in, const pl_arm *a, bool validation, curve_panel *panel, pl_plot *p,
                         pl_err *e) {
  const pl_arm_cell *cell = NULL;
  pl_mean_curve m = {0};
  pl_status st = pl_plot_arm_curve(in, a, validation, &cell, &m, e);
  if (st != PL_OK) return st;
  if (m.count > 1) add_curve(a, cell, &m, panel, p);
  pl_mean_curve_free(&m);
  return PL_OK;
}

void pl_plot_loss_label(bool validation, pl_str *script) {
  if (validation)
    pl_plot_quote(script, "validation loss (nats/token)");
  else
    pl_str_printf(script, "'train loss, EMA %g (nats/token)'", smoothing);
}

void pl_plot_smoothing_text(bool validation, pl_str *caption) {
  if (!validation)
    pl_str_printf(caption, "; train loss smoothed by a debiased exponential moving average, weight %g", smoothing);
}

static void append_panel(const pl_arm *a, bool validation, const curve_panel *panel, bool end, pl_str *body) {
  const pl_str *lines = end ? &panel->end_lines : &panel->lines;
  const window *w = end ? &panel->end : &panel->whole;
  pl_str title = {0};
  pl_str_printf(&title, "%s%s", a->optimizer, end ? ", the last fifth" : "");
  pl_str_append(body, "set title ");
  pl_plot_quote(body, pl_str_text(&title));
  pl_str_append(body, "\nset xlabel \"updates\\n \" offset 0,0.6\nset ylabel ");
  pl_plot_loss_label(validation, body);
  pl_str_append(body, "\n");
  pl_plot_vertical(body, w->low, w->high, 0.05);
  pl_str_printf(body, "set xrange [%.9g:%.9g]\nplot NaN notitle%s%s\n", end ? end_from * panel->last : 0, panel->last,
                pl_str_text(&panel->bands), pl_str_text(lines));
  if (title.failed || lines->failed || panel->bands.failed) body->failed = true;
  pl_str_free(&title);
}

/* The caption tells what is drawn, and of how many seeds. */
static void append_caption(bool validation, size_t least, size_t most, pl_str *out) {
  pl_str_append(out, "Loss curves, mean over the seeds that finished (");
  pl_plot_count_text(least, most, out);
  pl_str_append(out, "); bands reach from the lowest seed to the highest; beside each, the last fifth of the updates");
  pl_plot_smoothing_text(validation, out);
}

/* Room below every panel for the legend that only the left ones have. */
static void append_margin(size_t legend_rows, pl_str *out) {
  pl_str_printf(out, "set bmargin %.3g\n", 3 + 0.95 * (double)legend_rows);
}

pl_status pl_plot_loss_curves(const pl_plot_input *in, pl_arm_range group, pl_plot *p, pl_err *e) {
  pl_status st = PL_OK;
  const pl_arm *arms = in->arms->arms;
  bool validation = pl_plot_has_validation(in, group);
  size_t optimizers = 0, most_curves = 0, least_seeds = SIZE_MAX, most_seeds = 0;
  pl_str body = {0}, margin = {0};
  curve_panel panel = {0};
  p->columns = "updates,loss,lowest,highest";
  for (size_t i = group.first; i < group.last; i = pl_arms_of_optimizer(in->arms, i).last) {
    pl_arm_range range = pl_arms_of_optimizer(in->arms, i);
    panel = (curve_panel){.least_seeds = least_seeds,
                          .most_seeds = most_seeds,
                          .whole = {shown_from, INFINITY, -INFINITY},
                          .end = {end_from, INFINITY, -INFINITY}};
    for (size_t j = range.first; j < range.last; j++) PL_TRY(add_arm(in, &arms[j], validation, &panel, p, e));
    if (panel.curves > 0) {
      append_panel(&arms[i], validation, &panel, false, &body);
      append_panel(&arms[i], validation, &panel, true, &body);
      optimizers++;
    }
    if (panel.curves > most_curves) most_curves = panel.curves;
    least_seeds = panel.least_seeds;
    most_seeds = panel.most_seeds;
    curve_panel_free(&panel);
  }
  append_margin(most_curves, &margin);
  pl_str_append(&margin, pl_str_text(&body));
  if (optimizers > 0)
    pl_plot_panel_rows(p, "Loss curves, mean over seeds", arms[group.first].group, 2 * optimizers,
                       optimizers > 4 ? 4 : 2, most_curves, &margin);
  append_caption(validation, least_seeds, most_seeds, &p->caption);
  if (body.failed) p->script.failed = true;
out:
  curve_panel_free(&panel);
  pl_str_free(&body);
  pl_str_free(&margin);
  return st;
}
