# What the stages of a run spend their time on: the journal of times over a kill and a resume, the traces, and
# `pipelag schedule --measured` and `analyze` on them.
PIPELAG=$1
fail() {
  echo "FAILED: $*"
  exit 1
}
# expect STATUS PATTERN COMMAND...: the exit status, and a line of what is printed.
expect() {
  local status=$1 pattern=$2 got=0
  shift 2
  "$@" >said.txt 2>&1 || got=$?
  [ $got = "$status" ] || fail "$*: exit $got, expected $status: $(cat said.txt)"
  grep -qE -- "$pattern" said.txt || fail "$*: no $pattern in: $(cat said.txt)"
}
run_folder() { find "$1/runs" -mindepth 2 -maxdepth 2; }
steps=2000
cat >sweep.json <<JSON
{
  "name": "small",
  "base": {
    "model": {"type": "mlp", "layers": 4, "hidden": 32, "embedding": 8},
    "data": {"type": "synthetic"},
    "optimizer": "adamw",
    "train": {"steps": 12, "batch_tokens": 512, "val_tokens": 1024, "val_every": 3},
    "pipeline": {"stages": 2, "microbatches": 4}
  },
  "grid": {"pipeline.schedule": ["1f1b", "2bw"]}
}
JSON

# Several runs with traces, one of them without.
"$PIPELAG" run sweep.json -q -o d >/dev/null
expect 3 'its runs have no traces; .*pipeline.trace' "$PIPELAG" schedule --measured d
expect 3 'run [0-9a-f]{16} has no traces' "$PIPELAG" schedule --measured d 0
"$PIPELAG" run sweep.json -q -o t --set pipeline.trace=5 >/dev/null
expect 2 '2 runs have traces; allowed: to name one, e.g. 0' "$PIPELAG" schedule --measured t
expect 3 'run "7" matches 0 runs' "$PIPELAG" schedule --measured t 7
expect 2 'allowed: a run, --updates, --json, --svg' "$PIPELAG" schedule --measured t 0 --stages 2
expect 2 'no result directory' "$PIPELAG" schedule --measured nowhere
for run in 0 1; do
  expect 0 '^measured, updates 1 to 3$' "$PIPELAG" schedule --measured t $run
  [ "$(grep -c '^stage [01] ' said.txt)" = 4 ] || fail "not two grids of two stages: $(cat said.txt)"
  grep -q '^ideal: ' said.txt && grep -q '^bubble ' said.txt && grep -q '^period ' said.txt || fail "$(cat said.txt)"
  "$PIPELAG" schedule --measured t $run --json --svg grid.svg >figures.json
  grep -c '>stage 0</text>' grid.svg | grep -qx 2 || fail "grid.svg has not two grids"
  python3 - <<'PY'
import json
f = json.load(open("figures.json"))
assert (f["first_update"], f["last_update"], f["stages"], f["microbatches"]) == (0, 4, 2, 4), f
for kind in "measured", "ideal":
    assert f[kind]["period"] > 0 and f[kind]["bubble"] < 1, f
assert all(s["forward"] > 0 and s["backward"] > 0 for s in f["by_stage"]) and len(f["by_stage"]) == 2, f
PY
done

# Another schedule's trace, a damaged one.
folder=$(run_folder t | head -1)
sed -i 's/^1\tforward\t2\t/1\tforward\t3\t/' "$folder/trace.1.tsv"
expect 2 'the trace of stage 1 is not one of schedule' "$PIPELAG" schedule --measured t "$(basename "$folder")"
echo >>"$folder/trace.1.tsv"
expect 2 'trace.1.tsv: line [0-9]+ is no instruction' "$PIPELAG" schedule --measured t "$(basename "$folder")"

# Over two processes. One process takes the stages in turn: what one of them waits says nothing, and is not kept.
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
if ! command -v mpirun >/dev/null; then
  echo "no mpirun: the times of stages were not looked at"
  exit 0
fi
[ ! -e "$(run_folder d | head -1)/times" ] || fail "a run in one process has times"
sed 's/  "grid".*//; s/^  },$/  }/' sweep.json >one.json
for schedule in 1f1b 2bw; do
  mpirun -np 2 "$PIPELAG" train one.json -q -o "over-$schedule" --set pipeline.schedule=$schedule >/dev/null
done
expect 0 'What the stages spent their time on' "$PIPELAG" analyze over-1f1b over-2bw
"$PIPELAG" analyze over-1f1b over-2bw --table speed --csv >speed.csv
python3 - <<'PY'
import csv
rows = list(csv.DictReader(open("speed.csv")))
assert [r["delay"] for r in rows] == ["0 1f1b", "1 2bw"], rows
for r in rows:
    assert r["runs"] == "1" and 0 < float(r["bubble"]) < 1 and float(r["tokens_per_second"]) > 0, r
    assert abs(float(r["seconds_per_update"]) * float(r["tokens_per_second"]) / 512 - 1) < 1e-4, r
assert rows[0]["gain"] == "", rows
PY

# One stage has no times.
"$PIPELAG" run sweep.json -q -o one --set pipeline.stages=1 --set pipeline.schedule=lagged >/dev/null
[ ! -e "$(run_folder one)/times" ] || fail "a run with one stage has times"

# Its processes killed while it runs, and resumed: every step once.
cat >long.json <<JSON
{
  "model": {"type": "mlp", "layers": 4, "hidden": 32, "embedding": 8}, "data": {"type": "synthetic"},
  "optimizer": "adamw",
  "train": {"steps": $steps, "batch_tokens": 256, "val_tokens": 1024, "checkpoint_every": 50, "log_every": 2},
  "pipeline": {"stages": 2, "microbatches": 2, "schedule": "2bw"}
}
JSON
mpirun -np 2 "$PIPELAG" train long.json -q -o k >/dev/null 2>&1 &
starter=$!
trap 'kill $starter 2>/dev/null || true' EXIT
for _ in $(seq 3000); do
  [ ! -s "$(run_folder k 2>/dev/null)/times" ] || [ "$(stat -c %s "$(run_folder k)/times")" -lt 20000 ] || break
  kill -0 $starter 2>/dev/null || break
  sleep 0.01
done
kill -KILL $(pgrep -P $starter) 2>/dev/null || true
wait $starter 2>/dev/null || true
mpirun -np 2 "$PIPELAG" train long.json -q -o k >/dev/null
"$PIPELAG" collect k -o all.h5 -q >/dev/null
if ! /usr/bin/python3 -c 'import h5py' 2>/dev/null; then
  echo "no h5py for /usr/bin/python3: the times were not read back"
  exit 0
fi
/usr/bin/python3 - "$steps" "$(run_folder k)/curves.h5" all.h5 <<'PY'
import h5py, numpy as np, sys
steps = int(sys.argv[1])
one, packed = h5py.File(sys.argv[2], "r"), h5py.File(sys.argv[3], "r")
f = packed["runs"][list(packed["runs"])[0]]
for g in one, f:
    s = g["stages"]
    assert (s["step"][:] == np.arange(2, steps + 1, 2)).all(), s["step"][:]
    times = [s[n][:] for n in ("busy", "communication", "idle")]
    assert all(t.shape == (steps // 2, 2) and (t >= 0).all() for t in times)
    # The bubble of a point is what its record says.
    points = {step: b for step, b in zip(g["step"][:], g["bubble"][:])}
    bubble = 1 - times[0].sum(1) / sum(t.sum(1) for t in times)
    logged = np.array([points[step] for step in s["step"][:]])
    assert np.allclose(bubble, logged, rtol=0, atol=1e-9), abs(bubble - logged).max()
assert set(one["stages/attempt"][:]) <= {1, 2}
print("attempts of the records:", np.unique(one["stages/attempt"][:], return_counts=True))
PY
