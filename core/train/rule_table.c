#include "core/train/rule_table.h"

#include <ctype.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/str.h"

/* What a segment is treated by. */
typedef struct rule {
  const char *name;
  double lr_scale;
} rule;

static rule rule_of(const pl_run_config *config, const pl_segment *segment) {
  const pl_optimizer_type *type = (const pl_optimizer_type *)config->optimizer.type;
  const void *section = config->optimizer.config;
  return (rule){type->rule ? type->rule(section, segment) : type->base.name,
                type->lr_scale ? type->lr_scale(section, segment) : 1};
}

static bool same(rule a, rule b) { return strcmp(a.name, b.name) == 0 && a.lr_scale == b.lr_scale; }

/* "layers.12.mlp.up" becomes "layers.*.mlp.up". */
static void pattern_of(const char *name, char pattern[PL_SEGMENT_NAME]) {
  size_t length = 0;
  for (const char *at = name; *at; at++) {
    bool digit = isdigit((unsigned char)*at) != 0;
    if (!digit)
      pattern[length++] = *at;
    else if (at == name || !isdigit((unsigned char)at[-1]))
      pattern[length++] = '*';
  }
  pattern[length] = '\0';
}

/* Is the pattern one of the list's, which are separated by ", "? */
static bool listed(const char *list, const char *pattern) {
  size_t length = strlen(pattern);
  for (const char *at = strstr(list, pattern); at; at = strstr(at + 1, pattern))
    if ((at == list || at[-1] == ' ') && (at[length] == '\0' || at[length] == ',')) return true;
  return false;
}

/* The segments of all stages in one row, tied copies left out. */
typedef struct row {
  const pl_segment **items;
  size_t count;
} row;

static pl_status line_up(const pl_layout *const *layouts, size_t count, row *out, pl_err *e) {
  pl_status st = PL_OK;
  size_t most = 0;
  *out = (row){0};
  for (size_t p = 0; p < count; p++) most += layouts[p]->count;
  PL_TRY(pl_alloc(most, sizeof *out->items, "the table of rules", &out->items, e));
  for (size_t p = 0; p < count; p++)
    for (size_t i = 0; i < layouts[p]->count; i++)
      if (!layouts[p]->segments[i].tied_copy) out->items[out->count++] = &layouts[p]->segments[i];
out:
  return st;
}

static bool is_first(const pl_run_config *config, const row *r, size_t i) {
  rule own = rule_of(config, r->items[i]);
  for (size_t j = 0; j < i; j++)
    if (same(own, rule_of(config, r->items[j]))) return false;
  return true;
}

/* Everything from segment i on that has its rule. */
static void write_line(const pl_run_config *config, const row *r, size_t i, pl_str *line, pl_str *patterns) {
  rule own = rule_of(config, r->items[i]);
  size_t parameters = 0;
  for (; i < r->count; i++) {
    const pl_segment *s = r->items[i];
    char pattern[PL_SEGMENT_NAME];
    if (!same(own, rule_of(config, s))) continue;
    parameters += s->rows * s->cols;
    pattern_of(s->name, pattern);
    if (!listed(pl_str_text(patterns), pattern)) pl_str_printf(patterns, "%s%s", patterns->length ? ", " : "", pattern);
  }
  pl_str_printf(line, "optimizer %s: rule %s", config->optimizer.type->name, own.name);
  if (own.lr_scale != 1) pl_str_printf(line, " with %g times the learning rate", own.lr_scale);
  pl_str_printf(line, " takes %zu parameters: %s", parameters, pl_str_text(patterns));
}

pl_status pl_rule_table_say(const pl_run_config *config, const pl_layout *const *layouts, size_t count,
                            void (*say)(void *self, const char *line), void *say_self, pl_err *e) {
  pl_status st = PL_OK;
  row r = {0};
  pl_str line = {0}, patterns = {0};
  PL_TRY(line_up(layouts, count, &r, e));
  for (size_t i = 0; i < r.count; i++) {
    if (!is_first(config, &r, i)) continue;
    write_line(config, &r, i, &line, &patterns);
    PL_TRY(pl_str_check(&patterns, e));
    PL_TRY(pl_str_check(&line, e));
    say(say_self, pl_str_text(&line));
    pl_str_free(&line);
    pl_str_free(&patterns);
  }
out:
  pl_free(r.items);
  pl_str_free(&line);
  pl_str_free(&patterns);
  return st;
}
