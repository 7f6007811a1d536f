#include "runners/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/clock.h"

enum { BAR_WIDTH = 24 };

pl_progress pl_progress_begin(bool quiet) {
  double now = pl_clock_seconds();
  return (pl_progress){.terminal = isatty(STDERR_FILENO) == 1, .quiet = quiet, .started = now, .last = now};
}

static void erase(pl_progress *p) {
  if (p->drawn) fputs("\r\033[K", stderr);
  p->drawn = false;
}

static int columns(void) {
  struct winsize size = {0};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

/* "[####----] " of at most `room` places between the brackets; nothing where that is too little. The words matter more.
 */
static void draw_bar(double share, int room, char out[BAR_WIDTH + 4]) {
  enum { LEAST = 4 };
  int width = room < BAR_WIDTH ? room : BAR_WIDTH, filled = (int)(share * width + 0.5);
  char *at = out;
  *at = '\0';
  if (width < LEAST) return;
  *at++ = '[';
  for (int i = 0; i < width; i++) *at++ = i < filled ? '#' : '-';
  strcpy(at, "] ");
}

bool pl_progress_due(const pl_progress *p) {
  return !p->quiet && pl_clock_seconds() - p->last >= (p->terminal ? 0.2 : 10.0);
}

void pl_progress_show(pl_progress *p, double share, const char *text) {
  if (!pl_progress_due(p)) return;
  double now = pl_clock_seconds();
  p->last = now;
  char left[24] = "--:--", words[512], bar[BAR_WIDTH + 4];
  if (share > 0.002) pl_format_duration((now - p->started) * (1 - share) / share, left);
  int length = snprintf(words, sizeof words, "%3.0f%% %s, %s left", floor(100 * share), text, left);
  int width = p->terminal ? columns() - 1 : length + BAR_WIDTH + 3;
  draw_bar(share, width - length - 3, bar);
  if (!p->terminal) {
    fprintf(stderr, "%s%s\n", bar, words);
    return;
  }
  fprintf(stderr, "\r%s%.*s\033[K", bar, width, words);
  fflush(stderr);
  p->drawn = true;
}

void pl_progress_line(pl_progress *p, const char *format, ...) {
  if (p->quiet) return;
  erase(p);
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
}

void pl_progress_end(pl_progress *p) {
  erase(p);
  fflush(stderr);
}

char *pl_format_count(double value, char *out) {
  static const char units[] = {'\0', 'k', 'M', 'G', 'T'};
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < sizeof units) {
    value /= 1000;
    unit++;
  }
  int digits = value >= 99.95 || unit == 0 ? 0 : value >= 9.995 ? 1 : 2;
  int n = snprintf(out, 15, "%.*f", digits, value);
  if (units[unit] != '\0' && n > 0 && n < 14) {
    out[n] = units[unit];
    out[n + 1] = '\0';
  }
  return out;
}

char *pl_format_duration(double seconds, char *out) {
  long total = seconds < 0 || !isfinite(seconds) || seconds > 3.2e7 ? 0 : (long)(seconds + 0.5);
  if (total >= 3600)
    snprintf(out, 24, "%ld:%02ld:%02ld", total / 3600, total / 60 % 60, total % 60);
  else
    snprintf(out, 24, "%02ld:%02ld", total / 60, total % 60);
  return out;
}
