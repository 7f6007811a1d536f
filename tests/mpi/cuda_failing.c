/* cuda_failing GPUS HOW: two processes on that many GPUs, in which something is wrong. Not a cmocka program: it does
 * not end well. note      none: rank 0 says how arrays travel old       rank 1 has an older NCCL; rank 0 says how they
 * travel stopped   rank 1 stops while they train killed    it is killed gone      it leaves a group; the others wait
 * for an array of its and mistakes, which NCCL's double finds: sizes     two ranks exchange arrays of different sizes
 *   early     an array is sent that may not be computed yet
 *   host      an array in the host's memory is sent */
#include <nccl.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/memory.h"
#include "core/pipeline/mpi/peers.h"
#include "core/train/trainer.h"
#include "models/models.h"
#include "optim/optim.h"

static pl_world *world;
static pl_device *device;
static pl_err problem;

static void must(pl_status st) {
  if (st == PL_OK) return;
  if (world->rank == 0) fprintf(stderr, "rank 0 says: %s\n", problem.text);
  world->type->abort(world, 40 + (int)st, problem.text);
}

/* ---- Training. ---- */

static const char run_text[] =
    "{\"model\": {\"type\": \"mlp\", \"layers\": 2, \"hidden\": 8, \"embedding\": 4, \"window\": 2, \"context\": 4}, "
    "\"data\": {\"type\": \"synthetic\", \"vocab\": 8}, \"optimizer\": \"adamw\", \"train\": {\"steps\": 100000, "
    "\"batch_tokens\": 8, \"val_tokens\": 8, \"val_every\": 0}, \"pipeline\": {\"schedule\": \"2bw\", \"stages\": 2, "
    "\"microbatches\": 2, \"watchdog\": 2}}";

static const pl_world_type *before;
static int final_signal;

/* Of some update in the middle. */
static pl_status post_and_fall(pl_gather *g, const double *own, pl_err *e) {
  static int posted;
  if (++posted == 20) raise(final_signal);
  return before->gather_post(g, own, e);
}

static void train(const char *how) {
  pl_registries registries = {pl_models, pl_datasets, pl_optimizers, pl_corrections, pl_lr_schedules};
  pl_json *json = NULL;
  pl_run_config config;
  pl_outcome outcome;
  pl_dataset *dataset = NULL;
  must(pl_json_parse(run_text, strlen(run_text), "test", &json, &problem));
  must(pl_run_config_from_json(&registries, json, "", &config, &problem));
  const pl_dataset_type *data = (const pl_dataset_type *)config.data.type;
  must(data->open(config.data.config, ".", 4, config.train.val_tokens, &dataset, &problem));
  const pl_trainer_args args = {
      .config = &config, .dataset_type = data, .dataset = dataset, .device = device, .world = world};
  pl_world_type falling = *world->type;
  before = world->type;
  falling.gather_post = post_and_fall;
  final_signal = strcmp(how, "killed") == 0 ? SIGKILL : SIGSTOP;
  if (world->rank == 1) world->type = &falling;
  must(pl_train(&args, &outcome, &problem));
}

/* ---- Groups. ---- */

static pl_peers *group;
static pl_real *array;

static void meet(void) {
  pl_peers_id *id = NULL;
  pl_str text = {0};
  char hex[2 * sizeof *id + 1];
  must(pl_alloc(1, sizeof *id, "a test", &id, &problem));
  must(pl_cuda_peers.make_id(id, &problem));
  for (size_t i = 0; i < sizeof *id; i++) snprintf(hex + 2 * i, 3, "%02x", (unsigned char)id->bytes[i]);
  pl_str_append(&text, hex);
  must(world->type->share(world, &text, &problem));
  for (size_t i = 0; i < sizeof *id; i++) {
    const char byte[3] = {text.text[2 * i], text.text[2 * i + 1], '\0'};
    id->bytes[i] = (char)strtol(byte, NULL, 16);
  }
  must(pl_cuda_peers.open(device, id, world->rank, world->size, 2, &group, &problem));
  pl_str_free(&text);
  pl_free(id);
}

static void exchange(bool sends, pl_real *data, size_t count) {
  const pl_peers_part part = {.peer = 1 - world->rank, .sends = sends, .data = data, .count = count};
  must(pl_cuda_peers.exchange(group, 0, &part, 1, &problem));
}

static void finish(void) {
  for (bool over = false; !over;) must(pl_cuda_peers.over(group, 0, &over, &problem));
}

static void gone(bool first) {
  if (first) {
    must(pl_cuda_peers.mark(group, 0, &problem));
    exchange(false, array, 5);
    finish();
  }
  pl_cuda_peers.close(group);
  for (;;) must(world->type->progress(world, &problem));
}

static void exchange_wrongly(const char *how) {
  const bool first = world->rank == 0;
  void *memory = NULL;
  pl_real host[5] = {0};
  meet();
  must(device->ops->alloc(device, 100 * sizeof *array, "a test", &memory, &problem));
  array = memory;
  if (strcmp(how, "gone") == 0) gone(first);
  must(pl_cuda_peers.mark(group, 0, &problem));
  if (strcmp(how, "early") == 0 && first) device->ops->axpby(device, 100, 1, array, 1, array);
  exchange(first, strcmp(how, "host") == 0 && first ? host : array, strcmp(how, "sizes") == 0 && first ? 6 : 5);
  finish();
}

static void tell_the_way(void) {
  static const pl_schedule schedule = {.stages = 1};
  static const pl_schedule_facts facts;
  const pl_grid grid = {.stages = 1, .replicas = world->size, .ranks = 1, .size = world->size};
  const pl_transport_args args = {.device = device, .schedule = &schedule, .facts = &facts, .size = 1};
  pl_transport *t = NULL;
  must(world->type->transport(world, &grid, &args, &t, &problem));
  if (world->rank == 0) fprintf(stderr, "rank 0 says: %s\n", world->note);
  t->type->destroy(t);
}

int main(int count, char **argument) {
  if (count != 3 || pl_world_open(&world, &problem) != PL_OK || world->size != 2) return 1;
  const char *how = argument[2];
  pl_fake_cuda_devices(atoi(argument[1]), (size_t)1 << 34);
  if (strcmp(how, "old") == 0 && world->rank == 1) pl_fake_nccl_version(22703);
  must(pl_device_open("cuda", PL_PRECISION_FP32, 1, &device, &problem));
  if (strcmp(how, "note") == 0 || strcmp(how, "old") == 0)
    tell_the_way();
  else if (strcmp(how, "stopped") == 0 || strcmp(how, "killed") == 0)
    train(how);
  else
    exchange_wrongly(how);
  pl_device_close(device);
  world->type->close(world);
  return 0;
}
