# A sweep of 60 runs (six of them long) on four nodes, with what a cluster does to it: a throttle, scancel, SIGKILL, a node that goes down, a requeue, a warning before the time
# limit. One retry later all are done, and the numbers are those of the same sweep run here.
PIPELAG=$1
. "$TESTS_SOURCE/integration/slurm/lib.sh"
fail() { echo "FAILED: $*"; "$PIPELAG" status out --runs 2>&1 | tail -n 70; exit 1; }
cluster_up

cat >sweep.json <<'JSON'
{
  "name": "sixty",
  "base": {
    "model": {"type": "mlp", "layers": 1, "hidden": 32, "embedding": 8, "context": 16},
    "data": {"type": "synthetic", "vocab": 32},
    "train": {"steps": 600, "batch_tokens": 64, "val_tokens": 256, "val_every": 200, "checkpoint_every": 100}
  },
  "grid": [
    {"base": {"train.steps": 20000}, "optimizer": ["adamw", "muon"], "delay": [0, 1, 2], "correction": ["none"], "seeds": [9]},
    {"optimizer": ["adamw", "muon"], "optimizer.lr": [1e-3, 2e-3, 4e-3], "delay": [0, 1, 2], "correction": ["none"]}
  ],
  "seeds": [0, 1, 2],
  "slurm": {"time": "10", "max_running": 6, "mem": "200M"}
}
JSON
"$PIPELAG" run sweep.json -q -o here >/dev/null

echo "-- submit"
"$PIPELAG" submit sweep.json -n -o out >dry.txt
grep -q -- '--array=0-59%6' dry.txt || fail "dry run: $(cat dry.txt)"
[ ! -e out ] || fail "a dry run made files"
sample_running running.txt
"$PIPELAG" submit sweep.json -o out >submit.txt
cat submit.txt
job=$(sed -nE 's/.*"job": "([0-9]+)".*/\1/p' out/submissions/1.json)
[ -n "$job" ] || fail "no job id in out/submissions/1.json"
"$PIPELAG" submit sweep.json -o out >again.txt
[ "$(squeue -h -r -t all -o %F | sort -u | wc -l)" = 1 ] || fail "submitted twice: $(cat again.txt)"

running() { squeue -h -r -t running -o %K | grep -qx "$1"; }
run_id() { awk -v t="$1" '$1 == t {print $3}' out/submissions/1.tsv; }
checkpointed() { find "out/runs/$(run_id "$1" | cut -c1-2)/$(run_id "$1")" -name 'step-??????????.ckpt' 2>/dev/null | grep -q .; }

echo "-- scancel one, kill one, warn one, requeue one, take a node down"
for task in 0 1 2 3; do wait_until 30 checkpointed $task; done
scancel "${job}_0"
# The claim of a run says who trains it: host, boot, namespace, process, start time.
kill -KILL "$(cut -d' ' -f4 "out/runs/$(run_id 1 | cut -c1-2)/$(run_id 1)/claim")" || fail "no process of task 1"
scancel --signal=USR1 --batch "${job}_2" 2>/dev/null &  # it asks again and again, and fails when the task has ended by then
scontrol requeue "${job}_3"
node=$(squeue -h -r -t running -o '%K %N' | tail -n 1 | cut -d' ' -f2)
node_down "$node"
sleep 1
node_up "$node"

nothing_left() { ! squeue -h -r -t pending,running,completing -o %i | grep -q .; }
wait_until 200 nothing_left
most=$(sampled_max running.txt)
[ "$most" -le 6 ] || fail "$most ran at once; the limit is 6"
[ "$most" -ge 3 ] || fail "the sampler saw only $most"

echo "-- what status says"
"$PIPELAG" status out --runs >status.txt && fail "status is 0 though a run is lost or failed"
cat status.txt | head -n 20
"$PIPELAG" status out --json >status.json || true
shown() { grep -qE "$(run_id "$1") +$2 " status.txt || fail "task $1 is not shown as $2"; }
shown 0 'cancelled by Slurm'
shown 1 failed
grep -q 'its process ended by signal 9 (Killed)' status.txt || fail "the killed run does not say so"
done_now=$(sed -nE 's/.*"done": ?([0-9]+).*/\1/p' status.json)
[ "$done_now" = 58 ] || fail "done: $(cat status.json)"

echo "-- one retry"
"$PIPELAG" retry out -y >retry.txt 2>&1 || fail "retry: $(cat retry.txt)"
cat retry.txt
wait_until 100 nothing_left
"$PIPELAG" status out >status.txt || fail "after retry: $(cat status.txt)"
grep -qE '60 +done|done +60' status.txt || "$PIPELAG" status out --json | grep -qE '"done": ?60' || fail "after retry: $(cat status.txt)"

echo "-- the same numbers as here"
for where in here out; do "$PIPELAG" analyze $where --csv >$where.csv; done
cmp here.csv out.csv || fail "analyze differs"
for d in here/runs/*/*; do
  for key in final_val_loss final_train_loss '"steps"'; do
    [ "$(grep "$key" "$d/result.json")" = "$(grep "$key" "out/${d#here/}/result.json")" ] || fail "${d#here/}: $key differs"
  done
done
/usr/bin/python3 - <<'PY'
import glob, h5py
attempts = []
for path in sorted(glob.glob("here/runs/*/*/curves.h5")):
    a, b = h5py.File(path), h5py.File("out" + path[4:])
    for name in ("step", "train/loss", "val/loss", "lr", "delay"):
        assert a[name][()].tobytes() == b[name][()].tobytes(), (path, name)
    attempts.append(int(b["attempt"][()].max()))
print("attempts:", sorted(attempts, reverse=True)[:8])
assert max(attempts) >= 2
PY
