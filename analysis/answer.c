#include "analysis/answer.h"

#include <math.h>
#include <stdio.h>

#include "core/base/memory.h"

enum { LEAST_PAIRS = 3 };

/* One optimizer of one group. */
typedef struct subject {
  const pl_gap_row *delayed; /* uncorrected, at the delay of which the sentence speaks; NULL: nothing is delayed */
  const pl_gap_row *corrected;
  size_t corrections; /* at this delay */
} subject;

static pl_reading reading_of(const pl_analysis *a) { return a->gap.at ? PL_READING_FIXED : PL_READING_BEST; }

const char *pl_answer_reading(const pl_analysis *a) {
  return a->gap.at ? a->gap.at_title : "Each arm at its own best learning rate";
}

static bool same_subject(const pl_gap_row *a, const pl_gap_row *b) {
  return a->arm->group_rank == b->arm->group_rank && a->arm->optimizer_rank == b->arm->optimizer_rank;
}

static bool is_corrected(const pl_gap_row *r) { return r->arm->config->correction_count > 0; }

/* More pairs than the least come first, then the larger delay. */
static bool speaks_better(const pl_gap_row *r, const pl_gap_row *than) {
  if (!than) return true;
  bool enough = r->gap.n >= LEAST_PAIRS, was = than->gap.n >= LEAST_PAIRS;
  return enough != was ? enough : r->arm->delay_rank > than->arm->delay_rank;
}

static bool wins_more(const pl_gap_row *r, const pl_gap_row *than) {
  if (!than) return true;
  bool known = r->gap_resolved, was = than->gap_resolved;
  return known != was ? known : known && r->won_back.mean > than->won_back.mean;
}

/* The rows of one subject in this reading. A correction without its uncorrected arm is measured, but shares nothing. */
static subject subject_of(const pl_analysis *a, const pl_gap_row *first) {
  subject s = {0};
  for (size_t i = 0; i < a->gap.count; i++) {
    const pl_gap_row *r = &a->gap.rows[i];
    if (r->reading != first->reading || !same_subject(r, first)) continue;
    if (!r->sync && !is_corrected(r) && speaks_better(r, s.delayed)) s.delayed = r;
  }
  for (size_t i = 0; i < a->gap.count && s.delayed; i++) {
    const pl_gap_row *r = &a->gap.rows[i];
    if (r->reading != first->reading || !same_subject(r, first) || !is_corrected(r) ||
        r->arm->delay_rank != s.delayed->arm->delay_rank)
      continue;
    s.corrections++;
    if (wins_more(r, s.corrected)) s.corrected = r;
  }
  return s;
}

static double half_width(const pl_estimate *x) { return 0.5 * (x->high - x->low); }

static bool contains_zero(const pl_estimate *x) { return x->low <= 0 && x->high >= 0; }

static void append_name(const pl_gap_row *r, pl_str *out) {
  pl_str_append(out, r->optimizer);
  if (r->group[0]) pl_str_printf(out, " (%s)", r->group);
}

static void append_correction(const subject *s, pl_str *out) {
  const pl_gap_row *r = s->corrected;
  if (!r) {
    pl_str_append(out, "; no correction was run there");
    return;
  }
  pl_str_append(out, "; ");
  if (s->corrections > 1 && r->gap_resolved) pl_str_printf(out, "of %zu corrections ", s->corrections);
  if (r->gap_resolved)
    pl_str_printf(out, "%s wins back %.0f%% [%.0f, %.0f]", r->correction, 100 * r->won_back.mean, 100 * r->won_back.low,
                  100 * r->won_back.high);
  else if (r->won_back.n < LEAST_PAIRS)
    pl_str_printf(out, "%s has %zu of the %d seeds that a part won back needs", r->correction, r->won_back.n,
                  LEAST_PAIRS);
  else
    pl_str_printf(out, "what %s wins back of it is not resolved", r->correction);
}

static void append_gap(const pl_gap_row *r, pl_str *out) {
  double half = half_width(&r->gap), mean = r->gap.mean;
  double scale = half < 0.0005 ? 0 : r->loss.mean; /* more digits where four decimals would show none */
  bool resolved = !contains_zero(&r->gap);
  append_name(r, out);
  pl_str_append(out, !resolved ? " differs from its synchronous runs by " : mean > 0 ? " loses " : " gains ");
  pl_show_number(resolved ? fabs(mean) : mean, scale, !resolved, out);
  pl_str_append(out, " ± ");
  pl_show_number(half, scale, false, out);
  pl_str_printf(out, " nats/token (n=%zu) at delay %s", r->gap.n, r->delay);
  if (!resolved) pl_str_append(out, ", an interval that holds 0");
  if (resolved && r->p_holm >= 0.05) {
    pl_str_append(out, " (p ");
    pl_show_p(r->p_holm, out);
    pl_str_append(out, " after Holm)");
  }
}

/* What keeps a gap from being told. */
static void append_missing(const subject *s, pl_str *out) {
  const pl_gap_row *r = s->delayed;
  append_name(r, out);
  pl_str_printf(out, " at delay %s: ", r->delay);
  if (!r->sync_cell)
    pl_str_append(out, "it has no synchronous runs to be compared with");
  else if (r->finished == 0 && r->diverged > 0)
    pl_str_printf(out, "%zu of %zu runs diverged and none finished", r->diverged, r->total);
  else
    pl_str_printf(out, "%zu pair%s of seeds finished, and an interval needs %d", r->gap.n, r->gap.n == 1 ? "" : "s",
                  LEAST_PAIRS);
}

static void append_sentence(const subject *s, pl_str *out) {
  const pl_gap_row *r = s->delayed;
  if (r->gap.n < LEAST_PAIRS) {
    append_missing(s, out);
  } else {
    append_gap(r, out);
    if (r->gap.mean > 0) append_correction(s, out);
    if (r->diverged > 0)
      pl_str_printf(out, "; %zu of %zu delayed runs diverged and %s not in these numbers", r->diverged, r->total,
                    r->diverged == 1 ? "is" : "are");
  }
  pl_str_append(out, ".");
}

static pl_status note_sentence(const char *before, const subject *s, pl_notes *out, pl_err *e) {
  pl_str text = {0};
  pl_str_append(&text, before);
  append_sentence(s, &text);
  pl_status st = pl_str_check(&text, e);
  if (st == PL_OK) st = pl_note(out, e, "%s", text.text);
  pl_str_free(&text);
  return st;
}

/* Many subjects: the ends of their range, and how many lie between. */
static pl_status note_range(const subject *list, size_t count, pl_notes *out, pl_err *e) {
  pl_status st = PL_OK;
  char before[96];
  const subject *largest = NULL, *smallest = NULL;
  size_t told = 0;
  for (size_t i = 0; i < count; i++) {
    if (list[i].delayed->gap.n < LEAST_PAIRS) continue;
    told++;
    if (!largest || list[i].delayed->gap.mean > largest->delayed->gap.mean) largest = &list[i];
    if (!smallest || list[i].delayed->gap.mean < smallest->delayed->gap.mean) smallest = &list[i];
  }
  if (told < 2) return note_sentence("", largest ? largest : &list[0], out, e);
  snprintf(before, sizeof before, "The largest of %zu gaps: ", told);
  PL_TRY(note_sentence(before, largest, out, e));
  snprintf(before, sizeof before, "The smallest of %zu gaps: ", told);
  PL_TRY(note_sentence(before, smallest, out, e));
  if (told < count)
    PL_TRY(pl_note(out, e, "%zu more of the %zu optimizers and groups have fewer than %d pairs of seeds.", count - told,
                   count, LEAST_PAIRS));
out:
  return st;
}

static pl_status list_subjects(const pl_analysis *a, subject **list, size_t *count, pl_err *e) {
  const pl_gap_row *last = NULL;
  pl_status st = pl_alloc(a->gap.count, sizeof **list, "the answer", list, e);
  for (size_t i = 0; i < a->gap.count && st == PL_OK; i++) {
    const pl_gap_row *r = &a->gap.rows[i];
    if (r->reading != reading_of(a) || (last && same_subject(last, r))) continue;
    subject s = subject_of(a, r);
    if (s.delayed) (*list)[(*count)++] = s;
    last = r;
  }
  return st;
}

pl_status pl_answer_make(const pl_analysis *a, pl_notes *out, pl_err *e) {
  pl_status st = PL_OK;
  subject *list = NULL;
  size_t count = 0;
  PL_TRY(list_subjects(a, &list, &count, e));
  if (count == 0)
    PL_TRY(pl_note(out, e, "No arm without a correction has a delay in this reading, so there is no gap to tell."));
  if (count > PL_ANSWER_SENTENCES)
    PL_TRY(note_range(list, count, out, e));
  else
    for (size_t i = 0; i < count; i++) PL_TRY(note_sentence("", &list[i], out, e));
out:
  pl_free(list);
  return st;
}
