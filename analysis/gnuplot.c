#include "analysis/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/fs.h"
#include "core/base/memory.h"

extern char **environ;

void pl_plot_numbers(pl_plot *p, const double *numbers, size_t count) {
  char text[32];
  for (size_t i = 0; i < count; i++)
    pl_str_printf(&p->data, "%s%s", i > 0 ? " " : "", pl_format_number(numbers[i], text));
  pl_str_append(&p->data, "\n");
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

/* 0 or an errno value; the child's error output goes to `errors`. */
static int start_gnuplot(const char *folder, char *script, const char *format, int errors, pid_t *pid) {
  char set_format[32];
  snprintf(set_format, sizeof set_format, "format='%s'", format);
  char *argv[] = {(char[]){"gnuplot"}, (char[]){"-d"}, (char[]){"-e"}, set_format, script, NULL};
  posix_spawn_file_actions_t actions;
  int rc = posix_spawn_file_actions_init(&actions);
  if (rc != 0) return rc;
  rc = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (rc == 0) rc = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  if (rc == 0) rc = posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  if (rc == 0) rc = posix_spawn_file_actions_addchdir_np(&actions, folder);
  if (rc == 0) rc = posix_spawnp(pid, "gnuplot", &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  return rc;
}

static pl_status run_gnuplot(const pl_plot *p, const char *folder, const char *format, bool *drawn, pl_drawn *out,
                             pl_err *e) {
  char script[64];
  int ends[2], status = 0;
  pid_t pid;
  snprintf(script, sizeof script, "%s.gp", p->name);
  if (pipe2(ends, O_CLOEXEC) != 0) return pl_fail(e, PL_FAIL, "no pipe to gnuplot: %s", strerror(errno));
  int rc = start_gnuplot(folder, script, format, ends[1], &pid);
  close(ends[1]);
  if (rc == 0) read_first_line(ends[0], out->problem, sizeof out->problem);
  close(ends[0]);
  out->missing = rc == ENOENT;
  if (rc == ENOENT) return PL_OK;
  if (rc != 0) return pl_fail(e, PL_FAIL, "cannot start gnuplot: %s", strerror(rc));
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return pl_fail(e, PL_FAIL, "gnuplot was lost: %s", strerror(errno));
  *drawn = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return PL_OK;
}

static void append_frame(const pl_plot *p, pl_str *out) {
  pl_str_printf(out,
                "# gnuplot -e \"format='svg'\" %s.gp (or png)\n"
                "if (format eq 'png') {\n"
                "  set terminal pngcairo noenhanced size %d,%d font 'DejaVu Sans,12' fontscale 1.5 linewidth 1.5 "
                "pointscale 1.5\n"
                "} else {\n"
                "  set terminal svg noenhanced size %d,%d font 'DejaVu Sans,12' background 'white'\n"
                "}\n"
                "set output '%s.'.format\n"
                "set encoding utf8\n"
                "set format '%%g'\n",
                p->name, p->width * 3 / 2, p->height * 3 / 2, p->width, p->height, p->name);
}

static pl_status write_file(const char *folder, const char *name, const char *ending, const pl_str *content,
                            pl_err *e) {
  char file[64], *path = NULL;
  snprintf(file, sizeof file, "%s.%s", name, ending);
  pl_status st = pl_str_check(content, e);
  if (st == PL_OK) st = pl_path_join(folder, file, &path, e);
  if (st == PL_OK) st = pl_file_replace(path, pl_str_text(content), content->length, e);
  pl_free(path);
  return st;
}

pl_status pl_plot_draw(const pl_plot *p, const char *folder, pl_drawn *out, pl_err *e) {
  pl_status st = PL_OK;
  pl_str script = {0};
  *out = (pl_drawn){0};
  append_frame(p, &script);
  pl_str_append(&script, pl_str_text(&p->script));
  PL_TRY(pl_str_check(&p->script, e));
  PL_TRY(write_file(folder, p->name, "gp", &script, e));
  PL_TRY(write_file(folder, p->name, "dat", &p->data, e));
  PL_TRY(run_gnuplot(p, folder, "svg", &out->svg, out, e));
  if (out->svg) PL_TRY(run_gnuplot(p, folder, "png", &out->png, out, e));
out:
  pl_str_free(&script);
  return st;
}
