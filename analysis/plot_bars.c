/* Bars against delay, for each optimizer and correction, with intervals: the gap, and the part of it that was won back.
 */
#include "analysis/plot_bars.h"

#include <math.h>

static pl_estimate gap_of(const pl_gap_row *r) { return r->gap; }

/* Where the gap is not resolved there is nothing to share out; below three seeds the part stands without interval. */
static pl_estimate won_back_of(const pl_gap_row *r) {
  pl_estimate x = r->won_back;
  if (isnan(x.mean) || (!r->gap_resolved && x.n >= 3)) x.n = 0;
  x.mean *= 100;
  x.low *= 100;
  x.high *= 100;
  return x;
}

static const pl_bar_measure gap_measure = {.of = gap_of,
                                           .title = "Gap to sync",
                                           .axis = "gap in final loss (nats/token)",
                                           .columns = "place,gap,n,low,high",
                                           .interval = "paired t",
                                           .label = "sprintf(abs($2)<0.0095 ? '%.2g' : '%.3f',$2)",
                                           .low = (double)NAN,
                                           .high = (double)NAN,
                                           .extra = ""};
static const pl_bar_measure won_back_measure = {
    .of = won_back_of,
    .title = "Part of the gap won back",
    .axis = "part of the gap won back (%)",
    .columns = "place,percent,n,low,high",
    .interval = "Fieller",
    .label = "sprintf('%.0f',$2)",
    .low = -100,
    .high = 200,
    .extra = "set arrow from graph 0, first 100 to graph 1, first 100 nohead lc rgb '#444444' dt (4,4)\n"};

static double bar_share(const pl_bar_plot *b) {
  const double used = 0.84, widest = 1.5; /* of the room for one delay; of the width that was planned */
  return fmin(used / (double)b->most_bars, widest * b->bar_width / b->delay_room);
}

static void series_name(const pl_arm *a, bool delay, pl_str *out) {
  pl_str_append(out, a->optimizer);
  if (a->config->correction_count > 0) pl_str_printf(out, ", %s", a->correction);
  if (delay) pl_str_printf(out, ", delay %s", a->delay);
}

/* A block of "place value n low high" for one series; the bars of a delay stand side by side about its place. Tells
 * whether one of them has an interval. */
static bool add_bars(const pl_bar_plot *b, size_t series, pl_plot *p) {
  double width = bar_share(b);
  bool any = false;
  for (size_t i = 0; i < b->count; i++) {
    const pl_gap_row *r = b->rows[i];
    size_t rank = b->arms[i].delay_rank;
    if (!r || !pl_bar_same_series(&b->arms[i], b->series[series])) continue;
    pl_estimate value = b->measure->of(r);
    double left = 0.5 * (double)pl_bars_at(b, b->series_count, rank) - (double)pl_bars_at(b, series, rank);
    double bar[] = {(double)pl_bar_delay_place(b, rank) + width * (0.5 - left), value.mean, (double)value.n, value.low,
                    value.high};
    pl_str name = {0};
    series_name(&b->arms[i], true, &name);
    pl_plot_series(p, pl_str_text(&name));
    pl_str_free(&name);
    pl_plot_numbers(p, bar, 5);
    any = any || !isnan(value.low);
  }
  return any;
}

/* The value above each bar and its interval, and the number of seeds where it is too small for one: gnuplot passes over
 * points that it evaluates a NaN for. */
static void append_labels(const pl_bar_plot *b, size_t block, pl_str *s) {
  enum { NARROW = 40 };
  const char *text = b->measure->label, *above = "(strcol(5) eq 'NaN' ? top($2,$2) : top($2,$5))";
  if (b->bar_width < NARROW)
    pl_str_printf(s,
                  ", \\\n  '' index %zu using 1:%s:(%s.($3<3 ? sprintf(' n=%%d',$3) : '')) with labels left "
                  "rotate by 90 font ',9' offset 0,0.5 notitle",
                  block, above, text);
  else
    pl_str_printf(s,
                  ", \\\n  '' index %zu using 1:%s:(%s) with labels font ',9' offset 0,0.7 notitle"
                  ", \\\n  '' index %zu using 1:%s:($3<3 ? sprintf('n=%%d',$3) : '') with labels font ',9' "
                  "offset 0,1.6 notitle",
                  block, above, text, block, above);
}

/* Colour by optimizer, paler with each further correction. */
static void append_series(const pl_bar_plot *b, size_t series, pl_plot *p) {
  static const double density[] = {1, 0.5, 0.25, 0.1, 0.75, 0.35};
  const pl_arm *a = b->series[series];
  const char *color = pl_plot_color(a->optimizer_rank + 1);
  pl_str label = {0}, *s = &p->script;
  bool intervals = add_bars(b, series, p);
  size_t block = pl_plot_end_block(p);
  pl_str_printf(s, "%s'%s.dat' index %zu using 1:2:(%.4g) with boxes lc rgb '%s' fs solid %g border lc rgb '%s' title ",
                series > 0 ? ", \\\n  " : "plot ", p->name, block, 0.92 * bar_share(b), color,
                density[a->correction_rank % (sizeof density / sizeof density[0])], color);
  series_name(a, false, &label);
  pl_plot_quote(s, pl_str_text(&label));
  pl_str_free(&label);
  append_labels(b, block, s);
  if (intervals)
    pl_str_printf(s,
                  ", \\\n  '' index %zu using 1:(cut($4)):(0):(cut($5)-cut($4)) with vectors heads nofilled size graph "
                  "0.01,90 lc rgb '#333333' lw 1.5 notitle",
                  block);
}

/* Which learning rates the bars are from. */
static void append_reading(const pl_bar_plot *b, const char *at, pl_str *out) {
  size_t fixed = 0, rows = 0;
  for (size_t i = 0; i < b->count; i++) {
    if (b->rows[i]) rows++;
    if (b->rows[i] && b->rows[i]->reading == PL_READING_FIXED) fixed++;
  }
  if (fixed == 0)
    pl_str_append(out, "each arm at its own best learning rate");
  else
    pl_str_printf(out, "at %s%s", at, fixed < rows ? ", arms without it at their own best" : "");
}

/* The functions cut(x) and top(value, high), and the vertical range. */
static void append_range(const pl_bar_plot *b, pl_str *s) {
  const pl_bar_measure *m = b->measure;
  double low = 0, high = 0;
  for (size_t i = 0; i < b->count; i++) {
    if (!b->rows[i]) continue;
    pl_estimate x = m->of(b->rows[i]);
    low = fmin(low, fmin(x.mean, x.low));
    high = fmax(high, fmax(x.mean, x.high));
  }
  if (!isnan(m->low)) {
    low = fmax(low, m->low);
    high = fmin(fmax(high, 100), m->high);
  }
  pl_str_printf(s, "cut(x) = x < %.9g ? %.9g : x > %.9g ? %.9g : x\n", low, low, high, high);
  pl_str_append(s, "top(x, high) = cut(high > x && high > 0 ? high : x > 0 ? x : 0)\n");
  if (high > low)
    pl_str_printf(s, "set yrange [%.9g:%.9g]\n", low - (low < 0 ? 0.06 * (high - low) : 0), high + 0.16 * (high - low));
}

static void append_axes(const pl_bar_plot *b, const char *reading, pl_plot *p) {
  enum { LETTER_WIDTH = 10 };
  pl_str detail = {0}, *s = &p->script;
  pl_str_printf(&detail, "%s\n%s", reading, b->arms[0].group);
  pl_str_append(s, "set title ");
  pl_plot_heading(s, b->measure->title, pl_str_text(&detail), (size_t)p->width / LETTER_WIDTH);
  pl_str_printf(s,
                "\nset xlabel \"delay (updates)\\n \" offset 0,0.6\nset ylabel '%s'\n"
                "set grid y lc rgb '#DDDDDD' lt 1 lw 0.5\nset border 3 lc rgb '#444444'\nset tics nomirror\n"
                "set xzeroaxis lt 1 lc rgb '#444444'\nset key bmargin center Left reverse horizontal width 2 "
                "maxcols 3 font ',10'\n%s",
                b->measure->axis, b->measure->extra);
  append_range(b, s);
  pl_str_printf(s, "set xrange [-0.5:%g]\nset xtics (", (double)b->delay_count - 0.5);
  for (size_t d = 0; d < b->delay_count; d++) {
    size_t i = 0;
    while (b->arms[i].delay_rank != b->delays[d]) i++;
    pl_str_append(s, d > 0 ? ", " : "");
    pl_plot_quote(s, b->arms[i].delay);
    pl_str_printf(s, " %zu", d);
  }
  pl_str_append(s, ") scale 0\n");
  s->failed |= detail.failed;
  pl_str_free(&detail);
}

/* Wide bars where there are few, narrow ones so that many still fit on a page. */
static void choose_size(pl_bar_plot *b, pl_plot *p) {
  enum {
    LEAST_WIDTH = 640,
    USUAL_WIDTH = 1200,
    WIDE = 60,
    NARROWEST = 16,
    MARGIN = 120,
    LEGEND_LINE = 20,
    LEGENDS = 3
  };
  for (size_t d = 0; d < b->delay_count; d++) {
    size_t bars = pl_bars_at(b, b->series_count, b->delays[d]);
    if (bars > b->most_bars) b->most_bars = bars;
  }
  int bars = (int)(b->delay_count * b->most_bars), width = (USUAL_WIDTH - MARGIN) / bars;
  b->bar_width = width > WIDE ? WIDE : width < NARROWEST ? NARROWEST : width;
  p->width = MARGIN + bars * b->bar_width > LEAST_WIDTH ? MARGIN + bars * b->bar_width : LEAST_WIDTH;
  b->delay_room = (double)(p->width - MARGIN) / (double)b->delay_count;
  p->height = 420 + (int)((b->series_count + LEGENDS - 1) / LEGENDS) * LEGEND_LINE;
}

static void append_caption(const pl_bar_plot *b, const char *reading, pl_str *out) {
  size_t least = SIZE_MAX, most = 0;
  for (size_t i = 0; i < b->count; i++) {
    size_t n = b->rows[i] ? b->measure->of(b->rows[i]).n : 0;
    if (n > 0 && n < least) least = n;
    if (n > most) most = n;
  }
  pl_str_printf(out, "%s against delay, %s (", b->measure->title, reading);
  pl_plot_count_text(least, most, out);
  pl_str_printf(out, "); 95%% intervals by %s where n >= 3", b->measure->interval);
  if (!isnan(b->measure->low))
    pl_str_printf(out, "; cut at %g%% and %g%%; arms whose gap is not resolved have no bar", b->measure->low,
                  b->measure->high);
}

static void draw_bars(pl_bar_plot *b, const char *at, pl_plot *p) {
  pl_str reading = {0};
  choose_size(b, p);
  append_reading(b, at, &reading);
  append_axes(b, pl_str_text(&reading), p);
  for (size_t i = 0; i < b->series_count; i++) append_series(b, i, p);
  pl_str_append(&p->script, "\n");
  append_caption(b, pl_str_text(&reading), &p->caption);
  pl_str_free(&reading);
}

static pl_status plot_bars(const pl_bar_measure *m, const pl_plot_input *in, pl_arm_range group, pl_plot *p,
                           pl_err *e) {
  pl_bar_plot b;
  p->columns = m->columns;
  pl_status st = pl_bars_collect(m, in, group, &b, e);
  if (st != PL_OK) return st;
  if (b.delay_count > 0) draw_bars(&b, in->table->at, p);
  pl_bars_free(&b);
  return PL_OK;
}

pl_status pl_plot_gap_vs_delay(const pl_plot_input *in, pl_arm_range group, pl_plot *p, pl_err *e) {
  return plot_bars(&gap_measure, in, group, p, e);
}

pl_status pl_plot_won_back(const pl_plot_input *in, pl_arm_range group, pl_plot *p, pl_err *e) {
  return plot_bars(&won_back_measure, in, group, p, e);
}
