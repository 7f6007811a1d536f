#include "results/sweep_dir.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "results/json_file.h"

static const char header[] = "index\tid\tlabel\n";
static const char escapes[] = "\tt\nn\rr\\\\"; /* pairs: a character and the letter that stands for it */

/* runs.tsv of a hundred million runs */
#define LIST_LIMIT ((size_t)16 << 30)

pl_status pl_sweep_dir_file(const char *dir, int n, char **out, pl_err *e) {
  pl_str name = {0};
  pl_str_append(&name, "sweep");
  if (n > 0) pl_str_printf(&name, ".%d", n);
  pl_str_append(&name, ".json");
  pl_status st = pl_str_check(&name, e);
  if (st == PL_OK) st = pl_path_join(dir, name.text, out, e);
  pl_str_free(&name);
  return st;
}

pl_status pl_sweep_dir_newest(const char *dir, pl_json **document, int *next, pl_err *e) {
  pl_status st = PL_OK;
  char *newest = NULL, *path = NULL;
  *document = NULL;
  for (*next = 0;; ++*next) {
    PL_TRY(pl_sweep_dir_file(dir, *next, &path, e));
    if (!pl_path_exists(path)) break;
    pl_free(newest);
    newest = path;
    path = NULL;
  }
  if (newest) st = pl_json_file_read(newest, document, e);
out:
  pl_free(path);
  pl_free(newest);
  return st;
}

void pl_runs_list_header(pl_str *out) { pl_str_append(out, header); }

void pl_runs_list_row(pl_str *out, uint64_t index, uint64_t id, const char *label) {
  char hex[PL_ID_SIZE];
  pl_hash_hex(id, hex);
  pl_str_printf(out, "%llu\t%s\t", (unsigned long long)index, hex);
  for (const char *c = label; *c; c++) {
    const char *pair = strchr(escapes, *c);
    if (pair && (pair - escapes) % 2 == 0) {
      const char shown[2] = {'\\', pair[1]};
      pl_str_append_bytes(out, shown, 2);
    } else {
      pl_str_append_bytes(out, c, 1);
    }
  }
  pl_str_append(out, "\n");
}

/* In place: the text only gets shorter. */
static void unescape(char *text) {
  char *to = text;
  for (const char *from = text; *from; from++) {
    *to = *from;
    if (from[0] == '\\' && from[1] != '\0') {
      from++;
      for (const char *pair = escapes; *pair; pair += 2)
        if (pair[1] == *from) *to = pair[0];
    }
    to++;
  }
  *to = '\0';
}

/* Cuts one line into its fields; false when it is damaged. */
static bool parse_row(char *line, size_t index, pl_runs_list *l) {
  char *id, *label, *end;
  if (*line < '0' || *line > '9' || strtoull(line, &id, 10) != index || *id != '\t') return false;
  l->ids[index] = strtoull(++id, &label, 16);
  if (label - id != PL_ID_LENGTH || *label != '\t') return false;
  end = strchr(++label, '\n');
  if (!end) return false;
  *end = '\0';
  unescape(label);
  l->labels[index] = label;
  return true;
}

static pl_status parse_list(const char *path, pl_runs_list *l, pl_err *e) {
  pl_status st = PL_OK;
  size_t lines = 0;
  char *line = l->text;
  for (const char *c = l->text; *c; c++) lines += *c == '\n';
  if (strncmp(line, header, strlen(header)) != 0)
    return pl_fail(e, PL_FAIL, "%s:1: is no list of runs; its first line must be index, id, label", path);
  PL_TRY(pl_alloc(lines, sizeof *l->ids, path, &l->ids, e));
  PL_TRY(pl_alloc(lines, sizeof *l->labels, path, &l->labels, e));
  for (line += strlen(header); *line; l->count++) {
    char *end = strchr(line, '\n');
    if (!parse_row(line, l->count, l))
      PL_TRY(pl_fail(e, PL_FAIL, "%s:%zu: is damaged; index %zu, an id of %d hex digits and a label are expected", path,
                     l->count + 2, l->count, PL_ID_LENGTH));
    line = end + 1;
  }
out:
  return st;
}

pl_status pl_runs_list_read(const char *dir, pl_runs_list *out, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL;
  size_t length;
  *out = (pl_runs_list){0};
  PL_TRY(pl_path_join(dir, "runs.tsv", &path, e));
  if (!pl_path_exists(path)) goto out;
  PL_TRY(pl_file_read(path, LIST_LIMIT, &out->text, &length, e));
  PL_TRY(parse_list(path, out, e));
out:
  pl_free(path);
  if (st != PL_OK) pl_runs_list_free(out);
  return st;
}

void pl_runs_list_free(pl_runs_list *l) {
  pl_free(l->labels);
  pl_free(l->ids);
  pl_free(l->text);
  *l = (pl_runs_list){0};
}

pl_status pl_current_read(const char *dir, size_t count, bool *current, pl_err *e) {
  pl_status st = PL_OK;
  char *path = NULL, *text = NULL, *end;
  size_t length;
  PL_TRY(pl_path_join(dir, "current", &path, e));
  if (!pl_path_exists(path)) goto out;
  PL_TRY(pl_file_read(path, LIST_LIMIT, &text, &length, e));
  for (const char *line = text; *line; line = end + 1) {
    unsigned long long index = strtoull(line, &end, 10);
    if (end == line || *end != '\n')
      PL_TRY(pl_fail(e, PL_FAIL, "%s: is damaged; it must have the index of a run in each line", path));
    if (index < count) current[index] = true;
  }
out:
  pl_free(text);
  pl_free(path);
  return st;
}
