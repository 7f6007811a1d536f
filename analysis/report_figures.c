/* The figures of a report. */
#include <stdio.h>
#include <string.h>

#include "analysis/plots.h"
#include "analysis/report_parts.h"
#include "core/base/fs.h"
#include "core/base/memory.h"

static const struct {
  const char *name;
  pl_plot_function draw;
} figure_kinds[] = {{"loss_curves", pl_plot_loss_curves}, {"loss_vs_seconds", pl_plot_loss_vs_seconds},
                    {"loss_vs_lr", pl_plot_loss_vs_lr},   {"gap_vs_delay", pl_plot_gap_vs_delay},
                    {"won_back", pl_plot_won_back},       {"mechanism", pl_plot_mechanism}};

static pl_status note_file(pl_report *r, const char *name, const char *ending, pl_err *e) {
  char file[96];
  snprintf(file, sizeof file, "plots/%s.%s", name, ending);
  return pl_report_file_note(&r->files, file, e);
}

static pl_status note_figure(pl_report *r, const pl_plot *p, const char *group, const pl_drawn *drawn, pl_err *e) {
  pl_status st = PL_OK;
  pl_str caption = {0};
  pl_str_printf(&caption, "%s%s%s.", pl_str_text(&p->caption), group[0] ? "; " : "", group);
  PL_TRY(pl_str_check(&caption, e));
  PL_TRY(pl_grow(r->figure_count, r->figure_count + 1, sizeof r->figures[0], "figures", &r->figures, e));
  pl_report_figure *f = &r->figures[r->figure_count];
  PL_TRY(pl_strdup(pl_str_text(&caption), &f->caption, e));
  r->figure_count++;
  memcpy(f->name, p->name, sizeof f->name);
  memcpy(f->as, drawn->as, sizeof f->as);
out:
  pl_str_free(&caption);
  return st;
}

/* Says what was drawn; a figure without an SVG is none. */
static pl_status take_drawn(pl_report *r, const pl_plot *p, const char *group, const pl_drawn *drawn, pl_err *e) {
  static const char *const inputs[] = {"gp", "dat", "csv"};
  pl_status st = PL_OK;
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) PL_TRY(note_file(r, p->name, inputs[i], e));
  if (drawn->missing) {
    pl_report_say(&r->files, "gnuplot is not installed: the plots are left out (their scripts are in %s/plots)",
                  r->files.folder);
    r->no_gnuplot = true;
    goto out;
  }
  for (size_t i = 0; i < PL_DRAWN_FORMATS; i++) {
    if (drawn->as[i]) {
      PL_TRY(note_file(r, p->name, pl_drawn_endings[i], e));
      pl_report_say(&r->files, "%s/plots/%s.%s", r->files.folder, p->name, pl_drawn_endings[i]);
    } else {
      pl_report_say(&r->files, "gnuplot could not draw %s.%s: %s", p->name, pl_drawn_endings[i], drawn->problem[i]);
    }
    if (!drawn->as[PL_DRAWN_SVG]) goto out;
  }
  PL_TRY(note_figure(r, p, group, drawn, e));
out:
  return st;
}

static pl_status draw(pl_report *r, const pl_plot_input *in, pl_plot_function function, const char *name, size_t number,
                      pl_arm_range range, const char *group, pl_err *e) {
  pl_status st = PL_OK;
  pl_plot p = {0};
  pl_drawn drawn = {0};
  char *folder = NULL;
  if (number == 0)
    snprintf(p.name, sizeof p.name, "%s", name);
  else
    snprintf(p.name, sizeof p.name, "%s_%zu", name, number + 1);
  PL_TRY(function(in, range, &p, e));
  if (p.blocks == 0 || p.script.length == 0) goto out;
  PL_TRY(pl_path_join(r->files.folder, "plots", &folder, e));
  PL_TRY(pl_plot_draw(&p, folder, r->newest, &drawn, e));
  PL_TRY(take_drawn(r, &p, group, &drawn, e));
out:
  pl_plot_free(&p);
  pl_free(folder);
  return st;
}

/* The heat map that was asked for, over all groups. */
static pl_status draw_heat(pl_report *r, const pl_plot_input *in, pl_err *e) {
  size_t before = r->figure_count;
  pl_status st = draw(r, in, pl_plot_heat, "heat", 0, (pl_arm_range){0, in->arms->count}, "", e);
  if (st == PL_OK && r->figure_count == before && !r->no_gnuplot)
    pl_report_say(&r->files, "no heat map: no two values each of %s and %s have runs with a result to show",
                  in->heat[0], in->heat[1]);
  return st;
}

pl_status pl_report_draw(pl_report *r, pl_err *e) {
  pl_status st = PL_OK;
  const pl_arms *arms = &r->analysis.arms;
  const pl_plot_input in = {.catalog = r->in->catalog,
                            .arms = arms,
                            .table = &r->analysis.gap,
                            .options = r->in->options,
                            .heat = {r->in->heat[0], r->in->heat[1]}};
  char *folder = NULL;
  size_t number = 0;
  PL_TRY(pl_path_join(r->files.folder, "plots", &folder, e));
  PL_TRY(pl_make_folders(folder, e));
  for (size_t i = 0; i < arms->count; number++) {
    pl_arm_range group = pl_arms_of_group(arms, i);
    const char *name = arms->arms[i].group;
    for (size_t k = 0; k < sizeof figure_kinds / sizeof *figure_kinds && !r->no_gnuplot; k++)
      PL_TRY(draw(r, &in, figure_kinds[k].draw, figure_kinds[k].name, number, group, name, e));
    if (!in.heat[0] && !r->no_gnuplot) PL_TRY(draw(r, &in, pl_plot_heat, "heat", number, group, name, e));
    i = group.last;
  }
  if (in.heat[0] && !r->no_gnuplot) PL_TRY(draw_heat(r, &in, e));
out:
  pl_free(folder);
  return st;
}
