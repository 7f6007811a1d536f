#include "runners/launchers/slurm/submission.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "results/json_file.h"

static const char header[] = "task\tindex\tid\n";
static const char *const sent_words[] = {"unknown", "yes", "refused"};

/* A list of ten million runs. */
#define LIST_LIMIT ((size_t)1 << 30)

static pl_status path_of(const char *dir, int64_t number, const char *ending, char **out, pl_err *e) {
  char name[64];
  snprintf(name, sizeof name, "submissions/%" PRId64 "%s", number, ending);
  return pl_path_join(dir, name, out, e);
}

/* One line "task, index, id"; *next is the start of the one after. */
static bool parse_row(char *line, pl_submission_row *row, char **next) {
  char *end;
  if (*line < '0' || *line > '9') return false;
  row->task = strtoll(line, &end, 10);
  if (*end != '\t' || end[1] < '0' || end[1] > '9') return false;
  row->index = strtoull(end + 1, &end, 10);
  if (*end != '\t') return false;
  char *id = end + 1;
  row->id = strtoull(id, &end, 16);
  *next = end + 1;
  return end - id == PL_ID_LENGTH && *end == '\n';
}

static pl_status read_rows(const char *path, pl_submission *s, pl_err *e) {
  pl_status st = PL_OK;
  char *text = NULL;
  size_t length = 0, lines = 0;
  PL_TRY(pl_file_read(path, LIST_LIMIT, &text, &length, e));
  if (strncmp(text, header, strlen(header)) != 0)
    PL_TRY(pl_fail(e, PL_FAIL, "%s:1: is no list of tasks; its first line must be task, index, id", path));
  for (const char *c = text; *c != '\0'; c++) lines += *c == '\n';
  PL_TRY(pl_alloc(lines, sizeof *s->rows, path, &s->rows, e));
  for (char *line = text + strlen(header); *line != '\0'; s->count++)
    if (!parse_row(line, &s->rows[s->count], &line))
      PL_TRY(pl_fail(e, PL_FAIL, "%s:%zu: is damaged; a task, an index and an id of %d hex digits are expected", path,
                     s->count + 2, PL_ID_LENGTH));
out:
  pl_free(text);
  return st;
}

static void copy_text(char *to, size_t size, const char *from) { snprintf(to, size, "%s", from); }

static pl_status read_fields(const char *path, pl_submission *s, pl_err *e) {
  pl_status st = PL_OK;
  const char *sent = pl_json_get_string(s->document, "sent", "");
  int known = -1;
  for (int i = 0; i < 3; i++)
    if (strcmp(sent, sent_words[i]) == 0) known = i;
  copy_text(s->token, sizeof s->token, pl_json_get_string(s->document, "token", ""));
  if (known < 0 || s->token[0] == '\0')
    return pl_fail(e, PL_FAIL, "%s: is damaged; it must say token and sent (unknown, yes or refused)", path);
  s->sent = (pl_sent)known;
  copy_text(s->job, sizeof s->job, pl_json_get_string(s->document, "job", ""));
  copy_text(s->binary_hash, sizeof s->binary_hash, pl_json_get_string(s->document, "binary_hash", ""));
  s->throttle = pl_json_get_int(s->document, "throttle", 0);
  PL_TRY(pl_strdup(pl_json_get_string(s->document, "data_root", ""), &s->data_root, e));
  PL_TRY(pl_strdup(pl_json_get_string(s->document, "program", ""), &s->program, e));
out:
  return st;
}

pl_status pl_submission_read(const char *dir, int64_t number, pl_submission *out, pl_err *e) {
  pl_status st = PL_OK;
  char *json = NULL, *list = NULL;
  *out = (pl_submission){.number = number};
  PL_TRY(path_of(dir, number, ".json", &json, e));
  PL_TRY(path_of(dir, number, ".tsv", &list, e));
  if (!pl_path_exists(json)) PL_TRY(pl_fail(e, PL_BAD, "%s: there is no submission %" PRId64 " here", dir, number));
  PL_TRY(pl_json_file_read(json, &out->document, e));
  PL_TRY(read_fields(json, out, e));
  PL_TRY(read_rows(list, out, e));
out:
  pl_free(json);
  pl_free(list);
  if (st != PL_OK) pl_submission_free(out);
  return st;
}

void pl_submission_free(pl_submission *s) {
  pl_free(s->data_root);
  pl_free(s->program);
  pl_free(s->rows);
  pl_json_release(s->document);
  *s = (pl_submission){0};
}

/* The number in "12.json" or "12.tsv"; 0 for other names. */
static int64_t number_in(const char *name, const char *ending) {
  char *end;
  if (*name < '1' || *name > '9') return 0;
  errno = 0;
  long long number = strtoll(name, &end, 10);
  return errno == 0 && strcmp(end, ending) == 0 ? number : 0;
}

static int by_number(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* The numbers that have a file of this ending, ascending; none when there is no folder. */
static pl_status list_numbers(const char *dir, const char *ending, int64_t **out, size_t *count, pl_err *e) {
  pl_status st = PL_OK;
  char *folder = NULL;
  DIR *entries = NULL;
  size_t capacity = 0;
  *out = NULL;
  *count = 0;
  PL_TRY(pl_path_join(dir, "submissions", &folder, e));
  entries = opendir(folder);
  if (entries == NULL && errno != ENOENT)
    PL_TRY(pl_fail(e, PL_FAIL, "%s: cannot be read: %s", folder, strerror(errno)));
  for (struct dirent *d = entries ? readdir(entries) : NULL; d != NULL; d = readdir(entries)) {
    int64_t number = number_in(d->d_name, ending);
    if (number == 0) continue;
    if (*count == capacity) {
      PL_TRY(pl_grow(capacity, 2 * capacity + 16, sizeof **out, "the list of submissions", out, e));
      capacity = 2 * capacity + 16;
    }
    (*out)[(*count)++] = number;
  }
  if (*count > 1) qsort(*out, *count, sizeof **out, by_number);
out:
  if (entries != NULL) closedir(entries);
  pl_free(folder);
  return st;
}

pl_status pl_submissions_read(const char *dir, pl_submissions *out, pl_err *e) {
  pl_status st = PL_OK;
  int64_t *numbers = NULL;
  size_t count = 0;
  *out = (pl_submissions){0};
  PL_TRY(list_numbers(dir, ".json", &numbers, &count, e));
  PL_TRY(pl_alloc(count, sizeof *out->items, "the submissions", &out->items, e));
  for (; out->count < count; out->count++)
    PL_TRY(pl_submission_read(dir, numbers[out->count], &out->items[out->count], e));
out:
  pl_free(numbers);
  if (st != PL_OK) pl_submissions_free(out);
  return st;
}

void pl_submissions_free(pl_submissions *s) {
  for (size_t i = 0; i < s->count; i++) pl_submission_free(&s->items[i]);
  pl_free(s->items);
  *s = (pl_submissions){0};
}

/* Numbers are never used again, also not that of a list whose .json was never written. */
static pl_status next_number(const char *dir, int64_t *out, pl_err *e) {
  static const char *const endings[] = {".json", ".tsv"};
  *out = 1;
  for (size_t i = 0; i < 2; i++) {
    int64_t *numbers = NULL;
    size_t count = 0;
    pl_status st = list_numbers(dir, endings[i], &numbers, &count, e);
    if (st == PL_OK && count > 0 && numbers[count - 1] >= *out) *out = numbers[count - 1] + 1;
    pl_free(numbers);
    if (st != PL_OK) return st;
  }
  return PL_OK;
}

pl_status pl_submission_name(const char *dir, pl_submission *s, pl_err *e) {
  char *absolute = realpath(dir, NULL), hex[PL_ID_SIZE];
  uint32_t random = 0;
  int64_t next = 1;
  pl_status st = next_number(dir, &next, e);
  if (s->number < next) s->number = next;
  pl_hash_hex(pl_hash_text(absolute != NULL ? absolute : dir), hex);
  free(absolute);
  if (st != PL_OK) return st;
  if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
    return pl_fail(e, PL_FAIL, "%s: no random number for the name of a submission: %s", dir, strerror(errno));
  snprintf(s->token, sizeof s->token, "pl-%.8s-%" PRId64 "-%08" PRIx32, hex, s->number, random);
  return PL_OK;
}

static pl_status write_rows(const char *dir, const pl_submission *s, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL, hex[PL_ID_SIZE];
  pl_str text = {0};
  pl_str_append(&text, header);
  for (size_t i = 0; i < s->count; i++) {
    pl_hash_hex(s->rows[i].id, hex);
    pl_str_printf(&text, "%" PRId64 "\t%" PRIu64 "\t%s\n", s->rows[i].task, s->rows[i].index, hex);
  }
  PL_TRY(path_of(dir, s->number, ".tsv", &path, e));
  PL_TRY(pl_str_check(&text, e));
  PL_TRY(pl_file_replace(path, text.text, text.length, e));
out:
  pl_str_free(&text);
  pl_free(path);
  return st;
}

static pl_status write_document(const char *dir, pl_submission *s, pl_err *e) {
  char *path = NULL;
  pl_status st = path_of(dir, s->number, ".json", &path, e);
  if (st != PL_OK) return st;
  bool ok = pl_json_set(s->document, "number", pl_json_new_int(s->number)) &&
            pl_json_set(s->document, "token", pl_json_new_string(s->token)) &&
            pl_json_set(s->document, "sent", pl_json_new_string(sent_words[s->sent])) &&
            pl_json_set(s->document, "job", pl_json_new_string(s->job)) &&
            pl_json_set(s->document, "throttle", pl_json_new_int(s->throttle)) &&
            pl_json_set(s->document, "data_root", pl_json_new_string(s->data_root)) &&
            pl_json_set(s->document, "program", pl_json_new_string(s->program)) &&
            pl_json_set(s->document, "binary_hash", pl_json_new_string(s->binary_hash));
  st = pl_json_file_write(path, ok ? s->document : NULL, e);
  pl_free(path);
  return st;
}

static bool set_time(pl_json *document, const char *key, const char *key_unix) {
  char stamp[32];
  pl_clock_stamp(stamp);
  return pl_json_set(document, key, pl_json_new_string(stamp)) &&
         (key_unix == NULL || pl_json_set(document, key_unix, pl_json_new_int((int64_t)time(NULL))));
}

pl_status pl_submission_create(const char *dir, pl_submission *s, pl_err *e) {
  pl_status st = PL_OK;
  char *folder = NULL;
  PL_TRY(pl_path_join(dir, "submissions", &folder, e));
  PL_TRY(pl_make_folders(folder, e));
  if (s->token[0] == '\0') PL_TRY(pl_submission_name(dir, s, e));
  s->sent = PL_SENT_UNKNOWN;
  if (s->document == NULL) s->document = pl_json_new_object();
  if (!set_time(s->document, "created", "created_unix")) PL_TRY(pl_fail(e, PL_FAIL, "%s: out of memory", folder));
  PL_TRY(write_rows(dir, s, e));
  PL_TRY(write_document(dir, s, e));
out:
  pl_free(folder);
  return st;
}

pl_status pl_submission_answer(const char *dir, pl_submission *s, pl_sent sent, const char *job, const char *sentence,
                               pl_err *e) {
  s->sent = sent;
  copy_text(s->job, sizeof s->job, job != NULL ? job : "");
  pl_json *said = sentence != NULL ? pl_json_new_string(sentence) : pl_json_new_null();
  if (!pl_json_set(s->document, "answer", said) || !set_time(s->document, "answered", NULL))
    return pl_fail(e, PL_FAIL, "%s: out of memory for the answer to submission %" PRId64, dir, s->number);
  return write_document(dir, s, e);
}

pl_status pl_submission_set_throttle(const char *dir, pl_submission *s, int64_t throttle, pl_err *e) {
  s->throttle = throttle;
  return write_document(dir, s, e);
}

double pl_submission_age(const pl_submission *s) {
  return (double)time(NULL) - (double)pl_json_get_int(s->document, "created_unix", 0);
}
