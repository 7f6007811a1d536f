/* The text form of a schedule, written and read back exactly.
 *
 *     schedule 2bw
 *     stages 2
 *     microbatches 2
 *     stage 0
 *       prologue F0@1 >a0
 *       body F1@1 >a1 <g0 B0@1 F0+1 >a0+1 <g1 B1@1 U
 *       epilogue F1@1 >a1 <g0 B0@1 <g1 B1@1 U
 *     stage 1
 *       body <a0 F0@1 B0@1 >g0 <a1 F1@1 B1@1 >g1 U
 *
 * Words are separated by blanks or new lines; # starts a comment. F0 is a forward of microbatch 0, B0 a backward, I0
 * and W0 its two halves (input, weight); >a0, >g0 send an activation or gradient, <a0, <g0 receive one; U is the
 * update. Behind the microbatch: +n works n updates ahead, @n reads the weights n updates back, :n is the chunk; 0 is
 * left out. Before `stage`: `chunks n`. In a stage, before its instructions: `versions n`, `slots n`, what it has room
 * for. */
#ifndef PL_PIPELINE_SCHEDULE_TEXT_H
#define PL_PIPELINE_SCHEDULE_TEXT_H

#include "core/base/str.h"
#include "core/pipeline/schedule.h"

void pl_schedule_write(const pl_schedule *s, pl_str *out);

/* Reads text; `file` stands for it in messages. PL_BAD names line, column, what was seen and what is allowed. It reads
 * only: pl_schedule_check says whether the schedule works. The caller frees *out, also after a failure. */
PL_MUST_CHECK pl_status pl_schedule_parse(const char *text, const char *file, pl_schedule *out, pl_err *e);

PL_MUST_CHECK pl_status pl_schedule_read(const char *path, pl_schedule *out, pl_err *e);

#endif
