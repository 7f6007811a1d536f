#!/usr/bin/env bash
# What a step pays besides the training itself. First by --profile: log and journal, validation, checkpoints, batches and clipping as shares of a step of about 2 ms. Then delay and its
# correction at shape a, in turn with the synchronous run on the same core: the ratio of the rates, and the memory. Usage: tests/bench/overhead.sh [--rounds N] [--core N].
# Rounds in which others took more than 5% of the core do not count. The last line is JSON.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/bench/lib.sh
source tests/bench/shapes.sh
rounds=5 core=0
while [ $# -gt 0 ]; do
  case $1 in
  --rounds) rounds=$2 && shift ;;
  --core) core=$2 && shift ;;
  *) echo "overhead.sh: $1 is not known; allowed: --rounds, --core" >&2; exit 2 ;;
  esac
  shift
done
cores=$core
rows=()

train() { # ARM OPTION...
  local arm=$1
  shift
  rm -rf "$work/o"
  alone "$arm" taskset -c "$core" "$pipelag" train "$work/run.json" -q --json -o "$work/o" "$@" || return 1
}

# NAME OF A PART: its seconds and calls in $work/out.profile.
part() { { grep -oE "\"$1\":\{[^}]*\}" "$work/out.profile" || echo '{"seconds":0,"calls":0}'; } | number "$2"; }
profile() {
  local name
  train profile --profile || return 1
  awk -v all="$(sed -E 's/"parts":\{.*\}\},/ /; s/.*"profile"//' "$work/out.profile" | number seconds)" -v ends="$(part ends seconds)" 'BEGIN {print all - ends}' >"$work/training"
  for name in $parts; do
    awk -v s="$(part "$name" seconds)" -v c="$(part "$name" calls)" -v t="$(cat "$work/training")" -v steps="$steps" 'BEGIN {print s / t, 1000 * s / (c > 0 ? c : 1), 1000 * t / steps}' >>"$work/part.$name"
  done
}

# A step of half of shape d's batch; the cadences are those of long runs, and denser than there.
shape d llama
tokens=$((tokens / 2)) steps=2000
parts="log validation checkpoint data clip other"
run_file fp32 adamw "$steps" | sed 's/"train": {/"train": {"checkpoint_every": 500, "val_every": 500, /' >"$work/run.json"
for ((round = 1; round <= rounds; round++)); do again profile; done
column() { cut -d' ' -f"$2" "$work/part.$1" | median; }
if [ -s "$work/part.log" ]; then
  echo "of a step of $(column log 3) ms (medians of $rounds rounds): part, share, ms a call"
  for name in $parts; do
    awk -v n="$name" -v s="$(column "$name" 1)" -v c="$(column "$name" 2)" 'BEGIN {printf "  %-12s %6.2f%%  %8.4f\n", n, 100 * s, c}'
    rows+=("{\"part\":\"$name\",\"share\":$(column "$name" 1),\"ms_per_call\":$(column "$name" 2),\"ms_per_step\":$(column "$name" 3)}")
  done
fi

shape a llama
run_file fp32 adamw "$steps" >"$work/run.json"
rate() { # ARM OPTION...
  train "$@" || return 1
  number tokens_per_second <"$work/out.$1" >>"$work/rate.$1"
  cut -d' ' -f4 "$work/used.$1" >>"$work/memory.$1"
}
for ((round = 1; round <= rounds; round++)); do
  again rate sync
  again rate delay --set delay=1
  again rate ef --set delay=1 --set correction=ef
  again rate lookahead --set delay=1 --set correction=lookahead
done
if [ -s "$work/rate.sync" ]; then
  echo "shape a: tokens/s (range), of sync, memory MB"
  for arm in sync delay ef lookahead; do
    [ -s "$work/rate.$arm" ] || continue
    r=$(median <"$work/rate.$arm") s=$(median <"$work/rate.sync") m=$(median <"$work/memory.$arm")
    awk -v n="$arm" -v r="$r" -v s="$s" -v m="$m" -v g="$(range <"$work/rate.$arm")" 'BEGIN {printf "  %-10s %8.0f (%s)  %.4f  %7.1f\n", n, r, g, r / s, m / 1024}'
    rows+=("{\"arm\":\"$arm\",\"tokens_per_second\":$r,\"sync\":$s,\"memory_kb\":$m,\"foreign\":$(foreign "$arm")}")
  done
fi
json_result overhead "${rows[@]}"
