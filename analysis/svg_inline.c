/* Drawings of gnuplot as elements of a page. */
#include <string.h>

#include "analysis/report_parts.h"

/* Where an element named `tag` that begins at `at` ends, or NULL when none begins there. */
static const char *end_of(const char *at, const char *tag, const char *closing) {
  if (strncmp(at, tag, strlen(tag)) != 0) return NULL;
  const char *end = strstr(at, closing);
  return end ? end + strlen(closing) : NULL;
}

/* What refers to an id, or is one: the name goes behind it. */
static size_t id_prefix(const char *at) {
  static const char *const texts[] = {" id='", " id=\"", "href='#", "href=\"#", "url(#"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (strncmp(at, texts[i], strlen(texts[i])) == 0) return strlen(texts[i]);
  return 0;
}

bool pl_svg_inline(const char *svg, const char *name, const char *label, pl_str *out) {
  const char *at = strstr(svg, "<svg");
  bool inside = false; /* a tag */
  if (!at) return false;
  pl_str_append(out, "<svg role=\"img\" aria-label=\"");
  pl_html_escape(label, out);
  pl_str_append(out, "\"");
  for (at += strlen("<svg"), inside = true; *at;) {
    const char *skipped = end_of(at, "<title>", "</title>");
    if (!skipped) skipped = end_of(at, "<desc>", "</desc>");
    if (skipped) {
      at = skipped;
      continue;
    }
    inside = *at == '<' || (inside && *at != '>');
    size_t length = inside ? id_prefix(at) : 0;
    pl_str_append_bytes(out, at, length > 0 ? length : 1);
    if (length > 0) pl_str_printf(out, "%s-", name);
    at += length > 0 ? length : 1;
  }
  return true;
}
