/* Messages that were sent and not yet received, for those who play a schedule without sending anything. */
#ifndef PL_PIPELINE_MAILBOX_H
#define PL_PIPELINE_MAILBOX_H

#include "core/pipeline/schedule.h"

typedef struct pl_letter {
  int64_t update;
  size_t microbatch, chunk;
  double time; /* when it is there */
} pl_letter;

/* One link in one direction; {0} is empty. */
typedef struct pl_mailbox {
  pl_letter *letters;
  size_t first, end, room;
} pl_mailbox;

size_t pl_mailbox_count(const pl_mailbox *b);
PL_MUST_CHECK pl_status pl_mailbox_put(pl_mailbox *b, pl_letter letter, pl_err *e);

/* Takes the letter of the same update, microbatch and chunk out and sets its time; false when there is none. */
bool pl_mailbox_take(pl_mailbox *b, pl_letter *letter);
void pl_mailbox_free(pl_mailbox *b);

#endif
