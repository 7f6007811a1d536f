#include "runners/launchers/slurm/queue.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/memory.h"
#include "runners/launchers/slurm/call.h"

enum { FIELDS = 9, NAMES_LENGTH = 60000, SQUEUE_SECONDS = 60, SACCT_SECONDS = 10, MOST_TASKS = 10000000 };

typedef struct reading {
  const pl_submissions *submissions;
  pl_queue *queue;
  size_t capacity;
} reading;

pl_queue_kind pl_queue_kind_of(const char *state) {
  static const struct {
    const char *word;
    pl_queue_kind kind;
  } known[] = {
#define PL_SLURM_STATE(word, kind, end, retry) {#word, PL_QUEUE_##kind},
#include "runners/launchers/slurm/slurm_states.def"
#undef PL_SLURM_STATE
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].word, state) == 0) return known[i].kind;
  return PL_QUEUE_UNKNOWN;
}

static int compare(const pl_queue_task *a, const char *token, int64_t task) {
  int names = strcmp(a->name, token);
  return names != 0 ? names : (a->task > task) - (a->task < task);
}

static int by_name_and_task(const void *a, const void *b) {
  const pl_queue_task *y = b;
  return compare(a, y->name, y->task);
}

static pl_status add(reading *r, const pl_queue_task *t, pl_err *e) {
  pl_queue *q = r->queue;
  if (q->count == r->capacity) {
    size_t capacity = 2 * r->capacity + 64;
    pl_status st = pl_grow(r->capacity, capacity, sizeof *q->tasks, "the queue", &q->tasks, e);
    if (st != PL_OK) return st;
    r->capacity = capacity;
  }
  q->tasks[q->count++] = *t;
  return PL_OK;
}

static void sort(pl_queue *q) {
  if (q->count > 1) qsort(q->tasks, q->count, sizeof *q->tasks, by_name_and_task);
}

/* The first record of the token that is not before the task. */
static size_t lower_bound(const pl_queue *q, const char *token, int64_t task) {
  size_t low = 0, high = q->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (compare(&q->tasks[middle], token, task) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static const pl_queue_task *exact(const pl_queue *q, const char *token, int64_t task) {
  size_t i = lower_bound(q, token, task);
  return i < q->count && compare(&q->tasks[i], token, task) == 0 ? &q->tasks[i] : NULL;
}

/* Adds a record for each task of "12", "3-9%2" or "1,4-6,10%3". "N/A", which stands for a whole array, and a list that
 * was cut off ("1,4,...") give one with task -1. */
static pl_status add_listed(reading *r, pl_queue_task *t, const char *list, pl_err *e) {
  pl_status st = PL_OK;
  const char *at = list;
  while (isdigit((unsigned char)*at)) {
    char *end;
    long long first = strtoll(at, &end, 10), last = first;
    if (*end == '-' && isdigit((unsigned char)end[1])) last = strtoll(end + 1, &end, 10);
    if (last < first || last - first > MOST_TASKS) break;
    for (long long task = first; task <= last && st == PL_OK; task++) {
      t->task = task;
      st = add(r, t, e);
    }
    if (st != PL_OK) return st;
    at = end;
    if (*at != ',') break;
    at++;
  }
  if (at != list && (*at == '\0' || *at == '%')) return PL_OK;
  t->task = -1;
  return add(r, t, e);
}

static bool is_ours(const pl_submissions *s, const char *name) {
  for (size_t i = 0; i < s->count; i++)
    if (strcmp(s->items[i].token, name) == 0) return true;
  return false;
}

static void copy(char *to, size_t size, const char *from) { snprintf(to, size, "%s", from); }

/* Cuts a line at its bars, in place. Returns the number of fields, at most `most`. */
static size_t cut(char *line, char **fields, size_t most) {
  size_t count = 0;
  for (char *at = line; at != NULL && count < most; count++) {
    fields[count] = at;
    at = strchr(at, '|');
    if (at != NULL) *at++ = '\0';
  }
  return count;
}

/* The next line of a text, NUL-terminated in place; NULL at the end. */
static char *next_line(char **text) {
  char *line = *text;
  if (line == NULL || *line == '\0') return NULL;
  char *end = strchr(line, '\n');
  *text = end != NULL ? end + 1 : NULL;
  if (end != NULL) *end = '\0';
  return line;
}

/* "name|array job|task|job|state|reason|raw wait status|restarts|nodes|" */
static pl_status parse_squeue(reading *r, char *text, pl_err *e) {
  pl_status st = PL_OK;
  for (char *line = next_line(&text); line != NULL && st == PL_OK; line = next_line(&text)) {
    char *f[FIELDS];
    if (cut(line, f, FIELDS) < FIELDS || !is_ours(r->submissions, f[0])) continue;
    pl_queue_task t = {.restarts = atoi(f[7])};
    int raw = atoi(f[6]);
    t.exit_code = raw >> 8;
    t.exit_signal = raw & 127;
    copy(t.name, sizeof t.name, f[0]);
    copy(t.job, sizeof t.job, f[1]);
    copy(t.state, sizeof t.state, f[4]);
    copy(t.reason, sizeof t.reason, f[5]);
    char *rest = strchr(f[8], '|');
    if (rest != NULL) *rest = '\0';
    copy(t.node, sizeof t.node, f[8]);
    st = add_listed(r, &t, f[2], e);
  }
  return st;
}

/* Tokens joined by commas from submission *next on, as many as a command line carries. */
static void join_tokens(const pl_submissions *s, const bool *wanted, size_t *next, pl_str *out) {
  for (; *next < s->count && out->length < NAMES_LENGTH; ++*next) {
    if (wanted != NULL && !wanted[*next]) continue;
    pl_str_printf(out, "%s%s", out->length > 0 ? "," : "", s->items[*next].token);
  }
}

static pl_status ask_squeue(reading *r, const char *names, pl_err *e) {
  const char *argv[] = {
      "squeue", "-h",  "-r",
      "-t",     "all", "-n",
      names,    "-O",  "Name:|,ArrayJobID:|,ArrayTaskID:|,JobID:|,State:|,Reason:|,exit_code:|,RestartCnt:|,NodeList:|",
      NULL};
  char sentence[256];
  pl_call call;
  pl_status st = pl_call_run(argv, NULL, SQUEUE_SECONDS, &call, e);
  if (st != PL_OK) return st;
  if (call.exit_code != 0)
    st = pl_fail(e, PL_FAIL, "cannot ask Slurm: squeue: %s", pl_call_sentence(&call, sentence));
  else if (call.out.length > 0)
    st = parse_squeue(r, call.out.text, e);
  pl_call_free(&call);
  return st;
}

/* "7:0", and the first words of "CANCELLED by 0". Job ids are 28, 28_3 and 28_[0-2,6-7,9%1]. */
static pl_status parse_sacct(reading *r, const pl_queue *known, char *text, pl_err *e) {
  pl_status st = PL_OK;
  pl_queue found = {0};
  reading all = {.submissions = r->submissions, .queue = &found};
  for (char *line = next_line(&text); line != NULL && st == PL_OK; line = next_line(&text)) {
    char *f[5];
    if (cut(line, f, 5) < 5 || !is_ours(r->submissions, f[0])) continue;
    pl_queue_task t = {0};
    char *task = strchr(f[1], '_'), *code = strchr(f[3], ':');
    if (task != NULL) *task++ = '\0';
    if (task != NULL && *task == '[') task[strcspn(task, "]")] = '\0';
    f[2][strcspn(f[2], " +")] = '\0';
    t.exit_code = atoi(f[3]);
    t.exit_signal = code != NULL ? atoi(code + 1) : 0;
    copy(t.name, sizeof t.name, f[0]);
    copy(t.job, sizeof t.job, f[1]);
    copy(t.state, sizeof t.state, f[2]);
    copy(t.node, sizeof t.node, strcmp(f[4], "None assigned") == 0 ? "" : f[4]);
    st = add_listed(&all, &t, task == NULL ? "N/A" : task + (*task == '['), e);
  }
  /* squeue speaks of now, the database may be behind or have lost an end: it only adds ends that squeue has forgotten.
   */
  for (size_t i = 0; i < found.count && st == PL_OK; i++)
    if (pl_queue_kind_of(found.tasks[i].state) == PL_QUEUE_ENDED &&
        exact(known, found.tasks[i].name, found.tasks[i].task) == NULL)
      st = add(r, &found.tasks[i], e);
  pl_free(found.tasks);
  return st;
}

/* The day before the earliest of them was created, since clocks and zones differ. */
static void start_day(const pl_submissions *s, const bool *wanted, char out[32]) {
  int64_t earliest = INT64_MAX;
  for (size_t i = 0; i < s->count; i++) {
    int64_t created = pl_json_get_int(s->items[i].document, "created_unix", 0);
    if (wanted[i] && created < earliest) earliest = created;
  }
  time_t day = (time_t)(earliest > 86400 ? earliest - 86400 : 0);
  struct tm utc;
  gmtime_r(&day, &utc);
  if (strftime(out, 32, "%Y-%m-%d", &utc) == 0) copy(out, 32, "1970-01-01");
}

/* Without accounting, or when its database does not answer, what squeue said is all there is. */
static pl_status ask_sacct(reading *r, const bool *wanted, pl_err *e) {
  const pl_submissions *s = r->submissions;
  pl_queue known = {.count = r->queue->count};
  char start[32];
  pl_status st = PL_OK;
  PL_TRY(pl_alloc(known.count, sizeof *known.tasks, "the queue", &known.tasks, e));
  if (known.count > 0) memcpy(known.tasks, r->queue->tasks, known.count * sizeof *known.tasks);
  start_day(s, wanted, start);
  for (size_t next = 0; next < s->count;) {
    pl_str names = {0};
    pl_call call = {0};
    join_tokens(s, wanted, &next, &names);
    if (names.length == 0) break;
    const char *argv[] = {"sacct",
                          "-n",
                          "-P",
                          "-X",
                          "-a",
                          "-S",
                          start,
                          "--name",
                          pl_str_text(&names),
                          "-o",
                          "JobName,JobID,State,ExitCode,NodeList",
                          NULL};
    bool answered =
        !names.failed && pl_call_run(argv, NULL, SACCT_SECONDS, &call, NULL) == PL_OK && call.exit_code == 0;
    if (answered && call.out.length > 0) st = parse_sacct(r, &known, call.out.text, e);
    r->queue->accounting = answered;
    pl_call_free(&call);
    pl_str_free(&names);
    if (st != PL_OK || !answered) break;
  }
out:
  pl_free(known.tasks);
  return st;
}

/* Whether squeue has a record of each task. */
static bool is_complete(const pl_queue *q, const pl_submission *s) {
  for (size_t i = 0; i < s->count; i++)
    if (pl_queue_find(q, s->token, s->rows[i].task) == NULL) return false;
  return true;
}

pl_status pl_queue_read(const pl_submissions *s, pl_queue *out, pl_err *e) {
  pl_status st = PL_OK;
  reading r = {.submissions = s, .queue = out};
  bool *wanted = NULL, any = false;
  *out = (pl_queue){0};
  for (size_t next = 0; next < s->count;) {
    pl_str names = {0};
    join_tokens(s, NULL, &next, &names);
    st = pl_str_check(&names, e);
    if (st == PL_OK) st = ask_squeue(&r, pl_str_text(&names), e);
    pl_str_free(&names);
    if (st != PL_OK) goto out;
  }
  sort(out);
  PL_TRY(pl_alloc(s->count, sizeof *wanted, "the queue", &wanted, e));
  for (size_t i = 0; i < s->count; i++) {
    wanted[i] = s->items[i].sent != PL_SENT_REFUSED && !is_complete(out, &s->items[i]);
    any = any || wanted[i];
  }
  if (any) PL_TRY(ask_sacct(&r, wanted, e));
  sort(out);
out:
  pl_free(wanted);
  if (st != PL_OK) pl_queue_free(out);
  return st;
}

void pl_queue_free(pl_queue *q) {
  pl_free(q->tasks);
  *q = (pl_queue){0};
}

const pl_queue_task *pl_queue_find(const pl_queue *q, const char *token, int64_t task) {
  const pl_queue_task *found = exact(q, token, task);
  return found != NULL || task < 0 ? found : exact(q, token, -1);
}
