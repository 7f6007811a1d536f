#include "runners/ranks.h"

#include <stdio.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/memory.h"
#include "runners/preflight.h"
#include "runners/registries.h"

static bool is_alone(const pl_world *w) { return w == NULL || w->size == 1; }

/* Both end with a NUL, also in the middle. */
pl_status pl_ranks_lead(pl_world *world, const char *run_folder, const char *data_root, pl_err *e) {
  pl_str order = {0};
  pl_status st = PL_OK;
  if (is_alone(world)) return PL_OK;
  pl_str_append_bytes(&order, run_folder, strlen(run_folder) + 1);
  pl_str_append_bytes(&order, data_root, strlen(data_root) + 1);
  PL_TRY(world->type->share(world, &order, e));
  PL_TRY(world->type->agree(world, PL_OK, e));
out:
  pl_str_free(&order);
  return st;
}

pl_status pl_ranks_release(pl_world *world, bool led, pl_status st, const pl_run_one_result *out, pl_err *e) {
  pl_str bytes = {0};
  if (is_alone(world) || (led && st != PL_OK)) return st;
  if (!led) {
    pl_status shared = world->type->share(world, &bytes, e);
    if (shared != PL_OK) return shared;
    st = world->type->agree(world, st, e);
    if (st != PL_OK) return st;
  }
  pl_str_append_bytes(&bytes, (const char *)out, sizeof *out);
  st = world->type->share(world, &bytes, e);
  pl_str_free(&bytes);
  return st;
}

/* What a rank without a log opens of a run. */
typedef struct follower {
  pl_json *document;
  pl_run_config config;
  pl_device *device;
  const pl_dataset_type *dataset_type;
  pl_dataset *dataset;
  char *checkpoints;
} follower;

static pl_status open_run(follower *f, const char *folder, const char *data_root, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL;
  pl_registries registries = pl_registries_all();
  pl_model_shape shape;
  PL_TRY(pl_path_join(folder, "config.json", &path, e));
  PL_TRY(pl_json_read(path, &f->document, e));
  PL_TRY(pl_run_config_from_json(&registries, f->document, path, &f->config, e));
  PL_TRY(pl_path_join(folder, "ckpt", &f->checkpoints, e));
  PL_TRY(pl_device_open(pl_device_name(&f->config), (pl_precision)f->config.root.precision,
                        (size_t)f->config.root.threads, &f->device, e));
  ((const pl_model_type *)f->config.model.type)->shape(f->config.model.config, &shape);
  f->dataset_type = (const pl_dataset_type *)f->config.data.type;
  PL_TRY(pl_data_open(&f->config, data_root, shape.context, &f->dataset, e));
out:
  pl_free(path);
  return st;
}

static void close_run(follower *f) {
  if (f->dataset != NULL) f->dataset_type->close(f->dataset);
  pl_device_close(f->device);
  pl_json_release(f->document);
  pl_free(f->checkpoints);
}

static pl_status obey(pl_world *world, const pl_str *order, const volatile sig_atomic_t *stop, pl_err *e) {
  follower f = {0};
  pl_outcome outcome;
  pl_status st = PL_OK;
  const char *folder = order->text, *data_root = folder + strlen(folder) + 1;
  PL_TRY(world->type->agree(world, open_run(&f, folder, data_root, e), e));
  const pl_trainer_args args = {.config = &f.config,
                                .dataset_type = f.dataset_type,
                                .dataset = f.dataset,
                                .device = f.device,
                                .world = world,
                                .root = data_root,
                                .trace_folder = folder,
                                .checkpoint_folder = f.checkpoints,
                                .stop = stop};
  PL_TRY(pl_train(&args, &outcome, e));
out:
  close_run(&f);
  return st;
}

pl_status pl_run_follow(pl_world *world, const volatile sig_atomic_t *stop, pl_run_one_result *out, pl_err *e) {
  pl_str order = {0}, bytes = {0};
  pl_status st = PL_OK;
  *out = (pl_run_one_result){.state = PL_RUN_PENDING};
  PL_TRY(world->type->share(world, &order, e));
  if (order.length > 0)
    PL_TRY(obey(world, &order, stop, e));
  else
    PL_TRY(world->type->agree(world, PL_OK, e));
  PL_TRY(world->type->share(world, &bytes, e));
  if (bytes.length == sizeof *out) memcpy(out, bytes.text, sizeof *out);
out:
  pl_str_free(&order);
  pl_str_free(&bytes);
  return st;
}

static void say(const pl_world *world, const pl_err *e) {
  if (world->rank == 0 && e->text[0] != '\0') fprintf(stderr, "pipelag: %s\n", e->text);
  fflush(NULL);
}

void pl_ranks_end(pl_world *world, pl_status st, const pl_err *e) {
  if (is_alone(world)) return;
  say(world, e);
  world->type->abort(world, (int)st, e->text);
}

void pl_ranks_close(pl_world *world, pl_err *e) {
  if (world == NULL) return;
  if (!is_alone(world)) {
    say(world, e);
    *e = (pl_err){0};
  }
  world->type->close(world);
}
