#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"

static const double exact_integers = 9007199254740992.0; /* 2^53 */

char *pl_format_number(double value, char *out) {
  enum { SIZE = 32 };
  if (isnan(value)) return strcpy(out, "NaN");
  if (isinf(value)) return strcpy(out, value > 0 ? "Infinity" : "-Infinity");
  if (value == 0) return strcpy(out, signbit(value) ? "-0.0" : "0");
  if (fabs(value) <= exact_integers && value == trunc(value)) {
    snprintf(out, SIZE, "%" PRId64, (int64_t)value);
    return out;
  }
  /* 15 digits always survive a normal double, and %g drops trailing zeros, so nothing shorter can be missed there. */
  char text[2 * SIZE]; /* more than it takes: gcc does not see how few the digits are */
  int digits = fabs(value) < DBL_MIN ? 1 : DBL_DIG;
  for (; digits <= DBL_DECIMAL_DIG; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  return strcpy(out, text);
}

bool pl_parse_int(const char *text, int64_t *out) {
  if (text[strspn(text, "+-0123456789")] != '\0') return false;
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (end == text || *end || errno) return false;
  *out = value;
  return true;
}

bool pl_parse_real(const char *text, double *out) {
  if (text[strspn(text, "+-0123456789.eE")] != '\0') return false;
  char *end;
  double value = strtod(text, &end);
  if (end == text || *end || isinf(value)) return false;
  *out = value;
  return true;
}
