#include "runners/devices_view.h"

#include <stdio.h>
#include <string.h>

#include "core/config/run_config.h"
#include "core/device/cuda_module.h"

#define MULTI_GPU "not run on hardware"

enum { MOST_GPUS = 64, PRECISIONS = 2 };

typedef struct view {
  const char *name;
  bool has[PRECISIONS];
  char kernel[sizeof((pl_device *)0)->kernel]; /* of the last precision that it has */
  char reason[PL_ERR_TEXT];                    /* why it has none */
  pl_gpu gpus[MOST_GPUS];
  size_t gpu_count;
} view;

/* The words that a key of a run file may have. */
static const char *const *choices_of(const char *key) {
  const pl_param *row = pl_root_params;
  while (row->type != PL_END && strcmp(row->name, key) != 0) row++;
  return row->choices;
}

static void open_each(view *v) {
  for (int p = 0; p < PRECISIONS; p++) {
    pl_device *d = NULL;
    pl_err e = {0};
    v->has[p] = pl_device_open(v->name, (pl_precision)p, 1, &d, &e) == PL_OK;
    if (v->has[p])
      snprintf(v->kernel, sizeof v->kernel, "%s", d->kernel);
    else if (p == 0)
      snprintf(v->reason, sizeof v->reason, "%s", e.text);
    pl_device_close(d);
  }
}

static void look_at(const char *name, view *v) {
  pl_err e = {0};
  *v = (view){.name = name};
  if (strcmp(name, "cuda") == 0 && pl_cuda_gpus(v->gpus, MOST_GPUS, &v->gpu_count, &e) != PL_OK) {
    snprintf(v->reason, sizeof v->reason, "%s", e.text);
    v->gpu_count = 0;
    return;
  }
  open_each(v);
}

static size_t shown(const view *v) { return v->gpu_count < MOST_GPUS ? v->gpu_count : MOST_GPUS; }

static void write_begin(const view *v, pl_str *out) {
  const char *const *names = choices_of("precision");
  char list[32] = "";
  for (int p = 0; p < PRECISIONS; p++)
    if (v->has[p]) {
      if (list[0] != '\0') strcat(list, ", ");
      strcat(list, names[p]);
    }
  pl_str_printf(out, "%-10s%-12s", v->name, list);
}

static void write_one(const view *v, pl_str *out) {
  if (v->reason[0] != '\0' && v->gpu_count == 0) {
    pl_str_printf(out, "%s\n", v->reason);
    return;
  }
  for (size_t i = 0; i < shown(v); i++) {
    write_begin(v, out);
    pl_str_printf(out, "GPU %zu: %s, %zu MiB, compute capability %d.%d%s%s\n", i, v->gpus[i].name,
                  v->gpus[i].bytes >> 20, v->gpus[i].major, v->gpus[i].minor, v->reason[0] != '\0' ? "; " : "",
                  v->reason);
  }
  if (v->gpu_count > 0) return;
  write_begin(v, out);
  pl_str_printf(out, "%s%s\n", v->kernel, strcmp(v->name, "paranoid") == 0 ? "; checks every access, for tests" : "");
}

void pl_devices_write(pl_str *out) {
  for (const char *const *name = choices_of("device"); *name != NULL; name++) {
    view v;
    look_at(*name, &v);
    write_one(&v, out);
  }
  pl_str_append(out, "multi-GPU: " MULTI_GPU "\n");
}

static pl_json *gpu_json(const pl_gpu *g) {
  pl_json *json = pl_json_new_object();
  char capability[32];
  snprintf(capability, sizeof capability, "%d.%d", g->major, g->minor);
  const bool ok = pl_json_set(json, "name", pl_json_new_string(g->name)) &&
                  pl_json_set(json, "memory_mib", pl_json_new_int((int64_t)(g->bytes >> 20))) &&
                  pl_json_set(json, "compute_capability", pl_json_new_string(capability));
  return pl_json_keep(json, ok);
}

static pl_json *view_json(const view *v) {
  const char *const *names = choices_of("precision");
  pl_json *json = pl_json_new_object(), *precisions = pl_json_new_array(), *gpus = pl_json_new_array();
  bool ok = true;
  for (int p = 0; ok && p < PRECISIONS; p++)
    if (v->has[p]) ok = pl_json_append(precisions, pl_json_new_string(names[p]));
  for (size_t i = 0; ok && i < shown(v); i++) ok = pl_json_append(gpus, gpu_json(&v->gpus[i]));
  ok = pl_json_set(json, "name", pl_json_new_string(v->name)) && ok;
  ok = pl_json_set(json, "precisions", precisions) && ok;
  ok = pl_json_set(json, "kernel", v->kernel[0] != '\0' ? pl_json_new_string(v->kernel) : pl_json_new_null()) && ok;
  ok = pl_json_set(json, "reason", v->reason[0] != '\0' ? pl_json_new_string(v->reason) : pl_json_new_null()) && ok;
  if (strcmp(v->name, "cuda") == 0)
    ok = pl_json_set(json, "gpus", gpus) && ok;
  else
    pl_json_release(gpus);
  return pl_json_keep(json, ok);
}

pl_json *pl_devices_json(void) {
  pl_json *json = pl_json_new_object(), *devices = pl_json_new_array();
  bool ok = true;
  for (const char *const *name = choices_of("device"); *name != NULL; name++) {
    view v;
    look_at(*name, &v);
    ok = pl_json_append(devices, view_json(&v)) && ok;
  }
  ok = pl_json_set(json, "devices", devices) && ok;
  ok = pl_json_set(json, "multi_gpu", pl_json_new_string(MULTI_GPU)) && ok;
  return pl_json_keep(json, ok);
}
