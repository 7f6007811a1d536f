#!/usr/bin/env bash
# What a sweep of short runs loses to everything that is not training: N runs of about 20 ms on two cores. The wall clock tells it on an idle machine; the CPU time
# beside it, in which only waiting for the disk is missing, also on a busy one. Usage: tests/bench/sweep.sh [RUNS] [PIPELAG]. The last line is JSON.
set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-1000}
pipelag=${2:-$PWD/build/release/pipelag}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

sweep() { # NAME STEPS RUNS
  cat >"$work/$1.json" <<JSON
{"name": "$1", "base": {"model": {"type": "mlp", "layers": 1, "hidden": 32, "embedding": 8, "window": 2, "context": 16}, "data": {"type": "synthetic"},
 "optimizer": {"type": "adamw", "lr": 1e-3}, "train": {"steps": $2, "batch_tokens": 64, "val_tokens": 64}}, "seeds": [$(seq -s, 0 $(($3 - 1)))]}
JSON
}

# Steps of a run of 20 ms, by the CPU time of one long run.
sweep probe 20000 1
"$pipelag" run "$work/probe.json" -q -j 1 -o "$work/probe" >/dev/null
steps=$(python3 - "$work/probe" <<'PY'
import glob, json, sys
r = json.load(open(glob.glob(sys.argv[1] + "/runs/*/*/result.json")[0]))
print(max(1, round(0.020 * r["tokens_per_second"] / 64)))
PY
)
sweep short "$steps" "$runs"
echo "$runs runs of $steps steps, load $(cut -d' ' -f1 /proc/loadavg)"
python3 - "$pipelag" "$work" "$steps" "$runs" <<'PY'
import glob, json, os, resource, subprocess, sys, time
pipelag, work, steps, runs = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])

def used(sweep, *more):
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([pipelag, "run", f"{work}/{sweep}.json", "-q", "-y", "-o", f"{work}/{sweep}", *more], check=True, stdout=subprocess.DEVNULL)
    wall, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

wall, cpu = used("short", "-j", "2")
results = [json.load(open(f)) for f in glob.glob(f"{work}/short/runs/*/*/result.json")]
if len(results) != runs or any(r["steps"] != steps for r in results): sys.exit("some runs did not end")
training = sum(r["tokens"] / r["tokens_per_second"] for r in results)
# The CPU time of a step, from one run that is all steps.
_, long = used("probe", "--set", f"train.steps={200 * steps}", "-j", "1")
per_step = long / (200 * steps)
cores = min(2, len(os.sched_getaffinity(0)))
loss, cpu_loss = 1 - training / (cores * wall), 1 - runs * steps * per_step / cpu
print(f"wall {wall:.2f} s on {cores} cores, training {training:.2f} s ({1000 * training / runs:.1f} ms a run): {100 * loss:.1f}% lost")
print(f"CPU {cpu:.2f} s, of steps {runs * steps * per_step:.2f} s: {100 * cpu_loss:.1f}% lost, {1000 * (cpu - runs * steps * per_step) / runs:.2f} ms a run")
print(json.dumps({"runs": runs, "steps": steps, "cores": cores, "wall": wall, "training": training, "loss": loss, "cpu": cpu, "cpu_loss": cpu_loss}))
PY
