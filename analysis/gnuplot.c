#include "analysis/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "analysis/pdf_date.h"
#include "analysis/sheet.h"
#include "core/base/fs.h"
#include "core/base/memory.h"

extern char **environ;

const char *const pl_drawn_endings[PL_DRAWN_FORMATS] = {"svg", "png", "pdf"};

void pl_plot_series(pl_plot *p, const char *name) {
  p->series.length = 0;
  pl_csv_field(name, &p->series);
}

void pl_plot_numbers(pl_plot *p, const double *numbers, size_t count) {
  char text[32];
  if (p->series.length > 0)
    pl_str_append_bytes(&p->csv, p->series.text, p->series.length);
  else
    pl_str_append(&p->csv, p->name);
  for (size_t i = 0; i < count; i++) {
    pl_format_number(numbers[i], text);
    pl_str_printf(&p->data, "%s%s", i > 0 ? " " : "", text);
    pl_str_printf(&p->csv, ",%s", numbers[i] == numbers[i] ? text : "");
  }
  pl_str_append(&p->data, "\n");
  pl_str_append(&p->csv, "\n");
}

size_t pl_plot_end_block(pl_plot *p) {
  pl_str_append(&p->data, "\n\n");
  return p->blocks++;
}

void pl_plot_quote(pl_str *script, const char *text) {
  pl_str_append(script, "'");
  for (; *text; text++) {
    if (*text == '\'')
      pl_str_append(script, "''");
    else
      pl_str_append_bytes(script, (unsigned char)*text < ' ' ? " " : text, 1);
  }
  pl_str_append(script, "'");
}

void pl_plot_free(pl_plot *p) {
  pl_str_free(&p->caption);
  pl_str_free(&p->script);
  pl_str_free(&p->data);
  pl_str_free(&p->csv);
  pl_str_free(&p->series);
}

/* Reads to the end so that the writer never blocks, keeps the first line. */
static void read_first_line(int fd, char *out, size_t size) {
  char buffer[512];
  size_t length = 0;
  bool ended = false;
  ssize_t got;
  while ((got = read(fd, buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR))
    for (ssize_t i = 0; i < got; i++) {
      ended = ended || (buffer[i] == '\n' && length > 0);
      if (!ended && length + 1 < size && (unsigned char)buffer[i] >= ' ') out[length++] = buffer[i];
    }
  out[length] = '\0';
}

/* The environment of gnuplot: what it draws must not depend on whose locale, time zone or clock it is. */
typedef struct surroundings {
  char **list; /* closed by NULL; borrows all but the last entries */
  char epoch[48];
} surroundings;

static bool is_replaced(const char *variable) {
  static const char *const names[] = {"LC_ALL=", "TZ=", "SOURCE_DATE_EPOCH=", "GNUTERM="};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strncmp(variable, names[i], strlen(names[i])) == 0) return true;
  return false;
}

static pl_status surroundings_make(const char *date, surroundings *out, pl_err *e) {
  static char locale[] = "LC_ALL=C.UTF-8", zone[] = "TZ=UTC0";
  struct tm at = {0};
  size_t count = 0, n = 0;
  while (environ && environ[count]) count++;
  pl_status st = pl_alloc(count + 4, sizeof *out->list, "an environment", &out->list, e);
  if (st != PL_OK) return st;
  for (size_t i = 0; i < count; i++)
    if (!is_replaced(environ[i])) out->list[n++] = environ[i];
  if (!strptime(date, "%Y-%m-%dT%H:%M:%SZ", &at)) at = (struct tm){.tm_year = 70, .tm_mday = 1};
  snprintf(out->epoch, sizeof out->epoch, "SOURCE_DATE_EPOCH=%lld", (long long)timegm(&at));
  out->list[n++] = locale;
  out->list[n++] = zone;
  out->list[n++] = out->epoch;
  return PL_OK;
}

/* 0 or an errno value; the child's error output goes to `errors`, its output to `output` (-1: nowhere). */
static int start_gnuplot(const char *folder, char **argv, char **surrounding, int output, int errors, pid_t *pid) {
  posix_spawn_file_actions_t actions;
  int rc = posix_spawn_file_actions_init(&actions);
  if (rc != 0) return rc;
  rc = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (rc == 0 && output >= 0) rc = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  if (rc == 0 && output < 0) rc = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  if (rc == 0) rc = posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  if (rc == 0) rc = posix_spawn_file_actions_addchdir_np(&actions, folder);
  if (rc == 0) rc = posix_spawnp(pid, "gnuplot", &actions, NULL, argv, surrounding);
  posix_spawn_file_actions_destroy(&actions);
  return rc;
}

/* Runs gnuplot to its end and keeps the first line that it says. */
static pl_status run_gnuplot(const char *folder, char **argv, char **surrounding, bool listen, bool *missing, bool *ok,
                             char *line, size_t size, pl_err *e) {
  int ends[2], status = 0;
  pid_t pid;
  *ok = *missing = false;
  if (pipe2(ends, O_CLOEXEC) != 0) return pl_fail(e, PL_FAIL, "no pipe to gnuplot: %s", strerror(errno));
  int rc = start_gnuplot(folder, argv, surrounding, listen ? ends[1] : -1, ends[1], &pid);
  close(ends[1]);
  if (rc == 0) read_first_line(ends[0], line, size);
  close(ends[0]);
  *missing = rc == ENOENT;
  if (rc == ENOENT) return PL_OK;
  if (rc != 0) return pl_fail(e, PL_FAIL, "cannot start gnuplot: %s", strerror(rc));
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return pl_fail(e, PL_FAIL, "gnuplot was lost: %s", strerror(errno));
  *ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return PL_OK;
}

void pl_gnuplot_version(pl_str *out) {
  char *argv[] = {(char[]){"gnuplot"}, (char[]){"--version"}, NULL}, line[200] = "";
  surroundings s = {0};
  bool missing, ok = false;
  if (surroundings_make("", &s, NULL) == PL_OK &&
      run_gnuplot(".", argv, s.list, true, &missing, &ok, line, sizeof line, NULL) == PL_OK && ok)
    pl_str_append(out, line);
  pl_free(s.list);
}

static void append_frame(const pl_plot *p, pl_str *out) {
  pl_str_printf(
      out,
      "# gnuplot -e \"format='svg'\" %s.gp (or png, pdf)\n"
      "if (format eq 'png') {\n"
      "  set terminal pngcairo noenhanced size %d,%d font 'DejaVu Sans,12' fontscale 1.5 linewidth 1.5 "
      "pointscale 1.5\n"
      "} else { if (format eq 'pdf') {\n"
      "  set terminal pdfcairo noenhanced size %.4gin,%.4gin font 'DejaVu Sans,12' fontscale 0.75 linewidth 1.4\n"
      "} else {\n"
      "  set terminal svg noenhanced size %d,%d font 'DejaVu Sans,12' background 'white'\n"
      "} }\n"
      "set output '%s.'.format\n"
      "set encoding utf8\n"
      "set format '%%g'\n",
      p->name, p->width * 3 / 2, p->height * 3 / 2, p->width / 96.0, p->height / 96.0, p->width, p->height, p->name);
}

static pl_status write_file(const char *folder, const char *name, const char *ending, const pl_str *content,
                            pl_err *e) {
  char file[64], *path = NULL;
  snprintf(file, sizeof file, "%s.%s", name, ending);
  pl_status st = pl_str_check(content, e);
  if (st == PL_OK) st = pl_path_join(folder, file, &path, e);
  if (st == PL_OK) st = pl_file_replace_unsynced(path, pl_str_text(content), content->length, e);
  pl_free(path);
  return st;
}

static pl_status write_inputs(const pl_plot *p, const char *folder, pl_err *e) {
  pl_status st = PL_OK;
  pl_str script = {0}, csv = {0};
  append_frame(p, &script);
  pl_str_append(&script, pl_str_text(&p->script));
  pl_str_printf(&csv, "series,%s\n%s", p->columns ? p->columns : "x,y", pl_str_text(&p->csv));
  PL_TRY(pl_str_check(&p->script, e));
  PL_TRY(pl_str_check(&p->csv, e));
  PL_TRY(write_file(folder, p->name, "gp", &script, e));
  PL_TRY(write_file(folder, p->name, "dat", &p->data, e));
  PL_TRY(write_file(folder, p->name, "csv", &csv, e));
out:
  pl_str_free(&script);
  pl_str_free(&csv);
  return st;
}

static pl_status date_pdf(const pl_plot *p, const char *folder, const char *date, pl_err *e) {
  char file[64], *path = NULL;
  snprintf(file, sizeof file, "%s.pdf", p->name);
  pl_status st = pl_path_join(folder, file, &path, e);
  if (st == PL_OK) st = pl_pdf_set_date(path, date, e);
  pl_free(path);
  return st;
}

pl_status pl_plot_draw(const pl_plot *p, const char *folder, const char *date, pl_drawn *out, pl_err *e) {
  pl_status st = PL_OK;
  surroundings s = {0};
  char script[64], set_format[32];
  char *argv[] = {(char[]){"gnuplot"}, (char[]){"-d"}, (char[]){"-e"}, set_format, script, NULL};
  *out = (pl_drawn){0};
  snprintf(script, sizeof script, "%s.gp", p->name);
  PL_TRY(surroundings_make(date, &s, e));
  PL_TRY(write_inputs(p, folder, e));
  for (size_t i = 0; i < PL_DRAWN_FORMATS; i++) {
    snprintf(set_format, sizeof set_format, "format='%s'", pl_drawn_endings[i]);
    PL_TRY(run_gnuplot(folder, argv, s.list, false, &out->missing, &out->as[i], out->problem[i], sizeof out->problem[i],
                       e));
    if (!out->as[PL_DRAWN_SVG]) break;
  }
  if (out->as[PL_DRAWN_PDF]) PL_TRY(date_pdf(p, folder, date, e));
out:
  pl_free(s.list);
  return st;
}
