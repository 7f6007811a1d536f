#include "results/import_read.h"

#include <stdio.h>
#include <string.h>

#include "core/base/str.h"
#include "results/tensorboard.h"

static const char *const names[PL_FORMATS] = {"auto", "csv", "jsonl", "tensorboard", "llmc", "nanogpt"};

const char *pl_curve_format_name(pl_curve_format f) { return names[f]; }

bool pl_curve_format_find(const char *name, pl_curve_format *out) {
  for (*out = 0; *out < PL_FORMATS; ++*out)
    if (strcmp(name, names[*out]) == 0) return true;
  return false;
}

static bool has_digit_after(const char *line, const char *start) {
  size_t length = strlen(start);
  return strncmp(line, start, length) == 0 && line[length] >= '0' && line[length] <= '9';
}

/* Logs of modded-nanogpt begin with the program's source. */
static bool has_step_line(const char *text) {
  for (const char *line = text; line; line = strchr(line, '\n')) {
    if (*line == '\n') line++;
    size_t digits = has_digit_after(line, "step:") ? strspn(line + 5, "0123456789") : 0;
    if (digits > 0 && line[5 + digits] == '/') return true;
  }
  return false;
}

pl_curve_format pl_import_guess(const pl_import_text *in) {
  const char *text = in->bytes + strspn(in->bytes, " \t\r\n");
  if (pl_event_file_begins(in->bytes, in->length)) return PL_FORMAT_TENSORBOARD;
  if (*text == '{') return PL_FORMAT_JSONL;
  if (has_digit_after(text, "s:")) return PL_FORMAT_LLMC;
  return has_step_line(text) ? PL_FORMAT_NANOGPT : PL_FORMAT_CSV;
}

char *pl_import_next_line(pl_import_lines *l) {
  if (l->next >= l->end) return NULL;
  char *line = l->next, *stop = memchr(line, '\n', (size_t)(l->end - line));
  if (!stop) stop = l->end;
  l->next = stop + 1;
  *stop = '\0';
  if (stop > line && stop[-1] == '\r') stop[-1] = '\0';
  l->number++;
  return line;
}

enum { MOST_SHOWN = 400, NAME = 104 };

void pl_import_saw(pl_import_table *t, const char *name) {
  char quoted[NAME];
  if (!t->seen || t->seen->length > MOST_SHOWN) return;
  snprintf(quoted, sizeof quoted, "\"%.100s\"", name);
  if (strstr(pl_str_text(t->seen), quoted)) return;
  pl_str_printf(t->seen, "%s%s", t->seen->length > 0 ? ", " : "", quoted);
}
