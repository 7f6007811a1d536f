/* The running program and its libraries: what a submission records and a task compares. */
#ifndef PL_RUNNERS_PROGRAM_H
#define PL_RUNNERS_PROGRAM_H

#include "core/base/hash.h"
#include "core/base/json.h"

/* Hash of the program's file. */
PL_MUST_CHECK pl_status pl_program_hash(char out[PL_ID_SIZE], pl_err *e);

/* {"libopenblas.so.0": "0123456789abcdef", ...}: name and hash of each library that is loaded; NULL when memory is out.
 */
pl_json *pl_program_libraries(void);

/* How this program differs from the recorded one: "program (0123..., was 4567...), libc.so.6 (...)"; appended, nothing
 * when it does not. An empty hash and a NULL object are not compared. */
PL_MUST_CHECK pl_status pl_program_compare(const char *hash, const pl_json *libraries, pl_str *out, pl_err *e);

#endif
