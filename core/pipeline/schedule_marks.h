/* How the text form writes the kinds of instructions. */
#ifndef PL_PIPELINE_SCHEDULE_MARKS_H
#define PL_PIPELINE_SCHEDULE_MARKS_H

#include "core/pipeline/schedule.h"

/* Index: pl_op. No mark begins another one. */
static const char *const pl_op_marks[] = {
    [PL_OP_FORWARD] = "F",          [PL_OP_BACKWARD] = "B",       [PL_OP_SEND_ACTIVATION] = ">a",
    [PL_OP_RECV_ACTIVATION] = "<a", [PL_OP_SEND_GRADIENT] = ">g", [PL_OP_RECV_GRADIENT] = "<g",
    [PL_OP_UPDATE] = "U",           [PL_OP_BACKWARD_INPUT] = "I", [PL_OP_BACKWARD_WEIGHT] = "W"};

enum { PL_OPS = sizeof pl_op_marks / sizeof *pl_op_marks };

static const char *const pl_part_words[] = {"prologue", "body", "epilogue"};

#endif
