#include <ctype.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "pl_version.h"
#include "runners/launchers/slurm/call.h"
#include "runners/launchers/slurm/script.h"
#include "runners/launchers/slurm/submit_parts.h"

enum { SBATCH_SECONDS = 60, LOOKS = 3 };

/* What came of a call of sbatch. */
typedef enum answer { ANSWER_JOB, ANSWER_REFUSED, ANSWER_LOST } answer;

static pl_json *texts_json(char *const *texts) {
  pl_json *list = pl_json_new_array();
  bool ok = list != NULL;
  for (; ok && *texts != NULL; texts++) ok = pl_json_append(list, pl_json_new_string(*texts));
  return pl_json_keep(list, ok);
}

/* Numbers of the submissions that this array waits for. */
static pl_json *after_json(const pl_submitting *s, size_t piece) {
  const pl_throttled *t = &s->arrays[s->live_count + piece];
  pl_json *list = pl_json_new_array();
  bool ok = list != NULL;
  for (size_t i = 0; i < s->live_count + piece && ok; i++) {
    if (!t->after[i]) continue;
    int64_t number = i < s->live_count ? s->live[i]->number : s->pieces[i - s->live_count].number;
    ok = pl_json_append(list, pl_json_new_int(number));
  }
  return pl_json_keep(list, ok);
}

/* "12:15" */
static void after_text(const pl_submitting *s, size_t piece, pl_str *out) {
  const pl_throttled *t = &s->arrays[s->live_count + piece];
  for (size_t i = 0; i < s->live_count + piece; i++) {
    if (!t->after[i]) continue;
    const char *job = i < s->live_count ? s->live[i]->job : s->pieces[i - s->live_count].job;
    pl_str_printf(out, "%s%s", out->length > 0 ? ":" : "", job);
  }
}

static bool describe_caller(pl_json *d) {
  char host[256] = "?", folder[4096] = "?";
  const struct passwd *entry = getpwuid(geteuid());
  gethostname(host, sizeof host - 1);
  if (getcwd(folder, sizeof folder) == NULL) strcpy(folder, "?");
  return pl_json_set(d, "user", pl_json_new_string(entry != NULL ? entry->pw_name : "?")) &&
         pl_json_set(d, "host", pl_json_new_string(host)) && pl_json_set(d, "folder", pl_json_new_string(folder));
}

/* All that the .json says besides what is known of every submission. `requeue` and `max_restarts` are for the task. */
static pl_json *describe(const pl_submitting *s, size_t piece, const pl_script *script) {
  const pl_slurm_config *c = s->pieces[piece].config;
  const pl_slurm_limit *binding;
  pl_slurm_limits_room(&s->limits, c, &binding);
  pl_json *d = pl_json_new_object();
  bool ok = pl_json_set(d, "runs", pl_json_new_int((int64_t)s->pieces[piece].count)) &&
            pl_json_set(d, "tasks", pl_json_new_int(s->pieces[piece].tasks)) &&
            pl_json_set(d, "after", after_json(s, piece)) &&
            pl_json_set(d, "requeue", pl_json_new_string(c->requeue == PL_SLURM_REQUEUE_AUTO ? "auto" : "never")) &&
            pl_json_set(d, "max_restarts", pl_json_new_int(c->max_restarts)) &&
            pl_json_set(d, "resources", pl_json_retain(c->document)) &&
            pl_json_set(d, "argv", texts_json(script->argv)) &&
            pl_json_set(d, "script", pl_json_new_string(pl_str_text(&script->text))) &&
            pl_json_set(d, "version", pl_json_new_string(PL_VERSION)) &&
            pl_json_set(d, "git_commit", pl_json_new_string(PL_GIT_COMMIT)) &&
            pl_json_set(d, "git_diff", pl_json_new_string(PL_GIT_DIFF)) &&
            pl_json_set(d, "libraries", pl_json_retain(s->libraries)) &&
            pl_json_set(d, "slurm_version", pl_json_new_string(s->limits.version)) &&
            pl_json_set(d, "array_size", pl_json_new_int(s->limits.array_size)) &&
            pl_json_set(d, "limit", binding != NULL ? pl_json_new_string(binding->text) : pl_json_new_null()) &&
            describe_caller(d);
  return pl_json_keep(d, ok);
}

static pl_status fill_rows(const pl_submitting *s, const pl_piece *p, pl_submission *out, pl_err *e) {
  pl_status st = pl_alloc(p->count, sizeof *out->rows, "the runs of a submission", &out->rows, e);
  if (st != PL_OK) return st;
  for (; out->count < p->count; out->count++) {
    const pl_job *job = &s->plan->jobs[s->order[p->first + out->count]];
    out->rows[out->count] =
        (pl_submission_row){.task = (int64_t)out->count / p->config->pack, .index = job->index, .id = job->id};
  }
  return PL_OK;
}

/* The submission with its number, name and document, and its script; nothing is written. */
static pl_status prepare(pl_submitting *s, size_t piece, pl_submission *sub, pl_script *script, pl_err *e) {
  pl_piece *p = &s->pieces[piece];
  pl_str after = {0};
  pl_status st = PL_OK;
  sub->throttle = s->arrays[s->live_count + piece].throttle;
  PL_TRY(fill_rows(s, p, sub, e));
  sub->number = piece > 0 ? s->pieces[piece - 1].number + 1 : 0; /* a dry run leaves no files to count on from */
  PL_TRY(pl_submission_name(s->dir, sub, e));
  p->number = sub->number;
  PL_TRY(pl_strdup(s->data_root, &sub->data_root, e));
  PL_TRY(pl_strdup(s->program, &sub->program, e));
  memcpy(sub->binary_hash, s->binary_hash, sizeof sub->binary_hash);
  after_text(s, piece, &after);
  PL_TRY(pl_str_check(&after, e));
  const pl_script_args args = {.config = p->config,
                               .sweep = pl_sweep_name(s->plan->sweep),
                               .program = s->program,
                               .dir = s->dir,
                               .number = sub->number,
                               .token = sub->token,
                               .tasks = p->tasks,
                               .throttle = sub->throttle,
                               .after = pl_str_text(&after)};
  PL_TRY(pl_script_make(&args, script, e));
  sub->document = describe(s, piece, script);
  if (sub->document == NULL) st = pl_fail(e, PL_FAIL, "out of memory for submission %" PRId64, sub->number);
out:
  pl_str_free(&after);
  return st;
}

/* "34" or "34;cluster", and nothing else. */
static bool parse_job(const char *text, char job[PL_JOB_SIZE]) {
  size_t digits = strspn(text, "0123456789"), end = digits;
  if (digits == 0 || digits >= PL_JOB_SIZE) return false;
  if (text[end] == ';') end += strcspn(text + end, "\n");
  if (text[end + strspn(text + end, " \n")] != '\0') return false;
  memcpy(job, text, digits);
  job[digits] = '\0';
  return true;
}

/* Whether sbatch says why it failed, and that is not trouble on the way to or from Slurm, which may have taken the job.
 */
static bool is_refusal(const pl_call *c) {
  static const char *const trouble[] = {"timed out",  "Unable to contact", "Zero Bytes",     "ommunication",
                                        "Connection", "connection",        "essage",         "Broken pipe",
                                        "endpoint",   "rotocol",           "Header lengths", "Interrupted"};
  const char *text = pl_str_text(&c->err);
  if (c->timed_out || c->exit_code <= 0 || c->err.length == 0) return false;
  for (size_t i = 0; i < sizeof trouble / sizeof *trouble; i++)
    if (strstr(text, trouble[i]) != NULL) return false;
  return true;
}

static pl_status call_sbatch(const pl_script *script, answer *what, char job[PL_JOB_SIZE], char sentence[256],
                             pl_err *e) {
  pl_call call;
  pl_status st = pl_call_run((const char *const *)script->argv, pl_str_text(&script->text), SBATCH_SECONDS, &call, e);
  if (st != PL_OK) return st;
  if (call.exit_code == 0 && parse_job(pl_str_text(&call.out), job))
    *what = ANSWER_JOB;
  else
    *what = is_refusal(&call) ? ANSWER_REFUSED : ANSWER_LOST;
  if (call.exit_code == 0 && *what == ANSWER_LOST && call.out.length > 0)
    snprintf(sentence, 256, "it said \"%.60s\", which is no job id", pl_str_text(&call.out));
  else if (*what != ANSWER_JOB)
    pl_call_sentence(&call, sentence);
  for (char *c = sentence; *c != '\0'; c++)
    if (iscntrl((unsigned char)*c)) *c = ' ';
  pl_call_free(&call);
  return PL_OK;
}

/* Looks in the queue for what sbatch gave no job id for: once after a refusal, else several times, a second apart,
 * because Slurm may still be at it. */
static answer find_lost(const pl_submission *sub, answer what, char job[PL_JOB_SIZE]) {
  const struct timespec pause = {.tv_sec = 1};
  for (int i = 0; i < (what == ANSWER_LOST ? LOOKS : 1); i++) {
    bool refused = false;
    if (i > 0) nanosleep(&pause, NULL);
    if (pl_submit_look(sub, job, &refused, NULL) != PL_OK) continue;
    if (job[0] != '\0') return ANSWER_JOB;
    if (refused) return ANSWER_REFUSED;
  }
  return what;
}

static void say_sent(const pl_submitting *s, size_t piece, const pl_submission *sub) {
  pl_str after = {0};
  if (s->args->quiet) return;
  after_text(s, piece, &after);
  printf("submission %" PRId64 ": job %s, %zu runs", sub->number, sub->job, sub->count);
  if (s->pieces[piece].tasks != (int64_t)sub->count) printf(" in %" PRId64 " tasks", s->pieces[piece].tasks);
  if (sub->throttle > 0) printf(", at most %" PRId64 " at once", sub->throttle);
  if (after.length > 0) printf(", after %s", pl_str_text(&after));
  printf("\n");
  fflush(stdout);
  pl_str_free(&after);
}

static pl_status record(pl_submitting *s, size_t piece, pl_submission *sub, answer what, const char *job,
                        const char *sentence, pl_err *e) {
  pl_status st = PL_OK;
  if (what == ANSWER_LOST) {
    s->result->unknown++;
    return pl_fail(e, PL_FAIL,
                   "sbatch gave no answer to submission %" PRId64 " (%s) and the queue does not show it yet; `pipelag "
                   "submit %s` finds out after 30 s and goes on",
                   sub->number, sentence, s->plan->dir);
  }
  s->pieces[piece].out = what == ANSWER_JOB;
  st = pl_submission_answer(s->dir, sub, what == ANSWER_JOB ? PL_SENT_YES : PL_SENT_REFUSED,
                            what == ANSWER_JOB ? job : "", sentence[0] != '\0' ? sentence : NULL, e);
  if (st != PL_OK && what == ANSWER_JOB)
    pl_err_prefix(e, "submission %" PRId64 " is in Slurm as job %s, but that could not be noted", sub->number, job);
  if (st != PL_OK) goto out;
  if (what == ANSWER_REFUSED)
    PL_TRY(
        pl_fail(e, PL_BAD, "Slurm refused submission %" PRId64 " (%zu runs): %s", sub->number, sub->count, sentence));
  memcpy(s->pieces[piece].job, sub->job, sizeof sub->job);
  s->result->sent += sub->count;
  s->result->arrays++;
  say_sent(s, piece, sub);
out:
  return st;
}

pl_status pl_submit_send(pl_submitting *s, size_t piece, pl_err *e) {
  pl_submission sub = {0};
  pl_script script = {0};
  pl_status st = PL_OK;
  answer what = ANSWER_LOST;
  char job[PL_JOB_SIZE] = "", sentence[256] = "";
  PL_TRY(prepare(s, piece, &sub, &script, e));
  PL_TRY(pl_submission_create(s->dir, &sub, e));
  s->pieces[piece].out = true;
  st = call_sbatch(&script, &what, job, sentence, e);
  if (st != PL_OK) { /* it was not even started */
    pl_status noted = pl_submission_answer(s->dir, &sub, PL_SENT_REFUSED, "", "sbatch could not be started", NULL);
    (void)noted;
    s->pieces[piece].out = false;
    goto out;
  }
  if (what != ANSWER_JOB) {
    what = find_lost(&sub, what, job);
    if (what == ANSWER_JOB && !s->args->quiet)
      printf("sbatch gave no job id (%s); found in the queue as job %s\n", sentence, job);
  }
  st = record(s, piece, &sub, what, job, sentence, e);
out:
  pl_script_free(&script);
  pl_submission_free(&sub);
  return st;
}

/* A later array may wait for this one, whose job id nobody knows yet. */
static void name_future_job(pl_piece *p) { snprintf(p->job, sizeof p->job, "JOB-OF-%" PRId64, p->number); }

pl_status pl_submit_show(pl_submitting *s, size_t piece, pl_err *e) {
  pl_submission sub = {0};
  pl_script script = {0};
  pl_str text = {0};
  pl_status st = PL_OK;
  PL_TRY(prepare(s, piece, &sub, &script, e));
  name_future_job(&s->pieces[piece]);
  pl_str_printf(&text, "\n# submission %" PRId64 ": %zu runs in %" PRId64 " tasks\n", sub.number, sub.count,
                s->pieces[piece].tasks);
  for (size_t i = 0; i < script.argc; i++) {
    if (i > 0) pl_str_append(&text, " ");
    pl_shell_show(script.argv[i], &text);
  }
  pl_str_printf(&text, "\n%s", pl_str_text(&script.text));
  PL_TRY(pl_str_check(&text, e));
  fputs(text.text, stdout);
out:
  pl_str_free(&text);
  pl_script_free(&script);
  pl_submission_free(&sub);
  return st;
}
