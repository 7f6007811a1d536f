/* pipelag schedule [NAME]: the grid of a schedule, and the delays, versions, bubble and memory that follow from it. */
#include <stdio.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "core/pipeline/draw.h"
#include "core/pipeline/schedule_text.h"
#include "runners/command.h"
#include "runners/say.h"
#include "runners/schedule_measured.h"
#include "runners/schedule_plan.h"
#include "runners/schedule_view.h"

static pl_status list_schedules(pl_err *e) {
  size_t count = 0;
  const pl_schedule_type *const *types = pl_schedule_types(&count);
  pl_str out = {0};
  for (size_t i = 0; i < count; i++)
    pl_str_printf(&out, "%-19s %s\n%-19s   source: %s\n", types[i]->name, types[i]->summary, "", types[i]->source);
  return pl_print(&out, e);
}

/* "1" for all stages, or "3,2,1,0". */
static pl_status parse_delay(const char *text, size_t stages, int64_t *out, pl_err *e) {
  pl_status st = PL_OK;
  char *copy = NULL;
  size_t count = 0;
  bool good = true;
  PL_TRY(pl_strdup(text, &copy, e));
  for (char *piece = copy, *comma = copy; comma && good; piece = comma + 1) {
    comma = strchr(piece, ',');
    if (comma) *comma = '\0';
    good = count < stages && pl_parse_int(piece, &out[count]) && out[count] >= 0 && out[count] <= 1000000;
    count++;
  }
  if (!good || (count != 1 && count != stages))
    PL_TRY(pl_fail(e, PL_BAD,
                   "--delay: saw \"%.100s\"; allowed: a number from 0 to 1000000, or one for each of the %zu "
                   "stages with commas between",
                   text, stages));
  for (size_t p = 1; p < stages && count == 1; p++) out[p] = out[0];
out:
  pl_free(copy);
  return st;
}

static pl_status make_named(const char *name, const pl_schedule_options *o, const pl_schedule_type **type,
                            pl_schedule *out, pl_err *e) {
  pl_status st = PL_OK;
  int64_t *delay = NULL;
  *type = pl_schedule_find(name, e);
  if (!*type) return PL_BAD;
  if (o->stages == 0 || o->microbatches == 0)
    return pl_fail(e, PL_BAD, "schedule %s: --%s is missing; allowed: a whole number from 1", name,
                   o->stages == 0 ? "stages" : "microbatches");
  pl_schedule_args args = {.stages = o->stages,
                           .microbatches = o->microbatches,
                           .chunks = o->chunks,
                           .allow_min_microbatches = o->allow_min_microbatches};
  if (o->delay) {
    PL_TRY(pl_alloc(o->stages, sizeof *delay, "the delays", &delay, e));
    PL_TRY(parse_delay(o->delay, o->stages, delay, e));
    args.delay = delay;
  }
  PL_TRY(pl_schedule_make(*type, &args, out, e));
out:
  pl_free(delay);
  return st;
}

static pl_status check_use(const pl_options *o, pl_err *e) {
  const pl_schedule_options *s = &o->schedule;
  if (o->json + s->text + (s->svg != NULL) > 1)
    return pl_fail(e, PL_BAD, "schedule: more than one of --json, --text, --svg is given; allowed: one");
  if (s->costs || s->flops_per_second > 0 || s->bandwidth > 0)
    return pl_fail(e, PL_BAD,
                   "schedule: --costs, --flops-per-second or --bandwidth is given without --plan; allowed: with it");
  if (!(s->forward > 0 && s->backward > 0))
    return pl_fail(e, PL_BAD, "--forward, --backward: saw %g, %g; allowed: above 0", s->forward, s->backward);
  if (s->weight > s->backward)
    return pl_fail(e, PL_BAD, "--backward-weight: saw %g; allowed: at most the %g of --backward", s->weight,
                   s->backward);
  if (!s->file) return PL_OK;
  if (o->arg_count > 0 || s->stages > 0 || s->microbatches > 0 || s->chunks > 0 || s->delay)
    return pl_fail(e, PL_BAD,
                   "schedule: --file is given with a name, --stages, --microbatches, --chunks or --delay; allowed: the "
                   "file alone, it says them");
  return PL_OK;
}

static pl_status show(const pl_options *o, const pl_schedule *s, const pl_schedule_type *type, pl_str *out, pl_err *e) {
  pl_status st = PL_OK;
  const pl_schedule_options *given = &o->schedule;
  const pl_costs costs = {.all = {.forward = given->forward,
                                  .backward = given->backward,
                                  .weight = given->weight >= 0 ? given->weight : given->backward / 2},
                          .latency = given->latency,
                          .transfer = given->transfer};
  pl_schedule_view *v = NULL;
  pl_json *json = NULL;
  PL_TRY(pl_alloc(1, sizeof *v, "the schedule", &v, e));
  PL_TRY(pl_schedule_view_make(s, type, &costs, given->updates, v, e));
  if (given->text)
    pl_schedule_write(s, out);
  else if (given->svg)
    pl_draw_svg(&v->timeline, out);
  else if (!o->json)
    PL_TRY(pl_schedule_view_text(v, out, e));
  else if ((json = pl_schedule_view_json(v)) != NULL)
    pl_json_write_pretty(json, out);
  else
    PL_TRY(pl_fail(e, PL_FAIL, "out of memory for the schedule"));
out:
  pl_json_release(json);
  if (v) pl_schedule_view_free(v);
  pl_free(v);
  return st;
}

static pl_status run(const pl_options *o, pl_err *e) {
  pl_status st = PL_OK;
  pl_schedule *s = NULL;
  const pl_schedule_type *type = NULL;
  pl_str out = {0};
  if (o->schedule.measured) return pl_schedule_measured(o, e);
  if (o->schedule.plan || o->schedule.model) return pl_schedule_plan(o, e);
  PL_TRY(check_use(o, e));
  if (o->arg_count == 0 && !o->schedule.file) return list_schedules(e);
  PL_TRY(pl_alloc(1, sizeof *s, "the schedule", &s, e));
  if (o->schedule.file)
    PL_TRY(pl_schedule_read(o->schedule.file, s, e));
  else
    PL_TRY(make_named(o->args[0], &o->schedule, &type, s, e));
  PL_TRY(show(o, s, type, &out, e));
  if (!o->schedule.svg) {
    st = pl_print(&out, e);
    goto out;
  }
  PL_TRY(pl_str_check(&out, e));
  PL_TRY(pl_file_replace(o->schedule.svg, pl_str_text(&out), out.length, e));
  if (!o->quiet) printf("%s\n", o->schedule.svg);
out:
  pl_str_free(&out);
  if (s) pl_schedule_free(s);
  pl_free(s);
  return st;
}

const pl_command pl_command_schedule = {.name = "schedule",
                                        .arguments = "[NAME]",
                                        .summary =
                                            "Show a pipeline schedule: grid, delays, versions, bubble; without a "
                                            "name: all",
                                        .options = "PMUKdNpbgeuIEGLOHzBSrJqZ",
                                        .min_args = 0,
                                        .max_args = 1,
                                        .run = run};
