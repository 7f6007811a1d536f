/* pipelag list [KIND [NAME]]: components with their parameters, defaults and sources; the devices of this machine. */
#include <stdio.h>
#include <string.h>

#include "runners/command.h"
#include "runners/devices_view.h"
#include "runners/registries.h"
#include "runners/say.h"

typedef struct kind {
  const char *name; /* plural, as typed */
  pl_registry registry;
} kind;

enum { KINDS = 5 };

static void all_kinds(kind out[KINDS]) {
  pl_registries r = pl_registries_all();
  const kind kinds[KINDS] = {{"models", r.models},
                             {"datasets", r.datasets},
                             {"optimizers", r.optimizers},
                             {"corrections", r.corrections},
                             {"lr_schedules", r.lr_schedules}};
  memcpy(out, kinds, sizeof kinds);
}

static void describe_table(const pl_param *table, pl_str *out) {
  for (const pl_param *row = table; row->type != PL_END; row++) {
    pl_str_printf(out, "  %-20s ", row->name);
    pl_param_describe(row, out);
    pl_str_printf(out, "%s\n", row->not_identity ? " (not part of a run's identity)" : "");
    if (row->help != NULL) pl_str_printf(out, "  %-20s   %s\n", "", row->help);
  }
}

static void describe(const pl_component *c, pl_str *out) {
  pl_str_printf(out, "%s: %s\n  source: %s\n", c->name, c->summary, c->source);
  describe_table(c->params, out);
}

static void list_kind(const kind *k, pl_str *out) {
  pl_str_printf(out, "%s\n", k->name);
  for (size_t i = 0; i < k->registry.count; i++)
    pl_str_printf(out, "  %-12s %s\n", k->registry.items[i]->name, k->registry.items[i]->summary);
}

static const kind *find_kind(const kind *kinds, const char *text, pl_err *e) {
  const char *names[KINDS];
  for (size_t i = 0; i < KINDS; i++) {
    names[i] = kinds[i].name;
    size_t length = strlen(text);
    if (strncmp(text, names[i], length) == 0 && strlen(names[i]) - length <= 1) return &kinds[i]; /* optimizer(s) */
  }
  size_t near = pl_nearest(text, names, KINDS);
  pl_fail(e, PL_BAD,
          "list: unknown kind \"%s\"%s%s%s; allowed: models, datasets, optimizers, corrections, lr_schedules, run, "
          "devices",
          text, near == SIZE_MAX ? "" : "; did you mean \"", near == SIZE_MAX ? "" : names[near],
          near == SIZE_MAX ? "" : "\"?");
  return NULL;
}

static pl_status list_one_kind(const pl_options *o, const kind *kinds, pl_str *out, pl_err *e) {
  const kind *k = find_kind(kinds, o->args[0], e);
  if (k == NULL) return PL_BAD;
  if (o->arg_count == 1) {
    for (size_t i = 0; i < k->registry.count; i++) describe(k->registry.items[i], out);
    return PL_OK;
  }
  const pl_component *c = pl_registry_find(&k->registry, o->args[1], "list", e);
  if (c == NULL) return PL_BAD;
  describe(c, out);
  return PL_OK;
}

static void list_all(const kind *kinds, pl_str *out) {
  for (size_t i = 0; i < KINDS; i++) list_kind(&kinds[i], out);
  pl_str_append(out, "run\n  keys at the root, in `train` and in `pipeline`: pipelag list run\n");
  pl_str_append(out, "devices\n  where runs can train on this machine: pipelag list devices\n");
}

static void list_run(pl_str *out) {
  pl_str_append(out, "run\n");
  describe_table(pl_root_params, out);
  pl_str_append(out, "run: train\n");
  describe_table(pl_train_params, out);
  pl_str_append(out, "run: pipeline\n");
  describe_table(pl_pipeline_params, out);
  pl_str_append(out, "run: model, data, optimizer, train.lr_schedule, correction\n  a name or an object with \"type\": "
                     "pipelag list models, datasets, optimizers, lr_schedules, corrections\n");
}

static void list_devices(bool json, pl_str *out) {
  if (!json) {
    pl_devices_write(out);
    return;
  }
  pl_json *devices = pl_devices_json();
  out->failed |= devices == NULL;
  if (devices != NULL) pl_json_write_canonical(devices, out);
  pl_str_append(out, "\n");
  pl_json_release(devices);
}

static pl_status run(const pl_options *o, pl_err *e) {
  kind kinds[KINDS];
  all_kinds(kinds);
  pl_str out = {0};
  pl_status st = PL_OK;
  const char *word = o->arg_count > 0 ? o->args[0] : "";
  const bool devices = strcmp(word, "devices") == 0, alone = devices || strcmp(word, "run") == 0;
  if (o->json && !devices)
    st = pl_fail(e, PL_BAD, "list: saw --json; allowed: with `devices` alone");
  else if (alone && o->arg_count > 1)
    st = pl_fail(e, PL_BAD, "list %s: unexpected name \"%.100s\"; allowed: no name", word, o->args[1]);
  else if (o->arg_count == 0)
    list_all(kinds, &out);
  else if (devices)
    list_devices(o->json, &out);
  else if (alone)
    list_run(&out);
  else
    st = list_one_kind(o, kinds, &out, e);
  pl_status printed = pl_print(&out, e);
  return st != PL_OK ? st : printed;
}

const pl_command pl_command_list = {
    .name = "list",
    .arguments = "[KIND [NAME]]",
    .summary = "Print optimizers, corrections, models ...: parameters, defaults, source; devices",
    .options = "J",
    .min_args = 0,
    .max_args = 2,
    .run = run};
