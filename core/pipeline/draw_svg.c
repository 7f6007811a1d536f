#include "core/pipeline/draw.h"

enum { LEFT = 76, TOP = 44, ROW = 38, GAP = 8, BOX = 26 /* of the shortest instruction */, LEGEND = 44, LEAST = 560 };

/* Colours of Okabe and Ito, told apart by the colour-blind; every second update is lighter. */
static const char *color_of(const pl_event *event) {
  bool light = event->update % 2 != 0;
  switch (event->in->op) {
  case PL_OP_FORWARD:
    return light ? "#a9d9f5" : "#56b4e9";
  case PL_OP_BACKWARD:
  case PL_OP_BACKWARD_INPUT:
    return light ? "#f5cf80" : "#e69f00";
  case PL_OP_BACKWARD_WEIGHT:
    return light ? "#7fd0b8" : "#2fb08a";
  default:
    return "#000000";
  }
}

static double scale_of(const pl_timeline *t) {
  double shortest = 0;
  for (size_t i = 0; i < t->count; i++) {
    double duration = t->events[i].end - t->events[i].start;
    if (duration > 0 && t->events[i].in->op != PL_OP_UPDATE && (shortest == 0 || duration < shortest))
      shortest = duration;
  }
  return shortest > 0 ? BOX / shortest : 1;
}

static void draw_box(const pl_timeline *t, const pl_event *event, double scale, pl_str *out) {
  const size_t m = t->schedule->microbatches, chunks = pl_schedule_chunks(t->schedule);
  double x = LEFT + event->start * scale, width = (event->end - event->start) * scale, middle = x + width / 2;
  size_t y = TOP + event->stage * (ROW + GAP);
  pl_str_printf(out, "<rect x=\"%.2f\" y=\"%zu\" width=\"%.2f\" height=\"%d\" fill=\"%s\" stroke=\"#ffffff\"/>\n", x, y,
                width, ROW, color_of(event));
  if (event->in->op == PL_OP_UPDATE) return;
  pl_str_printf(out, "<text x=\"%.2f\" y=\"%zu\" font-size=\"12\">%zu", middle, y + 17,
                (size_t)event->update * m + event->in->microbatch);
  if (chunks > 1) pl_str_printf(out, "<tspan font-size=\"8\" dy=\"-4\">%zu</tspan>", event->in->chunk);
  pl_str_printf(out, "</text><text x=\"%.2f\" y=\"%zu\" font-size=\"9\">v%lld</text>\n", middle, y + 31,
                (long long)event->version);
}

/* A bar that lasts at least so long that it is seen, on top of the boxes. */
static void draw_update(const pl_event *event, double scale, pl_str *out) {
  double width = (event->end - event->start) * scale;
  size_t y = TOP + event->stage * (ROW + GAP) - 3;
  pl_str_printf(out, "<rect x=\"%.2f\" y=\"%zu\" width=\"%.2f\" height=\"%d\" fill=\"#000000\"/>\n",
                LEFT + event->start * scale - 1.5, y, width > 3 ? width : 3, ROW + 6);
}

static void draw_legend(const pl_timeline *t, size_t y, pl_str *out) {
  const struct {
    pl_op op;
    const char *color, *text;
  } entries[] = {{PL_OP_FORWARD, "#56b4e9", "forward"},
                 {PL_OP_BACKWARD, "#e69f00", "backward"},
                 {PL_OP_BACKWARD_INPUT, "#e69f00", "backward (input)"},
                 {PL_OP_BACKWARD_WEIGHT, "#2fb08a", "backward (weight)"},
                 {PL_OP_UPDATE, "#000000", "update"}};
  size_t x = LEFT;
  for (size_t k = 0; k < sizeof entries / sizeof *entries; k++) {
    size_t i = 0;
    while (i < t->count && t->events[i].in->op != entries[k].op) i++;
    if (i == t->count) continue;
    size_t width = entries[k].op == PL_OP_UPDATE ? 4 : 14;
    pl_str_printf(out,
                  "<rect x=\"%zu\" y=\"%zu\" width=\"%zu\" height=\"14\" fill=\"%s\"/><text x=\"%zu\" y=\"%zu\" "
                  "text-anchor=\"start\" font-size=\"11\">%s</text>\n",
                  x, y, width, entries[k].color, x + width + 5, y + 11, entries[k].text);
    x += entries[k].op == PL_OP_BACKWARD_INPUT || entries[k].op == PL_OP_BACKWARD_WEIGHT ? 130 : 84;
  }
  pl_str_printf(out,
                "<text x=\"%zu\" y=\"%zu\" text-anchor=\"start\" font-size=\"11\">7 microbatch%s, v2 weights that it "
                "reads</text>\n",
                x, y + 11, pl_schedule_chunks(t->schedule) > 1 ? ", raised its chunk" : "");
}

static void write_escaped(const char *text, pl_str *out) {
  for (; *text != '\0'; text++) {
    if (*text == '<')
      pl_str_append(out, "&lt;");
    else if (*text == '&')
      pl_str_append(out, "&amp;");
    else
      pl_str_append_bytes(out, text, 1);
  }
}

void pl_draw_svg(const pl_timeline *t, pl_str *out) {
  const pl_schedule *s = t->schedule;
  const double scale = scale_of(t);
  double width = LEFT + t->end * scale + 16;
  size_t bottom = TOP + s->stages * (ROW + GAP);
  pl_str_printf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%zu\" font-family=\"DejaVu Sans, "
                "Arial, sans-serif\" text-anchor=\"middle\">\n<rect width=\"100%%\" height=\"100%%\" "
                "fill=\"#ffffff\"/>\n<text x=\"12\" y=\"24\" text-anchor=\"start\" font-size=\"14\">",
                width > LEAST ? width : LEAST, bottom + LEGEND);
  write_escaped(s->name, out);
  pl_str_printf(out, ": %zu stage%s, %zu microbatch%s an update</text>\n", s->stages, s->stages == 1 ? "" : "s",
                s->microbatches, s->microbatches == 1 ? "" : "es");
  for (size_t p = 0; p < s->stages; p++) {
    size_t y = TOP + p * (ROW + GAP);
    pl_str_printf(out,
                  "<text x=\"12\" y=\"%zu\" text-anchor=\"start\" font-size=\"12\">stage %zu</text><rect x=\"%d\" "
                  "y=\"%zu\" width=\"%.2f\" height=\"%d\" fill=\"#eeeeee\"/>\n",
                  y + 23, p, LEFT, y, t->end * scale, ROW);
  }
  for (size_t i = 0; i < t->count; i++)
    if (t->events[i].in->op != PL_OP_UPDATE) draw_box(t, &t->events[i], scale, out);
  for (size_t i = 0; i < t->count; i++)
    if (t->events[i].in->op == PL_OP_UPDATE) draw_update(&t->events[i], scale, out);
  draw_legend(t, bottom + 8, out);
  pl_str_append(out, "</svg>\n");
}
