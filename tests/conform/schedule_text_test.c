/* The text form of schedules, what is refused in it and in the numbers of a named schedule, and the drawings. */
#include "core/pipeline/draw.h"
#include "core/pipeline/schedule_text.h"
#include "tests/conform/schedules_rig.h"

static void same_program(const pl_program *a, const pl_program *b) {
  for (int part = 0; part < 3; part++) {
    const pl_instructions *x = pl_program_part(a, part), *y = pl_program_part(b, part);
    assert_int_equal(x->count, y->count);
    for (size_t i = 0; i < x->count; i++) {
      assert_int_equal(x->items[i].op, y->items[i].op);
      assert_int_equal(x->items[i].microbatch, y->items[i].microbatch);
      assert_int_equal(x->items[i].chunk, y->items[i].chunk);
      assert_int_equal(x->items[i].ahead, y->items[i].ahead);
      assert_int_equal(x->items[i].lag, y->items[i].lag);
    }
  }
  assert_int_equal(a->versions, b->versions);
  assert_int_equal(a->slots, b->slots);
}

static void is_read_back(const pl_schedule *s) {
  pl_str first = {0}, second = {0};
  pl_schedule back;
  pl_err e = {0};
  pl_schedule_write(s, &first);
  must(pl_schedule_parse(pl_str_text(&first), "text", &back, &e), &e);
  pl_schedule_write(&back, &second);
  assert_string_equal(pl_str_text(&first), pl_str_text(&second));
  assert_string_equal(s->name, back.name);
  assert_int_equal(s->stages, back.stages);
  assert_int_equal(s->microbatches, back.microbatches);
  assert_int_equal(pl_schedule_chunks(s), back.chunks);
  for (size_t p = 0; p < s->stages; p++) same_program(&s->program[p], &back.program[p]);
  pl_schedule_free(&back);
  pl_str_free(&first);
  pl_str_free(&second);
}

static void text_round_trip(void **state) {
  (void)state;
  for_each(is_read_back);
}

/* Two updates of 2BW on two stages, as a user may write it. */
static const char *const two_stages = "# by hand\n"
                                      "schedule mine\nstages 2\nmicrobatches 2\n"
                                      "stage 1\n"
                                      "  body <a0 F0@1 B0@1 >g0   <a1 F1@1 B1@1 >g1 U\n"
                                      "stage 0\n"
                                      "  versions 2\n"
                                      "  slots 2\n"
                                      "  prologue F0@1 >a0 # warm-up\n"
                                      "  body F1@1 >a1 <g0 B0@1 F0+1 >a0+1 <g1 B1@1 U\n"
                                      "  epilogue F1@1 >a1 <g0 B0@1 <g1 B1@1 U\n";

static void text_by_hand(void **state) {
  (void)state;
  pl_schedule mine, named;
  pl_err e = {0};
  must(pl_schedule_parse(two_stages, "mine", &mine, &e), &e);
  make("2bw", 2, 2, 0, &named);
  assert_int_equal(mine.program[0].versions, 2);
  assert_int_equal(mine.program[0].slots, 2);
  mine.program[0].versions = mine.program[0].slots = 0;
  for (size_t p = 0; p < 2; p++) same_program(&mine.program[p], &named.program[p]);
  is_read_back(&mine);
  pl_schedule_free(&mine);
  pl_schedule_free(&named);
}

/* What is said of two_stages with the first `from` replaced by `to`. */
static pl_err refusal(const char *from, const char *to, bool parses) {
  char text[1024];
  const char *at = strstr(two_stages, from);
  pl_schedule s;
  pl_schedule_facts facts;
  pl_err e = {0};
  assert_non_null(at);
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - two_stages), two_stages, to, at + strlen(from));
  bool parsed = pl_schedule_parse(text, "f", &s, &e) == PL_OK;
  bool works = parsed && pl_schedule_check(&s, &facts, &e) == PL_OK;
  assert_true(parsed == parses && !works);
  assert_int_equal(e.status, PL_BAD);
  pl_schedule_free(&s);
  return e;
}

static void text_errors(void **state) {
  (void)state;
  const struct {
    const char *from, *to, *message;
  } cases[] = {
      {"schedule mine", "plan mine", "f:2:1: saw \"plan\"; allowed: schedule"},
      {"schedule mine\nstages", "schedule # mine\nstages", "f:3:8: saw \"2\"; allowed: stages"},
      {"stages 2", "stages 0", "f:3:8: saw \"0\"; allowed: stages from 1 to 1024"},
      {"stages 2", "stages two", "f:3:8: saw \"two\""},
      {"microbatches 2", "batches 2", "f:4:1: saw \"batches\"; allowed: microbatches"},
      {"stage 1", "stage 2", "f:5:7: saw \"2\"; allowed: stage from 0 to 1"},
      {"stage 1", "stage 0", "f:7:1: saw \"stage\"; allowed: every stage once, but stage 0 came before"},
      {"stage 0\n", "", "f:7:3: saw \"versions\"; allowed: F, B, I, W"},
      {"F0@1 B0@1", "X0@1 B0@1", "f:6:12: saw \"X0@1\"; allowed: F, B, I, W"},
      {"F0@1 B0@1", "F2@1 B0@1", "f:6:13: saw \"F2@1\"; allowed: a microbatch from 0 to 1 after F"},
      {"F0@1 B0@1", "F@1 B0@1", "f:6:13: saw \"F@1\"; allowed: a microbatch"},
      {"F0@1 B0@1", "F0@ B0@1", "f:6:15: saw \"F0@\"; allowed: a number from 0"},
      {"F0@1 B0@1", "F0@1+1 B0@1", "f:6:16: saw \"F0@1+1\"; allowed: +AHEAD, @LAG, :CHUNK"},
      {"F0@1 B0@1", "F0@1:1 B0@1", "f:6:17: saw \"F0@1:1\"; allowed: a number from 0 to 0 after :"},
      {"<a0 F0@1", "<a0@1 F0@1", "f:6:11: saw \"<a0@1\"; allowed: +AHEAD, :CHUNK"},
      {"<a0 F0@1", "<b0 F0@1", "f:6:8: saw \"<b0\""},
      {">g1 U", ">g1 U1", "f:6:47: saw \"U1\"; allowed: U alone"},
      {"  prologue", "  body F0 body", "f:10:11: saw \"body\"; allowed: prologue, body, epilogue, in this order"},
      {"stage 1\n  body <a0 F0@1 B0@1 >g0   <a1 F1@1 B1@1 >g1 U\n", "",
       "saw the end of the text; allowed: all stages, but stage 1 is missing"},
      {"slots 2", "slots none", "f:9:9: saw \"none\"; allowed: slots from 1"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pl_err e = refusal(cases[i].from, cases[i].to, false);
    if (!strstr(e.text, cases[i].message)) fail_msg("case %zu: \"%s\" lacks \"%s\"", i, e.text, cases[i].message);
  }
}

static void text_that_cannot_run(void **state) {
  (void)state;
  const struct {
    const char *from, *to, *message;
  } cases[] = {
      {"versions 2", "versions 1", "was dropped: the stage keeps too few"},
      {"slots 2", "slots 1", "slots are taken"},
      {"F0@1 >a0 # warm-up", "# no warm-up", "no stage can go on; stage 0 waits in \"receive gradient\" of update 0"},
      {"B1@1 >g1 U", "I1@1 >g1 U", "the gradient of a microbatch is missing"},
      {"B1@1 >g1 U", "I1@1 W1@1 >g1 U", "out of turn"},
      {">g1 U\nstage 0", ">g1\nstage 0", "has 0 updates; it must have exactly one"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pl_err e = refusal(cases[i].from, cases[i].to, true);
    if (!strstr(e.text, cases[i].message)) fail_msg("case %zu: \"%s\" lacks \"%s\"", i, e.text, cases[i].message);
  }
}

/* A stage with two chunks alone: its messages go to itself. */
static void chunks_of_one_stage(void **state) {
  (void)state;
  pl_schedule s;
  pl_err e = {0};
  must(pl_schedule_parse("schedule ring stages 1 microbatches 1 chunks 2 stage 0 body F0 >a0 <a0:1 F0:1 I0:1 >g0:1 <g0 "
                         "W0:1 B0 U",
                         "f", &s, &e),
       &e);
  pl_schedule_facts facts = check(&s);
  assert_int_equal(facts.slots[0], 2);
  assert_int_equal(facts.messages[0], 2);
  assert_true(fabs(bubble(&s, 3).end - 9) < 1e-12);
  is_read_back(&s);
  pl_schedule_free(&s);
}

static void refused_numbers(void **state) {
  (void)state;
  static const int64_t delay[4] = {0, 1, -1, 0};
  const struct {
    const char *name;
    pl_schedule_args args;
    const char *message;
  } cases[] = {
      {"2bw", {.stages = 4, .microbatches = 3}, "2bw: saw 3 microbatches with 4 stages; allowed: at least 4, or one"},
      {"2bw", {.stages = 4, .microbatches = 2, .allow_min_microbatches = true}, "allowed: at least 3, two weight"},
      {"pipedream", {.stages = 4, .microbatches = 2}, "pipedream: saw 2 microbatches; allowed: 1"},
      {"pipedream-vertical", {.stages = 4, .microbatches = 2}, "pipedream-vertical: saw 2 microbatches; allowed: 1"},
      {"interleaved-1f1b", {.stages = 4, .microbatches = 6}, "saw 6 microbatches with 4 stages; allowed: a multiple"},
      {"interleaved-1f1b", {.stages = 1, .microbatches = 6}, "saw 1 stages of 2 chunks; allowed: at least 2"},
      {"interleaved-1f1b", {.stages = 4, .microbatches = 4, .chunks = 1}, "saw 4 stages of 1 chunks"},
      {"interleaved-1f1b", {.stages = 4, .microbatches = 4, .chunks = 65}, "saw 65 chunks a stage; allowed: 1 to 64"},
      {"gpipe", {.stages = 4, .microbatches = 4, .chunks = 2}, "gpipe: saw 2 chunks a stage; allowed: 1 to 1"},
      {"gpipe", {.stages = 0, .microbatches = 4}, "gpipe: saw 0 stages; allowed: 1 to 1024"},
      {"gpipe", {.stages = 4, .microbatches = 0}, "gpipe: saw 0 microbatches; allowed: 1 to 65536"},
      {"gpipe", {.stages = 4, .microbatches = 4, .delay = delay}, "gpipe: a delay is given, but it follows"},
      {"lagged", {.stages = 4, .microbatches = 4}, "lagged: the delay is missing"},
      {"lagged", {.stages = 4, .microbatches = 4, .delay = delay}, "lagged: saw delay -1 of stage 2"},
      {"wpipe", {.stages = 3, .microbatches = 4}, "wpipe: saw 3 stages; allowed: an even number"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pl_schedule s;
    pl_err e = {0};
    const pl_schedule_type *type = pl_schedule_find(cases[i].name, &e);
    assert_int_equal(pl_schedule_make(type, &cases[i].args, &s, &e), PL_BAD);
    if (!strstr(e.text, cases[i].message)) fail_msg("case %zu: \"%s\" lacks \"%s\"", i, e.text, cases[i].message);
    pl_schedule_free(&s);
  }
  pl_err e = {0};
  assert_null(pl_schedule_find("1f1B", &e));
  assert_non_null(strstr(e.text, "unknown schedule \"1f1B\"; did you mean \"1f1b\"?; allowed: lagged, gpipe, 1f1b"));
}

static void drawings(void **state) {
  (void)state;
  pl_schedule s;
  pl_str text = {0}, svg = {0};
  pl_err e = {0};
  make("2bw", 2, 2, 0, &s);
  pl_timeline t = timeline(&s, 2);
  must(pl_draw_text(&t, 0, &text, &e), &e);
  must(pl_draw_text(&t, 4, &text, &e), &e);
  assert_string_equal(pl_str_text(&text), "stage 0    F0 F1 .  .  B0--- F2 B1---|F3 B2--- .  B3---|\n"
                                          "stage 1    .  F0 B0--- F1 B1---|F2 B2--- F3 B3---|.  .\n"
                                          "stage 0    F0 F1 .  .\n"
                                          "stage 1    .  F0 B0---\n"
                                          "(the first 4 of 15 columns)\n");
  snprintf(s.name, sizeof s.name, "a<b&c");
  pl_draw_svg(&t, &svg);
  assert_non_null(strstr(pl_str_text(&svg), "a&lt;b&amp;c: 2 stages, 2 microbatches an update"));
  size_t boxes = 0;
  for (const char *at = pl_str_text(&svg); (at = strstr(at, ">v")) != NULL; at++) boxes++;
  assert_int_equal(boxes, 16);
  pl_timeline_free(&t);
  pl_str_free(&text);
  pl_str_free(&svg);
  pl_schedule_free(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_round_trip),
      cmocka_unit_test(text_by_hand),
      cmocka_unit_test(text_errors),
      cmocka_unit_test(text_that_cannot_run),
      cmocka_unit_test(chunks_of_one_stage),
      cmocka_unit_test(refused_numbers),
      cmocka_unit_test(drawings),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
