#include "analysis/report_files.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/memory.h"

#define FILE_LIMIT ((size_t)1 << 30)

static const char list_name[] = "files.txt";

void pl_report_say(const pl_report_files *f, const char *format, ...) {
  char line[PL_ERR_TEXT];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (f->say) f->say(f->say_self, line);
}

static pl_status add(pl_report_files *f, const char *name, uint64_t hash, pl_err *e) {
  pl_status st = PL_OK;
  if (f->count == f->capacity) {
    size_t larger = f->capacity ? 2 * f->capacity : 32;
    PL_TRY(pl_grow(f->capacity, larger, sizeof f->list[0], "the list of files", &f->list, e));
    f->capacity = larger;
  }
  PL_TRY(pl_strdup(name, &f->list[f->count].name, e));
  f->list[f->count++].hash = hash;
out:
  return st;
}

pl_status pl_report_file_write(pl_report_files *f, const char *name, const pl_str *content, pl_err *e) {
  char *path = NULL;
  pl_status st = PL_OK;
  PL_TRY(pl_str_check(content, e));
  PL_TRY(pl_path_join(f->folder, name, &path, e));
  PL_TRY(pl_file_replace_unsynced(path, pl_str_text(content), content->length, e));
  PL_TRY(add(f, name, pl_hash(pl_str_text(content), content->length), e));
  pl_report_say(f, "%s", path);
out:
  pl_free(path);
  return st;
}

static pl_status hash_file(const char *path, uint64_t *hash, pl_err *e) {
  char *bytes = NULL;
  size_t length = 0;
  pl_status st = pl_file_read(path, FILE_LIMIT, &bytes, &length, e);
  if (st == PL_OK) *hash = pl_hash(bytes, length);
  pl_free(bytes);
  return st;
}

pl_status pl_report_file_note(pl_report_files *f, const char *name, pl_err *e) {
  char *path = NULL;
  uint64_t hash = 0;
  pl_status st = PL_OK;
  PL_TRY(pl_path_join(f->folder, name, &path, e));
  PL_TRY(hash_file(path, &hash, e));
  PL_TRY(add(f, name, hash, e));
out:
  pl_free(path);
  return st;
}

static bool is_listed(const pl_report_files *f, const char *name) {
  for (size_t i = 0; i < f->count; i++)
    if (strcmp(f->list[i].name, name) == 0) return true;
  return false;
}

/* A report names files of its own folder alone. */
static bool is_below(const char *name) { return name[0] != '\0' && name[0] != '/' && !strstr(name, ".."); }

/* Removes one file of an earlier report, unless somebody changed it or it is no plain file. */
static pl_status remove_stale(const pl_report_files *f, const char *hash, const char *name, pl_err *e) {
  char *path = NULL, now[PL_ID_SIZE];
  struct stat s;
  uint64_t found = 0;
  pl_status st = pl_path_join(f->folder, name, &path, e);
  if (st == PL_OK && lstat(path, &s) == 0 && S_ISREG(s.st_mode) && hash_file(path, &found, NULL) == PL_OK) {
    pl_hash_hex(found, now);
    if (strcmp(now, hash) != 0)
      pl_report_say(f, "%s is of an earlier report and was changed since; it stays", path);
    else if (unlink(path) == 0)
      pl_report_say(f, "%s is of an earlier report; removed", path);
  }
  pl_free(path);
  return st;
}

/* Each line of files.txt is a hash, a blank and a name. */
static pl_status remove_all_stale(const pl_report_files *f, char *text, pl_err *e) {
  pl_status st = PL_OK;
  char *rest = text;
  for (char *line; st == PL_OK && (line = strsep(&rest, "\n")) != NULL;) {
    if (strlen(line) <= PL_ID_LENGTH + 1 || line[PL_ID_LENGTH] != ' ') continue;
    line[PL_ID_LENGTH] = '\0';
    const char *name = line + PL_ID_LENGTH + 1;
    if (is_below(name) && !is_listed(f, name)) st = remove_stale(f, line, name, e);
  }
  return st;
}

pl_status pl_report_files_close(pl_report_files *f, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL, *text = NULL, hash[PL_ID_SIZE];
  size_t length = 0;
  pl_str list = {0};
  PL_TRY(pl_path_join(f->folder, list_name, &path, e));
  if (pl_path_exists(path) && pl_file_read(path, FILE_LIMIT, &text, &length, NULL) == PL_OK)
    PL_TRY(remove_all_stale(f, text, e));
  for (size_t i = 0; i < f->count; i++) {
    pl_hash_hex(f->list[i].hash, hash);
    pl_str_printf(&list, "%s %s\n", hash, f->list[i].name);
  }
  PL_TRY(pl_str_check(&list, e));
  PL_TRY(pl_file_replace_unsynced(path, pl_str_text(&list), list.length, e));
out:
  pl_str_free(&list);
  pl_free(text);
  pl_free(path);
  return st;
}

void pl_report_files_free(pl_report_files *f) {
  for (size_t i = 0; i < f->count; i++) pl_free(f->list[i].name);
  pl_free(f->list);
  f->list = NULL;
  f->count = f->capacity = 0;
}
