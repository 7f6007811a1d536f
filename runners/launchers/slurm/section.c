#include "runners/launchers/slurm/section.h"

#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/config/params_text.h"
#include "core/train/trainer.h"
#include "runners/launchers/slurm/section_check.h"

enum { MOST_RULES = 64 }; /* bits of a mask */

typedef struct slurm_rule {
  pl_sweep_condition *condition;
  pl_json *changes; /* the rule's object, texts normalised */
} slurm_rule;

/* What runs ask for whose rules are these. */
typedef struct answer {
  uint64_t mask;
  pl_json *merged, *document; /* owned: they hold what the config borrows */
  pl_slurm_config *config;    /* owned unless an earlier answer is equal, whose config it is then */
  bool repeats;
} answer;

struct pl_slurm_section {
  pl_json *base;
  slurm_rule rules[MOST_RULES];
  size_t rule_count;
  answer *answers;
  size_t answer_count, capacity;
};

static const char *const mpi_words[] = {"pmix", "mpirun", NULL};
static const char *const requeue_words[] = {"auto", "never", NULL};

#define FIELD(member) .offset = offsetof(pl_slurm_config, member)
const pl_param pl_slurm_params[] = {
    {.name = "partition", .type = PL_TEXT, FIELD(partition), .help = "partition, or several with commas"},
    {.name = "account", .type = PL_TEXT, FIELD(account), .help = "account that is charged"},
    {.name = "qos", .type = PL_TEXT, FIELD(qos), .help = "quality of service"},
    {.name = "time", .type = PL_TEXT, FIELD(time), .help = "time limit: minutes, HH:MM:SS or D-HH:MM:SS"},
    {.name = "nodes", .type = PL_INT, FIELD(nodes), .max = 100000, .help = "nodes of a run; 0: Slurm decides"},
    {.name = "tasks", .type = PL_INT, FIELD(tasks), .def = 1, .min = 1, .max = 100000, .help = "processes of a run"},
    {.name = "cpus", .type = PL_INT, FIELD(cpus), .def = 1, .min = 1, .max = 100000, .help = "CPUs of each task"},
    {.name = "mem", .type = PL_TEXT, FIELD(mem), .help = "memory of each node, as 4G; 0: all of it"},
    {.name = "gpus", .type = PL_INT, FIELD(gpus), .max = 1024, .help = "GPUs of each node"},
    {.name = "gres", .type = PL_TEXT, FIELD(gres), .help = "generic resources of each node; instead of gpus"},
    {.name = "constraint", .type = PL_TEXT, FIELD(constraint), .help = "features that a node must have"},
    {.name = "exclude", .type = PL_TEXT, FIELD(exclude), .help = "nodes that are not taken"},
    {.name = "mail_type", .type = PL_TEXT, FIELD(mail_type), .help = "events that send a mail: END, FAIL, ..."},
    {.name = "mail_user", .type = PL_TEXT, FIELD(mail_user), .help = "who gets it"},
    {.name = "max_running", .type = PL_INT, FIELD(max_running), .max = 1000000, .help = "runs at once; 0: no limit"},
    {.name = "pack", .type = PL_INT, FIELD(pack), .def = 1, .min = 1, .max = 1000, .help = "runs of one array task"},
    {.name = "requeue",
     .type = PL_CHOICE,
     FIELD(requeue),
     .choices = requeue_words,
     .help = "whether a run that was interrupted goes back into the queue"},
    {.name = "signal_lead",
     .type = PL_INT,
     FIELD(signal_lead),
     .def = 120,
     .max = 65535,
     .help = "seconds before the time limit at which a run checkpoints and is requeued; 0: never"},
    {.name = "max_restarts",
     .type = PL_INT,
     FIELD(max_restarts),
     .def = 3,
     .max = 1000000,
     .help = "attempts in a row without a newer checkpoint before a run fails"},
    {.name = "snapshot", .type = PL_BOOL, FIELD(snapshot), .help = "start a copy of pipelag kept in the directory"},
    {.name = "mpi",
     .type = PL_CHOICE,
     FIELD(mpi),
     .choices = mpi_words,
     .help = "what starts the processes of a run: srun --mpi=pmix, or mpirun"},
    {.name = "setup", .type = PL_TEXT_LIST, FIELD(setup), .help = "shell lines before a run, as module load"},
    {.name = "options", .type = PL_TEXT_LIST, FIELD(options), .help = "further options of sbatch, --name=value"},
    {0}};
#undef FIELD

/* Keys that hold for the whole directory, not for single runs. */
static bool is_for_all(const char *key) {
  return strcmp(key, "max_running") == 0 || strcmp(key, "snapshot") == 0 || strcmp(key, "rules") == 0;
}

static pl_status unknown_key(const char *key, bool rule, const char *where, pl_err *e) {
  const char *names[64];
  char seen[160];
  size_t count = 0;
  for (const pl_param *row = pl_slurm_params; row->type != PL_END; row++)
    if (!rule || !is_for_all(row->name)) names[count++] = row->name;
  names[count++] = "env";
  names[count++] = rule ? "if" : "rules";
  snprintf(seen, sizeof seen,
           rule && is_for_all(key) ? "\"%.100s\" cannot differ between runs" : "unknown key \"%.100s\"", key);
  return pl_fail_name(names, count, key, where, seen, e);
}

/* --set slurm.time=90 gives a number where a text is meant. */
static pl_json *as_text(const pl_param *row, const pl_json *value) {
  char digits[32];
  if (row->type != PL_TEXT || pl_json_kind_of(value) != PL_JSON_INT) return pl_json_retain(value);
  snprintf(digits, sizeof digits, "%lld", (long long)pl_json_int(value));
  return pl_json_new_string(digits);
}

static pl_status check_member(const char *key, const pl_json *value, bool rule, const char *where, pl_json **out,
                              pl_err *e) {
  pl_slurm_config scratch;
  char place[PL_WHERE];
  pl_where(where, key, place);
  *out = NULL;
  if (strcmp(key, "env") == 0) return pl_slurm_check_env(value, place, out, e);
  size_t i = pl_params_find(pl_slurm_params, key);
  if (i == SIZE_MAX || (rule && is_for_all(key))) return unknown_key(key, rule, where, e);
  *out = as_text(&pl_slurm_params[i], value);
  if (*out == NULL) return pl_fail(e, PL_FAIL, "%s: out of memory", place);
  pl_status st = pl_param_set(&pl_slurm_params[i], &scratch, *out, place, e);
  if (st == PL_OK) st = pl_slurm_check_value(&pl_slurm_params[i], &scratch, place, e);
  if (st == PL_OK) return PL_OK;
  pl_json_release(*out);
  *out = NULL;
  return st;
}

/* A checked copy of an object without its member `left_out`. */
static pl_status check_object(const pl_json *object, const char *left_out, const char *where, pl_json **out,
                              pl_err *e) {
  pl_status st = PL_OK;
  const bool rule = strcmp(left_out, "if") == 0;
  *out = pl_json_new_object();
  for (void *it = pl_json_iter(object); it != NULL; it = pl_json_iter_next(object, it)) {
    const char *key = pl_json_iter_key(it);
    pl_json *value = NULL;
    if (strcmp(key, left_out) == 0) continue;
    PL_TRY(check_member(key, pl_json_iter_value(it), rule, where, &value, e));
    if (!pl_json_set(*out, key, value)) PL_TRY(pl_fail(e, PL_FAIL, "%s: out of memory", where));
  }
out:
  return st;
}

static pl_status load_rule(const pl_registries *r, const pl_json *object, size_t index, slurm_rule *rule, pl_err *e) {
  pl_status st = PL_OK;
  char where[64], place[PL_WHERE], shown[80];
  snprintf(where, sizeof where, "slurm.rules[%zu]", index);
  if (pl_json_kind_of(object) != PL_JSON_OBJECT || pl_json_get(object, "if") == NULL || pl_json_size(object) < 2)
    return pl_fail(e, PL_BAD,
                   "%s: %s; allowed: an object with \"if\" and what it changes, as in {\"if\": "
                   "{\"pipeline.stages\": 8}, \"tasks\": 8}",
                   where, pl_json_show(object, shown));
  PL_TRY(check_object(object, "if", where, &rule->changes, e));
  PL_TRY(pl_sweep_condition_make(r, pl_json_get(object, "if"), pl_where(where, "if", place), &rule->condition, e));
out:
  return st;
}

static pl_status load_rules(const pl_registries *r, const pl_json *rules, pl_slurm_section *s, pl_err *e) {
  char shown[80];
  size_t count = pl_json_size(rules);
  if (rules == NULL) return PL_OK;
  if (pl_json_kind_of(rules) != PL_JSON_ARRAY)
    return pl_fail(e, PL_BAD, "slurm.rules: %s; allowed: a list of objects", pl_json_show(rules, shown));
  if (count > MOST_RULES) return pl_fail(e, PL_BAD, "slurm.rules: %zu rules; allowed: at most %d", count, MOST_RULES);
  for (size_t i = 0; i < count; i++) {
    s->rule_count++;
    pl_status st = load_rule(r, pl_json_at(rules, i), i, &s->rules[i], e);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

pl_status pl_slurm_section_load(const pl_registries *r, const pl_json *slurm, pl_slurm_section **out, pl_err *e) {
  pl_status st = PL_OK;
  PL_TRY(pl_alloc(1, sizeof **out, "the section slurm", out, e));
  PL_TRY(check_object(slurm, "rules", "slurm", &(*out)->base, e));
  PL_TRY(load_rules(r, pl_json_get(slurm, "rules"), *out, e));
out:
  if (st != PL_OK) {
    pl_slurm_section_free(*out);
    *out = NULL;
  }
  return st;
}

static void free_answer(answer *a) {
  if (!a->repeats) pl_free(a->config);
  pl_json_release(a->document);
  pl_json_release(a->merged);
}

void pl_slurm_section_free(pl_slurm_section *s) {
  if (s == NULL) return;
  for (size_t i = 0; i < s->answer_count; i++) free_answer(&s->answers[i]);
  pl_free(s->answers);
  for (size_t i = 0; i < s->rule_count; i++) {
    pl_sweep_condition_free(s->rules[i].condition);
    pl_json_release(s->rules[i].changes);
  }
  pl_json_release(s->base);
  pl_free(s);
}

/* Takes over the members of `from`; those of "env" one by one. */
static bool merge(pl_json *to, const pl_json *from) {
  bool ok = to != NULL;
  for (void *it = pl_json_iter(from); ok && it != NULL; it = pl_json_iter_next(from, it)) {
    const char *key = pl_json_iter_key(it);
    const pl_json *value = pl_json_iter_value(it), *old = pl_json_get(to, key);
    if (strcmp(key, "env") != 0 || old == NULL) {
      ok = pl_json_set(to, key, pl_json_copy(value));
      continue;
    }
    pl_json *both = pl_json_copy(old);
    ok = both != NULL && merge(both, value);
    ok = pl_json_set(to, key, both) && ok;
  }
  return ok;
}

static pl_status fill(const pl_json *merged, pl_slurm_config *c, pl_err *e) {
  char where[PL_WHERE];
  pl_params_defaults(pl_slurm_params, c);
  for (const pl_param *row = pl_slurm_params; row->type != PL_END; row++) {
    const pl_json *value = pl_json_get(merged, row->name);
    pl_status st = value == NULL ? PL_OK : pl_param_set(row, c, value, pl_where("slurm", row->name, where), e);
    if (st != PL_OK) return st;
  }
  c->env = pl_json_get(merged, "env");
  return pl_slurm_check_together(c, e);
}

static pl_status make_answer(const pl_slurm_section *s, uint64_t mask, answer *a, pl_err *e) {
  pl_status st = PL_OK;
  a->mask = mask;
  a->merged = pl_json_copy(s->base);
  bool ok = a->merged != NULL;
  for (size_t i = 0; i < s->rule_count && ok; i++)
    if (mask >> i & 1) ok = merge(a->merged, s->rules[i].changes);
  a->document = pl_json_new_object();
  if (!ok || a->document == NULL) PL_TRY(pl_fail(e, PL_FAIL, "out of memory for the section slurm"));
  PL_TRY(pl_alloc(1, sizeof *a->config, "the section slurm", &a->config, e));
  PL_TRY(fill(a->merged, a->config, e));
  ok = pl_params_dump(pl_slurm_params, a->config, a->document);
  if (a->config->env != NULL) ok = ok && pl_json_set(a->document, "env", pl_json_retain(a->config->env));
  if (!ok) st = pl_fail(e, PL_FAIL, "out of memory for the section slurm");
  a->config->document = a->document;
out:
  return st;
}

/* Rules may hold that change nothing: equal answers are one, so that their runs share an array. */
static void use_equal(pl_slurm_section *s, answer *a) {
  for (size_t i = 0; i < s->answer_count && !a->repeats; i++) {
    if (!pl_json_equal(s->answers[i].document, a->document)) continue;
    pl_free(a->config);
    a->config = s->answers[i].config;
    a->repeats = true;
  }
}

static pl_status add_answer(pl_slurm_section *s, uint64_t mask, pl_err *e) {
  if (s->answer_count == s->capacity) {
    size_t capacity = 2 * s->capacity + 8;
    pl_status st = pl_grow(s->capacity, capacity, sizeof *s->answers, "the section slurm", &s->answers, e);
    if (st != PL_OK) return st;
    s->capacity = capacity;
  }
  answer a = {0};
  pl_status st = make_answer(s, mask, &a, e);
  if (st != PL_OK) {
    free_answer(&a);
    return st;
  }
  use_equal(s, &a);
  s->answers[s->answer_count++] = a;
  return PL_OK;
}

pl_status pl_slurm_section_for(pl_slurm_section *s, pl_run_config *run, const pl_slurm_config **out, pl_err *e) {
  uint64_t mask = 0;
  for (size_t i = 0; i < s->rule_count; i++)
    if (pl_sweep_condition_holds(s->rules[i].condition, run)) mask |= (uint64_t)1 << i;
  size_t i = 0;
  while (i < s->answer_count && s->answers[i].mask != mask) i++;
  if (i == s->answer_count) {
    pl_status st = add_answer(s, mask, e);
    if (st != PL_OK) return st;
  }
  *out = s->answers[i].config;
  pl_status st = pl_run_config_check_ranks(run, (size_t)(*out)->tasks, e);
  return st == PL_OK ? st : pl_err_prefix(e, "slurm.tasks");
}

/* {"type": "object", "additionalProperties": {"type": TYPES}} and the like, from text. */
static pl_json *parsed(const char *text) {
  pl_json *value = NULL;
  return pl_json_parse(text, strlen(text), "a schema", &value, NULL) == PL_OK ? value : NULL;
}

static bool add_common(pl_json *properties) {
  return pl_json_set(properties, "env",
                     parsed("{\"type\": \"object\", \"description\": \"variables of the runs\","
                            " \"additionalProperties\": {\"type\": [\"string\", \"number\"]}}"));
}

static pl_json *closed_object(pl_json *properties) {
  pl_json *object = parsed("{\"type\": \"object\", \"additionalProperties\": false}");
  return pl_json_keep(object, pl_json_set(object, "properties", properties));
}

pl_json *pl_slurm_schema(void) {
  pl_json *of_rule = pl_json_new_object(), *all = pl_params_schema(pl_slurm_params);
  pl_json *list = parsed("{\"type\": \"array\", \"description\": \"settings of the runs that \\\"if\\\" describes\"}");
  bool ok = all != NULL && add_common(all);
  for (void *it = pl_json_iter(all); ok && it != NULL; it = pl_json_iter_next(all, it))
    if (!is_for_all(pl_json_iter_key(it)))
      ok = pl_json_set(of_rule, pl_json_iter_key(it), pl_json_copy(pl_json_iter_value(it)));
  ok = ok && pl_json_set(of_rule, "if", parsed("{\"type\": \"object\", \"minProperties\": 1}"));
  pl_json *rule = closed_object(of_rule);
  ok = ok && pl_json_set(rule, "required", parsed("[\"if\"]"));
  ok = pl_json_set(list, "items", rule) && ok;
  ok = pl_json_set(all, "rules", list) && ok;
  pl_json *section = closed_object(all);
  return pl_json_keep(section, ok);
}
