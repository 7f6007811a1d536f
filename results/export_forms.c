#include <math.h>
#include <string.h>

#include "results/export.h"
#include "results/tensorboard.h"

/* Which series were measured at all. */
static void find_series(const pl_curve *c, bool has[PL_SERIES_COUNT]) {
  memset(has, 0, PL_SERIES_COUNT * sizeof *has);
  for (size_t i = 0; i < c->count; i++)
    for (size_t s = 0; s < PL_SERIES_COUNT; s++) has[s] |= !isnan(c->rows[i].point.values[s]);
}

void pl_export_csv(const pl_curve *c, pl_str *out) {
  bool has[PL_SERIES_COUNT];
  char number[32];
  find_series(c, has);
  pl_str_append(out, "step,tokens");
  for (size_t s = 0; s < PL_SERIES_COUNT; s++)
    if (has[s]) pl_str_printf(out, ",%s", pl_series_names[s]);
  pl_str_append(out, "\n");
  for (size_t i = 0; i < c->count; i++) {
    const pl_point *p = &c->rows[i].point;
    pl_str_printf(out, "%lld,%lld", (long long)p->step, (long long)p->tokens);
    for (size_t s = 0; s < PL_SERIES_COUNT; s++)
      if (has[s]) pl_str_printf(out, ",%s", isnan(p->values[s]) ? "" : pl_format_number(p->values[s], number));
    pl_str_append(out, "\n");
  }
}

void pl_export_jsonl(const pl_curve *c, pl_str *out) {
  char number[32];
  for (size_t i = 0; i < c->count; i++) {
    const pl_point *p = &c->rows[i].point;
    pl_str_printf(out, "{\"step\":%lld,\"tokens\":%lld", (long long)p->step, (long long)p->tokens);
    for (size_t s = 0; s < PL_SERIES_COUNT; s++) {
      if (isnan(p->values[s])) continue;
      const char *quote = isinf(p->values[s]) ? "\"" : "";
      pl_str_printf(out, ",\"%s\":%s%s%s", pl_series_names[s], quote, pl_format_number(p->values[s], number), quote);
    }
    pl_str_append(out, "}\n");
  }
}

/* Field numbers of event.proto, summary.proto and tensor.proto. */
enum { EVENT_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5, SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { METADATA_PLUGIN = 1, PLUGIN_NAME = 1, TENSOR_DTYPE = 1, TENSOR_STRING = 8, DT_STRING = 7 };

static void put_text(pl_str *out, uint64_t field, const char *text) { pl_proto_bytes(out, field, text, strlen(text)); }

static void put_message(pl_str *out, uint64_t field, const pl_str *message) {
  out->failed |= message->failed;
  pl_proto_bytes(out, field, pl_str_text(message), message->length);
}

/* A record with one event; `summary` may be NULL. */
static void put_event(double seconds, int64_t step, const char *version, const pl_str *summary, pl_str *out) {
  pl_str event = {0};
  pl_proto_double(&event, EVENT_TIME, seconds);
  if (step > 0) pl_proto_varint(&event, EVENT_STEP, (uint64_t)step);
  if (version) put_text(&event, EVENT_VERSION, version);
  if (summary) put_message(&event, EVENT_SUMMARY, summary);
  out->failed |= event.failed;
  pl_record_append(out, pl_str_text(&event), event.length);
  pl_str_free(&event);
}

static void put_scalar(const char *tag, double value, pl_str *summary) {
  pl_str v = {0};
  put_text(&v, VALUE_TAG, tag);
  pl_proto_float(&v, VALUE_SIMPLE, (float)value);
  put_message(summary, SUMMARY_VALUE, &v);
  pl_str_free(&v);
}

/* Shown by TensorBoard's text page, as code. */
static void put_config(const pl_json *config, pl_str *summary) {
  pl_str v = {0}, plugin = {0}, metadata = {0}, tensor = {0}, pretty = {0}, text = {0};
  pl_json_write_pretty(config, &pretty);
  pl_str_append(&text, "    ");
  for (const char *c = pl_str_text(&pretty); *c; c++)
    if (*c == '\n' && c[1])
      pl_str_append(&text, "\n    ");
    else
      pl_str_append_bytes(&text, c, 1);
  put_text(&plugin, PLUGIN_NAME, "text");
  put_message(&metadata, METADATA_PLUGIN, &plugin);
  pl_proto_varint(&tensor, TENSOR_DTYPE, DT_STRING);
  put_message(&tensor, TENSOR_STRING, &text);
  put_text(&v, VALUE_TAG, "config/text_summary");
  put_message(&v, VALUE_TENSOR, &tensor);
  put_message(&v, VALUE_METADATA, &metadata);
  put_message(summary, SUMMARY_VALUE, &v);
  pl_str *const all[] = {&v, &plugin, &metadata, &tensor, &pretty, &text};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) pl_str_free(all[i]);
}

/* Times count from 0, the start of the run, so that the same curve gives the same bytes. */
void pl_export_tensorboard(const pl_curve *c, const pl_json *config, pl_str *out) {
  pl_str summary = {0};
  double seconds = 0;
  put_event(0, 0, "brain.Event:2", NULL, out);
  put_config(config, &summary);
  put_event(0, 0, NULL, &summary, out);
  for (size_t i = 0; i < c->count; i++) {
    const pl_point *p = &c->rows[i].point;
    summary.length = 0;
    for (size_t s = 0; s < PL_SERIES_COUNT; s++)
      if (!isnan(p->values[s])) put_scalar(pl_series_names[s], p->values[s], &summary);
    if (p->tokens > 0) put_scalar("tokens", (double)p->tokens, &summary);
    if (!isnan(p->values[PL_SERIES_seconds])) seconds = p->values[PL_SERIES_seconds];
    put_event(seconds, p->step, NULL, &summary, out);
  }
  out->failed |= summary.failed;
  pl_str_free(&summary);
}
