#!/usr/bin/env bash
# 1F1B and PipeDream-2BW over a slow link: two processes in a network namespace whose loopback carries so many Mbit/s, beside what `schedule --plan`
# says for the stages' times as measured without a limit. Usage, as root: tests/bench/link.sh [MBIT...]. Needs iproute2, and tbf in the kernel.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/bench/lib.sh
rates=("$@")
[ $# -gt 0 ] || rates=(10000 1000 400 200 100)
m=4
export OMPI_MCA_mpi_yield_when_idle=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo

measure() { # SCHEDULE MBIT: the measured period in seconds; the JSON stays in $work/measured.json
  rm -rf "$work/run"
  unshare -n bash -euc "ip link set lo up mtu 9000; tc qdisc add dev lo root tbf rate $2mbit burst 64k latency 500ms
    exec mpirun -np 2 --bind-to core '$pipelag' train tests/bench/pipeline.json -q -o '$work/run' \
      --set pipeline.schedule=$1 --set pipeline.microbatches=$m --set pipeline.trace=12" >"$work/out" 2>&1 || { cat "$work/out" >&2; exit 1; }
  "$pipelag" schedule --measured "$work/run" --json >"$work/measured.json"
  number period <"$work/measured.json"
}

measure 2bw 100000 >/dev/null
# Of both stages, in seconds; a message is microbatch x context x d_model floats.
python3 - "$work/measured.json" "$work/costs.json" <<'PY'
import json, sys
stages = json.load(open(sys.argv[1]))["by_stage"]
json.dump({"forward": [s["forward"] for s in stages], "backward": [s["backward"] for s in stages],
           "update": max(s["update"] for s in stages), "message_bytes": 512 * 256 * 4, "latency": 1e-4}, open(sys.argv[2], "w"))
PY
echo " Mbit/s  1f1b ms: measured  planned   2bw ms: measured  planned   (an update of $m microbatches, messages of 512 KiB)"
for mbit in "${rates[@]}"; do
  sed "s/}$/, \"bandwidth\": $((mbit * 125000))}/" "$work/costs.json" >"$work/limited.json"
  line=$(printf '%7d' "$mbit")
  for schedule in 1f1b 2bw; do
    measured=$(measure $schedule "$mbit")
    planned=$("$pipelag" schedule $schedule --plan --stages 2 --microbatches $m --costs "$work/limited.json" --json | number step)
    line+=$(awk -v a="$measured" -v b="$planned" 'BEGIN {printf "  %17.0f %8.0f", 1000 * a, 1000 * b}')
  done
  echo "$line"
done
