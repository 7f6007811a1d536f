#include "runners/launchers/slurm/section_check.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_TEXT = 4000, MOST_DIGITS = 6 };

/* Options of sbatch that have a key here, and those that pipelag sets or could not do its work with. */
static const struct {
  const char *option, *key;
} reserved[] = {
    {"partition", "partition"},
    {"account", "account"},
    {"qos", "qos"},
    {"time", "time"},
    {"mem", "mem"},
    {"nodes", "nodes"},
    {"ntasks", "tasks"},
    {"cpus-per-task", "cpus"},
    {"gres", "gres"},
    {"constraint", "constraint"},
    {"exclude", "exclude"},
    {"mail-type", "mail_type"},
    {"mail-user", "mail_user"},
    {"requeue", "requeue"},
    {"no-requeue", "requeue"},
    {"signal", "signal_lead"},
    {"export", "env"},
    {"export-file", "env"},
    {"array", NULL},
    {"output", NULL},
    {"error", NULL},
    {"input", NULL},
    {"job-name", NULL},
    {"parsable", NULL},
    {"wrap", NULL},
    {"open-mode", NULL},
    {"comment", NULL},
    {"chdir", NULL},
    {"dependency", NULL},
    {"test-only", NULL},
    {"wait", NULL},
    {"quiet", NULL},
    {"verbose", NULL},
    {"clusters", NULL},
    {"help", NULL},
    {"usage", NULL},
    {"version", NULL},
};

static bool read_number(const char **at, int64_t *out) {
  size_t digits = strspn(*at, "0123456789");
  if (digits == 0 || digits > MOST_DIGITS) return false;
  *out = strtoll(*at, NULL, 10);
  *at += digits;
  return true;
}

int64_t pl_slurm_seconds(const char *time) {
  int64_t field[3] = {0}, days = 0, count = 0;
  const char *at = time;
  if (at == NULL) return 0;
  const char *dash = strchr(at, '-');
  if (dash != NULL && (!read_number(&at, &days) || *at++ != '-')) return -1;
  for (; count < 3; count++) {
    if (!read_number(&at, &field[count]) || (count > 0 && field[count] > 59)) return -1;
    if (*at != ':') break;
    at++;
  }
  count++;
  if (*at != '\0' || count > 3 || (dash == NULL && count == 2)) return -1;
  if (dash == NULL && count == 1) return field[0] * 60;
  return ((days * 24 + field[0]) * 60 + field[1]) * 60 + field[2];
}

static pl_status check_plain(const char *text, const char *where, pl_err *e) {
  size_t length = strlen(text);
  if (length == 0) return pl_fail(e, PL_BAD, "%s: is empty; allowed: a text, or null for Slurm's own default", where);
  if (length > LONGEST_TEXT)
    return pl_fail(e, PL_BAD, "%s: %zu bytes are too many; allowed: at most %d", where, length, LONGEST_TEXT);
  for (const char *c = text; *c != '\0'; c++)
    if (((unsigned char)*c < ' ' && *c != '\t') || *c == 127)
      return pl_fail(e, PL_BAD, "%s: holds the control character %d; allowed: a text of one line", where, *c);
  return PL_OK;
}

static bool is_memory(const char *text) {
  size_t digits = strspn(text, "0123456789");
  bool unit = text[digits] != '\0' && strchr("KMGTkmgt", text[digits]) != NULL;
  return digits > 0 && digits <= 12 && text[digits + unit] == '\0';
}

static pl_status check_text(const char *key, const char *text, const char *where, pl_err *e) {
  pl_status st = check_plain(text, where, e);
  if (st != PL_OK) return st;
  if (strcmp(key, "time") == 0 && pl_slurm_seconds(text) <= 0)
    return pl_fail(e, PL_BAD, "%s: \"%.40s\"; allowed: minutes, \"HH:MM:SS\", \"D-HH\", \"D-HH:MM\", \"D-HH:MM:SS\"",
                   where, text);
  if (strcmp(key, "mem") == 0 && strcmp(text, "0") != 0 && text[strspn(text, "0123456789")] == '\0')
    return pl_fail(e, PL_BAD, "%s: \"%.40s\" has no unit; allowed: a whole number with K, M, G or T, as in \"4G\"",
                   where, text);
  if (strcmp(key, "mem") == 0 && !is_memory(text))
    return pl_fail(e, PL_BAD, "%s: \"%.40s\"; allowed: a whole number with K, M, G or T, as in \"4G\"", where, text);
  return PL_OK;
}

/* sbatch takes any beginning of an option's name, so a beginning of a reserved one is reserved too. */
static pl_status check_option(const char *text, const char *where, pl_err *e) {
  pl_status st = check_plain(text, where, e);
  if (st != PL_OK) return st;
  if (strncmp(text, "--", 2) != 0 || !isalpha((unsigned char)text[2]) || strcspn(text, " \t") < strcspn(text, "="))
    return pl_fail(e, PL_BAD, "%s: \"%.60s\"; allowed: \"--name\" or \"--name=value\"", where, text);
  size_t length = strcspn(text + 2, "=");
  for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
    if (strncmp(reserved[i].option, text + 2, length) != 0) continue;
    if (reserved[i].key != NULL)
      return pl_fail(e, PL_BAD, "%s: \"%.60s\" has a key of its own; allowed: slurm.%s", where, text, reserved[i].key);
    return pl_fail(e, PL_BAD, "%s: \"%.60s\" is set by pipelag itself; allowed: other options of sbatch", where, text);
  }
  return PL_OK;
}

/* sbatch reads the comments at the head of a script. */
static pl_status check_line(const char *text, const char *where, pl_err *e) {
  static const char *const marks[] = {"#SBATCH", "#PBS", "#BSUB"};
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
    if (strncmp(text, marks[i], strlen(marks[i])) == 0)
      return pl_fail(e, PL_BAD, "%s: \"%.60s\"; allowed: a shell line; slurm.options takes options of sbatch", where,
                     text);
  return check_plain(text, where, e);
}

pl_status pl_slurm_check_value(const pl_param *row, const pl_slurm_config *c, const char *where, pl_err *e) {
  const void *field = (const char *)c + row->offset;
  if (row->type == PL_TEXT) {
    const char *text = *(const char *const *)field;
    return text == NULL ? PL_OK : check_text(row->name, text, where, e);
  }
  if (row->type != PL_TEXT_LIST) return PL_OK;
  const pl_text_list *list = field;
  const bool options = strcmp(row->name, "options") == 0;
  for (size_t i = 0; i < list->count; i++) {
    char place[300];
    snprintf(place, sizeof place, "%s[%zu]", where, i);
    pl_status st = options ? check_option(list->values[i], place, e) : check_line(list->values[i], place, e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

static bool is_name(const char *text) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  return *text != '\0' && !isdigit((unsigned char)*text) && text[strspn(text, letters)] == '\0';
}

static pl_json *text_of(const pl_json *value) {
  pl_str text = {0};
  if (pl_json_string(value) != NULL) return pl_json_retain(value);
  pl_json_write_canonical(value, &text);
  pl_json *made = text.failed ? NULL : pl_json_new_string(pl_str_text(&text));
  pl_str_free(&text);
  return made;
}

pl_status pl_slurm_check_env(const pl_json *value, const char *where, pl_json **out, pl_err *e) {
  pl_status st = PL_OK;
  char shown[80];
  *out = pl_json_new_object();
  if (pl_json_kind_of(value) != PL_JSON_OBJECT)
    PL_TRY(pl_fail(e, PL_BAD, "%s: %s; allowed: an object of names and strings", where, pl_json_show(value, shown)));
  for (void *it = pl_json_iter(value); it != NULL; it = pl_json_iter_next(value, it)) {
    const char *name = pl_json_iter_key(it);
    const pl_json *text = pl_json_iter_value(it);
    pl_json_kind kind = pl_json_kind_of(text);
    if (!is_name(name))
      PL_TRY(pl_fail(e, PL_BAD, "%s: \"%.60s\" is no name of a variable; allowed: letters, digits and _", where, name));
    if (kind != PL_JSON_STRING && kind != PL_JSON_INT && kind != PL_JSON_REAL)
      PL_TRY(pl_fail(e, PL_BAD, "%s.%.60s: %s; allowed: a string", where, name, pl_json_show(text, shown)));
    if (!pl_json_set(*out, name, text_of(text))) PL_TRY(pl_fail(e, PL_FAIL, "%s: out of memory", where));
  }
out:
  if (st != PL_OK) {
    pl_json_release(*out);
    *out = NULL;
  }
  return st;
}

pl_status pl_slurm_check_together(const pl_slurm_config *c, pl_err *e) {
  if (c->gres != NULL && c->gpus > 0)
    return pl_fail(e, PL_BAD, "slurm.gres: \"%.60s\" beside gpus %" PRId64 "; allowed: one of both", c->gres, c->gpus);
  if (c->nodes > c->tasks)
    return pl_fail(e, PL_BAD, "slurm.nodes: %" PRId64 " nodes for %" PRId64 " tasks; allowed: at most one node a task",
                   c->nodes, c->tasks);
  if (c->pack > 1 && c->tasks > 1)
    return pl_fail(e, PL_BAD, "slurm.pack: %" PRId64 " runs of %" PRId64 " tasks each; allowed: pack 1 where tasks > 1",
                   c->pack, c->tasks);
  if (c->max_running > 0 && c->pack > c->max_running)
    return pl_fail(e, PL_BAD, "slurm.pack: %" PRId64 " runs at once in a task; allowed: at most max_running, %" PRId64,
                   c->pack, c->max_running);
  return PL_OK;
}
