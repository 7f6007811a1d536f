#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/pipeline/schedule_marks.h"
#include "core/pipeline/schedule_text.h"

enum { WIDTH = 100, WORD = 128 };

static void add_number(char *word, char mark, int64_t value) {
  size_t length = strlen(word);
  if (value != 0) snprintf(word + length, WORD - length, "%c%" PRId64, mark, value);
}

static void write_word(const pl_instruction *in, char word[WORD]) {
  if (in->op == PL_OP_UPDATE) {
    snprintf(word, WORD, "%s", pl_op_marks[in->op]);
    return;
  }
  snprintf(word, WORD, "%s%zu", pl_op_marks[in->op], in->microbatch);
  add_number(word, '+', in->ahead);
  add_number(word, '@', in->lag);
  add_number(word, ':', (int64_t)in->chunk);
}

static void write_part(const pl_instructions *list, const char *name, pl_str *out) {
  if (list->count == 0) return;
  char word[WORD];
  pl_str_printf(out, "  %s", name);
  size_t column = 2 + strlen(name);
  for (size_t i = 0; i < list->count; i++) {
    write_word(&list->items[i], word);
    bool wrap = column + 1 + strlen(word) > WIDTH;
    pl_str_printf(out, "%s%s", wrap ? "\n    " : " ", word);
    column = (wrap ? 4 : column + 1) + strlen(word);
  }
  pl_str_append(out, "\n");
}

void pl_schedule_write(const pl_schedule *s, pl_str *out) {
  pl_str_printf(out, "schedule %s\nstages %zu\nmicrobatches %zu\n", s->name, s->stages, s->microbatches);
  if (pl_schedule_chunks(s) > 1) pl_str_printf(out, "chunks %zu\n", s->chunks);
  for (size_t p = 0; p < s->stages; p++) {
    const pl_program *program = &s->program[p];
    pl_str_printf(out, "stage %zu\n", p);
    if (program->versions > 0) pl_str_printf(out, "  versions %zu\n", program->versions);
    if (program->slots > 0) pl_str_printf(out, "  slots %zu\n", program->slots);
    for (int part = 0; part < 3; part++) write_part(pl_program_part(program, part), pl_part_words[part], out);
  }
}
