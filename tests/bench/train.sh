#!/usr/bin/env bash
# Tokens per second of pipelag and of PyTorch on the same model, batch and optimizer, in turn on the same core.
# Usage: tests/bench/train.sh [ROUNDS] [CORE]. Needs python3-torch (not part of the tests). Prints medians and the ratio, and the same as JSON.
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${1:-5} core=${2:-0}
pipelag=$PWD/build/release/pipelag
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 ATEN_CPU_CAPABILITY=avx512
median() { sort -g | awk '{v[NR] = $1} END {print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }
rate() { sed -nE 's/.*"tokens_per_second": ?([0-9.e+]+).*/\1/p'; }

ours() { # SHAPE OPTIMIZER ROUND
  taskset -c "$core" "$pipelag" train "tests/bench/$1.json" -q --json -o "$work/$1-$2-$3" --set "optimizer=$2" --set optimizer.lr=8e-3 | rate
}
theirs() { # SHAPE OPTIMIZER
  local steps=200
  [ "$1" = demo ] || steps=12
  taskset -c "$core" /usr/bin/python3 tests/bench/rival_torch.py --shape "$1" --optimizer "$2" --steps "$steps" | rate
}

echo "shape  optimizer  pipelag tokens/s  PyTorch tokens/s  ratio   (medians of $rounds rounds, core $core, load $(cut -d' ' -f1 /proc/loadavg))"
rows=()
for shape in demo a; do
  for optimizer in adamw muon; do
    for round in $(seq "$rounds"); do
      ours "$shape" "$optimizer" "$round" >>"$work/ours.$shape.$optimizer"
      theirs "$shape" "$optimizer" >>"$work/theirs.$shape.$optimizer"
    done
    x=$(median <"$work/ours.$shape.$optimizer") y=$(median <"$work/theirs.$shape.$optimizer")
    awk -v s="$shape" -v o="$optimizer" -v x="$x" -v y="$y" 'BEGIN {printf "%-6s %-10s %16.0f  %16.0f  %5.2f\n", s, o, x, y, x / y}'
    rows+=("{\"shape\":\"$shape\",\"optimizer\":\"$optimizer\",\"pipelag\":$x,\"torch\":$y}")
  done
done
(IFS=,; echo "{\"train\":[${rows[*]}]}")
