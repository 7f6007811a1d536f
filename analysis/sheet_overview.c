/* The gap table in short: a line for each optimizer and delay, a column for each correction. */
#include <math.h>

#include "analysis/analysis.h"
#include "core/base/memory.h"

enum { OPTIMIZER, DELAY, SYNC, DELAYED, GAP, FIRST_CORRECTION };

static const pl_sheet_column leading[FIRST_CORRECTION] = {
    {"optimizer", false}, {"delay", false}, {"sync", true}, {"delayed", true}, {"gap", true}};

/* One line: the rows of the gap table that differ in the correction alone; NULL where there is none. */
typedef struct line {
  const pl_gap_row *sync, *delayed;
  const pl_gap_row **corrected; /* [corrections], by rank - 1 */
} line;

/* The reading that is shown: the fixed one, where there is one. */
static pl_reading reading_of(const pl_analysis *a) { return a->gap.at ? PL_READING_FIXED : PL_READING_BEST; }

/* Ranks of corrections: 0 is none when some arm has none. */
static size_t list_corrections(const pl_analysis *a, const char **names) {
  size_t count = 0;
  for (size_t i = 0; i < a->gap.count; i++) {
    const pl_arm *arm = a->gap.rows[i].arm;
    if (arm->config->correction_count == 0) continue;
    names[arm->correction_rank] = arm->correction;
    if (arm->correction_rank + 1 > count) count = arm->correction_rank + 1;
  }
  return count;
}

static const pl_gap_row *sync_row(const pl_analysis *a, const pl_gap_row *of) {
  for (size_t i = 0; i < a->gap.count; i++)
    if (a->gap.rows[i].reading == of->reading && a->gap.rows[i].arm == of->arm->baseline) return &a->gap.rows[i];
  return NULL;
}

static bool same_line(const pl_gap_row *a, const pl_gap_row *b) {
  return a->arm->group_rank == b->arm->group_rank && a->arm->optimizer_rank == b->arm->optimizer_rank &&
         a->arm->delay_rank == b->arm->delay_rank;
}

/* Gathers the line that starts at *at and moves on behind it. */
static void gather(const pl_analysis *a, size_t *at, size_t ranks, line *out) {
  const pl_gap_row *first = &a->gap.rows[*at];
  for (size_t i = 0; i < ranks; i++) out->corrected[i] = NULL;
  out->sync = sync_row(a, first);
  out->delayed = NULL;
  for (; *at < a->gap.count && a->gap.rows[*at].reading == first->reading && same_line(&a->gap.rows[*at], first);
       ++*at) {
    const pl_gap_row *r = &a->gap.rows[*at];
    if (r->sync) continue;
    if (r->arm->config->correction_count == 0)
      out->delayed = r;
    else
      out->corrected[r->arm->correction_rank] = r;
  }
}

static void show_loss(const pl_gap_row *r, pl_str *out) {
  if (r)
    pl_show_number(r->loss.mean, r->loss.mean, false, out);
  else
    pl_str_append(out, "-");
}

static void show_corrected(const pl_gap_row *r, pl_str *out) {
  show_loss(r, out);
  if (!r || r->won_back.n == 0 || isnan(r->won_back.mean)) return;
  if (r->gap_resolved || r->won_back.n < 3)
    pl_str_printf(out, " (%.0f%%)", 100 * r->won_back.mean);
  else
    pl_str_append(out, " (unresolved)");
}

static double loss_of(const pl_gap_row *r) { return r ? r->loss.mean : (double)NAN; }

static pl_json *line_json(const pl_arm *arm, const line *l, const char *const *names, size_t ranks) {
  pl_json *o = pl_json_new_object();
  bool ok = o && pl_json_set(o, "group", pl_json_new_string(arm->group)) &&
            pl_json_set(o, "optimizer", pl_json_new_string(arm->optimizer)) &&
            pl_json_set(o, "delay", pl_json_new_string(arm->delay)) &&
            pl_json_set(o, "sync", pl_json_number_or_null(loss_of(l->sync))) &&
            pl_json_set(o, "delayed", pl_json_number_or_null(loss_of(l->delayed))) &&
            pl_json_set(o, "gap", pl_json_number_or_null(l->delayed ? l->delayed->gap.mean : (double)NAN));
  for (size_t i = 0; ok && i < ranks; i++) {
    const pl_gap_row *r = l->corrected[i];
    if (!names[i]) continue;
    pl_json *c = pl_json_new_object();
    bool whole = c && pl_json_set(c, "loss", pl_json_number_or_null(loss_of(r))) &&
                 pl_json_set(c, "won_back", pl_json_number_or_null(r ? r->won_back.mean : (double)NAN));
    ok = pl_json_set(o, names[i], pl_json_keep(c, whole));
  }
  return pl_json_keep(o, ok);
}

static pl_status add_line(const pl_arm *arm, const line *l, const char *const *names, size_t ranks, const char *title,
                          pl_sheet *s, pl_err *e) {
  pl_sheet_row *row = NULL;
  pl_status st = pl_sheet_add(s, title, arm->group, line_json(arm, l, names, ranks), &row, e);
  if (st != PL_OK) return st;
  pl_str *c = row->cells, unused = {0};
  pl_str head[3] = {c[0], c[1], unused};
  pl_show_arm(arm, head);
  c[OPTIMIZER] = head[0];
  c[DELAY] = head[1];
  pl_str_free(&head[2]);
  if (l->delayed) pl_show_runs(l->delayed->arm, l->delayed->cell, l->delayed->sync_cell, &row->detail);
  for (size_t i = 0; i < ranks; i++)
    if (l->corrected[i]) pl_show_runs(l->corrected[i]->arm, l->corrected[i]->cell, NULL, &row->detail);
  show_loss(l->sync, &c[SYNC]);
  show_loss(l->delayed, &c[DELAYED]);
  pl_show_number(l->delayed ? l->delayed->gap.mean : (double)NAN, loss_of(l->delayed), true, &c[GAP]);
  size_t column = FIRST_CORRECTION;
  for (size_t i = 0; i < ranks; i++)
    if (names[i]) show_corrected(l->corrected[i], &c[column++]);
  return PL_OK;
}

static pl_status make_columns(const char *const *names, size_t ranks, pl_sheet_column **columns, size_t *count,
                              pl_err *e) {
  pl_status st = pl_alloc(FIRST_CORRECTION + ranks, sizeof **columns, "the overview", columns, e);
  if (st != PL_OK) return st;
  for (*count = 0; *count < FIRST_CORRECTION; ++*count) (*columns)[*count] = leading[*count];
  for (size_t i = 0; i < ranks; i++)
    if (names[i]) (*columns)[(*count)++] = (pl_sheet_column){names[i], true};
  return PL_OK;
}

pl_status pl_sheet_fill_overview(const pl_analysis *a, pl_sheet *s, pl_sheet_column **columns, pl_err *e) {
  pl_status st = PL_OK;
  const char **names = NULL;
  line l = {0};
  size_t at = 0;
  const char *title = a->gap.at ? "In short, at the fixed value" : "In short, each arm at its own best learning rate";
  *s = (pl_sheet){.name = "overview", .file = "overview"};
  PL_TRY(pl_alloc(a->arms.count + 1, sizeof names[0], "the overview", &names, e));
  size_t ranks = list_corrections(a, names);
  PL_TRY(pl_alloc(ranks + 1, sizeof l.corrected[0], "the overview", &l.corrected, e));
  PL_TRY(make_columns(names, ranks, columns, &s->column_count, e));
  s->columns = *columns;
  while (ranks > 0 && at < a->gap.count) {
    const pl_gap_row *first = &a->gap.rows[at];
    gather(a, &at, ranks, &l);
    const pl_gap_row *last = &a->gap.rows[at - 1];
    if (first->reading == reading_of(a) && !last->sync) PL_TRY(add_line(last->arm, &l, names, ranks, title, s, e));
  }
  PL_TRY(pl_note(&s->notes, e, "losses; below a correction the part of the gap that it wins back."));
out:
  pl_free(l.corrected);
  pl_free(names);
  return st;
}
