# How Slurm ends a job that did nothing wrong: preempted and requeued, preempted and cancelled, out of memory, out of time. Each is called by its name, and
# one retry later every run is as if nothing had been.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/lib.sh"
PIPELAG=$1
fail() {
  echo "FAILED: $*"
  "$PIPELAG" status out --runs 2>&1 | tail -n 20
  exit 1
}
# With memory limits by cgroups where they can be had: Slurm then says OUT_OF_MEMORY itself. Otherwise the job's output says it.
if ! (CLUSTER_NODES=1 CLUSTER_CGROUP=1 cluster_up) >cgroup.log 2>&1; then
  echo "-- no memory limits by cgroups here: $(tail -n 1 cgroup.log)"
  CLUSTER_CGROUP=0
fi
CLUSTER_NODES=2 CLUSTER_CGROUP=${CLUSTER_CGROUP:-1} cluster_up

# Runs 0 and 1 are preempted, 2 runs out of time, 3 out of memory.
cat >sweep.json <<JSON
{
  "name": "ends",
  "base": {
    "model": {"type": "mlp", "layers": 1, "hidden": 32, "embedding": 8, "context": 16},
    "data": {"type": "synthetic", "vocab": 32},
    "optimizer": "sgd", "delay": 1,
    "train": {"steps": 20000, "batch_tokens": 64, "val_tokens": 64, "val_every": 1000, "checkpoint_every": 100}
  },
  "grid": [{"seeds": [0, 1, 2]}, {"model.hidden": [4096], "model.embedding": [1024], "train.steps": [4], "seeds": [3]}],
  "slurm": {"setup": ["[ -e $PWD/fast ] || export LD_PRELOAD=$PWD/shim.so SHIM_SLOW=0.2"], "time": "10", "mem": "200M", "signal_lead": 0, "rules": [{"if": {"seed": 0}, "partition": "low"}, {"if": {"seed": 1}, "partition": "scrap"}]}
}
JSON
"$PIPELAG" run sweep.json -q -j 2 -o here >/dev/null

folder_of() { # RUN
  local id
  id=$(sed -n "$(($1 + 2))p" out/runs.tsv | cut -f2)
  echo "out/runs/${id:0:2}/$id"
}
checkpointed() { [ -n "$(find "$(folder_of "$1")" -name 'step-??????????.ckpt' 2>/dev/null)" ]; }
# shown RUN STATE: whether status shows the run so.
shown() { # status fails when a run has failed
  "$PIPELAG" status out --runs >status.txt 2>&1 || true
  grep "$(basename "$(folder_of "$1")")" status.txt | grep -F "$2" >/dev/null
}
nothing_left() { ! squeue -h -r -t pending,running,completing -o %i | grep -q .; }
job_of() { squeue -h -r -t running -o '%i %P' | awk -v p="$1" '$2 == p {print $1}'; }

echo "-- submit; a job of a higher partition takes both nodes"
# At first the shim makes checkpoints slow, so that no run is done before its turn comes.
gcc -O1 -shared -fPIC -o shim.so "$TESTS_SOURCE/integration/claim_shim.c" -ldl
"$PIPELAG" submit sweep.json -o out >submit.txt || fail "$(cat submit.txt)"
for run in 0 1 2; do wait_until 60 checkpointed $run; done
low=$(job_of low) scrap=$(job_of scrap) plain=$(squeue -h -r -t running -o '%i %P' | awk '$2 == "debug" {print $1}')
wait_until 40 shown 3 "out of memory"

echo "-- out of time"
scontrol update JobId="$plain" EndTime=now+3seconds
wait_until 100 job_is "$plain" TIMEOUT
shown 2 timeout || fail "not shown as timeout"

echo "-- preempted"
high=$(sbatch --parsable -o /dev/null -N2 --exclusive --wrap 'sleep 2')
wait_until 30 job_is "$high" RUNNING
wait_until 20 job_is "$scrap" PREEMPTED
shown 1 preempted || fail "not shown as preempted"
touch fast
wait_until 60 job_is "$low" RUNNING
scontrol -o show job "$low" | grep -q ' Restarts=1 ' || fail "$(scontrol -o show job "$low")"
scancel "$high"
wait_until 120 nothing_left
"$PIPELAG" status out --runs >status.txt && fail "status is 0 though runs have no result"
cat status.txt
shown 0 done || fail "the requeued run is not done"

echo "-- one retry"
"$PIPELAG" retry out --timeout -n | tee dry.txt
grep -q "$(basename "$(folder_of 2)")" dry.txt && ! grep -q "$(basename "$(folder_of 3)")" dry.txt || fail "--timeout: $(cat dry.txt)"
"$PIPELAG" retry out -y --set slurm.mem=2000M >retry.txt || fail "$(cat retry.txt)"
wait_until 120 nothing_left
"$PIPELAG" status out >status.txt || fail "after retry: $(cat status.txt)"
for d in here/runs/*/*; do
  for key in final_val_loss final_train_loss '"steps"' '"state"'; do
    [ "$(grep "$key" "$d/result.json")" = "$(grep "$key" "out/${d#here/}/result.json")" ] || fail "${d#here/}: $key differs"
  done
done
grep -l '"start_step": [1-9]' out/runs/*/*/meta.json | wc -l | grep -qx 3 || fail "$(grep start_step out/runs/*/*/meta.json)"
