#include "core/pipeline/schedule.h"

#include "core/base/memory.h"

const char *pl_op_name(pl_op op) {
  static const char *const names[] = {"forward",        "backward",         "send activation", "receive activation",
                                      "send gradient",  "receive gradient", "update",          "backward input",
                                      "backward weight"};
  return names[op];
}

bool pl_op_computes(pl_op op) {
  return op == PL_OP_FORWARD || op == PL_OP_BACKWARD || op == PL_OP_BACKWARD_INPUT || op == PL_OP_BACKWARD_WEIGHT;
}

pl_status pl_instructions_add(pl_instructions *list, pl_instruction instruction, pl_err *e) {
  if (list->count == list->room) {
    size_t room = 2 * list->room + 8;
    pl_status st = pl_grow(list->room, room, sizeof *list->items, "a schedule", &list->items, e);
    if (st != PL_OK) return st;
    list->room = room;
  }
  list->items[list->count++] = instruction;
  return PL_OK;
}

const pl_instructions *pl_program_part(const pl_program *program, int part) {
  const pl_instructions *const parts[] = {&program->prologue, &program->body, &program->epilogue};
  return parts[part];
}

int64_t pl_instructions_updates(const pl_instructions *list) {
  int64_t n = 0;
  for (size_t i = 0; i < list->count; i++) n += list->items[i].op == PL_OP_UPDATE;
  return n;
}

void pl_schedule_free(pl_schedule *s) {
  for (size_t p = 0; p < s->stages; p++) {
    pl_free(s->program[p].prologue.items);
    pl_free(s->program[p].body.items);
    pl_free(s->program[p].epilogue.items);
  }
  *s = (pl_schedule){0};
}

size_t pl_schedule_chunks(const pl_schedule *s) { return s->chunks > 0 ? s->chunks : 1; }

bool pl_schedule_first(const pl_schedule *s, size_t stage, size_t chunk) {
  (void)s;
  return stage == 0 && chunk == 0;
}

bool pl_schedule_last(const pl_schedule *s, size_t stage, size_t chunk) {
  return stage + 1 == s->stages && chunk + 1 == pl_schedule_chunks(s);
}

bool pl_schedule_link(const pl_schedule *s, size_t stage, const pl_instruction *in, size_t *link, size_t *chunk) {
  *link = stage;
  *chunk = in->chunk;
  if (in->op == PL_OP_SEND_ACTIVATION || in->op == PL_OP_RECV_GRADIENT) return !pl_schedule_last(s, stage, in->chunk);
  if (pl_schedule_first(s, stage, in->chunk)) return false;
  *link = stage > 0 ? stage - 1 : s->stages - 1;
  *chunk = stage > 0 ? in->chunk : in->chunk - 1;
  return true;
}

int64_t pl_schedule_ramp(const pl_schedule *s) {
  int64_t lag = 0, ahead = 0, updates = 0;
  for (size_t p = 0; p < s->stages; p++) {
    int64_t own = pl_instructions_updates(&s->program[p].prologue);
    if (own > updates) updates = own;
    for (int part = 0; part < 3; part++) {
      const pl_instructions *list = pl_program_part(&s->program[p], part);
      for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].lag > lag) lag = list->items[i].lag;
        if (list->items[i].ahead > ahead) ahead = list->items[i].ahead;
      }
    }
  }
  return updates + lag + ahead;
}

int64_t pl_schedule_tail(const pl_schedule *s) {
  int64_t most = 0;
  for (size_t p = 0; p < s->stages; p++) {
    int64_t own = pl_instructions_updates(&s->program[p].epilogue);
    if (own > most) most = own;
  }
  return most;
}
