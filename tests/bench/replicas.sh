#!/usr/bin/env bash
# How much of the data-parallel sum of gradients hides behind compute: two replicas of one stage, two processes on two cores in a network namespace whose loopback carries so many
# Mbit/s. With gpipe the sum stands between two updates; with 2bw the next update is computed meanwhile. Exposed: the part of an update in which a process does not compute.
# Usage, as root: tests/bench/replicas.sh [ROUNDS] [MBIT...]. Needs iproute2, and tbf in the kernel.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/bench/lib.sh
rounds=${1:-3}
shift || true
rates=("$@")
[ $# -gt 0 ] || rates=(10000 2000 1000)
export OMPI_MCA_mpi_yield_when_idle=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo

measure() { # SCHEDULE MBIT: "period exposed" in seconds
  rm -rf "$work/run"
  unshare -n bash -euc "ip link set lo up mtu 9000; tc qdisc add dev lo root tbf rate $2mbit burst 64k latency 500ms
    exec mpirun -np 2 --bind-to core '$pipelag' train tests/bench/pipeline.json -q -o '$work/run' --set pipeline.stages=1 --set pipeline.replicas=2 \
      --set pipeline.microbatches=4 --set train.batch_tokens=4096 --set pipeline.schedule=$1 --set pipeline.trace=12" >"$work/out" 2>&1 || { cat "$work/out" >&2; exit 1; }
  "$pipelag" schedule --measured "$work/run" --json >"$work/measured.json"
  awk -v p="$(number period <"$work/measured.json")" -v b="$(number busy <"$work/measured.json")" 'BEGIN {print p, p * (1 - b)}'
}

echo " Mbit/s   gpipe ms: update  exposed   2bw ms: update  exposed   hidden   (medians of $rounds rounds)"
for mbit in "${rates[@]}"; do
  for ((round = 1; round <= rounds; round++)); do
    for schedule in gpipe 2bw; do measure $schedule "$mbit" >>"$work/$schedule.$mbit"; done
  done
  column() { cut -d' ' -f"$2" "$work/$1.$mbit" | median; }
  awk -v r="$mbit" -v a="$(column gpipe 1)" -v b="$(column gpipe 2)" -v c="$(column 2bw 1)" -v d="$(column 2bw 2)" \
    'BEGIN {printf "%7d  %17.0f %8.0f %16.0f %8.0f %7.0f%%\n", r, 1000 * a, 1000 * b, 1000 * c, 1000 * d, 100 * (1 - d / b)}'
done
