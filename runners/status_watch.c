#include "runners/status_watch.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "runners/say.h"

static size_t terminal_rows(void) {
  enum { USUAL = 24, LEAST = 3 };
  struct winsize size = {0};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < LEAST) return USUAL;
  return size.ws_row;
}

static size_t count_lines(const char *text) {
  size_t lines = 0;
  for (; *text != '\0'; text++) lines += *text == '\n';
  return lines;
}

/* Nothing is cleared before it is written over, so that nothing flickers. The cursor's own row stays free: a newline
 * there would scroll. */
void pl_watch_frame(const char *text, size_t rows, pl_str *out) {
  size_t lines = count_lines(text), room = rows - 1;
  size_t shown = lines <= room ? lines : room - 1;
  pl_str_append(out, "\033[H\033[?7l");
  for (size_t i = 0; i < shown; i++) {
    size_t length = strcspn(text, "\n");
    pl_str_append_bytes(out, text, length);
    pl_str_append(out, "\033[K\n");
    text += length + 1;
  }
  if (shown < lines) pl_str_printf(out, "... %zu more lines\033[K\n", lines - shown);
  pl_str_append(out, "\033[J\033[?7h");
}

static pl_status draw(const pl_str *text, pl_err *e) {
  pl_str frame = {0};
  pl_watch_frame(pl_str_text(text), terminal_rows(), &frame);
  return pl_print(&frame, e);
}

static pl_status append(const pl_watch *w, const pl_str *text, bool apart, pl_err *e) {
  pl_str block = {0};
  if (strcmp(pl_str_text(&w->last), pl_str_text(text)) == 0) return PL_OK;
  pl_str_printf(&block, "%s%s", apart && w->last.length > 0 ? "\n" : "", pl_str_text(text));
  return pl_print(&block, e);
}

pl_status pl_watch_show(pl_watch *w, pl_str *text, bool apart, pl_err *e) {
  pl_status st = pl_str_check(text, e);
  if (st == PL_OK) st = w->screen ? draw(text, e) : append(w, text, apart, e);
  if (st == PL_OK && fflush(stdout) != 0) st = pl_fail(e, PL_FAIL, "standard output could not be written");
  pl_str_free(&w->last);
  w->last = *text;
  *text = (pl_str){0};
  return st;
}

void pl_watch_free(pl_watch *w) { pl_str_free(&w->last); }
