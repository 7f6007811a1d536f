#include "runners/launchers/slurm/script.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"

void pl_shell_quote(const char *text, pl_str *out) {
  pl_str_append(out, "'");
  for (; *text != '\0'; text++) {
    if (*text == '\'')
      pl_str_append(out, "'\\''");
    else
      pl_str_append_bytes(out, text, 1);
  }
  pl_str_append(out, "'");
}

void pl_shell_show(const char *text, pl_str *out) {
  static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (text[0] != '\0' && text[strspn(text, harmless)] == '\0')
    pl_str_append(out, text);
  else
    pl_shell_quote(text, out);
}

/* Appends one argument, which the string becomes; NULL text keeps the list as it is. */
static pl_status push(pl_script *s, pl_str *argument, pl_err *e) {
  pl_status st = pl_str_check(argument, e);
  if (st == PL_OK && s->argc + 2 > s->capacity) {
    size_t capacity = 2 * s->capacity + 32;
    st = pl_grow(s->capacity, capacity, sizeof *s->argv, "the arguments of sbatch", &s->argv, e);
    if (st == PL_OK) s->capacity = capacity;
  }
  if (st == PL_OK) st = pl_strdup(pl_str_text(argument), &s->argv[s->argc], e);
  if (st == PL_OK) s->argc++;
  pl_str_free(argument);
  return st;
}

PL_PRINTF(3, 4) static pl_status add(pl_script *s, pl_err *e, const char *format, ...) {
  pl_str argument = {0};
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  pl_str_append(&argument, text);
  return push(s, &argument, e);
}

/* "--name=value" of any length; nothing where the value is NULL. */
static pl_status add_text(pl_script *s, const char *name, const char *value, pl_err *e) {
  pl_str argument = {0};
  if (value == NULL || value[0] == '\0') return PL_OK;
  pl_str_printf(&argument, "--%s=%s", name, value);
  return push(s, &argument, e);
}

static pl_status add_number(pl_script *s, const char *name, int64_t value, pl_err *e) {
  return value > 0 ? add(s, e, "--%s=%" PRId64, name, value) : PL_OK;
}

/* Slurm rounds the time of the signal to half minutes or more: a run needs some time before it. */
static int64_t signal_lead(const pl_slurm_config *c) {
  int64_t half = pl_slurm_seconds(c->time) / 2;
  return half > 0 && c->signal_lead > half ? half : c->signal_lead;
}

/* Slurm writes "%" for itself when it is doubled; a path with a backslash cannot have a part that it fills in. */
static bool slurm_can_write(const char *dir) { return strchr(dir, '\\') == NULL; }

static pl_status add_output(pl_script *s, const pl_script_args *a, pl_err *e) {
  pl_str path = {0};
  pl_str_append(&path, "--output=");
  if (!slurm_can_write(a->dir)) {
    pl_str_append(&path, "/dev/null");
    return push(s, &path, e);
  }
  for (const char *c = a->dir; *c != '\0'; c++) pl_str_append_bytes(&path, *c == '%' ? "%%" : c, *c == '%' ? 2 : 1);
  pl_str_printf(&path, "/submissions/%" PRId64 ".%%a.txt", a->number);
  return push(s, &path, e);
}

static pl_status add_identity(pl_script *s, const pl_script_args *a, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(add(s, e, "sbatch"));
  PL_TRY(add(s, e, "--parsable"));
  PL_TRY(add(s, e, "--job-name=%s", a->token));
  PL_TRY(add(s, e, "--comment=pipelag:%s", a->token));
  if (a->throttle > 0)
    PL_TRY(add(s, e, "--array=0-%" PRId64 "%%%" PRId64, a->tasks - 1, a->throttle));
  else
    PL_TRY(add(s, e, "--array=0-%" PRId64, a->tasks - 1));
  PL_TRY(add_text(s, "chdir", a->dir, e));
  PL_TRY(add_output(s, a, e));
  PL_TRY(add(s, e, "--open-mode=append"));
  if (a->after[0] != '\0') {
    pl_str after = {0};
    pl_str_printf(&after, "--dependency=afterany:%s", a->after);
    PL_TRY(push(s, &after, e));
  }
out:
  return st;
}

static pl_status add_resources(pl_script *s, const pl_slurm_config *c, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(add(s, e, c->requeue == PL_SLURM_REQUEUE_AUTO ? "--requeue" : "--no-requeue"));
  if (signal_lead(c) > 0) PL_TRY(add(s, e, "--signal=B:USR1@%" PRId64, signal_lead(c)));
  PL_TRY(add_text(s, "partition", c->partition, e));
  PL_TRY(add_text(s, "account", c->account, e));
  PL_TRY(add_text(s, "qos", c->qos, e));
  PL_TRY(add_text(s, "time", c->time, e));
  PL_TRY(add_number(s, "nodes", c->nodes, e));
  PL_TRY(add_number(s, "ntasks", c->tasks, e));
  PL_TRY(add_number(s, "cpus-per-task", c->cpus, e));
  PL_TRY(add_text(s, "mem", c->mem, e));
  PL_TRY(add_text(s, "gres", c->gres, e));
  if (c->gres == NULL && c->gpus > 0) PL_TRY(add(s, e, "--gres=gpu:%" PRId64, c->gpus));
  PL_TRY(add_text(s, "constraint", c->constraint, e));
  PL_TRY(add_text(s, "exclude", c->exclude, e));
  PL_TRY(add_text(s, "mail-type", c->mail_type, e));
  PL_TRY(add_text(s, "mail-user", c->mail_user, e));
  for (size_t i = 0; i < c->options.count; i++) {
    pl_str option = {0};
    pl_str_append(&option, c->options.values[i]);
    PL_TRY(push(s, &option, e));
  }
out:
  return st;
}

/* A name in a comment line: what could end the line or confuse a terminal becomes "?". */
static void append_safe(const char *text, pl_str *out) {
  for (; *text != '\0'; text++) {
    const bool plain = (unsigned char)*text >= ' ' && *text != 127;
    pl_str_append_bytes(out, plain ? text : "?", 1);
  }
}

static void write_text(const pl_script_args *a, pl_str *out) {
  const pl_slurm_config *c = a->config;
  pl_str_append(out, "#!/bin/bash\n# pipelag: ");
  append_safe(a->sweep, out);
  pl_str_printf(out, ", submission %" PRId64 "\n", a->number);
  if (!slurm_can_write(a->dir)) {
    pl_str_append(out, "exec >>");
    pl_shell_quote(a->dir, out);
    pl_str_printf(out, "/submissions/%" PRId64 ".\"$SLURM_ARRAY_TASK_ID\".txt 2>&1\n", a->number);
  }
  for (size_t i = 0; i < c->setup.count; i++) pl_str_printf(out, "%s\n", c->setup.values[i]);
  for (void *it = pl_json_iter(c->env); it != NULL; it = pl_json_iter_next(c->env, it)) {
    pl_str_printf(out, "export %s=", pl_json_iter_key(it));
    pl_shell_quote(pl_json_string(pl_json_iter_value(it)), out);
    pl_str_append(out, "\n");
  }
  if (c->tasks > 1)
    pl_str_printf(out, "# It starts the %" PRId64 " processes of a run with %s.\n", c->tasks,
                  c->mpi == PL_SLURM_MPIRUN ? "mpirun" : "srun --mpi=pmix");
  pl_str_append(out, "exec ");
  pl_shell_quote(a->program, out);
  pl_str_append(out, " task ");
  pl_shell_quote(a->dir, out);
  pl_str_printf(out, " %" PRId64 " \"$SLURM_ARRAY_TASK_ID\"\n", a->number);
}

pl_status pl_script_make(const pl_script_args *args, pl_script *out, pl_err *e) {
  pl_status st = PL_OK;
  *out = (pl_script){0};
  PL_TRY(add_identity(out, args, e));
  PL_TRY(add_resources(out, args->config, e));
  write_text(args, &out->text);
  PL_TRY(pl_str_check(&out->text, e));
out:
  if (st != PL_OK) pl_script_free(out);
  return st;
}

void pl_script_free(pl_script *s) {
  for (size_t i = 0; i < s->argc; i++) pl_free(s->argv[i]);
  pl_free(s->argv);
  pl_str_free(&s->text);
  *s = (pl_script){0};
}
