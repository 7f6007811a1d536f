/* Gap against delay: bars for each optimizer and correction, with intervals. */
#include <math.h>
#include <string.h>

#include "analysis/plots.h"
#include "core/base/memory.h"

typedef struct bar_plot {
  const pl_arm *arms;      /* of the group */
  const pl_gap_row **rows; /* of each arm, NULL where it has no gap */
  size_t count;
  const pl_arm **series; /* an arm of each optimizer and correction */
  size_t series_count;
  size_t *delays; /* delay ranks that occur, ascending */
  size_t delay_count;
  size_t most_bars; /* at one delay */
  int bar_width;    /* pixels */
} bar_plot;

/* The arm's gap in the fixed reading where there is one, else at its own best. */
static const pl_gap_row *gap_row(const pl_gap_table *t, const pl_arm *a) {
  const pl_gap_row *found = NULL;
  for (size_t i = 0; i < t->count; i++) {
    const pl_gap_row *r = &t->rows[i];
    if (r->sync || r->reading == PL_READING_TRANSFERRED || r->arm != a) continue;
    if (!found || r->reading == PL_READING_FIXED) found = r;
  }
  return found && found->gap.n > 0 ? found : NULL;
}

static bool same_series(const pl_arm *a, const pl_arm *b) {
  return a->optimizer_rank == b->optimizer_rank && a->correction_rank == b->correction_rank;
}

static void note_series(bar_plot *b, const pl_arm *a) {
  for (size_t i = 0; i < b->series_count; i++)
    if (same_series(b->series[i], a)) return;
  b->series[b->series_count++] = a;
}

static void note_delay(bar_plot *b, size_t rank) {
  size_t at = 0;
  while (at < b->delay_count && b->delays[at] < rank) at++;
  if (at < b->delay_count && b->delays[at] == rank) return;
  memmove(&b->delays[at + 1], &b->delays[at], (b->delay_count - at) * sizeof b->delays[0]);
  b->delays[at] = rank;
  b->delay_count++;
}

static size_t delay_place(const bar_plot *b, size_t rank) {
  size_t at = 0;
  while (b->delays[at] != rank) at++;
  return at;
}

static bool has_bar(const bar_plot *b, size_t series, size_t rank) {
  for (size_t i = 0; i < b->count; i++)
    if (b->rows[i] && b->arms[i].delay_rank == rank && same_series(&b->arms[i], b->series[series])) return true;
  return false;
}

/* How many of the first `series` have a bar at a delay. */
static size_t bars_at(const bar_plot *b, size_t series, size_t rank) {
  size_t count = 0;
  for (size_t i = 0; i < series; i++) count += has_bar(b, i, rank);
  return count;
}

/* A block of "x gap width label-height n" for one series, or one of its intervals, "x low high". The bars of a delay
 * stand side by side about its place. */
static bool add_bars(const bar_plot *b, size_t series, bool intervals, pl_plot *p) {
  const double used = 0.84; /* of the room for one delay */
  double width = used / (double)b->most_bars;
  bool any = false;
  for (size_t i = 0; i < b->count; i++) {
    const pl_gap_row *r = b->rows[i];
    size_t rank = b->arms[i].delay_rank;
    if (!r || !same_series(&b->arms[i], b->series[series]) || (intervals && isnan(r->gap.low))) continue;
    double left = 0.5 * (double)bars_at(b, b->series_count, rank) - (double)bars_at(b, series, rank);
    double x = (double)delay_place(b, rank) + width * (0.5 - left);
    double bar[] = {x, r->gap.mean, 0.92 * width, fmax(fmax(r->gap.mean, r->gap.high), 0), (double)r->gap.n};
    double interval[] = {x, r->gap.low, r->gap.high};
    pl_plot_numbers(p, intervals ? interval : bar, intervals ? 3 : 5);
    any = true;
  }
  return any;
}

/* The gap above each bar, and the number of seeds where it is too small for an interval. */
static void append_labels(const bar_plot *b, size_t block, pl_str *s) {
  enum { NARROW = 40 };
  const char *text = "sprintf(abs($2)<0.0095 ? '%.2g' : '%.3f',$2)";
  if (b->bar_width < NARROW)
    pl_str_printf(
        s,
        ", \\\n  '' index %zu using 1:4:(%s.($5<3 ? sprintf(' n=%%d',$5) : '')) with labels left rotate by 90 "
        "font ',9' offset 0,0.5 notitle",
        block, text);
  else
    pl_str_printf(s,
                  ", \\\n  '' index %zu using 1:4:(%s) with labels font ',9' offset 0,0.7 notitle"
                  ", \\\n  '' index %zu using 1:4:($5<3 ? sprintf('n=%%d',$5) : '') with labels font ',9' offset 0,1.6 "
                  "notitle",
                  block, text, block);
}

/* Colour by optimizer, paler with each further correction. */
static void append_series(const bar_plot *b, size_t series, pl_plot *p) {
  static const double density[] = {1, 0.5, 0.25, 0.1, 0.75, 0.35};
  const pl_arm *a = b->series[series];
  const char *color = pl_plot_color(a->optimizer_rank + 1);
  pl_str label = {0}, *s = &p->script;
  add_bars(b, series, false, p);
  size_t block = pl_plot_end_block(p);
  pl_str_printf(s, "%s'%s.dat' index %zu using 1:2:3 with boxes lc rgb '%s' fs solid %g border lc rgb '%s' title ",
                series > 0 ? ", \\\n  " : "plot ", p->name, block, color,
                density[a->correction_rank % (sizeof density / sizeof density[0])], color);
  pl_str_append(&label, a->optimizer);
  if (a->config->correction_count > 0) pl_str_printf(&label, ", %s", a->correction);
  pl_plot_quote(s, pl_str_text(&label));
  pl_str_free(&label);
  append_labels(b, block, s);
  if (add_bars(b, series, true, p))
    pl_str_printf(s,
                  ", \\\n  '' index %zu using 1:2:(0):($3-$2) with vectors heads nofilled size graph 0.01,90 lc rgb "
                  "'#333333' lw 1.5 notitle",
                  pl_plot_end_block(p));
}

/* Which learning rates the bars are from. */
static void append_reading(const bar_plot *b, const char *at, pl_str *out) {
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

static void append_axes(const bar_plot *b, const char *reading, pl_plot *p) {
  enum { LETTER_WIDTH = 10 };
  pl_str title = {0}, *s = &p->script;
  pl_str_printf(&title, "Gap to sync, %s", reading);
  pl_str_append(s, "set title ");
  pl_plot_heading(s, pl_str_text(&title), b->arms[0].group, (size_t)p->width / LETTER_WIDTH);
  pl_str_append(s, "\nset xlabel \"delay (updates)\\n \" offset 0,0.6\nset ylabel 'gap in final loss (nats/token)'\n"
                   "set grid y lc rgb '#DDDDDD' lt 1 lw 0.5\nset border 3 lc rgb '#444444'\nset tics nomirror\n"
                   "set xzeroaxis lt 1 lc rgb '#444444'\nset key bmargin center Left reverse horizontal width 2 "
                   "maxcols 3 font ',10'\n"
                   "set yrange [*<0:0<*]\nset offsets 0,0,graph 0.14,0\n");
  pl_str_printf(s, "set xrange [-0.5:%g]\nset xtics (", (double)b->delay_count - 0.5);
  for (size_t d = 0; d < b->delay_count; d++) {
    size_t i = 0;
    while (b->arms[i].delay_rank != b->delays[d]) i++;
    pl_str_append(s, d > 0 ? ", " : "");
    pl_plot_quote(s, b->arms[i].delay);
    pl_str_printf(s, " %zu", d);
  }
  pl_str_append(s, ") scale 0\n");
  pl_str_free(&title);
}

/* Wide bars where there are few, narrow ones so that many still fit on a page. */
static void choose_size(bar_plot *b, pl_plot *p) {
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
    size_t bars = bars_at(b, b->series_count, b->delays[d]);
    if (bars > b->most_bars) b->most_bars = bars;
  }
  int bars = (int)(b->delay_count * b->most_bars), width = (USUAL_WIDTH - MARGIN) / bars;
  b->bar_width = width > WIDE ? WIDE : width < NARROWEST ? NARROWEST : width;
  p->width = MARGIN + bars * b->bar_width > LEAST_WIDTH ? MARGIN + bars * b->bar_width : LEAST_WIDTH;
  p->height = 420 + (int)((b->series_count + LEGENDS - 1) / LEGENDS) * LEGEND_LINE;
}

static void draw_bars(bar_plot *b, const char *at, pl_plot *p) {
  pl_str reading = {0};
  choose_size(b, p);
  append_reading(b, at, &reading);
  append_axes(b, pl_str_text(&reading), p);
  for (size_t i = 0; i < b->series_count; i++) append_series(b, i, p);
  pl_str_append(&p->script, "\n");
  pl_str_printf(&p->caption, "Gap against delay, %s; 95%% intervals where n >= 3", pl_str_text(&reading));
  pl_str_free(&reading);
}

pl_status pl_plot_gap_vs_delay(const pl_plot_input *in, pl_arm_range group, pl_plot *p, pl_err *e) {
  pl_status st = PL_OK;
  bar_plot b = {.arms = &in->arms->arms[group.first], .count = group.last - group.first};
  PL_TRY(pl_alloc(b.count, sizeof b.rows[0], "gaps", &b.rows, e));
  PL_TRY(pl_alloc(b.count, sizeof b.series[0], "bars", &b.series, e));
  PL_TRY(pl_alloc(b.count, sizeof b.delays[0], "delays", &b.delays, e));
  for (size_t i = 0; i < b.count; i++) {
    b.rows[i] = gap_row(in->table, &b.arms[i]);
    if (!b.rows[i]) continue;
    note_series(&b, &b.arms[i]);
    note_delay(&b, b.arms[i].delay_rank);
  }
  if (b.delay_count > 0) draw_bars(&b, in->table->at, p);
out:
  pl_free(b.rows);
  pl_free(b.series);
  pl_free(b.delays);
  return st;
}
