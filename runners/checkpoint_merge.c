#include <inttypes.h>
#include <stdio.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "results/h5_file.h"
#include "runners/checkpoint_actions.h"
#include "runners/checkpoint_source.h"
#include "runners/say.h"

static const char *const kinds[] = {"matrix", "embedding", "head", "norm", "bias", "point"}; /* pl_segment_kind */

static pl_status put_attributes(const pl_checkpoint_source *s, pl_h5 *f, pl_err *e) {
  pl_str text = {0};
  pl_json_write_canonical(s->document, &text);
  pl_status st = pl_str_check(&text, e);
  if (st == PL_OK) {
    pl_h5_set_text(f, "/", "generator", "pipelag");
    pl_h5_set_text(f, "/", "id", s->hex);
    pl_h5_set_int(f, "/", "step", s->saved->counters.step);
    pl_h5_set_text(f, "/", "config", text.text);
  }
  pl_str_free(&text);
  return st;
}

/* A tied head is the embedding, which has a dataset already. */
static void put_stage(const pl_saved *s, size_t stage, pl_h5 *f, pl_real *staging) {
  const pl_stage *held = &s->stage[stage];
  held->device->ops->download(held->device, staging, pl_ring_newest(&held->ring), held->layout->size * sizeof *staging);
  for (size_t i = 0; i < held->layout->count; i++) {
    const pl_segment *g = &held->layout->segments[i];
    if (g->tied_copy) continue;
    pl_h5_write_reals(f, g->name, staging + g->offset, g->rows, g->cols);
    pl_h5_set_text(f, g->name, "kind", kinds[g->kind]);
  }
}

static pl_status write_file(const pl_checkpoint_source *s, const char *path, pl_err *e) {
  pl_status st = PL_OK;
  pl_h5 *f = NULL;
  pl_real *staging = NULL;
  char *bytes = NULL;
  size_t count = 0, largest = 0;
  for (size_t i = 0; i < s->saved->stages; i++)
    if (s->saved->layout[i]->size > largest) largest = s->saved->layout[i]->size;
  PL_TRY(pl_alloc(largest, sizeof *staging, "a stage's weights", &staging, e));
  PL_TRY(pl_h5_create(&f, e));
  PL_TRY(put_attributes(s, f, e));
  for (size_t i = 0; i < s->saved->stages; i++) put_stage(s->saved, i, f, staging);
  PL_TRY(pl_h5_image(f, &bytes, &count, e));
  PL_TRY(pl_file_replace(path, bytes, count, e));
out:
  pl_free(bytes);
  pl_h5_free(f);
  pl_free(staging);
  return st;
}

static size_t count_parameters(const pl_saved *s) {
  size_t sum = 0;
  for (size_t i = 0; i < s->stages; i++) sum += pl_layout_parameters(s->layout[i]);
  return sum;
}

static pl_status report(const pl_options *o, const pl_checkpoint_source *s, pl_err *e) {
  pl_str out = {0};
  const int64_t step = s->saved->counters.step, parameters = (int64_t)count_parameters(s->saved);
  if (!o->json) {
    pl_str_printf(&out, "%s: %" PRId64 " parameters of run %s at step %" PRId64 "\n", o->output, parameters, s->hex,
                  step);
    return pl_print(&out, e);
  }
  pl_json *json = pl_json_new_object();
  out.failed = !(
      pl_json_set(json, "file", pl_json_new_string(o->output)) && pl_json_set(json, "id", pl_json_new_string(s->hex)) &&
      pl_json_set(json, "step", pl_json_new_int(step)) && pl_json_set(json, "parameters", pl_json_new_int(parameters)));
  pl_json_write_canonical(json, &out);
  pl_str_append(&out, "\n");
  pl_json_release(json);
  return pl_print(&out, e);
}

pl_status pl_checkpoint_merge(const pl_options *o, pl_err *e) {
  pl_status st = PL_OK;
  pl_checkpoint_source s = {0};
  if (!o->output) return pl_fail(e, PL_BAD, "checkpoint merge: -o is missing; allowed: the file to write");
  PL_TRY(pl_checkpoint_source_open(o, &s, e));
  PL_TRY(write_file(&s, o->output, e));
  if (o->json || !o->quiet) st = report(o, &s, e);
out:
  pl_checkpoint_source_close(&s);
  return st;
}
