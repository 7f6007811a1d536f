# shellcheck shell=bash disable=SC2034 # the scripts that source it use the names
# What the scripts of this folder share; they source it from the root of the sources, with the shell's options set. It leaves $work, an empty folder that goes with the
# script, and $pipelag.
pipelag=${PIPELAG:-$PWD/build/release/pipelag}
work=$(mktemp -d)
finish() { rm -rf "$work"; }
trap finish EXIT
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE PIPELAG_ISA
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
hertz=$(getconf CLK_TCK)
cores=$(nproc --all)
cores=$(seq 0 $((cores - 1))) # that `alone` watches
foreign_limit=${FOREIGN_LIMIT:-0.05} # of their time: a round in which others took more does not count

# Of JSON: the N-th number with that key (default: the first).
number() { grep -oE "\"$1\": ?[0-9.e+-]+" | sed -nE 's/.*: ?//p' | sed -n "${2:-1}p"; }
# Of numbers, one a line.
median() { sort -g | awk '{v[NR] = $1} END {if (NR) print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }
range() { sort -g | awk 'NR == 1 {low = $1} {high = $1} END {printf "%.6g-%.6g", low, high}'; }

# CPU time in ticks that the watched cores gave to anybody.
busy() { awk -v list="${cores//$'\n'/ }" 'BEGIN {n = split(list, c, " "); for (i = 1; i <= n; i++) watched["cpu" c[i]] = 1} $1 in watched {sum += $2 + $3 + $4 + $7 + $8} END {print sum}' /proc/stat; }

# alone ARM COMMAND...: runs it, output in $work/out.ARM; seconds of the wall clock and of the CPU and the peak memory in KB in $work/used.ARM; the share of the watched
# cores that others took meanwhile is added to $work/foreign.ARM. False when that was above $foreign_limit.
alone() {
  local arm=$1 before after
  shift
  before=$(busy)
  /usr/bin/time -o "$work/used.$arm" -f '%e %U %S %M' "$@" >"$work/out.$arm" 2>"$work/err.$arm" || { cat "$work/err.$arm" >&2; exit 1; }
  after=$(busy)
  awk -v b="$before" -v a="$after" -v h="$hertz" -v n="$(wc -w <<<"$cores")" -v limit="$foreign_limit" -v file="$work/foreign.$arm" \
    '{f = ((a - b) / h - $2 - $3) / (n * ($1 + 0.005)); if (f < 0) f = 0; printf "%.3f\n", f >>file; exit f > limit}' "$work/used.$arm"
}

# COMMAND...: until a round was quiet.
again() {
  local try
  for try in 1 2 3; do "$@" && return; done
  echo "others load this machine: $* was given up after $try rounds" >&2
}

# Of an arm: the median share that others took.
foreign() { [ -s "$work/foreign.$1" ] && median <"$work/foreign.$1" || echo 0; }

# Objects as a list with a name: the last line of a suite's output.
json_result() { # NAME OBJECT...
  local name=$1
  shift
  (IFS=,; echo "{\"$name\":[$*],\"machine\":\"$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)\",\"load\":$(cut -d' ' -f1 /proc/loadavg)}")
}

# A program of the target `bench`.
bench_program() {
  local program
  program=$(dirname "$pipelag")/tests/bench_$1
  [ -x "$program" ] || { echo "$program is not there: cmake --build $(dirname "$pipelag") --target bench" >&2; exit 1; }
  echo "$program"
}
