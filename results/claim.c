#include "results/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/fs.h"
#include "core/base/hash.h"
#include "core/base/memory.h"

enum { DEEPEST = 64 }; /* successors that are followed */

/* A claim as it was found. */
typedef struct sight {
  pl_claim_state state;
  char line[PL_CLAIM_LINE]; /* of the holder, or of the last one; "" when there is none or it cannot be read */
  char next[4096];          /* where whoever comes after it links its claim; "" when nobody can */
} sight;

/* Of a holder, or of one that ended its claim. */
typedef enum place { AFTER_HOLDER, AFTER_END } place;

static void name_successor(const char *path, sight *s, place where) {
  char hex[PL_ID_SIZE];
  pl_hash_hex(pl_hash_join(pl_hash(s->line, pl_owner_length(s->line)), where), hex);
  int length = snprintf(s->next, sizeof s->next, "%s.%s", path, hex);
  if (length < 0 || (size_t)length >= sizeof s->next) s->next[0] = '\0';
}

static bool same_owner(const char *a, const char *b) {
  size_t length = pl_owner_length(a);
  return length == pl_owner_length(b) && strncmp(a, b, length) == 0;
}

/* Claims appear whole; a damaged one is what a power cut left, so its process is gone. */
static bool is_gone(const char *line) {
  pl_owner o;
  return !pl_owner_parse(line, &o) || pl_owner_is_gone(&o);
}

/* Follows the successors to the last one. PATH itself lags behind when a taker died, or when the read did. */
static sight look(const char *path) {
  sight s = {.state = PL_CLAIM_NONE};
  char later[PL_CLAIM_LINE];
  if (!pl_claim_read(path, s.line)) {
    s.line[0] = '\0';
    if (errno != ENOENT && errno != ENOTDIR) s.state = PL_CLAIM_LIVE;
    return s;
  }
  for (int depth = 0; depth < DEEPEST; depth++) {
    name_successor(path, &s, AFTER_HOLDER);
    if (!pl_claim_read(s.next, later)) {
      s.state = is_gone(s.line) ? PL_CLAIM_DEAD : PL_CLAIM_LIVE;
      return s;
    }
    if (same_owner(later, s.line)) {
      name_successor(path, &s, AFTER_END);
      if (!pl_claim_read(s.next, later)) return s;
    }
    memcpy(s.line, later, sizeof s.line);
  }
  s.state = PL_CLAIM_LIVE;
  s.next[0] = '\0';
  return s;
}

pl_claim_state pl_claim_look(const char *path) { return look(path).state; }

void pl_claim_describe(const char *path, pl_str *out) {
  const sight s = look(path);
  pl_owner o;
  if (pl_owner_parse(s.line, &o))
    pl_str_printf(out, "process %lld on host %s", o.pid, o.host);
  else
    pl_str_append(out, "an unknown process");
}

static pl_status write_claim(const char *path, pl_err *e) {
  char line[PL_CLAIM_LINE];
  const pl_owner self = pl_owner_self();
  pl_owner_print(&self, line);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return pl_fail(e, PL_FAIL, "%s: cannot be created: %s", path, strerror(errno));
  pl_status st = pl_write_all(fd, line, strlen(line), path, e);
  if (close(fd) != 0 && st == PL_OK) st = pl_fail(e, PL_FAIL, "%s: closing failed: %s", path, strerror(errno));
  return st;
}

/* Over NFS a link that was made can be answered with an error when the answer to the first try got lost. */
static bool link_made(const char *own, const char *path) {
  struct stat info;
  if (link(own, path) == 0) return true;
  int reason = errno;
  bool made = stat(own, &info) == 0 && info.st_nlink == 2;
  errno = reason;
  return made;
}

static bool may_take_over(const sight *s, const pl_claim_rules *rules) {
  pl_owner o;
  if (s->next[0] == '\0') return false; /* it went just now, or cannot be read */
  if (s->state != PL_CLAIM_LIVE) return true;
  if (!rules || !pl_owner_parse(s->line, &o)) return false;
  if (rules->stood_still && strcmp(rules->stood_still, s->line) == 0) return true;
  return rules->job_is_gone && strcmp(o.job, "-") != 0 && rules->job_is_gone(o.job);
}

/* The claim at `next` gets its usual name. Not when PATH does not lead to it: since this process read PATH, the claim
 * has changed hands and that name was given up. */
static pl_status move_to(const char *path, const char *own, const char *next, bool *taken, pl_err *e) {
  *taken = !pl_claim_is_lost(path);
  if (!*taken) unlink(next);
  if (!*taken || rename(own, path) == 0 || !pl_path_exists(own)) return PL_OK;
  *taken = false;
  return pl_fail(e, PL_FAIL, "%s: cannot be taken over: %s", path, strerror(errno));
}

pl_status pl_claim_take_by(const char *path, const pl_claim_rules *rules, bool *taken, pl_err *e) {
  pl_status st = PL_OK;
  pl_str own = {0};
  *taken = false;
  pl_str_printf(&own, "%s.tmp.%ld", path, (long)getpid());
  PL_TRY(pl_str_check(&own, e));
  PL_TRY(write_claim(own.text, e));
  *taken = link_made(own.text, path);
  for (int depth = 0; !*taken && errno == EEXIST && depth < DEEPEST; depth++) {
    const sight s = look(path);
    if (!may_take_over(&s, rules)) goto out;
    if (!link_made(own.text, s.next)) continue;
    st = move_to(path, own.text, s.next, taken, e);
    goto out;
  }
  if (!*taken && errno != EEXIST) st = pl_fail(e, PL_FAIL, "%s: cannot be created: %s", path, strerror(errno));
out:
  if (own.text) unlink(own.text);
  pl_str_free(&own);
  return st;
}

pl_status pl_claim_take(const char *path, bool *taken, pl_err *e) { return pl_claim_take_by(path, NULL, taken, e); }

double pl_claim_seconds(void) {
  enum { USUAL = 300 };
  const char *text = getenv("PIPELAG_CLAIM_SECONDS");
  double seconds;
  return text && pl_parse_real(text, &seconds) && isfinite(seconds) && seconds > 0 ? seconds : USUAL;
}

static bool is_self(const char *line) {
  pl_owner o;
  return pl_owner_parse(line, &o) && pl_owner_is_self(&o);
}

bool pl_claim_is_lost(const char *path) {
  const sight s = look(path);
  if (s.state == PL_CLAIM_NONE) return true;
  return s.line[0] != '\0' && !is_self(s.line);
}

/* The file that was looked into is the one that is written: a taker's is another one. */
bool pl_claim_beat(const char *path) {
  char line[PL_CLAIM_LINE];
  pl_owner o;
  if (pl_claim_is_lost(path)) return false;
  int fd = open(path, O_RDWR | O_CLOEXEC);
  ssize_t got = fd >= 0 ? read(fd, line, sizeof line - 1) : 0;
  if (got > 0) {
    line[got] = '\0';
    size_t at = pl_owner_length(line);
    if (is_self(line) && pl_owner_parse(line, &o)) {
      o.counter++;
      pl_owner_print(&o, line);
      (void)!pwrite(fd, line + at, strlen(line + at), (off_t)at); /* another try comes soon */
    }
  }
  if (fd >= 0) close(fd);
  return true;
}

pl_claim_motion pl_claim_watch_on(const char *path, pl_claim_watch *w) {
  const sight s = look(path);
  double now = pl_clock_seconds();
  if (w->line[0] != '\0' && strcmp(w->line, s.line) == 0)
    return now - w->since >= pl_claim_seconds() ? PL_CLAIM_STILL : PL_CLAIM_UNSURE;
  bool moves = w->line[0] != '\0' && same_owner(w->line, s.line);
  memcpy(w->line, s.line, sizeof w->line);
  w->since = now;
  return moves ? PL_CLAIM_MOVES : PL_CLAIM_UNSURE;
}

/* Nobody can have taken over where this name can be made, so PATH is this process's file. Its age counts from now. */
void pl_claim_end(const char *path) {
  const sight s = look(path);
  if (s.state != PL_CLAIM_LIVE || !is_self(s.line)) return;
  (void)!utimensat(AT_FDCWD, path, NULL, 0);
  (void)!link(path, s.next);
}
