#include "runners/launchers/slurm/limits.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/config/params_text.h"
#include "runners/launchers/slurm/call.h"
#include "runners/launchers/slurm/queue.h"

enum { ASK_SECONDS = 60, ACCOUNTING_SECONDS = 5, FIELDS = 5 };

static void copy(char *to, size_t size, const char *from) { snprintf(to, size, "%s", from); }

/* Runs a command whose answer is needed. */
static pl_status ask(const char *const *argv, pl_call *call, pl_err *e) {
  char sentence[256];
  pl_status st = pl_call_run(argv, NULL, ASK_SECONDS, call, e);
  if (st != PL_OK || call->exit_code == 0) return st;
  st = pl_fail(e, PL_BAD, "cannot ask Slurm: %s: %s", argv[0], pl_call_sentence(call, sentence));
  pl_call_free(call);
  return st;
}

/* Runs a command that may fail; the answer is then empty. */
static void ask_politely(const char *const *argv, pl_call *call) {
  if (pl_call_run(argv, NULL, ACCOUNTING_SECONDS, call, NULL) == PL_OK && call->exit_code != 0) pl_call_free(call);
}

/* The next line, NUL-terminated in place and cut at its bars; false at the end. Missing fields are "". */
static bool next_row(char **text, char *fields[FIELDS]) {
  static char nothing[] = "";
  if (*text == NULL || **text == '\0') return false;
  char *at = *text, *end = strchr(at, '\n');
  *text = end != NULL ? end + 1 : NULL;
  if (end != NULL) *end = '\0';
  for (size_t i = 0; i < FIELDS; i++) {
    fields[i] = at != NULL ? at : nothing;
    at = at != NULL ? strchr(at, '|') : NULL;
    if (at != NULL) *at++ = '\0';
  }
  return true;
}

/* "MaxArraySize            = 1001" */
static void config_value(const char *text, const char *key, char *out, size_t size) {
  size_t length = strlen(key);
  out[0] = '\0';
  for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
    line += *line == '\n';
    if (strncmp(line, key, length) != 0 || strchr(" =", line[length]) == NULL) continue;
    const char *value = line + length + strspn(line + length, " =");
    snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
    return;
  }
}

/* "PartitionName=debug ... QoS=N/A ..." */
static void line_value(const char *line, const char *key, char *out, size_t size) {
  const char *found = strstr(line, key);
  out[0] = '\0';
  if (found == NULL) return;
  found += strlen(key);
  snprintf(out, size, "%.*s", (int)strcspn(found, " \n"), found);
}

static pl_status add(pl_slurm_limits *l, const pl_slurm_limit *limit, pl_err *e) {
  if (l->count == l->capacity) {
    pl_status st = pl_grow(l->capacity, 2 * l->capacity + 8, sizeof *l->items, "the limits", &l->items, e);
    if (st != PL_OK) return st;
    l->capacity = 2 * l->capacity + 8;
  }
  l->items[l->count++] = *limit;
  return PL_OK;
}

static pl_status read_config(pl_slurm_limits *l, char *cluster, char *enforced, pl_err *e) {
  const char *argv[] = {"scontrol", "show", "config", NULL};
  char value[1024];
  pl_call call;
  pl_status st = ask(argv, &call, e);
  if (st != PL_OK) return st;
  const char *text = pl_str_text(&call.out);
  config_value(text, "SLURM_VERSION", l->version, sizeof l->version);
  config_value(text, "ClusterName", cluster, PL_LIMIT_NAME);
  config_value(text, "AccountingStorageEnforce", enforced, PL_LIMIT_NAME);
  config_value(text, "MaxArraySize", value, sizeof value);
  l->array_size = strtoll(value, NULL, 10);
  if (l->array_size < 1) l->array_size = 1; /* 0: the cluster takes no arrays but those of one task */
  config_value(text, "SchedulerParameters", value, sizeof value);
  const char *most = strstr(value, "max_array_tasks=");
  int64_t tasks = most != NULL ? strtoll(most + strlen("max_array_tasks="), NULL, 10) : 0;
  if (tasks > 0 && tasks < l->array_size) l->array_size = tasks;
  config_value(text, "MaxJobCount", value, sizeof value);
  /* The last place is never given away: sbatch waits two minutes for it, in vain. */
  pl_slurm_limit jobs = {.everyone = true, .most = strtoll(value, NULL, 10) - 1};
  snprintf(jobs.text, sizeof jobs.text, "MaxJobCount %" PRId64 " of the cluster", jobs.most + 1);
  if (jobs.most > 0) st = add(l, &jobs, e);
  pl_call_free(&call);
  return st;
}

static pl_status read_partitions(pl_slurm_limits *l, pl_err *e) {
  const char *argv[] = {"scontrol", "-a", "-o", "show", "partition", NULL};
  char value[PL_LIMIT_NAME];
  pl_call call = {0};
  pl_status st = PL_OK;
  size_t lines = 0;
  ask_politely(argv, &call);
  const char *text = pl_str_text(&call.out);
  for (const char *c = text; *c != '\0'; c++) lines += *c == '\n';
  PL_TRY(pl_alloc(lines, sizeof *l->partitions, "the partitions", &l->partitions, e));
  for (char *line = strtok(call.out.text, "\n"); line != NULL && l->partition_count < lines;
       line = strtok(NULL, "\n")) {
    pl_slurm_partition *p = &l->partitions[l->partition_count];
    line_value(line, "PartitionName=", p->name, sizeof p->name);
    if (p->name[0] == '\0') continue;
    line_value(line, " QoS=", value, sizeof value);
    if (strcmp(value, "N/A") != 0) copy(p->qos, sizeof p->qos, value);
    line_value(line, " Default=", value, sizeof value);
    if (strcmp(value, "YES") == 0) copy(l->partition, sizeof l->partition, p->name);
    l->partition_count++;
  }
out:
  pl_call_free(&call);
  return st;
}

/* Adds a limit unless the database left it empty. */
static pl_status add_limit(pl_slurm_limits *l, const char *name, const char *value, const char *owner,
                           pl_slurm_limit limit, pl_err *e) {
  char *end;
  limit.most = strtoll(value, &end, 10);
  if (end == value || *end != '\0') return PL_OK;
  snprintf(limit.text, sizeof limit.text, "%s %" PRId64 " of %s", name, limit.most, owner);
  return add(l, &limit, e);
}

static pl_status read_associations(pl_slurm_limits *l, const char *user, const char *cluster, pl_err *e) {
  pl_status st = PL_OK;
  char of_user[PL_LIMIT_NAME + 8], of_cluster[PL_LIMIT_NAME + 8], owner[128], *f[FIELDS];
  snprintf(of_user, sizeof of_user, "user=%s", user);
  snprintf(of_cluster, sizeof of_cluster, "cluster=%s", cluster);
  const char *argv[] = {"sacctmgr", "-n",    "-P",       "show",
                        "assoc",    of_user, of_cluster, "format=Account,Partition,MaxSubmit,GrpSubmit,DefaultQOS",
                        NULL};
  const char *defaults[] = {"sacctmgr", "-n", "-P", "show", "user", user, "format=DefaultAccount", NULL};
  pl_call call = {0};
  ask_politely(defaults, &call);
  char *text = call.out.text;
  if (next_row(&text, f)) copy(l->account, sizeof l->account, f[0]);
  pl_call_free(&call);
  ask_politely(argv, &call);
  text = call.out.text;
  while (st == PL_OK && next_row(&text, f)) {
    pl_slurm_limit limit = {0};
    copy(limit.account, sizeof limit.account, f[0]);
    copy(limit.partition, sizeof limit.partition, f[1]);
    snprintf(owner, sizeof owner, "user %.40s in account %.40s", user, f[0]);
    if (strcmp(f[0], l->account) == 0 && f[4][0] != '\0') copy(l->qos, sizeof l->qos, f[4]);
    st = add_limit(l, "MaxSubmitJobs", f[2], owner, limit, e);
    if (st == PL_OK) st = add_limit(l, "GrpSubmitJobs", f[3], owner, limit, e);
  }
  pl_call_free(&call);
  return st;
}

/* A QOS that a partition has for itself counts the jobs of that partition. */
static pl_status add_qos(pl_slurm_limits *l, char *f[FIELDS], pl_err *e) {
  pl_status st = PL_OK;
  char owner[128];
  snprintf(owner, sizeof owner, "QOS %.60s", f[0]);
  for (size_t i = 0; i <= l->partition_count && st == PL_OK; i++) {
    pl_slurm_limit limit = {0};
    if (i == l->partition_count)
      copy(limit.qos, sizeof limit.qos, f[0]);
    else if (strcmp(l->partitions[i].qos, f[0]) == 0)
      copy(limit.partition, sizeof limit.partition, l->partitions[i].name);
    else
      continue;
    st = add_limit(l, "MaxSubmitJobsPerUser", f[1], owner, limit, e);
    limit.everyone = true;
    if (st == PL_OK) st = add_limit(l, "GrpSubmitJobs", f[2], owner, limit, e);
  }
  return st;
}

static pl_status read_qos(pl_slurm_limits *l, pl_err *e) {
  const char *argv[] = {"sacctmgr", "-n", "-P", "show", "qos", "format=Name,MaxSubmitPU,GrpSubmit", NULL};
  pl_status st = PL_OK;
  pl_call call = {0};
  char *f[FIELDS];
  ask_politely(argv, &call);
  char *text = call.out.text;
  while (st == PL_OK && next_row(&text, f)) st = add_qos(l, f, e);
  pl_call_free(&call);
  return st;
}

static bool is_or_any(const char *of_limit, const char *of_job) {
  return of_limit[0] == '\0' || strcmp(of_limit, of_job) == 0;
}

/* Jobs that ended count for MaxJobCount as long as Slurm remembers them. */
static pl_status count_use(pl_slurm_limits *l, pl_err *e) {
  const char *argv[] = {"squeue", "-h", "-r", "-t", "all", "-o", "%U|%a|%P|%q|%T", NULL};
  char own[24], *f[FIELDS];
  pl_call call;
  pl_status st = ask(argv, &call, e);
  if (st != PL_OK) return st;
  snprintf(own, sizeof own, "%lu", (unsigned long)geteuid());
  char *text = call.out.text;
  while (next_row(&text, f)) {
    const bool ended = pl_queue_kind_of(f[4]) == PL_QUEUE_ENDED, mine = strcmp(f[0], own) == 0;
    for (size_t i = 0; i < l->count; i++) {
      pl_slurm_limit *limit = &l->items[i];
      const bool cluster = limit->everyone && limit->qos[0] == '\0' && limit->partition[0] == '\0';
      if ((mine || limit->everyone) && (!ended || cluster) && is_or_any(limit->account, f[1]) &&
          is_or_any(limit->partition, f[2]) && is_or_any(limit->qos, f[3]))
        limit->used++;
    }
  }
  pl_call_free(&call);
  return PL_OK;
}

static pl_status read_accounting(pl_slurm_limits *l, const char *cluster, pl_err *e) {
  char user[PL_LIMIT_NAME];
  const struct passwd *entry = getpwuid(geteuid());
  if (entry == NULL) return PL_OK;
  copy(user, sizeof user, entry->pw_name);
  pl_status st = read_associations(l, user, cluster, e);
  return st == PL_OK ? read_qos(l, e) : st;
}

pl_status pl_slurm_limits_read(pl_slurm_limits *out, pl_err *e) {
  const char *argv[] = {"sbatch", "--version", NULL};
  char cluster[PL_LIMIT_NAME], enforced[PL_LIMIT_NAME];
  pl_status st = PL_OK;
  pl_call call = {0};
  *out = (pl_slurm_limits){0};
  PL_TRY(ask(argv, &call, e));
  pl_call_free(&call);
  PL_TRY(read_config(out, cluster, enforced, e));
  PL_TRY(read_partitions(out, e));
  if (strstr(enforced, "limits") != NULL || strstr(enforced, "safe") != NULL || strstr(enforced, "all") != NULL)
    PL_TRY(read_accounting(out, cluster, e));
  PL_TRY(count_use(out, e));
out:
  if (st != PL_OK) pl_slurm_limits_free(out);
  return st;
}

void pl_slurm_limits_free(pl_slurm_limits *l) {
  pl_free(l->items);
  pl_free(l->partitions);
  *l = (pl_slurm_limits){0};
}

static pl_status unknown_partition(const pl_slurm_limits *l, const char *name, pl_err *e) {
  enum { MOST = 64 };
  const char *names[MOST];
  char seen[160];
  size_t count = 0;
  for (; count < l->partition_count && count < MOST; count++) names[count] = l->partitions[count].name;
  snprintf(seen, sizeof seen, "the cluster has no partition \"%.100s\"", name);
  return pl_fail_name(names, count, name, "slurm.partition", seen, e);
}

pl_status pl_slurm_limits_check(const pl_slurm_limits *l, const pl_slurm_config *c, pl_err *e) {
  pl_status st = PL_OK;
  if (c->partition == NULL || l->partition_count == 0) return PL_OK;
  for (const char *at = c->partition; *at != '\0' && st == PL_OK;) {
    char name[1024];
    size_t length = strcspn(at, ","), i = 0;
    snprintf(name, sizeof name, "%.*s", (int)length, at);
    while (i < l->partition_count && strcmp(l->partitions[i].name, name) != 0) i++;
    if (i == l->partition_count) st = unknown_partition(l, name, e);
    at += length + (at[length] == ',');
  }
  return st;
}

/* Whether the comma list names the word. */
static bool lists(const char *list, const char *word) {
  size_t length = strlen(word);
  for (const char *at = list; *at != '\0'; at += strcspn(at, ","), at += *at == ',')
    if (strcspn(at, ",") == length && strncmp(at, word, length) == 0) return true;
  return false;
}

static bool applies(const pl_slurm_limits *l, const pl_slurm_limit *limit, const pl_slurm_config *c) {
  const char *account = c->account != NULL ? c->account : l->account;
  const char *partition = c->partition != NULL ? c->partition : l->partition;
  const char *qos = c->qos != NULL ? c->qos : l->qos[0] != '\0' ? l->qos : "normal";
  return (account[0] == '\0' || is_or_any(limit->account, account)) &&
         (limit->partition[0] == '\0' || lists(partition, limit->partition)) && is_or_any(limit->qos, qos);
}

int64_t pl_slurm_limits_room(const pl_slurm_limits *l, const pl_slurm_config *c, const pl_slurm_limit **binding) {
  int64_t room = INT64_MAX;
  *binding = NULL;
  for (size_t i = 0; i < l->count; i++) {
    int64_t left = l->items[i].most - l->items[i].used;
    if (!applies(l, &l->items[i], c) || left >= room) continue;
    room = left;
    *binding = &l->items[i];
  }
  return room > 0 ? room : 0;
}

void pl_slurm_limits_take(pl_slurm_limits *l, const pl_slurm_config *c, int64_t tasks) {
  for (size_t i = 0; i < l->count; i++)
    if (applies(l, &l->items[i], c)) l->items[i].used += tasks;
}
