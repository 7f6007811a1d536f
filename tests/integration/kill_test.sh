# 200 SIGKILLs at random times: the run directory stays readable, at most the last record is lost, and every run that finishes in the end equals the
# uninterrupted one, bit for bit.
PIPELAG=$1
cat >run.json <<'JSON'
{
  "name": "kill",
  "model": {"type": "mlp", "layers": 1, "hidden": 32, "embedding": 8, "context": 16},
  "data": {"type": "synthetic", "vocab": 32},
  "optimizer": "muon",
  "delay": 2,
  "correction": "ef",
  "train": {"steps": 3000, "batch_tokens": 64, "val_tokens": 64, "val_every": 50, "checkpoint_every": 40}
}
JSON
"$PIPELAG" train run.json -q -o whole >/dev/null
run_of() { echo "$1"/runs/*/*; }

# compare: the finished run has the figures of the uninterrupted one, each step once.
compare() {
  /usr/bin/python3 - "$(run_of whole)/curves.h5" "$(run_of killed)/curves.h5" <<'PY'
import h5py, sys
a, b = h5py.File(sys.argv[1]), h5py.File(sys.argv[2])
names = []
a.visititems(lambda n, o: names.append(n) if isinstance(o, h5py.Dataset) else None)
assert "train/loss" in names and list(a["step"][()]) == list(range(3001)), names
for name in names:
    if name not in ("attempt", "seconds"):
        assert a[name][()].tobytes() == b[name][()].tobytes(), name
assert len(set(b["attempt"][()])) > 1
PY
  differ=$(for d in whole killed; do grep -E '_loss|"steps"' "$(run_of $d)/result.json"; done | sort | uniq -u)
  [ -z "$differ" ] || { echo "results differ: $differ"; exit 1; }
}

# readable: steps without gaps, and nothing older lost than the last record.
readable() {
  [ -f killed/sweep.json ] || return 0 # killed before there was anything
  "$PIPELAG" status killed --json >status.txt || true
  grep -qE '"(lost|done|pending)":1|"runs":0' status.txt || { echo "kill $kills:"; cat status.txt; exit 1; }
  "$PIPELAG" collect killed -q -o killed.h5 2>collect.txt || { cat collect.txt; exit 1; }
}
deep_check() {
  [ -f killed.h5 ] || return 0
  /usr/bin/python3 - <<'PY'
import h5py, math
for run in h5py.File("killed.h5")["runs"].values():
    if "step" in run and len(run["step"]):
        steps, loss = run["step"][()], run["train/loss"][()]
        assert list(steps) == list(range(len(steps))), steps
        assert all(math.isfinite(x) and 0 < x < 10 for x in loss[1:]), loss
PY
}

newest() { (ls killed/runs/*/*/ckpt 2>/dev/null || true) | tail -n 1; }

# A random time to live, longer on a machine that is too busy for a checkpoint in it.
RANDOM=20 kills=0 finished=0 least=20 before=''
while [ $kills -lt 200 ] || [ $finished -lt 3 ]; do
  got=0
  [ "$(newest)" != "$before" ] || least=$((least + 2))
  before=$(newest)
  { timeout --foreground -s KILL "$(printf '0.%03d' $((RANDOM % 70 + least)))" "$PIPELAG" train run.json -q -o killed >/dev/null 2>err.txt; } 2>/dev/null || got=$?
  case $got in
  124 | 137) # timeout gives 124 when it sees the killed process first
    kills=$((kills + 1))
    readable
    [ $((kills % 10)) != 0 ] || deep_check
    ;;
  0)
    compare
    finished=$((finished + 1)) least=20
    rm -r killed
    ;;
  *) echo "exit status $got after $kills kills"; cat err.txt; exit 1 ;;
  esac
done
echo "$kills kills, $finished runs finished and compared"
