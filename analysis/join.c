#include "analysis/join.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

/* A run and where it stands among the directories. */
typedef struct record {
  const pl_catalog_run *run;
  size_t place;
  bool current; /* in any of its directories */
} record;

/* Of one id: those with an outcome first, then in order. */
static int by_id(const void *a, const void *b) {
  const record *x = a, *y = b;
  if (x->run->id != y->run->id) return x->run->id < y->run->id ? -1 : 1;
  if (x->run->has_result != y->run->has_result) return x->run->has_result ? -1 : 1;
  return x->place < y->place ? -1 : x->place > y->place;
}

static int by_place(const void *a, const void *b) {
  const record *x = a, *y = b;
  return x->place < y->place ? -1 : x->place > y->place;
}

static bool same_number(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

static bool same_points(const pl_curve *a, const pl_curve *b) {
  if (a->count != b->count) return false;
  for (size_t i = 0; i < a->count; i++) {
    const pl_point *x = &a->rows[i].point, *y = &b->rows[i].point;
    if (x->step != y->step || !same_number(x->values[PL_SERIES_train_loss], y->values[PL_SERIES_train_loss]) ||
        !same_number(x->values[PL_SERIES_val_loss], y->values[PL_SERIES_val_loss]))
      return false;
  }
  return true;
}

bool pl_same_result(const pl_catalog_run *a, const pl_catalog_run *b) {
  const pl_outcome *p = &a->result.outcome, *q = &b->result.outcome;
  return a->result.state == b->result.state && p->steps == q->steps && p->tokens == q->tokens &&
         same_number(p->final_val_loss, q->final_val_loss) && same_number(p->best_val_loss, q->best_val_loss);
}

/* The result and the curve; a missing curve says nothing. */
static pl_status same_outcome(const pl_catalog_run *a, const pl_catalog_run *b, bool *same, pl_err *e) {
  pl_status st = PL_OK;
  pl_curve x = {0}, y = {0};
  *same = pl_same_result(a, b);
  if (!*same) goto out;
  PL_TRY(pl_catalog_curve(a, &x, e));
  PL_TRY(pl_catalog_curve(b, &y, e));
  *same = x.count == 0 || y.count == 0 || same_points(&x, &y);
out:
  pl_curve_free(&x);
  pl_curve_free(&y);
  return st;
}

/* Decides about the records [first, last) of one id: how many of them are kept, the first one or none. */
static pl_status choose(const record *records, size_t first, size_t last, size_t *kept, pl_notes *warnings, pl_err *e) {
  char id[PL_ID_SIZE];
  pl_status st = PL_OK;
  *kept = 1;
  for (size_t i = first + 1; i < last && records[i].run->has_result; i++) {
    bool same = false;
    PL_TRY(same_outcome(records[first].run, records[i].run, &same, e));
    if (same) continue;
    pl_hash_hex(records[first].run->id, id);
    *kept = 0;
    PL_TRY(pl_note(warnings, e, "run %s (%s) has other results in %s than in %s; both are left out of the comparison",
                   id, records[first].run->label, records[i].run->dir, records[first].run->dir));
    break;
  }
out:
  return st;
}

static pl_status merge(pl_joined *j, record *records, size_t count, pl_err *e) {
  pl_status st = PL_OK;
  size_t n = 0;
  qsort(records, count, sizeof records[0], by_id);
  for (size_t first = 0, last; first < count; first = last) {
    size_t kept = 1;
    for (last = first; last < count && records[last].run->id == records[first].run->id; last++)
      records[first].current |= records[last].run->current;
    PL_TRY(choose(records, first, last, &kept, &j->warnings, e));
    if (kept == 1) records[n++] = records[first];
  }
  qsort(records, n, sizeof records[0], by_place);
  PL_TRY(pl_alloc(n, sizeof j->all.runs[0], "the list of runs", &j->all.runs, e));
  for (size_t i = 0; i < n; i++) {
    j->all.runs[i] = *records[i].run;
    j->all.runs[i].current = records[i].current;
    if (j->count > 1) j->all.runs[i].index = i;
  }
  j->all.count = n;
out:
  return st;
}

static pl_status name_all(pl_joined *j, pl_err *e) {
  pl_str name = {0};
  for (size_t i = 0; i < j->count; i++) {
    if (i > 0 && strcmp(j->parts[i].name, j->parts[i - 1].name) == 0) continue;
    pl_str_printf(&name, "%s%s", i > 0 ? ", " : "", j->parts[i].name);
  }
  pl_status st = pl_str_check(&name, e);
  if (st == PL_OK) st = pl_strdup(pl_str_text(&name), &j->all.name, e);
  if (st == PL_OK) st = pl_strdup(j->parts[0].dir, &j->all.dir, e);
  pl_str_free(&name);
  return st;
}

pl_status pl_joined_open(const pl_registries *r, const char *const *dirs, size_t count,
                         void (*say)(void *self, const char *line), void *say_self, pl_joined *out, pl_err *e) {
  pl_status st = PL_OK;
  record *records = NULL;
  size_t total = 0, n = 0;
  *out = (pl_joined){0};
  PL_TRY(pl_alloc(count, sizeof out->parts[0], "sweep directories", &out->parts, e));
  for (; out->count < count; out->count++) {
    PL_TRY(pl_catalog_open_any(r, dirs[out->count], say, say_self, &out->parts[out->count], e));
    total += out->parts[out->count].count;
    out->all.unreadable += out->parts[out->count].unreadable;
  }
  PL_TRY(name_all(out, e));
  PL_TRY(pl_alloc(total, sizeof records[0], "the list of runs", &records, e));
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < out->parts[i].count; k++, n++)
      records[n] = (record){.run = &out->parts[i].runs[k], .place = n};
  PL_TRY(merge(out, records, total, e));
out:
  pl_free(records);
  if (st != PL_OK) pl_joined_free(out);
  return st;
}

void pl_joined_free(pl_joined *j) {
  for (size_t i = 0; i < j->count; i++) pl_catalog_free(&j->parts[i]);
  pl_free(j->parts);
  pl_free(j->all.runs);
  pl_free(j->all.name);
  pl_free(j->all.dir);
  pl_notes_free(&j->warnings);
  *j = (pl_joined){0};
}
