#!/usr/bin/env bash
# Tokens per second of 1F1B and of PipeDream-2BW, two processes on two cores, in turn, beside what the event simulation of the same
# instruction lists says for the measured times of each stage. Rates are those of the running pipeline, without its filling. Usage: tests/bench/pipeline.sh [ROUNDS] [MICROBATCHES...].
# A round in which others used more than 5% of the two cores is thrown away and made again, at most three times as many in all.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/bench/lib.sh
rounds=${1:-7}
shift || true
counts=("${@:-}")
[ -n "${counts[0]}" ] || counts=(2 4 8)
tokens=512 # of a microbatch
export OMPI_MCA_mpi_yield_when_idle=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

train() { # ARM SCHEDULE MICROBATCHES: one round; keeps the period as measured, the simulated one, and the rate
  local arm=$1 schedule=$2 m=$3
  rm -rf "${work:?}/$arm"
  alone "$arm" mpirun -np 2 --bind-to core "$pipelag" train tests/bench/pipeline.json -q --json -o "$work/$arm" \
    --set "pipeline.schedule=$schedule" --set "pipeline.microbatches=$m" --set "train.batch_tokens=$((tokens * m))" \
    --set pipeline.trace=12 || return 1
  "$pipelag" schedule --measured "$work/$arm" --json >"$work/measured.json"
  number period 1 <"$work/measured.json" | tee -a "$work/period.$arm" | awk -v t=$((tokens * m)) '{print t / $1}' >>"$work/rate.$arm"
  number period 2 <"$work/measured.json" >>"$work/ideal.$arm"
}

one_process() { # ARM THREADS CORES MICROBATCHES
  rm -rf "${work:?}/one"
  alone "$1" taskset -c "$3" "$pipelag" train tests/bench/pipeline.json -q --json -o "$work/one" --set pipeline.stages=1 --set "threads=$2" \
    --set pipeline.schedule=lagged --set delay=1 --set "pipeline.microbatches=$4" --set "train.batch_tokens=$((tokens * $4))" || return 1
  number tokens_per_second <"$work/out.$1" >>"$work/rate.$1$4"
}

echo " m   1f1b tokens/s (range)    2bw tokens/s (range)    one core   2 threads   2bw/1f1b  ideal  simulated   2bw of compute-only  (medians of $rounds rounds)"
rows=()
for m in "${counts[@]}"; do
  for ((round = 1; round <= rounds; round++)); do
    again train "f$m" 1f1b "$m"
    again train "w$m" 2bw "$m"
    again one_process one 1 0 "$m"
    again one_process two 2 0,1 "$m"
  done
  [ -s "$work/rate.f$m" ] && [ -s "$work/rate.w$m" ] || continue
  f=$(median <"$work/rate.f$m") w=$(median <"$work/rate.w$m") one=$(median <"$work/rate.one$m") two=$(median <"$work/rate.two$m")
  sf=$(median <"$work/ideal.f$m") sw=$(median <"$work/ideal.w$m") pw=$(median <"$work/period.w$m")
  awk -v m="$m" -v f="$f" -v w="$w" -v o="$one" -v t="$two" -v fr="$(range <"$work/rate.f$m")" -v wr="$(range <"$work/rate.w$m")" -v sf="$sf" -v sw="$sw" -v pw="$pw" \
    'BEGIN {printf "%2d   %9.0f (%s)   %9.0f (%s)   %8.0f   %9.0f   %8.3f  %5.3f  %9.3f   %18.1f%%\n", m, f, fr, w, wr, o, t, w / f, (m + 1) / m, sf / sw, 100 * sw / pw}'
  rows+=("{\"microbatches\":$m,\"1f1b\":$f,\"2bw\":$w,\"one\":$one,\"two_threads\":$two,\"simulated_1f1b\":$sf,\"simulated_2bw\":$sw,\"period_2bw\":$pw}")
done
json_result pipeline "${rows[@]}"
