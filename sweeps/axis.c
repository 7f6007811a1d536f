#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sweeps/parts.h"

enum { MAX_VALUES = 10000000 };
static const double WHOLE_LIMIT = 9007199254740992.0; /* 2^53: whole numbers are exact up to here */

bool pl_whole_number(const pl_json *value, int64_t *out) {
  pl_json_kind kind = pl_json_kind_of(value);
  double x = pl_json_number(value);
  if (kind == PL_JSON_INT) {
    *out = pl_json_int(value);
    return true;
  }
  if (kind != PL_JSON_REAL || x != floor(x) || fabs(x) > WHOLE_LIMIT) return false;
  *out = (int64_t)x;
  return true;
}

double pl_round_12(double x) {
  char text[32];
  double rounded = x;
  snprintf(text, sizeof text, "%.12g", x);
  return pl_parse_real(text, &rounded) ? rounded : x;
}

/* A checked range of `count` values from first to last; linear ones advance by `step`. */
typedef struct range {
  double first, last, step;
  uint64_t count;
  bool is_log;
} range;

static bool all_numbers(const pl_json *list) {
  for (size_t i = 0; i < pl_json_size(list); i++) {
    pl_json_kind kind = pl_json_kind_of(pl_json_at(list, i));
    if (kind != PL_JSON_INT && kind != PL_JSON_REAL) return false;
  }
  return true;
}

static pl_status by_step(range *r, pl_err *e) {
  double steps = (r->last - r->first) / r->step;
  if (r->step == 0 || !(steps >= 0))
    return pl_fail(e, PL_BAD, "the step %.12g does not lead from %.12g to %.12g; allowed: a step in that direction",
                   r->step, r->first, r->last);
  if (steps >= MAX_VALUES)
    return pl_fail(e, PL_BAD, "the range has more than %d values; allowed: at most that many", MAX_VALUES);
  r->count = (uint64_t)floor(steps + 1e-9) + 1;
  return PL_OK;
}

static pl_status by_count(range *r, const pl_json *n, pl_err *e) {
  int64_t count = 0;
  char shown[80];
  if (!pl_whole_number(n, &count) || count < 2 || count > MAX_VALUES)
    return pl_fail(e, PL_BAD, "\"n\" is %s; allowed: a whole number from 2 to %d", pl_json_show(n, shown), MAX_VALUES);
  if (r->is_log && (r->first <= 0 || r->last <= 0))
    return pl_fail(e, PL_BAD, "log_range from %.12g to %.12g; allowed: ends above 0", r->first, r->last);
  r->count = (uint64_t)count;
  r->step = (r->last - r->first) / (double)(count - 1);
  return PL_OK;
}

static pl_status parse_range(const pl_json *object, range *r, pl_err *e) {
  const pl_json *linear = pl_json_get(object, "range"), *log_ends = pl_json_get(object, "log_range");
  const pl_json *n = pl_json_get(object, "n"), *ends = log_ends != NULL ? log_ends : linear;
  size_t members = (linear ? 1u : 0u) + (log_ends ? 1u : 0u) + (n ? 1u : 0u), numbers = pl_json_size(ends);
  char shown[80];
  bool shaped = (linear == NULL) != (log_ends == NULL) && pl_json_size(object) == members && all_numbers(ends) &&
                (numbers == 2 || (numbers == 3 && n == NULL)) && (log_ends == NULL || n != NULL);
  if (!shaped)
    return pl_fail(e, PL_BAD,
                   "%s is no list and no range; allowed: {\"range\": [first, last]}, {\"range\": [first, last, step]}, "
                   "{\"range\": [first, last], \"n\": N}, {\"log_range\": [first, last], \"n\": N}",
                   pl_json_show(object, shown));
  *r = (range){.first = pl_json_number(pl_json_at(ends, 0)), .last = pl_json_number(pl_json_at(ends, 1))};
  r->is_log = log_ends != NULL;
  r->step = numbers == 3 ? pl_json_number(pl_json_at(ends, 2)) : 1;
  if (!isfinite(r->last - r->first)) return pl_fail(e, PL_BAD, "%s is too wide a range", pl_json_show(object, shown));
  return n != NULL ? by_count(r, n, e) : by_step(r, e);
}

static bool is_whole(double x) { return x == floor(x) && fabs(x) <= WHOLE_LIMIT; }

static double range_value(const range *r, uint64_t i) {
  if (i == 0) return r->first;
  if (r->is_log) {
    double part = (double)i / (double)(r->count - 1);
    return i == r->count - 1 ? r->last : pl_round_12(exp(log(r->first) + part * (log(r->last) - log(r->first))));
  }
  double x = r->first + (double)i * r->step, near = 1e-9 * fabs(r->step);
  if (is_whole(r->first) && is_whole(r->step)) return x;
  if (fabs(x - r->last) <= near) return r->last;
  return fabs(x) <= near ? 0 : pl_round_12(x);
}

static pl_status fill_range(const range *r, pl_json **out, pl_err *e) {
  pl_json *list = pl_json_new_array();
  bool ok = list != NULL;
  for (uint64_t i = 0; ok && i < r->count; i++) ok = pl_json_append(list, pl_json_new_number(range_value(r, i)));
  if (!ok) {
    pl_json_release(list);
    return pl_fail(e, PL_FAIL, "out of memory for the %llu values of a range", (unsigned long long)r->count);
  }
  *out = list;
  return PL_OK;
}

pl_status pl_axis_values(const pl_json *value, pl_json **out, pl_err *e) {
  char shown[80];
  range r = {0};
  pl_status st = PL_OK;
  switch (pl_json_kind_of(value)) {
  case PL_JSON_ARRAY:
    if (pl_json_size(value) == 0) return pl_fail(e, PL_BAD, "the list is empty; allowed: at least one value");
    *out = pl_json_retain(value);
    return PL_OK;
  case PL_JSON_OBJECT:
    PL_TRY(parse_range(value, &r, e));
    PL_TRY(fill_range(&r, out, e));
    break;
  default:
    pl_json_show(value, shown);
    return pl_fail(e, PL_BAD, "%s is one value; allowed: a list of values, as in [%s], or a range", shown, shown);
  }
out:
  return st;
}

pl_status pl_axis_seeds(const pl_json *value, pl_json **out, pl_err *e) {
  char shown[80];
  pl_json *list = NULL;
  pl_json_kind kind = pl_json_kind_of(value);
  if (kind != PL_JSON_ARRAY && kind != PL_JSON_OBJECT)
    return pl_fail(e, PL_BAD, "%s is no list; allowed: a list of seeds, as in [0, 1, 2], or {\"range\": [0, 2]}",
                   pl_json_show(value, shown));
  pl_status st = pl_axis_values(value, &list, e);
  if (st != PL_OK) return st;
  for (size_t i = 0; i < pl_json_size(list); i++) {
    int64_t seed = -1;
    if (pl_whole_number(pl_json_at(list, i), &seed) && seed >= 0) continue;
    st = pl_fail(e, PL_BAD, "element %zu is %s; allowed: whole numbers from 0", i,
                 pl_json_show(pl_json_at(list, i), shown));
    pl_json_release(list);
    return st;
  }
  *out = list;
  return PL_OK;
}
