#include "runners/schedule_measured.h"

#include <stdio.h>

#include "analysis/extend.h"
#include "core/base/fs.h"
#include "core/base/memory.h"
#include "core/config/run_schedule.h"
#include "runners/launchers/slurm/states.h"
#include "runners/registries.h"
#include "runners/say.h"

/* The run that is shown. */
typedef struct shown_run {
  char id[PL_ID_SIZE];
  pl_json *document;
  pl_run_config *config;
  pl_schedule *schedule;
  pl_trace_rows *traces; /* [schedule stages] */
} shown_run;

static void close_run(shown_run *r) {
  for (size_t p = 0; r->traces && p < r->schedule->stages; p++) pl_trace_rows_free(&r->traces[p]);
  pl_free(r->traces);
  if (r->schedule) pl_schedule_free(r->schedule);
  pl_free(r->schedule);
  pl_free(r->config);
  pl_json_release(r->document);
}

static pl_status trace_path(const char *dir, uint64_t id, size_t stage, char **out, pl_err *e) {
  char name[32];
  snprintf(name, sizeof name, "trace.%zu.tsv", stage);
  return pl_run_path(dir, id, name, out, e);
}

static pl_status has_traces(const pl_states *s, size_t index, bool *out, pl_err *e) {
  char *path = NULL;
  pl_status st = trace_path(s->dir, s->runs[index].id, 0, &path, e);
  if (st == PL_OK) *out = pl_path_exists(path);
  pl_free(path);
  return st;
}

static pl_status say_none(const char *dir, const char *what, pl_err *e) {
  return pl_fail(e, PL_NOTHING,
                 "%s: %s no traces; a run with several stages writes them when pipeline.trace is the number of updates "
                 "to time, e.g. --set pipeline.trace=4",
                 dir, what);
}

static pl_status find_run(const pl_options *o, uint64_t *id, pl_err *e) {
  pl_states s = {0};
  pl_status st = PL_OK;
  size_t index = 0;
  PL_TRY(pl_states_read(o->schedule.measured, &s, e));
  if (o->arg_count > 0) {
    PL_TRY(pl_states_find(&s, o->args[0], &index, e));
  } else {
    st = pl_states_find_only(&s, "traces", has_traces, &index, e);
    if (st == PL_NOTHING) st = say_none(s.dir, "its runs have", e);
    if (st != PL_OK) goto out;
  }
  *id = s.runs[index].id;
out:
  pl_states_free(&s);
  return st;
}

static pl_status read_config(const char *dir, uint64_t id, shown_run *r, pl_err *e) {
  const pl_registries registries = pl_registries_all();
  pl_status st = PL_OK;
  char *path = NULL, *root = NULL;
  PL_TRY(pl_alloc(1, sizeof *r->config, "a configuration", &r->config, e));
  PL_TRY(pl_alloc(1, sizeof *r->schedule, "the schedule", &r->schedule, e));
  PL_TRY(pl_run_path(dir, id, "config.json", &path, e));
  PL_TRY(pl_json_read(path, &r->document, e));
  PL_TRY(pl_run_config_from_json(&registries, r->document, path, r->config, e));
  PL_TRY(pl_extend_data_folder(dir, &root, e));
  PL_TRY(pl_run_config_schedule(r->config, root, r->schedule, e));
out:
  pl_free(root);
  pl_free(path);
  return st;
}

static pl_status read_traces(const char *dir, uint64_t id, shown_run *r, pl_err *e) {
  const size_t stages = r->schedule->stages;
  char *path = NULL;
  pl_status st = pl_alloc(stages, sizeof *r->traces, "the traces", &r->traces, e);
  for (size_t p = 0; p < stages && st == PL_OK; p++) {
    pl_free(path);
    path = NULL;
    PL_TRY(trace_path(dir, id, p, &path, e));
    st = pl_trace_read(path, &r->traces[p], e);
  }
  if (st == PL_NOTHING) {
    pl_str what = {0};
    pl_str_printf(&what, "run %s has", r->id);
    st = say_none(dir, pl_str_text(&what), e);
    pl_str_free(&what);
  }
out:
  pl_free(path);
  return st;
}

static pl_status check_use(const pl_options *o, pl_err *e) {
  const pl_schedule_options *s = &o->schedule;
  if (!s->file && !s->text && s->stages == 0 && s->microbatches == 0 && s->chunks == 0 && !s->delay) return PL_OK;
  return pl_fail(e, PL_BAD,
                 "schedule: --measured is given with --file, --text, --stages, --microbatches, --chunks or --delay; "
                 "allowed: a run, --updates, --json, --svg");
}

static pl_status write_svg(const pl_options *o, const pl_measured *m, pl_err *e) {
  pl_str text = {0};
  pl_status st = pl_measured_svg(m, o->schedule.updates, &text, e);
  if (st == PL_OK) st = pl_str_check(&text, e);
  if (st == PL_OK) st = pl_file_replace(o->schedule.svg, text.text, text.length, e);
  pl_str_free(&text);
  return st;
}

static pl_status show(const pl_options *o, const pl_measured *m, const char *id, pl_err *e) {
  pl_str out = {0}, title = {0};
  pl_json *json = NULL;
  pl_status st = PL_OK;
  pl_str_printf(&title, "run %s", id);
  if (o->schedule.svg) PL_TRY(write_svg(o, m, e));
  if (o->json) {
    json = pl_measured_json(m, id);
    if (!json) PL_TRY(pl_fail(e, PL_FAIL, "out of memory for the measured schedule"));
    pl_json_write_pretty(json, &out);
  } else {
    PL_TRY(pl_measured_text(m, pl_str_text(&title), o->schedule.updates, &out, e));
    if (o->schedule.svg && !o->quiet) pl_str_printf(&out, "\n%s\n", o->schedule.svg);
  }
  st = pl_print(&out, e);
out:
  pl_json_release(json);
  pl_str_free(&title);
  pl_str_free(&out);
  return st;
}

pl_status pl_schedule_measured(const pl_options *o, pl_err *e) {
  pl_status st = PL_OK;
  shown_run r = {0};
  pl_measured m = {0};
  uint64_t id = 0;
  PL_TRY(check_use(o, e));
  PL_TRY(find_run(o, &id, e));
  pl_hash_hex(id, r.id);
  PL_TRY(read_config(o->schedule.measured, id, &r, e));
  PL_TRY(read_traces(o->schedule.measured, id, &r, e));
  st = pl_measured_make(r.schedule, r.traces, r.config->train.steps, &m, e);
  if (st == PL_BAD) pl_err_prefix(e, "%s: run %s", o->schedule.measured, r.id);
  if (st == PL_OK) st = show(o, &m, r.id, e);
out:
  pl_measured_free(&m);
  close_run(&r);
  return st;
}
