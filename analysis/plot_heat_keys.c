/* Which keys can be the axes of a heat map. */
#include <string.h>

#include "analysis/key_values.h"
#include "analysis/plots.h"
#include "core/base/memory.h"

/* Values are means over seeds, so that a seed is no axis. */
static bool is_axis(const pl_key_set *k) { return k && k->count > 1 && strcmp(k->key, "seed") != 0; }

/* The learning rates of an arm are those of its cells. */
static pl_status read_keys(const pl_arms *arms, pl_key_values *out, pl_err *e) {
  pl_status st = PL_OK;
  for (size_t i = 0; i < arms->count; i++)
    for (size_t k = 0; k < arms->arms[i].cell_count; k++)
      PL_TRY(pl_key_values_add(out, arms->arms[i].cells[k].runs[0].run->config, e));
out:
  return st;
}

static pl_status refuse(const char *key, const pl_key_values *keys, pl_err *e) {
  pl_status st = PL_OK;
  pl_str axes = {0};
  const char **names = NULL, *why = "is a key that no run has";
  size_t count = 0;
  PL_TRY(pl_alloc(keys->count, sizeof names[0], "keys", &names, e));
  for (size_t i = 0; i < keys->count; i++)
    if (is_axis(&keys->sets[i])) names[count++] = keys->sets[i].key;
  for (size_t i = 0; i < count; i++) pl_str_printf(&axes, "%s%s", i > 0 ? ", " : "", names[i]);
  PL_TRY(pl_str_check(&axes, e));
  if (strcmp(key, "seed") == 0)
    why = "is no axis, values are means over seeds";
  else if (pl_key_values_find(keys, key))
    why = "has one value in all runs";
  size_t near = pl_nearest(key, names, count);
  st = pl_fail(e, PL_BAD, "--heat: %s %s%s%s%s; allowed: two keys that differ between runs, here %s", key, why,
               near < count ? ", did you mean " : "", near < count ? names[near] : "", near < count ? "?" : "",
               count > 0 ? axes.text : "none does");
out:
  pl_free(names);
  pl_str_free(&axes);
  return st;
}

pl_status pl_plot_heat_check(const char *const keys[2], const pl_arms *arms, pl_err *e) {
  pl_status st = PL_OK;
  pl_key_values known = {0};
  if (!keys[0]) return PL_OK;
  if (strcmp(keys[0], keys[1]) == 0)
    return pl_fail(e, PL_BAD, "--heat: saw %s twice; allowed: two different keys, for example optimizer.lr,delay",
                   keys[0]);
  PL_TRY(read_keys(arms, &known, e));
  for (int i = 0; i < 2; i++)
    if (!is_axis(pl_key_values_find(&known, keys[i]))) PL_TRY(refuse(keys[i], &known, e));
out:
  pl_key_values_free(&known);
  return st;
}
