/* Messages between the stages of a pipeline, wherever these are. */
#include "tests/mpi/mpi_rig.h"

enum { STAGES = 8, WAITING = 3, SMALL = 11, LARGE = 50001, ERRANDS = STAGES * PL_MESSAGE_KINDS * WAITING * 2 };

static const char *device_name;

/* Whose memory messages are sent from as they are, and one of which they are copied first. */
static int from_memory(void **state) {
  (void)state;
  device_name = "cpu";
  return 0;
}
static int from_copies(void **state) {
  (void)state;
  device_name = "paranoid";
  return 0;
}

/* One end of a transport with everything that it needs. */
typedef struct bench {
  pl_device *device;
  pl_grid grid;
  pl_schedule *schedule;
  pl_schedule_facts *facts;
  pl_transport *transport;
  size_t replica, first, end, size;
} bench;

static bench open_bench(size_t replicas, size_t chunks, size_t size) {
  bench b = {.device = open_device(device_name), .size = size};
  pl_err e = {0};
  must(pl_grid_make(world->size, STAGES, replicas, &b.grid, &e), &e);
  b.schedule = take(1, sizeof *b.schedule);
  b.facts = take(1, sizeof *b.facts);
  b.schedule->stages = STAGES;
  b.schedule->chunks = chunks;
  for (size_t i = 0; i < STAGES; i++) b.facts->messages[i] = WAITING;
  const pl_transport_args args = {.device = b.device, .schedule = b.schedule, .facts = b.facts, .size = size};
  must(world->type->transport(world, &b.grid, &args, &b.transport, &e), &e);
  b.replica = world->size > 1 ? world->rank / b.grid.ranks : 0;
  pl_grid_stages(&b.grid, world->rank, &b.first, &b.end);
  return b;
}

static void close_bench(bench *b) {
  b->transport->type->destroy(b->transport);
  pl_free(b->schedule);
  pl_free(b->facts);
  pl_device_close(b->device);
}

static pl_real *open_buffer(const bench *b) {
  pl_err e = {0};
  pl_real *buffer = NULL;
  must(pl_transport_buffer(b->device, b->size, &buffer, &e), &e);
  return buffer;
}

static void close_buffer(const bench *b, pl_real *buffer) { b->device->ops->free(b->device, buffer); }

static pl_real number(const bench *b, const pl_message *m, size_t i) {
  size_t name = (((b->replica * STAGES + m->link) * PL_MESSAGE_KINDS + m->kind) * 8 + (size_t)m->update) * 8;
  return (pl_real)(((name + m->microbatch) * 4 + m->chunk) * 257 + i % 257);
}

static bool send(bench *b, const pl_message *m, pl_real **buffer) {
  pl_err e = {0};
  bool done = false;
  pl_real *given = *buffer;
  for (size_t i = 0; i < b->size; i++) given[i] = number(b, m, i);
  must(b->transport->type->send(b->transport, m, buffer, &done, &e), &e);
  assert_true(done == (*buffer != given));
  return done;
}

static bool receive(bench *b, const pl_message *m, pl_real **buffer) {
  pl_err e = {0};
  bool done = false;
  pl_real *given = *buffer;
  must(b->transport->type->receive(b->transport, m, buffer, &done, &e), &e);
  assert_true(done == (*buffer != given));
  for (size_t i = 0; done && i < b->size; i++)
    if ((*buffer)[i] != number(b, m, i)) fail_msg("rank %zu, link %zu: number %zu", world->rank, m->link, i);
  return done;
}

static void progress(void) {
  pl_err e = {0};
  must(world->type->progress(world, &e), &e);
}

typedef struct errand {
  pl_message message;
  bool sends, done;
} errand;

/* Does all of them, in whatever order they can be done. */
static void do_errands(bench *b, errand *list, size_t count) {
  pl_real *buffer = open_buffer(b);
  for (size_t left = count; left > 0; progress())
    for (size_t i = 0; i < count; i++) {
      errand *x = &list[i];
      if (x->done) continue;
      x->done = x->sends ? send(b, &x->message, &buffer) : receive(b, &x->message, &buffer);
      left -= x->done;
    }
  close_buffer(b, buffer);
}

static bool holds(const bench *b, size_t stage) { return stage >= b->first && stage < b->end; }

/* What this rank has to do with message k of a kind on a link. */
static size_t add_errands(const bench *b, size_t link, pl_message_kind kind, size_t k, errand *list) {
  const size_t from = link, to = (link + 1) % STAGES;
  const size_t source = kind == PL_MESSAGE_GRADIENT ? to : from, target = kind == PL_MESSAGE_GRADIENT ? from : to;
  const pl_message m = {.kind = kind, .link = link, .update = (int64_t)k, .microbatch = 2 * k + 1, .chunk = k % 2};
  size_t count = 0;
  if (holds(b, source)) list[count++] = (errand){.message = m, .sends = true};
  if (holds(b, target)) list[count++] = (errand){.message = m};
  return count;
}

/* On every link, of every kind, as many as may wait; the last one sent is asked for first. */
static void exchange(size_t replicas, size_t chunks, size_t size) {
  static errand list[ERRANDS];
  bench b = open_bench(replicas, chunks, size);
  const size_t links = chunks > 1 ? STAGES : STAGES - 1;
  for (int round = 0; round < 3; round++) {
    size_t sends = 0, count = 0;
    for (size_t link = 0; link < links; link++)
      for (size_t kind = 0; kind < PL_MESSAGE_KINDS; kind++)
        for (size_t k = 0; k < (kind == PL_MESSAGE_VALIDATION ? PL_VALIDATION_MESSAGES : WAITING); k++)
          count += add_errands(&b, link, (pl_message_kind)kind, k, list + count);
    for (size_t i = 0; i < count; i++) sends += list[i].sends;
    for (size_t i = 0; i < count / 2; i++) {
      errand x = list[i];
      list[i] = list[count - 1 - i];
      list[count - 1 - i] = x;
    }
    assert_true(sends > 0);
    do_errands(&b, list, count);
  }
  close_bench(&b);
}

static void messages_travel_on_all_links(void **state) {
  (void)state;
  exchange(1, 1, SMALL);
  exchange(1, 1, LARGE);
}

static void chunks_have_a_link_back_to_the_first_stage(void **state) {
  (void)state;
  exchange(1, 2, SMALL);
  exchange(1, 2, LARGE);
}

static void replicas_do_not_mix(void **state) {
  (void)state;
  if (world->size % 2 == 0) exchange(2, 1, LARGE);
}

/* A message is given only to who asks for it by its name. */
static void another_message_is_not_delivered(void **state) {
  (void)state;
  bench b = open_bench(1, 1, LARGE);
  const size_t link = STAGES / 2 - 1; /* between two ranks wherever there are two */
  const pl_message first = {.link = link, .update = 5, .microbatch = 1, .chunk = 0};
  const pl_message second = {.link = link, .update = 5, .microbatch = 2, .chunk = 0};
  const pl_message others[] = {{.link = link, .update = 6, .microbatch = 1},
                               {.link = link, .update = 5, .microbatch = 3},
                               {.link = link, .update = 5, .microbatch = 1, .chunk = 1},
                               {.link = link, .update = 5, .microbatch = 1, .kind = PL_MESSAGE_VALIDATION},
                               {.link = link, .update = 5, .microbatch = 2}};
  pl_real *buffer = open_buffer(&b);
  if (holds(&b, link)) {
    while (!send(&b, &first, &buffer)) progress();
    while (!send(&b, &second, &buffer)) progress();
  }
  if (holds(&b, link + 1)) {
    while (!receive(&b, &second, &buffer)) progress(); /* the first one is there as well */
    for (int again = 0; again < 10; again++)
      for (size_t i = 0; i < sizeof others / sizeof *others; i++) assert_false(receive(&b, &others[i], &buffer));
    while (!receive(&b, &first, &buffer)) progress();
    assert_false(receive(&b, &first, &buffer)); /* once */
  }
  meet();
  close_buffer(&b, buffer);
  close_bench(&b);
}

/* As many as wait at the other end, and as many again on their way there; then there is no room until the other end
 * takes some. */
static void a_sender_is_held_back(void **state) {
  (void)state;
  bench b = open_bench(1, 1, LARGE);
  const size_t link = STAGES / 2 - 1;
  pl_message m = {.kind = PL_MESSAGE_ACTIVATION, .link = link};
  pl_real *buffer = open_buffer(&b);
  int refused = 0;
  if (holds(&b, link))
    while (refused < 200) {
      bool done = send(&b, &m, &buffer);
      m.microbatch += done;
      refused += !done;
      progress();
    }
  assert_true(m.microbatch <= 2 * WAITING);
  meet();
  size_t sent = m.microbatch;
  m.microbatch = 0;
  const bool both = holds(&b, link) && holds(&b, link + 1);
  if (holds(&b, link + 1))
    for (size_t i = 0; i < WAITING; i++, m.microbatch++)
      while (!receive(&b, &m, &buffer)) progress();
  if (!both && holds(&b, link)) assert_true(sent >= WAITING);
  if (holds(&b, link)) {
    m.microbatch = sent;
    while (!send(&b, &m, &buffer)) progress();
  }
  meet();
  close_buffer(&b, buffer);
  close_bench(&b);
}

/* What was on its way when a transport ended is lost: the next one never sees it. */
static void messages_of_an_ended_transport_are_lost(void **state) {
  (void)state;
  static const size_t sizes[] = {SMALL, LARGE};
  const pl_message m = {.link = STAGES / 2 - 1};
  for (size_t i = 0; i < 2; i++) {
    bench b = open_bench(1, 1, sizes[i]);
    pl_real *buffer = open_buffer(&b);
    if (holds(&b, m.link)) assert_true(send(&b, &m, &buffer));
    close_buffer(&b, buffer);
    b.transport->type->destroy(NULL);
    close_bench(&b);
    b = open_bench(1, 1, sizes[i]);
    buffer = open_buffer(&b);
    for (int again = 0; again < 100 && holds(&b, m.link + 1); again++, progress())
      assert_false(receive(&b, &m, &buffer));
    meet();
    close_buffer(&b, buffer);
    close_bench(&b);
  }
}

static void a_message_larger_than_mpi_sends_is_refused(void **state) {
  (void)state;
  bench b = open_bench(1, 1, SMALL);
  pl_err e = {0};
  pl_transport *t = NULL;
  const pl_transport_args args = {
      .device = b.device, .schedule = b.schedule, .facts = b.facts, .size = (size_t)1 << 29};
  assert_int_equal(world->type->transport(world, &b.grid, &args, &t, &e), PL_BAD);
  assert_non_null(strstr(e.text, "536870912"));
  assert_null(t);
  close_bench(&b);
}

#define BOTH(test) cmocka_unit_test_setup(test, from_memory), cmocka_unit_test_setup(test, from_copies)

int main(void) {
  const struct CMUnitTest tests[] = {
      BOTH(messages_travel_on_all_links),
      BOTH(chunks_have_a_link_back_to_the_first_stage),
      BOTH(replicas_do_not_mix),
      BOTH(another_message_is_not_delivered),
      BOTH(a_sender_is_held_back),
      BOTH(messages_of_an_ended_transport_are_lost),
      BOTH(a_message_larger_than_mpi_sends_is_refused),
  };
  return RIG_RUN(tests);
}
