#include <string.h>

#include "core/base/memory.h"
#include "sweeps/parts.h"

/* Length of the piece up to the next comma outside quotes and brackets. */
static size_t piece_length(const char *text) {
  size_t depth = 0, i = 0;
  bool quoted = false;
  for (; text[i] != '\0' && (quoted || depth > 0 || text[i] != ','); i++) {
    if (quoted && text[i] == '\\' && text[i + 1] != '\0')
      i++;
    else if (text[i] == '"')
      quoted = !quoted;
    else if (!quoted && strchr("[{", text[i]) != NULL)
      depth++;
    else if (!quoted && strchr("]}", text[i]) != NULL && depth > 0)
      depth--;
  }
  return i;
}

/* JSON where it parses, else the text itself; what starts like a JSON string, list or object has to be one. */
static pl_status parse_piece(const char *text, size_t length, pl_json **out, pl_err *e) {
  pl_err unparsed = {0};
  pl_str plain = {0};
  while (length > 0 && text[0] == ' ') text++, length--;
  while (length > 0 && text[length - 1] == ' ') length--;
  if (length == 0) return pl_fail(e, PL_BAD, "a value is missing; write \"\" for an empty text");
  pl_status st = pl_json_parse(text, length, "value", out, &unparsed);
  if (st == PL_OK) return PL_OK;
  if (st == PL_FAIL || strchr("\"[{", text[0]) != NULL) return pl_fail(e, st, "%s", unparsed.text);
  pl_str_append_bytes(&plain, text, length);
  *out = plain.failed ? NULL : pl_json_new_string(pl_str_text(&plain));
  pl_str_free(&plain);
  return *out == NULL ? pl_fail(e, PL_FAIL, "out of memory for a value") : PL_OK;
}

static pl_status parse_values(const char *text, pl_json **out, pl_err *e) {
  pl_status st = PL_OK;
  pl_json *list = pl_json_new_array();
  for (bool more = true; more;) {
    pl_json *value = NULL;
    size_t length = piece_length(text);
    PL_TRY(parse_piece(text, length, &value, e));
    if (!pl_json_append(list, value)) PL_TRY(pl_fail(e, PL_FAIL, "out of memory for a value"));
    more = text[length] == ',';
    text += length + 1;
  }
  *out = list;
  return PL_OK;
out:
  pl_json_release(list);
  return st;
}

/* `seeds=0,1`, `seed=0,1`, `seeds=[0,1]` and `seeds={"range":[0,4]}` all make the axis "seed". */
static pl_status fold_seeds(pl_json *set, const pl_json *values, pl_err *e) {
  pl_json *seeds = NULL;
  pl_json_kind kind = pl_json_kind_of(pl_json_at(values, 0));
  bool whole = pl_json_size(values) == 1 && (kind == PL_JSON_ARRAY || kind == PL_JSON_OBJECT);
  pl_status st = pl_axis_seeds(whole ? pl_json_at(values, 0) : values, &seeds, e);
  if (st != PL_OK) return st;
  return pl_json_set(set, "seed", seeds) ? PL_OK : pl_fail(e, PL_FAIL, "out of memory for the seeds");
}

/* `a={"log_range":[1e-3,1],"n":4}`: no parameter is such an object, so it can only mean the axis. */
static const pl_json *range_of(const pl_json *values) {
  const pl_json *first = pl_json_at(values, 0);
  bool range = pl_json_get(first, "range") != NULL || pl_json_get(first, "log_range") != NULL;
  return pl_json_size(values) == 1 && range ? first : NULL;
}

static pl_status fold_values(pl_json *document, pl_json *set, const char *key, const pl_json *values, pl_err *e) {
  bool of_sweep = strcmp(key, "name") == 0 || strcmp(key, "notes") == 0 || pl_path_after(key, "slurm") != NULL;
  const pl_json *range = range_of(values);
  bool ok;
  if (strcmp(key, "seed") == 0 || strcmp(key, "seeds") == 0) return fold_seeds(set, values, e);
  if (of_sweep && pl_json_size(values) > 1)
    return pl_fail(e, PL_BAD, "%zu values; allowed: one; quotes keep a comma: '%s=\"a,b\"'", pl_json_size(values), key);
  if (of_sweep)
    ok = pl_json_set_path(document, key, pl_json_retain(pl_json_at(values, 0)));
  else
    ok = pl_json_set(set, key, pl_json_retain(range != NULL ? range : values));
  return ok ? PL_OK : pl_fail(e, PL_FAIL, "out of memory for the values");
}

static const char KEY_CHARACTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";

/* What is wrong before the "=", `length` bytes of which could be a key. */
static pl_status no_key(const char *text, size_t length, pl_err *e) {
  size_t equals = strcspn(text, "=");
  if (text[equals] == '=' && equals > 0)
    return pl_fail(e, PL_BAD, "the key \"%.*s\" has the character \"%.*s\"; allowed: letters, digits, _ and dots",
                   equals < 100 ? (int)equals : 100, text, (text[length] & 0x80) != 0 ? 2 : 1, text + length);
  return pl_fail(e, PL_BAD, "no key with a value; allowed: key=value, as in train.steps=100");
}

/* "base.delay" and "grid.delay" name a place in the file, but --set addresses the run. */
static pl_status check_place(const char *key, pl_err *e) {
  static const char *const places[] = {"base", "grid", "zip", "random", "runs", "exclude", "only_if", "set"};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (pl_path_after(key, places[i]) != NULL)
      return pl_fail(e, PL_BAD, "\"%s\" is a place in a sweep file; allowed: a key of a run, as in train.steps=100",
                     places[i]);
  return PL_OK;
}

static pl_status fold(pl_json *document, pl_json *set, const char *text, pl_err *e) {
  pl_status st = PL_OK;
  pl_str key = {0};
  pl_json *values = NULL;
  size_t length = strspn(text, KEY_CHARACTERS);
  if (length == 0 || text[length] != '=') return no_key(text, length, e);
  pl_str_append_bytes(&key, text, length);
  PL_TRY(pl_str_check(&key, e));
  PL_TRY(check_place(pl_str_text(&key), e));
  PL_TRY(parse_values(text + length + 1, &values, e));
  PL_TRY(fold_values(document, set, pl_str_text(&key), values, e));
out:
  pl_json_release(values);
  pl_str_free(&key);
  return st;
}

pl_status pl_sweep_fold_sets(pl_json *document, pl_sets sets, pl_err *e) {
  pl_status st = PL_OK;
  const pl_json *old = pl_json_get(document, "set");
  if (sets.count == 0) return PL_OK;
  pl_json *set = old != NULL ? pl_json_copy(old) : pl_json_new_object();
  if (set == NULL) PL_TRY(pl_fail(e, PL_FAIL, "out of memory for --set"));
  for (size_t i = 0; i < sets.count; i++) {
    st = fold(document, set, sets.texts[i], e);
    if (st != PL_OK) {
      pl_err_prefix(e, "--set %.200s", sets.texts[i]);
      goto out;
    }
  }
  if (pl_json_size(set) > 0 && !pl_json_set(document, "set", pl_json_retain(set)))
    PL_TRY(pl_fail(e, PL_FAIL, "out of memory for --set"));
out:
  pl_json_release(set);
  return st;
}
