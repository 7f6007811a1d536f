#include "core/pipeline/schedule.h"

#include "core/base/memory.h"

const char *pl_op_name(pl_op op) {
  static const char *const names[] = {"forward",       "backward",         "send activation", "receive activation",
                                      "send gradient", "receive gradient", "update"};
  return names[op];
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

void pl_schedule_free(pl_schedule *s) {
  for (size_t p = 0; p < s->stages; p++) {
    pl_free(s->program[p].prologue.items);
    pl_free(s->program[p].body.items);
    pl_free(s->program[p].epilogue.items);
  }
  *s = (pl_schedule){0};
}
