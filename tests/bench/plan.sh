#!/usr/bin/env bash
# `schedule --plan` against real runs of four stages: four processes that have 44% of a core each, by cgroups, so that two cores are four slower ones. The plan gets the stages' times
# of the 1f1b run and says the step of every schedule. Usage, as root: tests/bench/plan.sh [ROUNDS]. Needs the cpu controller of cgroups v1.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/bench/lib.sh
rounds=${1:-3}
groups=/sys/fs/cgroup/cpu
finish() {
  rm -rf "$work"
  rmdir "$groups"/pipelag-bench-? 2>/dev/null || true
}
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none

for rank in 0 1 2 3; do
  mkdir -p "$groups/pipelag-bench-$rank"
  echo 5000 >"$groups/pipelag-bench-$rank/cpu.cfs_period_us"
  echo 2200 >"$groups/pipelag-bench-$rank/cpu.cfs_quota_us"
done

measure() { # SCHEDULE MICROBATCHES
  rm -rf "$work/run"
  # shellcheck disable=SC2016
  mpirun -np 4 bash -c 'echo $$ >"$0-$OMPI_COMM_WORLD_RANK/tasks" && exec "$@"' "$groups/pipelag-bench" "$pipelag" train tests/bench/pipeline.json -q -o "$work/run" \
    --set pipeline.stages=4 --set "pipeline.microbatches=$2" --set "train.batch_tokens=$((512 * $2))" --set "pipeline.schedule=$1" --set pipeline.trace=12 >/dev/null
  "$pipelag" schedule --measured "$work/run" --json >"$work/measured.json"
  number period <"$work/measured.json"
}

measure 1f1b 4 >/dev/null
python3 - "$work/measured.json" "$work/costs.json" <<'PY'
import json, sys
stages = json.load(open(sys.argv[1]))["by_stage"]
json.dump({"forward": [s["forward"] for s in stages], "backward": [s["backward"] for s in stages],
           "update": max(s["update"] for s in stages), "latency": 2e-4}, open(sys.argv[2], "w"))
PY
echo " schedule   m   step ms: measured  planned   (four stages, medians of $rounds rounds)"
for schedule in gpipe 1f1b 2bw; do
  for m in 4 8; do
    for ((round = 1; round <= rounds; round++)); do measure $schedule $m >>"$work/$schedule.$m"; done
    planned=$("$pipelag" schedule $schedule --plan --stages 4 --microbatches $m --costs "$work/costs.json" --json | number step)
    awk -v s=$schedule -v m=$m -v a="$(median <"$work/$schedule.$m")" -v b="$planned" 'BEGIN {printf " %-8s  %2d  %17.0f %8.0f  %+.1f%%\n", s, m, 1000 * a, 1000 * b, 100 * (b / a - 1)}'
  done
done
