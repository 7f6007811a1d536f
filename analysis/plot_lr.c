/* Final loss against learning rate, one panel per optimizer. */
#include <math.h>
#include <string.h>

#include "analysis/plots.h"
#include "core/base/memory.h"

enum { MOST_TICS = 6, MOST_RATES = 64 };

/* Lowest and highest values met in a panel. */
typedef struct lr_bounds {
  double lr_low, lr_high, low, high;
  bool diverged; /* some run did */
} lr_bounds;

static lr_bounds bounds_of(const pl_arms *a, pl_arm_range range) {
  lr_bounds b = {INFINITY, -INFINITY, INFINITY, -INFINITY, false};
  for (size_t i = range.first; i < range.last; i++)
    for (size_t j = 0; j < a->arms[i].cell_count; j++) {
      const pl_arm_cell *c = &a->arms[i].cells[j];
      for (size_t k = 0; k < c->count; k++) {
        if (isnan(c->runs[k].loss) || isnan(pl_arm_cell_rate(c))) continue;
        b.lr_low = fmin(b.lr_low, c->lr);
        b.lr_high = fmax(b.lr_high, c->lr);
        b.diverged = b.diverged || !pl_arm_finished(&c->runs[k]);
        if (!pl_arm_finished(&c->runs[k])) continue;
        b.low = fmin(b.low, c->runs[k].loss);
        b.high = fmax(b.high, c->runs[k].loss);
      }
    }
  return b;
}

/* A block with the mean over the common seeds at each learning rate. */
static bool add_means(const pl_arm *a, int64_t *seeds, pl_plot *p) {
  size_t common = pl_arm_common_seeds(a, seeds), bad = 0;
  bool any = false;
  for (size_t i = 0; i < a->cell_count; i++) {
    double point[] = {a->cells[i].lr, pl_arm_cell_mean(&a->cells[i], seeds, common, &bad)};
    if (isnan(point[1])) continue;
    pl_plot_numbers(p, point, 2);
    any = true;
  }
  return any;
}

/* A block with one point per run: those that finished, or the others at the height `top`. */
static bool add_runs(const pl_arm *a, bool finished, double top, pl_plot *p) {
  bool any = false;
  for (size_t i = 0; i < a->cell_count; i++)
    for (size_t k = 0; k < a->cells[i].count; k++) {
      const pl_arm_run *r = &a->cells[i].runs[k];
      if (isnan(r->loss) || pl_arm_finished(r) != finished) continue;
      double point[] = {a->cells[i].lr, finished ? r->loss : top};
      pl_plot_numbers(p, point, 2);
      any = true;
    }
  return any;
}

/* A block with the learning rate that stands for the arm. */
static bool add_best(const pl_arm *a, int64_t *seeds, pl_plot *p) {
  size_t common = pl_arm_common_seeds(a, seeds), bad = 0;
  double point[] = {a->best ? a->best->lr : 0, a->best ? pl_arm_cell_mean(a->best, seeds, common, &bad) : (double)NAN};
  if (isnan(point[1])) return false;
  pl_plot_numbers(p, point, 2);
  return true;
}

static void name_series(const pl_arm *a, const char *what, pl_plot *p) {
  pl_str name = {0};
  pl_str_printf(&name, "%s, ", a->optimizer);
  pl_plot_arm_label(a, &name);
  pl_str_printf(&name, ": %s", what);
  pl_plot_series(p, pl_str_text(&name));
  if (name.failed) p->series.failed = true;
  pl_str_free(&name);
}

static void add_command(const pl_arm *a, const char *with, bool titled, pl_plot *p, pl_str *lines) {
  pl_str label = {0};
  pl_str_printf(lines, "%s'%s.dat' index %zu using 1:2 with %s", lines->length ? ", \\\n  " : "", p->name,
                pl_plot_end_block(p), with);
  pl_plot_arm_style(a, lines);
  if (titled) pl_plot_arm_label(a, &label);
  pl_str_append(lines, titled ? " title " : " notitle");
  if (titled) pl_plot_quote(lines, pl_str_text(&label));
  pl_str_free(&label);
}

/* Keeps tics[count] ascending and each once; false when there is no room. */
static bool add_tic(double *tics, size_t *count, double lr) {
  size_t at = 0;
  while (at < *count && tics[at] < lr) at++;
  if (at < *count && tics[at] == lr) return true;
  if (*count == MOST_RATES) return false;
  memmove(&tics[at + 1], &tics[at], (*count - at) * sizeof tics[0]);
  tics[at] = lr;
  ++*count;
  return true;
}

/* Tics at the learning rates themselves, at every second or so where they are many. */
static void append_tics(const pl_arms *a, pl_arm_range range, pl_str *body) {
  double tics[MOST_RATES];
  size_t count = 0;
  bool room = true;
  for (size_t i = range.first; i < range.last; i++)
    for (size_t j = 0; j < a->arms[i].cell_count; j++) {
      double lr = pl_arm_cell_rate(&a->arms[i].cells[j]);
      room = room && (isnan(lr) || add_tic(tics, &count, lr));
    }
  if (!room) {
    pl_str_append(body, "set xtics autofreq\n");
    return;
  }
  size_t stride = (count + MOST_TICS - 1) / MOST_TICS;
  pl_str_append(body, "set xtics (");
  for (size_t k = 0; k < count; k += stride) pl_str_printf(body, "%s'%.3g' %.17g", k > 0 ? ", " : "", tics[k], tics[k]);
  pl_str_append(body, ")\n");
}

static void append_panel(const pl_arms *a, pl_arm_range range, const lr_bounds *b, double top, const pl_str *lines,
                         pl_str *body) {
  pl_str_append(body, "set title ");
  pl_plot_quote(body, a->arms[range.first].optimizer);
  pl_str_append(
      body, "\nset xlabel \"peak learning rate\\n \" offset 0,0.6\nset ylabel 'final validation loss (nats/token)'\n"
            "set logscale x 2\nset format x '%g'\n");
  append_tics(a, range, body);
  pl_plot_vertical(body, b->low, top, 0.08);
  pl_str_printf(body, "set xrange [%.9g:%.9g]\nplot %s\n", b->lr_low / 1.3, b->lr_high * 1.3, pl_str_text(lines));
}

/* A height above the losses: `share` of their range above the highest. */
static double above(const lr_bounds *b, double share) {
  if (pl_plot_spans_decades(b->low, b->high)) return b->high * pow(b->high / b->low, share);
  return b->high + share * (b->high > b->low ? b->high - b->low : 1);
}

static bool add_panel(const pl_plot_input *in, pl_arm_range range, int64_t *seeds, pl_plot *p, pl_str *body) {
  lr_bounds b = bounds_of(in->arms, range);
  const double lowest = 0.1, step = fmin(0.04, 0.3 / (double)(range.last - range.first));
  double mark = lowest; /* each arm's diverged runs have a height of their own, so that none hides another */
  pl_str lines = {0};
  if (!(b.low <= b.high) || !(b.lr_low < b.lr_high)) return false; /* one rate is no curve */
  for (size_t i = range.first; i < range.last; i++) {
    const pl_arm *a = &in->arms->arms[i];
    name_series(a, "mean", p);
    if (add_means(a, seeds, p)) add_command(a, "linespoints lw 2 pt 7 ps 0.7", true, p, &lines);
    name_series(a, "run", p);
    if (add_runs(a, true, 0, p)) add_command(a, "points pt 6 ps 0.5", false, p, &lines);
    name_series(a, "best rate", p);
    if (add_best(a, seeds, p)) add_command(a, "points pt 12 ps 2.2 lw 2", false, p, &lines);
    name_series(a, "diverged, at this height", p);
    if (!add_runs(a, false, above(&b, mark), p)) continue;
    add_command(a, "points pt 2 ps 1.2 lw 2", false, p, &lines);
    mark += step;
  }
  pl_str_append(&lines, ", \\\n  NaN with points pt 12 ps 2.2 lw 2 lc rgb '#444444' title 'best rate'");
  if (b.diverged) pl_str_append(&lines, ", \\\n  NaN with points pt 2 ps 1.2 lw 2 lc rgb '#444444' title 'diverged'");
  append_panel(in->arms, range, &b, above(&b, fmax(lowest, mark - step)), &lines, body);
  if (lines.failed) body->failed = true;
  pl_str_free(&lines);
  return true;
}

/* Over how many seeds the lines are. */
static void count_seeds(const pl_arms *a, pl_arm_range group, int64_t *seeds, pl_str *out) {
  size_t least = SIZE_MAX, most = 0;
  for (size_t i = group.first; i < group.last; i++) {
    size_t n = pl_arm_common_seeds(&a->arms[i], seeds);
    if (n < least) least = n;
    if (n > most) most = n;
  }
  pl_plot_count_text(least, most, out);
}

pl_status pl_plot_loss_vs_lr(const pl_plot_input *in, pl_arm_range group, pl_plot *p, pl_err *e) {
  size_t panels = 0, most_arms = 0;
  int64_t *seeds = NULL;
  pl_str body = {0};
  p->columns = "learning rate,loss";
  pl_status st = pl_alloc(in->arms->max_runs, sizeof seeds[0], "seeds", &seeds, e);
  if (st != PL_OK) return st;
  for (size_t i = group.first; i < group.last; i = pl_arms_of_optimizer(in->arms, i).last) {
    pl_arm_range range = pl_arms_of_optimizer(in->arms, i);
    if (!add_panel(in, range, seeds, p, &body)) continue;
    panels++;
    if (range.last - range.first + 2 > most_arms) most_arms = range.last - range.first + 2; /* and the marks */
  }
  if (panels > 0)
    pl_plot_panels(p, "Final loss against learning rate", in->arms->arms[group.first].group, panels, most_arms, &body);
  pl_str_append(&p->caption, "Final validation loss against learning rate: lines join the means over the seeds run at "
                             "every learning rate of an arm (");
  count_seeds(in->arms, group, seeds, &p->caption);
  pl_str_append(&p->caption,
                "), diamonds are at the rates that stand for the arms, circles are single runs, crosses at "
                "the top diverged");
  pl_free(seeds);
  pl_str_free(&body);
  return PL_OK;
}
