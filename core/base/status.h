/* Status codes and the one error message that every fallible function fills. */
#ifndef PL_BASE_STATUS_H
#define PL_BASE_STATUS_H

#include <stdbool.h>
#include <stddef.h>

/* The codes are the command line's exit statuses, so that a status reaches the shell unchanged. */
typedef enum pl_status {
  PL_OK = 0,
  PL_FAIL = 1,    /* something broke while working: I/O, memory, a full disk */
  PL_BAD = 2,     /* bad usage, spec, data or environment; nothing was started */
  PL_NOTHING = 3, /* a selection matched nothing */
  PL_STOPPED = 75 /* checkpointed after a signal; run again to go on */
} pl_status;

#define PL_MUST_CHECK __attribute__((warn_unused_result))
#define PL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

enum { PL_ERR_TEXT = 1024 };

/* Owned by the caller, zero-initialised before use. The first failure wins: later ones do not overwrite the text. */
typedef struct pl_err {
  pl_status status;
  char text[PL_ERR_TEXT]; /* one sentence without newline: what was seen, where, what is allowed */
} pl_err;

/* Records a failure and returns `status`, so that failing is one line: return pl_fail(e, PL_BAD, "...").
 * `e` may be NULL. Text longer than PL_ERR_TEXT is cut. */
pl_status pl_fail(pl_err *e, pl_status status, const char *format, ...) PL_PRINTF(3, 4);

/* Puts "text: " before the recorded sentence (the file, the run, the key it is about). Returns e->status. */
pl_status pl_err_prefix(pl_err *e, const char *format, ...) PL_PRINTF(2, 3);

/* Evaluates a fallible call and leaves through the function's `out:` label when it fails; needs a local `pl_status st`.
 */
#define PL_TRY(call)                                                                                                   \
  do {                                                                                                                 \
    st = (call);                                                                                                       \
    if (st != PL_OK) goto out;                                                                                         \
  } while (0)

#endif
