# The formatter changes nothing; no file is over 500 lines.
cd "$(dirname "$TESTS_SOURCE")"
failed=0
mapfile -t files < <(find core optim models sweeps results analysis runners tests \( -name '*.c' -o -name '*.h' \) | sort)
clang-format-14 --dry-run -Werror "${files[@]}" || failed=1
wc -l "${files[@]}" | awk '$1 > 500 && $2 != "total" {print $2 ": " $1 " lines; allowed: 500"; bad = 1} END {exit bad}' || failed=1
exit $failed
