#include "core/pipeline/draw.h"

enum {
  LEFT = 76,
  TOP = 44,
  ROW = 38,
  GAP = 8,
  BOX = 26, /* of the shortest instruction */
  LEGEND = 44,
  LEAST = 560,
  LETTER = 7 /* about the width of a digit in a label */
};

/* Where a grid is drawn. */
typedef struct grid {
  const pl_timeline *timeline;
  size_t top;
  double scale;
} grid;

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

static double shortest_of(const pl_timeline *t, double shortest) {
  for (size_t i = 0; i < t->count; i++) {
    double duration = t->events[i].end - t->events[i].start;
    if (duration > 0 && t->events[i].in->op != PL_OP_UPDATE && (shortest == 0 || duration < shortest))
      shortest = duration;
  }
  return shortest;
}

static size_t row_top(const grid *g, size_t stage) { return g->top + TOP + stage * (ROW + GAP); }

static size_t digits_of(size_t number) {
  size_t digits = 1;
  while (number /= 10) digits++;
  return digits;
}

static void draw_box(const grid *g, const pl_event *event, pl_str *out) {
  const pl_schedule *s = g->timeline->schedule;
  const size_t number = (size_t)event->update * s->microbatches + event->in->microbatch;
  double x = LEFT + event->start * g->scale, width = (event->end - event->start) * g->scale, middle = x + width / 2;
  size_t y = row_top(g, event->stage);
  pl_str_printf(out, "<rect x=\"%.2f\" y=\"%zu\" width=\"%.2f\" height=\"%d\" fill=\"%s\" stroke=\"#ffffff\"/>\n", x, y,
                width, ROW, color_of(event));
  if (width < (double)(LETTER * digits_of(number)) && width < BOX) return;
  pl_str_printf(out, "<text x=\"%.2f\" y=\"%zu\" font-size=\"12\">%zu", middle, y + 17, number);
  if (pl_schedule_chunks(s) > 1) pl_str_printf(out, "<tspan font-size=\"8\" dy=\"-4\">%zu</tspan>", event->in->chunk);
  pl_str_printf(out, "</text><text x=\"%.2f\" y=\"%zu\" font-size=\"9\">v%lld</text>\n", middle, y + 31,
                (long long)event->version);
}

/* A bar that lasts at least so long that it is seen, on top of the boxes. */
static void draw_update(const grid *g, const pl_event *event, pl_str *out) {
  double width = (event->end - event->start) * g->scale;
  size_t y = row_top(g, event->stage) - 3;
  pl_str_printf(out, "<rect x=\"%.2f\" y=\"%zu\" width=\"%.2f\" height=\"%d\" fill=\"#000000\"/>\n",
                LEFT + event->start * g->scale - 1.5, y, width > 3 ? width : 3, ROW + 6);
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

static void draw_title(const grid *g, const char *title, pl_str *out) {
  const pl_schedule *s = g->timeline->schedule;
  pl_str_printf(out, "<text x=\"12\" y=\"%zu\" text-anchor=\"start\" font-size=\"14\">", g->top + 24);
  write_escaped(s->name, out);
  if (title) {
    pl_str_append(out, ", ");
    write_escaped(title, out);
    pl_str_append(out, "</text>\n");
    return;
  }
  pl_str_printf(out, ": %zu stage%s, %zu microbatch%s an update</text>\n", s->stages, s->stages == 1 ? "" : "s",
                s->microbatches, s->microbatches == 1 ? "" : "es");
}

static void draw_grid(const grid *g, pl_str *out) {
  const pl_timeline *t = g->timeline;
  for (size_t p = 0; p < t->schedule->stages; p++) {
    size_t y = row_top(g, p);
    pl_str_printf(out,
                  "<text x=\"12\" y=\"%zu\" text-anchor=\"start\" font-size=\"12\">stage %zu</text><rect x=\"%d\" "
                  "y=\"%zu\" width=\"%.2f\" height=\"%d\" fill=\"#eeeeee\"/>\n",
                  y + 23, p, LEFT, y, t->end * g->scale, ROW);
  }
  for (size_t i = 0; i < t->count; i++)
    if (t->events[i].in->op != PL_OP_UPDATE) draw_box(g, &t->events[i], out);
  for (size_t i = 0; i < t->count; i++)
    if (t->events[i].in->op == PL_OP_UPDATE) draw_update(g, &t->events[i], out);
}

void pl_draw_svg(const pl_timeline *t, pl_str *out) { pl_draw_svg_panels(&(pl_panel){.timeline = t}, 1, 0, out); }

void pl_draw_svg_panels(const pl_panel *panels, size_t count, double shortest, pl_str *out) {
  const size_t height = TOP + panels[0].timeline->schedule->stages * (ROW + GAP);
  double end = 0, given = shortest;
  for (size_t i = 0; i < count; i++) {
    if (panels[i].timeline->end > end) end = panels[i].timeline->end;
    if (given <= 0) shortest = shortest_of(panels[i].timeline, shortest);
  }
  grid g = {.scale = shortest > 0 ? BOX / shortest : 1};
  double width = LEFT + end * g.scale + 16;
  pl_str_printf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%zu\" font-family=\"DejaVu Sans, "
                "Arial, sans-serif\" text-anchor=\"middle\">\n<rect width=\"100%%\" height=\"100%%\" "
                "fill=\"#ffffff\"/>\n",
                width > LEAST ? width : LEAST, count * height + LEGEND);
  for (size_t i = 0; i < count; i++, g.top += height) {
    g.timeline = panels[i].timeline;
    draw_title(&g, panels[i].title, out);
    draw_grid(&g, out);
  }
  draw_legend(panels[0].timeline, g.top + 8, out);
  pl_str_append(out, "</svg>\n");
}
