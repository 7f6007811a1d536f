/* Traces of stages, and what is made of them: pace, bubble, drawings. The traces are simulated pipelines whose messages
 * take time, so that it is known what should come out. */
#include "results_help.h"

#include "core/pipeline/draw.h"
#include "core/pipeline/library.h"
#include "core/pipeline/measured.h"
#include "runners/schedule_measured.h"

enum { STAGES = 4, STEPS = 40 };

static const pl_stage_costs costs[STAGES] = {
    {1, 2, 0.9, 0.05}, {1.25, 2.25, 1, 0.05}, {0.75, 1.5, 0.5, 0.05}, {1.1, 2, 1.2, 0.05}};

typedef struct made {
  pl_schedule *schedule;
  pl_trace *traces[STAGES];
  int64_t first, last;
} made;

static pl_schedule *make_schedule(const char *name, size_t stages, size_t microbatches) {
  pl_schedule *s = NULL;
  pl_err e = {0};
  int64_t delay[STAGES] = {1, 1, 1, 1};
  const pl_schedule_type *type = pl_schedule_find(name, &e);
  assert_non_null(type);
  assert_int_equal(pl_alloc(1, sizeof *s, "a schedule", &s, &e), PL_OK);
  const pl_schedule_args args = {
      .stages = stages, .microbatches = microbatches, .delay = type->takes_delay ? delay : NULL};
  if (pl_schedule_make(type, &args, s, &e) != PL_OK) fail_msg("%s", e.text);
  return s;
}

static void drop_schedule(pl_schedule *s) {
  pl_schedule_free(s);
  pl_free(s);
}

/* A row of the trace, with one of a message in front that no drawing shows. */
static pl_status add_row(void *self, const pl_event *v, pl_err *e) {
  const made *m = self;
  (void)e;
  if (v->update < m->first || v->update > m->last) return PL_OK;
  const pl_trace_row message = {v->update,    PL_OP_RECV_ACTIVATION, v->in->microbatch,
                                v->in->chunk, v->start - 0.01,       v->start};
  const pl_trace_row row = {v->update, v->in->op, v->in->microbatch, v->in->chunk, 1e5 + v->start, 1e5 + v->end};
  if (v->in->op == PL_OP_FORWARD) pl_trace_add(m->traces[v->stage], &message);
  pl_trace_add(m->traces[v->stage], &row);
  return PL_OK;
}

static char *trace_path(void **state, size_t stage, char *out) {
  char name[32];
  snprintf(name, sizeof name, "trace.%zu.tsv", stage);
  return in_temp(state, name, out);
}

/* Writes and reads the traces of the updates first..last of a run. */
static void trace_run(void **state, pl_schedule *s, double latency, int64_t first, int64_t last, pl_trace_rows *out) {
  made m = {.schedule = s, .first = first, .last = last};
  const pl_costs times = {.each = costs, .latency = latency};
  char path[256];
  pl_err e = {0};
  for (size_t p = 0; p < s->stages; p++)
    assert_int_equal(pl_trace_open(trace_path(state, p, path), 10000, &m.traces[p], &e), PL_OK);
  assert_int_equal(pl_schedule_simulate(s, &times, 0, STEPS, add_row, &m, &e), PL_OK);
  for (size_t p = 0; p < s->stages; p++) {
    assert_int_equal(pl_trace_close(m.traces[p], &e), PL_OK);
    if (pl_trace_read(trace_path(state, p, path), &out[p], &e) != PL_OK) fail_msg("%s", e.text);
  }
}

static void free_rows(pl_trace_rows *rows, size_t stages) {
  for (size_t p = 0; p < stages; p++) pl_trace_rows_free(&rows[p]);
}

/* Nanoseconds are kept. */
static void near(double a, double b) {
  if (!(fabs(a - b) < 1e-7)) fail_msg("%.12g is not %.12g", a, b);
}

static void traces_come_back(void **state) {
  char path[256];
  pl_trace *t;
  pl_trace_rows r;
  const pl_trace_row rows[] = {{7, PL_OP_RECV_ACTIVATION, 0, 1, 12345.000000001, 12345.25},
                               {7, PL_OP_FORWARD, 0, 1, 12345.25, 12345.5},
                               {6, PL_OP_BACKWARD_WEIGHT, 65535, 63, 12345.5, 12345.5},
                               {6, PL_OP_UPDATE, 0, 0, 12346, 12347}};
  in_temp(state, "trace.0.tsv", path);
  assert_int_equal(pl_trace_read(path, &r, NULL), PL_NOTHING);
  assert_int_equal(pl_trace_open(path, 3, &t, NULL), PL_OK);
  for (size_t i = 0; i < 4; i++) pl_trace_add(t, &rows[i]);
  pl_trace_add(NULL, rows);
  assert_false(pl_path_exists(path)); /* nothing is written before the end */
  assert_int_equal(pl_trace_close(t, NULL), PL_OK);
  assert_int_equal(pl_trace_read(path, &r, NULL), PL_OK);
  assert_int_equal(r.count, 3); /* the room */
  for (size_t i = 0; i < 3; i++) {
    assert_true(r.rows[i].update == rows[i].update && r.rows[i].op == rows[i].op && r.rows[i].chunk == rows[i].chunk);
    assert_int_equal(r.rows[i].microbatch, rows[i].microbatch);
    assert_true(fabs(r.rows[i].start - rows[i].start) < 1e-9 && fabs(r.rows[i].end - rows[i].end) < 1e-9);
  }
  pl_trace_rows_free(&r);
  assert_int_equal(pl_trace_close(NULL, NULL), PL_OK);
  assert_int_equal(pl_trace_open(in_temp(state, "no/such/folder", path), 1, &t, NULL), PL_OK);
  pl_err e = {0};
  assert_int_equal(pl_trace_close(t, &e), PL_FAIL);
  assert_says(&e, "no/such/folder");
}

static void damaged_traces_are_named_by_line(void **state) {
#define HEADER "update\top\tmicrobatch\tchunk\tstart\tend\n"
  static const struct {
    const char *text, *says;
  } bad[] = {{"", "line 1 is not the header"},
             {"step\top\n", "line 1 is not the header"},
             {HEADER "0\tforward\t0\t0\t1\t2\n0\tforwards\t0\t0\t1\t2\n", "line 3 is no instruction"},
             {HEADER "0\tforward\t0\t0\t1\n", "line 2 is no instruction"},
             {HEADER "0\tforward\t0\t0\t1\t2\t3\n", "line 2 is no instruction"},
             {HEADER "-1\tforward\t0\t0\t1\t2\n", "line 2 is no instruction"},
             {HEADER "0\tforward\t0\t0\t2\t1\n", "line 2 is no instruction"},
             {HEADER "0\tforward\t0\t0\tnan\t1\n", "line 2 is no instruction"},
             {HEADER "0\tforward\t65536\t0\t1\t2\n", "line 2 is no instruction"},
             {HEADER "0\tforward\t0\t0\t1\t2", "its last line is cut off"}};
#undef HEADER
  char path[256];
  in_temp(state, "trace.0.tsv", path);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    pl_trace_rows r;
    pl_err e = {0};
    write_bytes(path, bad[i].text, strlen(bad[i].text));
    assert_int_equal(pl_trace_read(path, &r, &e), PL_BAD);
    assert_says(&e, path);
    assert_says(&e, bad[i].says);
    pl_trace_rows_free(&r);
  }
}

/* Messages that take no time: the measured pipeline is the ideal one, wherever the traced updates lie in the run. */
static void an_ideal_pipeline_measures_as_one(void **state) {
  static const char *const names[] = {"gpipe", "1f1b", "2bw", "pipedream", "zb-h1", "interleaved-1f1b"};
  static const int64_t ranges[][2] = {{0, 3}, {1, 2}, {17, 21}, {35, 39}, {39, 39}};
  for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
    const size_t microbatches = strcmp(names[n], "pipedream") == 0 ? 1 : 8;
    pl_schedule *s = make_schedule(names[n], STAGES, microbatches);
    for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++) {
      pl_trace_rows rows[STAGES];
      pl_measured m;
      pl_err e = {0};
      trace_run(state, s, 0, ranges[k][0], ranges[k][1], rows);
      if (pl_measured_make(s, rows, STEPS, &m, &e) != PL_OK) fail_msg("%s", e.text);
      assert_true(m.first == ranges[k][0] && m.last == ranges[k][1]);
      for (size_t p = 0; p < STAGES; p++) {
        near(m.costs[p].forward, costs[p].forward);
        near(m.costs[p].backward, costs[p].backward);
        near(m.costs[p].update, costs[p].update);
        near(m.costs[p].weight, strcmp(names[n], "zb-h1") == 0 ? costs[p].weight : 0);
        near(m.real_pace.busy[p], m.ideal_pace.busy[p]);
      }
      near(m.real_pace.period, m.ideal_pace.period);
      near(m.real_pace.bubble, m.ideal_pace.bubble);
      assert_int_equal(m.real.count, m.ideal.count);
      near(m.real.end, m.ideal.end);
      if (strcmp(names[n], "2bw") == 0 && k == 2) { /* the slowest stage sets the pace: 8 microbatches, an update */
        near(m.real_pace.period, 8 * 3.5 + 0.05);
        near(m.real_pace.busy[1], 1);
        near(m.real_pace.bubble, 1 - (24.05 + 28.05 + 18.05 + 24.85) / (4 * 28.05));
      }
      pl_measured_free(&m);
      free_rows(rows, STAGES);
    }
    drop_schedule(s);
  }
}

/* With slow messages the measured pace is that of a simulation with them, the ideal that of one without. */
static void slow_messages_show_in_the_measured_half(void **state) {
  pl_schedule *s = make_schedule("1f1b", STAGES, 8);
  const pl_costs slow = {.each = costs, .latency = 0.4}, fast = {.each = costs};
  pl_trace_rows rows[STAGES];
  pl_bubble with, without;
  pl_measured m;
  trace_run(state, s, 0.4, 20, 28, rows);
  assert_int_equal(pl_measured_make(s, rows, STEPS, &m, NULL), PL_OK);
  assert_int_equal(pl_schedule_bubble(s, &slow, 3, &with, NULL), PL_OK);
  assert_int_equal(pl_schedule_bubble(s, &fast, 3, &without, NULL), PL_OK);
  near(m.real_pace.period, with.period);
  near(m.real_pace.bubble, with.steady);
  near(m.ideal_pace.period, without.period);
  near(m.ideal_pace.bubble, without.steady);
  assert_true(m.real_pace.bubble > m.ideal_pace.bubble + 0.02);
  pl_measured_free(&m);
  free_rows(rows, STAGES);
  drop_schedule(s);
}

/* The first and the last update of a trace may be there in part. */
static void updates_that_are_not_whole_are_left_out(void **state) {
  pl_schedule *s = make_schedule("2bw", 2, 4);
  pl_trace_rows rows[STAGES];
  pl_measured m;
  pl_err e = {0};
  trace_run(state, s, 0, 10, 15, rows);
  pl_trace_rows cut = {.rows = rows[1].rows + 3, .count = rows[1].count - 5};
  const pl_trace_rows some[] = {rows[0], cut};
  assert_int_equal(pl_measured_make(s, some, STEPS, &m, NULL), PL_OK);
  assert_true(m.first == 11 && m.last == 14);
  pl_measured_free(&m);
  cut.count = 4;
  const pl_trace_rows few[] = {rows[0], cut};
  assert_int_equal(pl_measured_make(s, few, STEPS, &m, &e), PL_BAD);
  assert_says(&e, "no update in common");
  pl_measured_free(&m);
  free_rows(rows, 2);
  drop_schedule(s);
}

static void traces_of_another_schedule_are_refused(void **state) {
  pl_schedule *s = make_schedule("1f1b", STAGES, 8), *other = make_schedule("gpipe", STAGES, 8);
  pl_trace_rows rows[STAGES];
  pl_measured m;
  pl_err e = {0};
  trace_run(state, s, 0, 10, 12, rows);
  assert_int_equal(pl_measured_make(other, rows, STEPS, &m, &e), PL_BAD);
  assert_says(&e, "is not one of schedule gpipe");
  pl_measured_free(&m);
  free_rows(rows, STAGES);
  drop_schedule(s);
  drop_schedule(other);
}

/* Updates are made when they can be, behind some of the next one's forwards, and each chunk makes its own. */
static void late_updates_and_those_of_chunks_are_taken(void **state) {
  pl_schedule *s = make_schedule("interleaved-1f1b", STAGES, 8);
  pl_trace_rows rows[STAGES], late[STAGES];
  pl_measured m;
  trace_run(state, s, 0, 10, 14, rows);
  for (size_t p = 0; p < STAGES; p++) {
    late[p] = (pl_trace_rows){.rows = calloc(2 * rows[p].count, sizeof(pl_trace_row))};
    pl_trace_row held = {0};
    for (size_t i = 0, wait = 0; i < rows[p].count; i++) {
      const bool update = rows[p].rows[i].op == PL_OP_UPDATE;
      if (update) held = rows[p].rows[i];
      if (update) wait = i + 4 < rows[p].count ? 4 : 1;
      if (!update) late[p].rows[late[p].count++] = rows[p].rows[i];
      if (wait == 0 || --wait > 0) continue;
      held.end = held.start + 0.025; /* two halves of 0.05 */
      late[p].rows[late[p].count++] = held;
      held.start += 0.5;
      held.end += 0.5;
      late[p].rows[late[p].count++] = held;
    }
  }
  pl_err e = {0};
  if (pl_measured_make(s, late, STEPS, &m, &e) != PL_OK) fail_msg("%s", e.text);
  assert_int_equal(m.real.count, m.ideal.count);
  for (size_t p = 0; p < STAGES; p++) near(m.costs[p].update, 0.05);
  near(m.real_pace.period, m.ideal_pace.period);
  near(m.real_pace.bubble, m.ideal_pace.bubble);
  pl_measured_free(&m);
  for (size_t p = 0; p < STAGES; p++) free(late[p].rows);
  free_rows(rows, STAGES);
  drop_schedule(s);
}

static size_t count_of(const char *text, const char *part) {
  size_t n = 0;
  for (; (text = strstr(text, part)) != NULL; text += strlen(part)) n++;
  return n;
}

/* Stages of 1 and 2 seconds in turn, the messages as long as a forward: by hand. */
static void both_grids_are_drawn_on_one_scale(void **state) {
  pl_schedule *s = make_schedule("1f1b", 2, 2);
  const pl_costs times = {.all = {.forward = 1, .backward = 2}, .latency = 1};
  made made_up = {.schedule = s, .first = 0, .last = 1};
  pl_trace_rows rows[2];
  char path[256];
  pl_measured m;
  pl_str text = {0}, svg = {0};
  pl_err e = {0};
  for (size_t p = 0; p < 2; p++)
    assert_int_equal(pl_trace_open(trace_path(state, p, path), 100, &made_up.traces[p], &e), PL_OK);
  assert_int_equal(pl_schedule_simulate(s, &times, 0, 2, add_row, &made_up, &e), PL_OK);
  for (size_t p = 0; p < 2; p++) {
    assert_int_equal(pl_trace_close(made_up.traces[p], &e), PL_OK);
    assert_int_equal(pl_trace_read(trace_path(state, p, path), &rows[p], &e), PL_OK);
  }
  assert_int_equal(pl_measured_make(s, rows, 2, &m, &e), PL_OK);
  assert_int_equal(pl_measured_text(&m, "run 7", 1, &text, &e), PL_OK);
  assert_non_null(strstr(pl_str_text(&text), "1f1b: 2 stages, 2 microbatches an update; run 7, updates 0 to 1\n\n"
                                             "measured, updates 0 to 0\n"
                                             "stage 0    F0 F1 .  .  .  .  B0--- .  B1---|\n"
                                             "stage 1    .  .  F0 B0--- F1 B1---|.  .  .\n\n"
                                             "ideal: the same times in every microbatch, messages free\n"
                                             "stage 0    F0 F1 .  .  B0--- .  B1---|\n"
                                             "stage 1    .  F0 B0--- F1 B1---|.  .\n\n"
                                             "a column is 1000 ms"));
  assert_non_null(strstr(pl_str_text(&text), "period         11000 ms    9000 ms   +22.2%\n"));
  assert_int_equal(pl_measured_svg(&m, 2, &svg, &e), PL_OK);
  assert_int_equal(count_of(pl_str_text(&svg), "<svg"), 1);
  assert_int_equal(count_of(pl_str_text(&svg), ">stage 0</text>"), 2);
  assert_int_equal(count_of(pl_str_text(&svg), "width=\"26.00\" height=\"38\" fill=\"#56b4e9\""),
                   8); /* F of update 0 */
  assert_non_null(strstr(pl_str_text(&svg), "1f1b, measured: 11000 ms an update, bubble 45.5%"));
  assert_non_null(strstr(pl_str_text(&svg), "1f1b, ideal with the same times: 9000 ms an update, bubble 33.3%"));
  pl_json *json = pl_measured_json(&m, "run 7");
  near(pl_json_get_number(pl_json_get(json, "measured"), "period", 0), 11);
  near(pl_json_get_number(pl_json_get(json, "ideal"), "bubble", 0), 1.0 / 3);
  assert_int_equal(pl_json_size(pl_json_get(json, "by_stage")), 2);
  pl_json_release(json);
  pl_str_free(&svg);
  pl_str_free(&text);
  pl_measured_free(&m);
  free_rows(rows, 2);
  drop_schedule(s);
}

#define IN_TEMP(test) cmocka_unit_test_setup_teardown(test, make_temp, remove_temp)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_TEMP(traces_come_back),
      IN_TEMP(damaged_traces_are_named_by_line),
      IN_TEMP(an_ideal_pipeline_measures_as_one),
      IN_TEMP(slow_messages_show_in_the_measured_half),
      IN_TEMP(updates_that_are_not_whole_are_left_out),
      IN_TEMP(traces_of_another_schedule_are_refused),
      IN_TEMP(late_updates_and_those_of_chunks_are_taken),
      IN_TEMP(both_grids_are_drawn_on_one_scale),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
