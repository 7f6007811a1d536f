#include "runners/profile_view.h"

#include <inttypes.h>

/* What a run did not do is not shown. */
static bool is_used(const pl_profile_sum *s) { return s->calls > 0; }

static double per_second(const pl_profile_sum *s) { return s->seconds > 0 ? 1e-9 * s->flops / s->seconds : 0; }

static double share_of(const pl_profile_sum *s, double seconds) { return seconds > 0 ? s->seconds / seconds : 0; }

void pl_profile_write(const pl_profile *p, pl_str *out) {
  const double seconds = pl_profile_seconds(p);
  if (!p->inner) {
    pl_str_append(out, "profile: nothing was trained now\n");
    return;
  }
  pl_str_printf(out, "%-28s %10s %8s %10s %9s\n", "time spent on", "seconds", "share", "calls", "GFLOP/s");
  for (size_t i = 0; i < PL_PROFILE_COUNT; i++) {
    const pl_profile_sum *s = &p->sum[i];
    if (!is_used(s)) continue;
    pl_str_printf(out, "%-28s %10.4f %7.2f%% %10" PRIu64, pl_profile_texts[i], s->seconds, 100 * share_of(s, seconds),
                  s->calls);
    if (s->flops > 0) pl_str_printf(out, " %9.1f", per_second(s));
    pl_str_append(out, "\n");
  }
  pl_str_printf(out, "%-28s %10.4f\n", "all", seconds);
}

static pl_json *part_json(const pl_profile_sum *s, double seconds) {
  pl_json *json = pl_json_new_object();
  bool ok = pl_json_set(json, "seconds", pl_json_new_number(s->seconds)) &&
            pl_json_set(json, "share", pl_json_new_number(share_of(s, seconds))) &&
            pl_json_set(json, "calls", pl_json_new_int((int64_t)s->calls));
  if (ok && s->flops > 0) ok = pl_json_set(json, "gflops_per_second", pl_json_new_number(per_second(s)));
  return pl_json_keep(json, ok);
}

pl_json *pl_profile_json(const pl_profile *p) {
  const double seconds = pl_profile_seconds(p);
  pl_json *json = pl_json_new_object(), *parts = pl_json_new_object();
  bool ok = true;
  for (size_t i = 0; i < PL_PROFILE_COUNT && ok; i++)
    if (is_used(&p->sum[i])) ok = pl_json_set(parts, pl_profile_names[i], part_json(&p->sum[i], seconds));
  ok = pl_json_set(json, "parts", parts) && ok && pl_json_set(json, "seconds", pl_json_new_number(seconds));
  return pl_json_keep(json, ok);
}
