#include "core/train/board.h"

#include <string.h>

#include "core/base/memory.h"

struct pl_board {
  pl_world *world;
  pl_gather *gather;
  size_t stages, replicas, open;
  size_t own_parts;  /* stages of this process */
  size_t own_count;  /* numbers of this process in a round */
  size_t *segments;  /* [stages] */
  size_t *all_place; /* [replicas * stages] where a frame begins in a whole round */
  size_t *own_place; /* the same in this process's part; SIZE_MAX: not here */
  double *own;       /* [open * own_count] */
  size_t *written;   /* [open] */
  int64_t post;      /* the next round to go out */
  int64_t next;      /* the next round to be read */
  const double *now; /* the round being read */
};

static size_t frame_size(size_t segments) { return PL_FRAME_NUMBERS + 3 * segments; }

static size_t place(const pl_board *b, size_t replica, size_t stage) { return replica * b->stages + stage; }

/* Rank by rank, its replicas one after the other, in each the stages in order. */
static void lay_out(pl_board *b, const pl_board_args *a, size_t *count) {
  const size_t size = a->world->size;
  size_t all = 0;
  for (size_t rank = 0; rank < size; rank++) {
    size_t own = 0, first = 0, end = 0;
    pl_grid_stages(a->grid, rank, &first, &end);
    for (size_t d = 0; d < b->replicas; d++)
      for (size_t s = 0; s < b->stages; s++) {
        const size_t i = place(b, d, s), p = s % a->grid->stages;
        if (p < first || p >= end || (size > 1 && pl_grid_rank(a->grid, d, p) != rank)) continue;
        b->all_place[i] = all + own;
        if (rank == a->world->rank) {
          b->own_place[i] = own;
          b->own_parts += d == (size > 1 ? rank / a->grid->ranks : 0);
        }
        own += frame_size(b->segments[s]);
      }
    count[rank] = own;
    all += own;
  }
  b->own_count = count[a->world->rank];
}

pl_status pl_board_create(const pl_board_args *a, pl_board **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_board *b = NULL;
  size_t *count = NULL;
  static const char what[] = "the stages' figures";
  *out = NULL;
  PL_TRY(pl_alloc(1, sizeof *b, what, &b, e));
  b->world = a->world;
  b->stages = a->grid->stages * a->chunks;
  b->replicas = a->grid->replicas;
  b->open = a->open;
  const size_t frames = b->stages * b->replicas;
  PL_TRY(pl_alloc(a->world->size, sizeof *count, what, &count, e));
  PL_TRY(pl_alloc(b->stages, sizeof *b->segments, what, &b->segments, e));
  PL_TRY(pl_alloc(frames, sizeof *b->all_place, what, &b->all_place, e));
  PL_TRY(pl_alloc(frames, sizeof *b->own_place, what, &b->own_place, e));
  memcpy(b->segments, a->segments, b->stages * sizeof *b->segments);
  for (size_t i = 0; i < frames; i++) b->own_place[i] = SIZE_MAX;
  lay_out(b, a, count);
  PL_TRY(pl_alloc(b->open * b->own_count, sizeof *b->own, what, &b->own, e));
  PL_TRY(pl_alloc(b->open, sizeof *b->written, what, &b->written, e));
  PL_TRY(a->world->type->gather_open(a->world, count, b->open, &b->gather, e));
  *out = b;
out:
  pl_free(count);
  if (st != PL_OK) pl_board_destroy(b);
  return st;
}

void pl_board_destroy(pl_board *b) {
  if (!b) return;
  b->world->type->gather_close(b->gather);
  pl_free(b->segments);
  pl_free(b->all_place);
  pl_free(b->own_place);
  pl_free(b->own);
  pl_free(b->written);
  pl_free(b);
}

static double *own_part(const pl_board *b, int64_t round) { return b->own + (size_t)round % b->open * b->own_count; }

static void clear(pl_board *b, int64_t round) {
  memset(own_part(b, round), 0, b->own_count * sizeof *b->own);
  b->written[(size_t)round % b->open] = 0;
}

void pl_board_start(pl_board *b, int64_t round) {
  b->post = b->next = round;
  for (size_t i = 0; i < b->open; i++) clear(b, (int64_t)i);
}

static pl_frame frame_at(const pl_board *b, size_t stage, double *numbers) {
  return (pl_frame){.numbers = numbers,
                    .squares = numbers + PL_FRAME_NUMBERS,
                    .weights = numbers + PL_FRAME_NUMBERS + b->segments[stage],
                    .change = numbers + PL_FRAME_NUMBERS + 2 * b->segments[stage],
                    .segments = b->segments[stage]};
}

pl_frame pl_board_frame(const pl_board *b, int64_t round, size_t replica, size_t stage) {
  return frame_at(b, stage, own_part(b, round) + b->own_place[place(b, replica, stage)]);
}

static pl_status post(pl_board *b, pl_err *e) {
  pl_status st = b->world->type->gather_post(b->gather, own_part(b, b->post), e);
  clear(b, b->post++);
  return st;
}

pl_status pl_board_written(pl_board *b, int64_t round, pl_err *e) {
  pl_status st = PL_OK;
  b->written[(size_t)round % b->open]++;
  while (b->written[(size_t)b->post % b->open] == b->own_parts) PL_TRY(post(b, e));
out:
  return st;
}

bool pl_board_next(pl_board *b, int64_t *round) {
  b->now = b->world->type->gather_next(b->gather);
  *round = b->next;
  return b->now != NULL;
}

pl_frame pl_board_read(const pl_board *b, size_t replica, size_t stage) {
  /* Frames are read and written by the same type; what was gathered is not changed. */
  return frame_at(b, stage, (double *)(uintptr_t)(b->now + b->all_place[place(b, replica, stage)]));
}

void pl_board_read_on(pl_board *b) {
  b->world->type->gather_pop(b->gather);
  b->next++;
}

pl_status pl_board_finish(pl_board *b, int64_t end, pl_err *e) {
  pl_status st = PL_OK;
  while (b->post < end) PL_TRY(post(b, e));
out:
  return st;
}
