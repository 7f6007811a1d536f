/* Messages between stages that are on GPUs, wherever these are; and the choice of the way that they travel. */
#include "tests/mpi/cuda_rig.h"

enum { STAGES = 4, WAITING = 3, SMALL = 11, LARGE = 50001 };
enum { ERRANDS = STAGES * PL_MESSAGE_KINDS * WAITING * 2, BUFFERS = 1 + STAGES * PL_MESSAGE_KINDS };

/* One end of a transport with everything that it needs. */
typedef struct bench {
  pl_device *device;
  pl_grid grid;
  pl_schedule *schedule;
  pl_schedule_facts *facts;
  pl_transport *transport;
  size_t replica, first, end, size;
  pl_real *host; /* [size] */
} bench;

static bench open_bench(size_t replicas, size_t chunks, size_t size) {
  bench b = {.device = open_gpu(), .size = size};
  pl_err e = {0};
  must(pl_grid_make(world->size, STAGES, replicas, &b.grid, &e), &e);
  b.schedule = take(1, sizeof *b.schedule);
  b.facts = take(1, sizeof *b.facts);
  b.host = take(size, sizeof *b.host);
  b.schedule->stages = STAGES;
  b.schedule->chunks = chunks;
  for (size_t i = 0; i < STAGES; i++) b.facts->messages[i] = WAITING;
  const pl_transport_args args = {.device = b.device, .schedule = b.schedule, .facts = b.facts, .size = size};
  must(world->type->transport(world, &b.grid, &args, &b.transport, &e), &e);
  b.replica = world->size > 1 ? world->rank / b.grid.ranks : 0;
  pl_grid_stages(&b.grid, world->rank, &b.first, &b.end);
  return b;
}

static pl_real *open_buffer(const bench *b) {
  pl_err e = {0};
  pl_real *buffer = NULL;
  must(pl_transport_buffer(b->device, b->size, &buffer, &e), &e);
  return buffer;
}

/* The transport first: freeing memory of a GPU would wait for what is on its way. */
static void close_bench(bench *b, pl_real **buffers, size_t count) {
  b->transport->type->destroy(b->transport);
  for (size_t i = 0; i < count; i++) b->device->ops->free(b->device, buffers[i]);
  pl_free(b->schedule);
  pl_free(b->facts);
  pl_free(b->host);
  close_gpu(b->device);
}

static pl_real number(const bench *b, const pl_message *m, size_t i) {
  const size_t name = (((b->replica * STAGES + m->link) * PL_MESSAGE_KINDS + m->kind) * 8 + (size_t)m->update) * 8;
  return (pl_real)(((name + m->microbatch) * 4 + m->chunk) * 257 + i % 257);
}

static void fill(const bench *b, const pl_message *m, pl_real *buffer) {
  for (size_t i = 0; i < b->size; i++) b->host[i] = number(b, m, i);
  write_on(b->device, buffer, b->host, b->size);
}

/* What is given back is the caller's again: it is written to at once. */
static bool try_to_send(bench *b, const pl_message *m, pl_real **buffer) {
  pl_err e = {0};
  bool done = false;
  must(b->transport->type->send(b->transport, m, buffer, &done, &e), &e);
  for (size_t i = 0; done && i < b->size; i++) b->host[i] = (pl_real)-1;
  if (done) write_on(b->device, *buffer, b->host, b->size);
  return done;
}

static bool receive(bench *b, const pl_message *m, pl_real **buffer) {
  pl_err e = {0};
  bool done = false;
  must(b->transport->type->receive(b->transport, m, buffer, &done, &e), &e);
  if (!done) return false;
  read_from(b->device, b->host, *buffer, b->size);
  for (size_t i = 0; i < b->size; i++)
    if (b->host[i] != number(b, m, i)) fail_msg("rank %zu, link %zu: number %zu", world->rank, m->link, i);
  return true;
}

static void progress(void) {
  pl_err e = {0};
  must(world->type->progress(world, &e), &e);
}

static void send(bench *b, const pl_message *m, pl_real **buffer) {
  fill(b, m, *buffer);
  while (!try_to_send(b, m, buffer)) progress();
}

typedef struct errand {
  pl_message message;
  bool sends, begun, done;
} errand;

/* Whether an earlier message goes the same way: a sender comes back to one that was not done before it sends another.
 */
static bool waits(const errand *list, size_t i) {
  for (size_t j = 0; j < i; j++)
    if (list[j].sends && !list[j].done && list[j].message.link == list[i].message.link &&
        list[j].message.kind == list[i].message.kind)
      return true;
  return false;
}

static bool do_errand(bench *b, errand *x, pl_real **out, pl_real **in) {
  if (!x->sends) return receive(b, &x->message, in);
  if (!x->begun) fill(b, &x->message, *out);
  x->begun = true;
  return try_to_send(b, &x->message, out);
}

/* Does all of them, in whatever order they can be done. buffers: [BUFFERS], for what arrives, then for each way. */
static void do_errands(bench *b, errand *list, size_t count, pl_real **buffers) {
  for (size_t left = count; left > 0; progress())
    for (size_t i = 0; i < count; i++) {
      errand *x = &list[i];
      if (x->done || (x->sends && waits(list, i))) continue;
      x->done = do_errand(b, x, &buffers[1 + x->message.link * PL_MESSAGE_KINDS + x->message.kind], &buffers[0]);
      left -= x->done;
    }
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

static void turn_round(errand *list, size_t count) {
  for (size_t i = 0; i < count / 2; i++) {
    const errand x = list[i];
    list[i] = list[count - 1 - i];
    list[count - 1 - i] = x;
  }
}

/* On every link, of every kind, as many as may wait. One rank in two begins with the last of them: both send, and ask,
 * in the other's opposite order. */
static void exchange(size_t replicas, size_t chunks, size_t size) {
  static errand list[ERRANDS];
  pl_real *buffers[BUFFERS];
  bench b = open_bench(replicas, chunks, size);
  for (size_t i = 0; i < BUFFERS; i++) buffers[i] = open_buffer(&b);
  const size_t links = chunks > 1 ? STAGES : STAGES - 1;
  for (int round = 0; round < 3; round++) {
    size_t count = 0;
    for (size_t link = 0; link < links; link++)
      for (size_t kind = 0; kind < PL_MESSAGE_KINDS; kind++)
        for (size_t k = 0; k < (kind == PL_MESSAGE_VALIDATION ? PL_VALIDATION_MESSAGES : WAITING); k++)
          count += add_errands(&b, link, (pl_message_kind)kind, k, list + count);
    assert_true(count > 0);
    if ((world->rank + (size_t)round) % 2 == 0) turn_round(list, count);
    do_errands(&b, list, count, buffers);
  }
  close_bench(&b, buffers, BUFFERS);
  expect_way();
}

static void messages_travel_on_all_links(void **state) {
  (void)state;
  exchange(1, 1, SMALL);
  exchange(1, 1, LARGE);
}

static void chunks_have_a_link_back_to_the_first_stage(void **state) {
  (void)state;
  exchange(1, 2, LARGE);
}

static void replicas_do_not_mix(void **state) {
  (void)state;
  exchange(2, 1, LARGE);
}

/* A message is given only to who asks for it by its name. */
static void another_message_is_not_delivered(void **state) {
  (void)state;
  bench b = open_bench(1, 1, LARGE);
  const size_t link = STAGES / 2 - 1; /* between two ranks wherever there are two */
  const pl_message first = {.link = link, .update = 5, .microbatch = 1};
  const pl_message second = {.link = link, .update = 5, .microbatch = 2};
  const pl_message others[] = {{.link = link, .update = 6, .microbatch = 1},
                               {.link = link, .update = 5, .microbatch = 3},
                               {.link = link, .update = 5, .microbatch = 1, .chunk = 1},
                               {.link = link, .update = 5, .microbatch = 1, .kind = PL_MESSAGE_VALIDATION},
                               {.link = link, .update = 5, .microbatch = 2}};
  pl_real *buffer = open_buffer(&b);
  if (holds(&b, link)) {
    send(&b, &first, &buffer);
    send(&b, &second, &buffer);
  }
  if (holds(&b, link + 1)) {
    while (!receive(&b, &second, &buffer)) progress(); /* the first one is there as well */
    for (int again = 0; again < 10; again++)
      for (size_t i = 0; i < sizeof others / sizeof *others; i++) assert_false(receive(&b, &others[i], &buffer));
    while (!receive(&b, &first, &buffer)) progress();
    assert_false(receive(&b, &first, &buffer)); /* once */
  }
  meet();
  close_bench(&b, &buffer, 1);
}

/* As many as wait at the other end, and as many again on their way there; then there is no room until the other end
 * takes some. */
static void a_sender_is_held_back(void **state) {
  (void)state;
  bench b = open_bench(1, 1, LARGE);
  const size_t link = STAGES / 2 - 1;
  const bool sends = holds(&b, link), receives = holds(&b, link + 1);
  pl_message m = {.link = link};
  pl_real *buffer = open_buffer(&b);
  if (sends) fill(&b, &m, buffer);
  for (int refused = 0; sends && refused < 20; progress()) {
    if (!try_to_send(&b, &m, &buffer)) {
      refused++;
      continue;
    }
    m.microbatch++;
    fill(&b, &m, buffer);
  }
  assert_true(m.microbatch <= 2 * WAITING);
  if (sends && receives) assert_int_equal(m.microbatch, WAITING);
  if (sends && !receives && way == DIRECT) assert_int_equal(m.microbatch, 0); /* the other end has not come to it */
  meet();
  for (; sends && !receives && m.microbatch < WAITING; m.microbatch++) {
    while (!try_to_send(&b, &m, &buffer)) progress();
    m.microbatch++;
    fill(&b, &m, buffer);
    m.microbatch--;
  }
  m.microbatch = 0;
  for (; receives && !sends && m.microbatch < WAITING; m.microbatch++)
    while (!receive(&b, &m, &buffer)) progress();
  meet();
  close_bench(&b, &buffer, 1);
}

/* Both ends of every link send first, and ask only then: neither waits for the other to ask. */
static void two_send_to_each_other(void **state) {
  (void)state;
  bench b = open_bench(1, 1, LARGE);
  pl_message m = {.kind = PL_MESSAGE_ACTIVATION};
  pl_real *buffer = open_buffer(&b);
  for (int asks = 0; asks < 2; asks++)
    for (m.link = 0; m.link + 1 < STAGES; m.link++)
      for (size_t end = 0; end < 2; end++) {
        if (!holds(&b, m.link + end)) continue;
        m.kind = end == (size_t)asks ? PL_MESSAGE_ACTIVATION : PL_MESSAGE_GRADIENT;
        if (!asks) send(&b, &m, &buffer);
        while (asks && !receive(&b, &m, &buffer)) progress();
      }
  close_bench(&b, &buffer, 1);
}

/* What was on its way when a transport ended is lost: the next one never sees it. */
static void messages_of_an_ended_transport_are_lost(void **state) {
  (void)state;
  const pl_message m = {.link = STAGES / 2 - 1};
  for (size_t round = 0; round < 2; round++) {
    bench b = open_bench(1, 1, LARGE);
    pl_real *buffer = open_buffer(&b);
    if (round == 0 && holds(&b, m.link)) {
      fill(&b, &m, buffer);
      (void)try_to_send(&b, &m, &buffer);
    }
    for (int again = 0; round == 1 && again < 20 && holds(&b, m.link + 1); again++, progress())
      assert_false(receive(&b, &m, &buffer));
    if (round == 1) meet();
    close_bench(&b, &buffer, 1);
    expect_way();
  }
}

int main(int count, char **argument) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(messages_travel_on_all_links),
      cmocka_unit_test(chunks_have_a_link_back_to_the_first_stage),
      cmocka_unit_test(replicas_do_not_mix),
      cmocka_unit_test(another_message_is_not_delivered),
      cmocka_unit_test(a_sender_is_held_back),
      cmocka_unit_test(two_send_to_each_other),
      cmocka_unit_test(messages_of_an_ended_transport_are_lost),
  };
  return rig_choose(count, argument) ? RIG_RUN(tests) : 2;
}
