# Runs of several processes over the nodes of a real cluster: the bits of one process, also after Slurm's warning and after one process was killed, which ends the
# run at once and is in its record; srun and mpirun; what cannot be started is refused before anything is sent.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/lib.sh"
PIPELAG=$1
fail() {
  echo "FAILED: $*"
  tail -n 50 out*/submissions/*.txt 2>/dev/null || true
  exit 1
}
# sweep STEPS SCHEDULE SLURM: a sweep of one run.
sweep() {
  cat <<JSON
{
  "name": "pipeline",
  "base": {
    "model": {"type": "transformer", "layers": 4, "d_model": 16, "heads": 2, "context": 16},
    "data": {"type": "synthetic", "vocab": 64},
    "optimizer": "adamw", "correction": "ef",
    "train": {"steps": $1, "batch_tokens": 128, "val_tokens": 64, "val_every": 100, "checkpoint_every": 20},
    "pipeline": {"stages": 4, "microbatches": 4, $2}
  },
  "slurm": {"env": {$environment}, $3}
}
JSON
}
schedule='"schedule": "2bw"' environment=''

echo "-- refused, in one sentence that names the run, and nothing is there"
# refused WORDS: what bad.json is refused with.
refused() {
  local got=0
  "$PIPELAG" submit bad.json -o bad >said.txt 2>&1 || got=$?
  [ $got = 2 ] && [ "$(wc -l <said.txt)" = 1 ] && grep -qF "bad.json: run 0: slurm.tasks: $1" said.txt || fail "exit $got: $(cat said.txt)"
  [ ! -e bad ] || fail "a directory was made: $1"
}
sweep 1500 "$schedule" '"tasks": 5' >bad.json
refused '5 processes for a pipeline of 4 stages; allowed: 1 to 4'
sweep 1500 "$schedule, \"replicas\": 2" '"tasks": 3' >bad.json
refused '3 processes for 2 replicas of a pipeline of 4 stages; allowed: 1, and 2 times 1 to 4'
sweep 1500 '"schedule": "wpipe"' '"tasks": 2' >bad.json
sed -i 's/"steps"/"clip": 0, "steps"/' bad.json
refused 'pipeline.schedule: wpipe simulates its delay in one process, but there are 2; allowed over several: the other schedules'

export CLUSTER_CONF=KillOnBadExit=0 # the default of Slurm, with which a step waits for ever for a process that died
cluster_up
# Nothing of Open MPI's settings goes into a job by itself.
environment=$(env | sed -nE 's/^(OMPI_[A-Za-z_]+)=(.*)/"\1": "\2"/p' | paste -sd,)
folder() { echo "$1"/runs/*/*; }
says() { grep -qF "$2" "$1/submissions/$3.0.txt"; }
state_is() { grep -qF "\"state\": \"$2\"" "$(folder "$1")/result.json" 2>/dev/null; }
step_of() { # of the newest checkpoint
  local file
  file=$(find "$(folder "$1")/ckpt" -name 'step-??????????.ckpt' 2>/dev/null | sort | tail -n 1)
  file=${file##*step-}
  echo $((10#0${file%.ckpt}))
}
beyond() { [ "$(step_of "$1")" -gt "$2" ]; }
# process_of DIR RANK: its id.
process_of() {
  local p
  for p in $(pgrep -x pipelag); do
    if grep -qzxF "PMIX_RANK=$2" "/proc/$p/environ" && grep -qzxF "$PWD/$1" "/proc/$p/cmdline"; then echo "$p"; fi 2>/dev/null
  done
}
# same A B: figures, curves and the last checkpoints of two finished runs.
same() {
  diff <(grep -E '_loss|"steps"|"state"' "$(folder "$1")/result.json") <(grep -E '_loss|"steps"|"state"' "$(folder "$2")/result.json") || fail "results of $1 and $2"
  /usr/bin/python3 - "$(folder "$1")/curves.h5" "$(folder "$2")/curves.h5" <<'PY' || fail "curves of $1 and $2"
import h5py, sys
a, b = h5py.File(sys.argv[1]), h5py.File(sys.argv[2])
names = []
a.visititems(lambda n, o: names.append(n) if isinstance(o, h5py.Dataset) else None)
assert "train/loss" in names and list(a["step"][()]) == list(range(int(a["step"][-1]) + 1)), names
for name in names:
    if name not in ("attempt", "seconds", "bubble") and not name.startswith("stage"):
        assert a[name][()].tobytes() == b[name][()].tobytes(), name
PY
  for file in "$(folder "$1")"/ckpt/*.stage-*; do [ ! -e "$file" ] || cmp "$file" "$(folder "$2")/ckpt/${file##*/}" || fail "checkpoints of $1 and $2"; done
}
job_of() { grep -oE '"job": "[0-9]+"' "$1/submissions/$2.json" | grep -oE '[0-9]+'; }

echo "-- over 4 nodes: Slurm's warning, a requeue, a killed process, a second submission"
sweep 800 "$schedule" '"tasks": 4, "nodes": 4' >sweep.json
"$PIPELAG" submit sweep.json -q -o out >/dev/null
job=$(job_of out 1)
wait_until 60 beyond out 20
[ "$(squeue -h -j "$job" -o %N)" = 'n[1-4]' ] || fail "nodes: $(squeue -h -o %N)"
scancel --signal=USR1 --batch "${job}_0"
"$PIPELAG" run sweep.json -q -o plain >/dev/null &
plain=$!
wait_until 30 says out "requeueing task ${job}_0" 1
state_is out stopped || fail "not stopped"
stopped=$(step_of out)
[ $((stopped % 20)) != 0 ] || echo "(stopped at a step that has a checkpoint anyway)"
wait_until 60 beyond out "$stopped"
kill -KILL "$(process_of out 2)"
wait_until 60 job_is "${job}_0" FAILED
state_is out failed || fail "no record: $(cat "$(folder out)/result.json")"
grep -qE '"error": "srun ended with exit status 137 after step [0-9]+: n3: task 2: Killed"' "$(folder out)/result.json" || fail "the record: $(cat "$(folder out)/result.json")"
"$PIPELAG" status out --runs >status.txt || true
grep -q 'n3: task 2: Killed' status.txt || fail "status: $(cat status.txt)"
"$PIPELAG" submit out -q >/dev/null
wait_until 120 state_is out done
wait $plain
same plain out
[ "$(grep -c '"attempt":' "$(folder out)/meta.json")" = 3 ] && ! grep -q '"start_step": 0,' <(grep '"start_step"' "$(folder out)/meta.json" | tail -n 2) ||
  fail "attempts: $(grep start_step "$(folder out)/meta.json")"

echo "-- with mpirun, several stages in a process"
sweep 100 "$schedule" '"tasks": 2, "nodes": 2, "mpi": "mpirun"' >sweep.json
"$PIPELAG" submit sweep.json -q -o out2 >/dev/null
"$PIPELAG" run sweep.json -q -o plain2 >/dev/null
wait_until 60 state_is out2 done
same plain2 out2

echo "-- what the launcher itself refuses is tried again and in the record"
own=$environment environment=''
sweep 100 "$schedule" '"tasks": 2, "mpi": "mpirun"' >sweep.json
environment=$own
"$PIPELAG" submit sweep.json -q -o out4 >/dev/null
wait_until 60 state_is out4 failed
grep -q '"error": "mpirun ended with exit status 1 after step 0: mpirun has detected an attempt to run as root' "$(folder out4)/result.json" ||
  fail "the record: $(cat "$(folder out4)/result.json")"
[ "$(grep -c 'it had not begun and is started again' out4/submissions/1.0.txt)" = 2 ] || fail "not started again"
! says out 'is started again' 1 || echo "(a start of Open MPI failed)"

echo "-- scancel: no requeue, resumable"
sweep 100000 "$schedule" '"tasks": 4, "nodes": 2' >sweep.json
"$PIPELAG" submit sweep.json -q -o out3 >/dev/null
job=$(job_of out3 1)
wait_until 60 beyond out3 0
scancel "${job}_0"
wait_until 30 job_is "${job}_0" CANCELLED
"$PIPELAG" status out3 --runs >status.txt || true
grep -qE 'cancelled by Slurm|stopped' status.txt || fail "scancel: $(cat status.txt)"
! says out3 requeueing 1 || fail "requeued"
