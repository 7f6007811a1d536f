# 200 SIGKILLs at random times: the run directory stays readable and the finished run equals the uninterrupted one, bit for bit.
PIPELAG=$1
cat >run.json <<'JSON'
{
  "name": "kill",
  "model": {"type": "mlp", "layers": 1, "hidden": 32, "embedding": 8, "context": 16},
  "data": {"type": "synthetic", "vocab": 32},
  "optimizer": "muon",
  "delay": 2,
  "correction": "ef",
  "train": {"steps": 3000, "batch_tokens": 64, "val_tokens": 64, "val_every": 50, "checkpoint_every": 7}
}
JSON
"$PIPELAG" train run.json -q -o whole >/dev/null
run_of() { echo "$1"/runs/*/*; }
RANDOM=20 last=-1
for kill in $(seq 200); do
  timeout -s KILL "0.0$((RANDOM % 70 + 20))" "$PIPELAG" train run.json -q -o killed >/dev/null 2>err.txt || [ $? = 137 ] || { cat err.txt; exit 1; }
  if [ $((kill % 10)) = 0 ]; then
    "$PIPELAG" status killed --json >status.txt || true
    grep -qE '"(lost|done|pending)":1' status.txt || { echo "kill $kill:"; cat status.txt; exit 1; }
    "$PIPELAG" collect killed -q -o killed.h5
    now=$(/usr/bin/python3 -c 'import h5py, sys; f = h5py.File("killed.h5"); r = list(f["runs"].values()); s = r[0]["step"][()] if r and "step" in r[0] else []; assert (s[1:] == s[:-1] + 1).all() if len(s) else True; print(len(s) - 1)')
    [ "$now" -ge "$last" ] || [ "$now" -ge $((last - 7)) ] || { echo "kill $kill: the curve shrank from $last to $now"; exit 1; }
    last=$now
  fi
done
"$PIPELAG" train run.json -q -o killed >/dev/null
attempts=$(sed -nE 's/.*"attempts": ([0-9]+).*/\1/p' "$(run_of killed)/result.json")
echo "finished after $attempts attempts"
[ "$attempts" -gt 20 ]
/usr/bin/python3 - "$(run_of whole)/curves.h5" "$(run_of killed)/curves.h5" <<'PY'
import h5py, sys
a, b = h5py.File(sys.argv[1]), h5py.File(sys.argv[2])
names = []
a.visititems(lambda n, o: names.append(n) if isinstance(o, h5py.Dataset) else None)
assert "train/loss" in names and len(a["step"]) == 3001, names
for name in names:
    if name not in ("attempt", "seconds"):
        assert a[name][()].tobytes() == b[name][()].tobytes(), name
assert len(set(b["attempt"][()])) > 5
PY
differ=$(for d in whole killed; do grep -E "_loss|\"steps\"" "$(run_of $d)/result.json"; done | sort | uniq -u)
[ -z "$differ" ] || { echo "results differ: $differ"; exit 1; }
