#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/rng.h"
#include "core/config/params_text.h"
#include "sweeps/parts.h"

typedef struct distribution {
  const char *name, *form;
} distribution;

/* Indexed by pl_draw_kind. */
static const distribution DISTRIBUTIONS[] = {
    [PL_DRAW_UNIFORM] = {"uniform", "[\"uniform\", low, high] with low < high"},
    [PL_DRAW_LOG_UNIFORM] = {"log_uniform", "[\"log_uniform\", low, high] with 0 < low < high"},
    [PL_DRAW_INT_UNIFORM] = {"int_uniform", "[\"int_uniform\", low, high] with whole numbers low <= high"},
    [PL_DRAW_NORMAL] = {"normal", "[\"normal\", mean, standard deviation] with a deviation above 0"},
    [PL_DRAW_CHOICE] = {"choice", "[\"choice\", [value, ...]] with at least one value"},
};
enum { DISTRIBUTION_COUNT = sizeof DISTRIBUTIONS / sizeof *DISTRIBUTIONS };

static pl_status unknown_distribution(const pl_json *value, const char *name, pl_err *e) {
  const char *names[DISTRIBUTION_COUNT];
  char shown[80], seen[160];
  if (name == NULL)
    return pl_fail(e, PL_BAD, "%s is no distribution; allowed: a list that starts with a name, as in %s",
                   pl_json_show(value, shown), DISTRIBUTIONS[PL_DRAW_UNIFORM].form);
  for (size_t i = 0; i < DISTRIBUTION_COUNT; i++) names[i] = DISTRIBUTIONS[i].name;
  snprintf(seen, sizeof seen, "unknown name \"%.100s\"", name);
  return pl_fail_name(names, DISTRIBUTION_COUNT, name, "distribution", seen, e);
}

/* Both forms give the name and where its arguments start in a list. */
static const char *take_apart(const pl_json *value, const pl_json **arguments, size_t *first) {
  if (pl_json_kind_of(value) == PL_JSON_ARRAY) {
    *arguments = value;
    *first = 1;
    return pl_json_string(pl_json_at(value, 0));
  }
  if (pl_json_kind_of(value) != PL_JSON_OBJECT || pl_json_size(value) != 1) return NULL;
  void *it = pl_json_iter(value);
  *arguments = pl_json_iter_value(it);
  *first = 0;
  return pl_json_iter_key(it);
}

static bool is_number(const pl_json *value) {
  return pl_json_kind_of(value) == PL_JSON_INT || pl_json_kind_of(value) == PL_JSON_REAL;
}

static bool numbers_fit(const pl_draw *d) {
  switch (d->kind) {
  case PL_DRAW_UNIFORM:
    return d->a < d->b && isfinite(d->b - d->a);
  case PL_DRAW_LOG_UNIFORM:
    return d->a > 0 && d->a < d->b;
  case PL_DRAW_INT_UNIFORM:
    return d->a <= d->b && d->a == floor(d->a) && d->b == floor(d->b) && fabs(d->a) < 0x1p53 && fabs(d->b) < 0x1p53 &&
           d->b - d->a < 0x1p53;
  case PL_DRAW_NORMAL:
    return d->b > 0;
  case PL_DRAW_CHOICE:
    break;
  }
  return false;
}

/* The two forms of a choice: ["choice", [...]] and {"choice": [...]}. */
static bool parse_choices(const pl_json *arguments, size_t first, pl_draw *d) {
  d->choices = first == 0 ? arguments : pl_json_at(arguments, first);
  return pl_json_kind_of(d->choices) == PL_JSON_ARRAY && pl_json_size(d->choices) > 0 &&
         (first == 0 || pl_json_size(arguments) == first + 1);
}

static bool parse_numbers(const pl_json *arguments, size_t first, pl_draw *d) {
  const pl_json *a = pl_json_at(arguments, first), *b = pl_json_at(arguments, first + 1);
  if (pl_json_size(arguments) != first + 2 || !is_number(a) || !is_number(b)) return false;
  d->a = pl_json_number(a);
  d->b = pl_json_number(b);
  return numbers_fit(d);
}

pl_status pl_draw_parse(const pl_json *value, pl_draw *out, pl_err *e) {
  const pl_json *arguments = NULL;
  size_t first = 0, kind = 0;
  char shown[80];
  const char *name = take_apart(value, &arguments, &first);
  while (name != NULL && kind < DISTRIBUTION_COUNT && strcmp(name, DISTRIBUTIONS[kind].name) != 0) kind++;
  if (name == NULL || kind == DISTRIBUTION_COUNT) return unknown_distribution(value, name, e);
  *out = (pl_draw){.kind = (pl_draw_kind)kind};
  bool fits = out->kind == PL_DRAW_CHOICE ? parse_choices(arguments, first, out) : parse_numbers(arguments, first, out);
  if (!fits)
    return pl_fail(e, PL_BAD, "%s does not fit; allowed: %s", pl_json_show(value, shown), DISTRIBUTIONS[kind].form);
  return PL_OK;
}

/* Rounding hides the last bits, in which mathematical libraries differ; it must not leave the bounds. */
static double rounded_between(double x, double low, double high) { return fmin(fmax(pl_round_12(x), low), high); }

static double number_at(const pl_draw *d, pl_rng *rng) {
  switch (d->kind) {
  case PL_DRAW_UNIFORM:
    return rounded_between(d->a + (d->b - d->a) * pl_rng_uniform(rng), d->a, d->b);
  case PL_DRAW_LOG_UNIFORM:
    return rounded_between(exp(log(d->a) + (log(d->b) - log(d->a)) * pl_rng_uniform(rng)), d->a, d->b);
  case PL_DRAW_INT_UNIFORM:
    return d->a + (double)pl_rng_below(rng, (uint64_t)(d->b - d->a) + 1);
  case PL_DRAW_NORMAL:
    return pl_round_12(d->a + d->b * pl_rng_normal(rng));
  case PL_DRAW_CHOICE:
    break;
  }
  return 0;
}

pl_status pl_draw_at(const pl_draw *d, uint64_t index, pl_json **drawn, const pl_json **out, pl_err *e) {
  pl_rng rng = pl_rng_at(d->seed, PL_STREAM_SWEEP, d->name, (uint32_t)index);
  if (d->kind == PL_DRAW_CHOICE) {
    *out = pl_json_at(d->choices, (size_t)pl_rng_below(&rng, pl_json_size(d->choices)));
    return PL_OK;
  }
  *drawn = pl_json_new_number(number_at(d, &rng));
  if (*drawn == NULL) return pl_fail(e, PL_FAIL, "out of memory for a random value");
  *out = *drawn;
  return PL_OK;
}
