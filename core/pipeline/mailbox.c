#include "core/pipeline/mailbox.h"

#include <string.h>

#include "core/base/memory.h"

size_t pl_mailbox_count(const pl_mailbox *b) { return b->end - b->first; }

static void close_gap(pl_mailbox *b) {
  size_t count = pl_mailbox_count(b);
  if (count > 0) memmove(b->letters, b->letters + b->first, count * sizeof *b->letters);
  b->first = 0;
  b->end = count;
}

pl_status pl_mailbox_put(pl_mailbox *b, pl_letter letter, pl_err *e) {
  if (b->end == b->room && b->first > b->room / 2) close_gap(b);
  if (b->end == b->room) {
    size_t room = 2 * b->room + 4;
    pl_status st = pl_grow(b->room, room, sizeof *b->letters, "messages of a schedule", &b->letters, e);
    if (st != PL_OK) return st;
    b->room = room;
  }
  b->letters[b->end++] = letter;
  return PL_OK;
}

bool pl_mailbox_take(pl_mailbox *b, pl_letter *letter) {
  for (size_t i = b->first; i < b->end; i++) {
    const pl_letter *l = &b->letters[i];
    if (l->update != letter->update || l->microbatch != letter->microbatch || l->chunk != letter->chunk) continue;
    *letter = *l;
    b->letters[i] = b->letters[b->first++];
    if (b->first == b->end) b->first = b->end = 0; /* stays in the same few lines of the cache */
    return true;
  }
  return false;
}

void pl_mailbox_free(pl_mailbox *b) {
  pl_free(b->letters);
  *b = (pl_mailbox){0};
}
