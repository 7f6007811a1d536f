#!/usr/bin/env bash
# N runs of one thread, each on a core of its own, side by side and one after the other on the first core: what packing a machine with a sweep's runs costs each of them.
# Usage: tests/bench/pack.sh [--rounds N] [--runs N] [--precision P] [SHAPE...]; default: as many runs as cores. Rounds in which others took more than 5% of those cores do not
# count. The last line is JSON.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/bench/lib.sh
source tests/bench/shapes.sh
rounds=5 runs=0 precision=fp32 shapes=()
while [ $# -gt 0 ]; do
  case $1 in
  --rounds) rounds=$2 && shift ;;
  --runs) runs=$2 && shift ;;
  --precision) precision=$2 && shift ;;
  -*) echo "pack.sh: $1 is not known; allowed: --rounds, --runs, --precision" >&2; exit 2 ;;
  *) shapes+=("$1") ;;
  esac
  shift
done
[ ${#shapes[@]} -gt 0 ] || shapes=(a d)
mapfile -t places < <(taskset -cp $$ | sed 's/.*: //' | tr , '\n' | sed -E 's/^([0-9]+)$/\1-\1/; s/-/ /' | while read -r first last; do seq "$first" "$last"; done)
[ "$runs" -gt 0 ] || runs=${#places[@]}
[ "$runs" -le ${#places[@]} ] || { echo "pack.sh: $runs runs, but ${#places[@]} cores; allowed: at most one a core" >&2; exit 2; }
places=("${places[@]:0:$runs}")
cores="${places[*]}"

export pipelag work
one() { taskset -c "$1" "$pipelag" train "$work/run.json" -q --json -o "$work/o.$2" >"$work/said.$2"; }
side_by_side() { # CORE...
  local core number=0 jobs=() job
  for core in "$@"; do
    number=$((number + 1))
    one "$core" "$number" &
    jobs+=($!)
  done
  for job in "${jobs[@]}"; do wait "$job"; done
}
in_turn() { # CORE...
  local number
  for ((number = 1; number <= $#; number++)); do one "$1" "$number"; done
}
export -f one side_by_side in_turn

# ARM WAY: keeps the sum of the runs' tokens a second, and the seconds of all, start and end included.
measure() {
  rm -rf "$work"/o.* "$work"/said.*
  alone "$1" bash -euc "$2 ${places[*]}" || return 1
  cut -d' ' -f1 "$work/used.$1" >>"$work/seconds.$1"
  for ((i = 1; i <= runs; i++)); do number tokens_per_second <"$work/said.$i"; done | awk '{sum += $1} END {print sum}' >>"$work/rate.$1"
}

echo "shape prec  runs  tokens/s: side by side (range)   in turn (range)   kept   seconds: side by side  in turn  times   (medians of $rounds rounds, cores $cores)"
rows=()
for shape in "${shapes[@]}"; do
  shape "$shape" llama
  run_file "$precision" adamw "$steps" >"$work/run.json"
  for ((round = 1; round <= rounds; round++)); do
    again measure "$shape.side" side_by_side
    again measure "$shape.turn" in_turn
  done
  [ -s "$work/rate.$shape.side" ] && [ -s "$work/rate.$shape.turn" ] || continue
  side=$(median <"$work/rate.$shape.side") turn=$(median <"$work/rate.$shape.turn") # in turn each had the machine for itself
  ts=$(median <"$work/seconds.$shape.side") tt=$(median <"$work/seconds.$shape.turn")
  awk -v s="$shape" -v p="$precision" -v n="$runs" -v a="$side" -v ar="$(range <"$work/rate.$shape.side")" -v b="$turn" -v br="$(range <"$work/rate.$shape.turn")" -v ts="$ts" -v tt="$tt" \
    'BEGIN {printf "%-5s %-4s %5d %12.0f (%s) %12.0f (%s) %5.1f%% %12.2f %12.2f %6.2f\n", s, p, n, a, ar, b, br, 100 * a / b, ts, tt, tt / ts}'
  rows+=("{\"shape\":\"$shape\",\"precision\":\"$precision\",\"runs\":$runs,\"side_by_side\":$side,\"in_turn\":$turn,\"seconds_side_by_side\":$ts,\"seconds_in_turn\":$tt,\"foreign\":$(foreign "$shape.side")}")
done
json_result pack "${rows[@]}"
