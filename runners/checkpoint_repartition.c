#include <inttypes.h>

#include "core/config/run_schedule.h"
#include "runners/checkpoint_actions.h"
#include "runners/checkpoint_conversion.h"
#include "runners/say.h"

static void say_losses(const pl_conversion *c, pl_str *out) {
  size_t count = 0;
  if (!c->work.restart_ring) return;
  pl_str_append(out, "dropped: all weight versions but the newest, so that delays ramp anew");
  for (size_t q = 0; q < c->saved->stages; q++)
    if (pl_repartition_drops_state(&c->work, q))
      pl_str_printf(out, "%s%zu", count++ == 0 ? "; corrections start from nothing, or are off, in stages " : ", ", q);
  pl_str_append(out, "\n");
}

static void say_command(const pl_options *o, const pl_conversion *c, pl_str *out) {
  const int64_t processes = c->config->pipeline.stages * c->config->pipeline.replicas;
  pl_str line = {0};
  pl_str_printf(&line, "pipelag train %s%s%s", c->dir, o->data_root ? " -r " : "", o->data_root ? o->data_root : "");
  pl_str_printf(out, "go on with: %s\n", pl_str_text(&line));
  if (processes > 1 && !pl_run_config_in_one_process(c->config))
    pl_str_printf(out, "or: mpirun -n %" PRId64 " %s\n", processes, pl_str_text(&line));
  out->failed |= line.failed;
  pl_str_free(&line);
}

static pl_status report(const pl_options *o, const pl_conversion *c, pl_err *e) {
  pl_str out = {0};
  pl_str_printf(&out, "run %" PRIu64 " %s at step %" PRId64 ": %" PRId64 " stages become %" PRId64 "\n", c->from.index,
                c->from.hex, c->from.saved->counters.step, c->from.config->pipeline.stages, c->config->pipeline.stages);
  say_losses(c, &out);
  if (c->bitwise)
    pl_str_append(&out, "its numbers go on bit for bit\n");
  else if (c->why)
    pl_str_printf(&out, "its numbers will differ: %s\n", c->why);
  if (o->dry_run)
    pl_str_printf(&out, "would make %s: run %016" PRIx64 "\n", c->dir, c->plan.jobs[0].id);
  else
    pl_str_printf(&out, "made %s: run %016" PRIx64 "\n", c->dir, c->plan.jobs[0].id);
  if (!o->dry_run) say_command(o, c, &out);
  return pl_print(&out, e);
}

static pl_status report_json(const pl_conversion *c, pl_err *e) {
  pl_str out = {0};
  char hex[PL_ID_SIZE];
  pl_hash_hex(c->plan.jobs[0].id, hex);
  pl_json *json = pl_json_new_object();
  bool ok = pl_json_set(json, "dir", pl_json_new_string(c->dir)) && pl_json_set(json, "id", pl_json_new_string(hex)) &&
            pl_json_set(json, "step", pl_json_new_int(c->from.saved->counters.step)) &&
            pl_json_set(json, "stages", pl_json_new_int(c->config->pipeline.stages)) &&
            pl_json_set(json, "bitwise", pl_json_new_bool(c->bitwise)) &&
            pl_json_set(json, "origin", pl_conversion_origin(c));
  pl_json_write_canonical(json, &out);
  pl_str_append(&out, "\n");
  out.failed |= !ok;
  pl_json_release(json);
  return pl_print(&out, e);
}

pl_status pl_checkpoint_repartition(const pl_options *o, pl_err *e) {
  pl_status st = PL_OK;
  pl_conversion c;
  PL_TRY(pl_conversion_plan(o, &c, e));
  if (!o->dry_run) PL_TRY(pl_conversion_write(&c, e));
  if (o->json)
    st = report_json(&c, e);
  else if (!o->quiet)
    st = report(o, &c, e);
out:
  pl_conversion_close(&c);
  return st;
}
