# shellcheck shell=bash
# Helpers of the tests that start `mpirun pipelag train`. They set PIPELAG and MPIEXEC, and make run.json.
rank=()
LIMIT=200 # seconds: that nothing hangs is tested, not how long it takes

fail() {
  echo "FAILED: $*"
  exit 1
}
folder() { echo "$1"/runs/*/*; }
state_is() { grep -qF "\"state\": \"$2\"" "$(folder "$1")/result.json" 2>/dev/null; }
# newest DIR: step of the newest checkpoint; -1: none.
newest() {
  local file
  file=$(find "$1" -name 'step-??????????.ckpt' 2>/dev/null | sort | tail -n 1)
  file=${file##*step-}
  [ -n "$file" ] && echo $((10#${file%.ckpt})) || echo -1
}

# start DIR [ARGUMENT OF mpirun...]: `pipelag train run.json -o DIR` on 4 processes (or those of the arguments), in the background; returns when it has a checkpoint
# that was not there before. Then $mpirun and ${rank[0]}, ... are process ids; its words go to DIR.txt.
start() {
  local dir=$1 before p number
  shift
  before=$(newest "$dir")
  [ $# -gt 0 ] || set -- -np 4 "$PIPELAG" train run.json -q -o "$dir"
  timeout -s KILL $LIMIT "$MPIEXEC" "$@" >"$dir.txt" 2>&1 &
  starter=$!
  until [ "$(newest "$dir")" -gt "$before" ]; do
    kill -0 "$starter" 2>/dev/null || fail "$dir: it ended before it had a checkpoint: $(cat "$dir.txt")"
    sleep 0.05
  done
  mpirun=$(pgrep -P $starter)
  for p in $(pgrep -P "$mpirun"); do
    number=$(tr '\0' '\n' <"/proc/$p/environ" | sed -n 's/^OMPI_COMM_WORLD_RANK=//p') 2>/dev/null || continue
    [ -z "$number" ] || rank[number]=$p
  done
}
# ended DIR: waits; the exit status goes to $got.
ended() {
  got=0
  wait $starter || got=$?
  [ $got != 137 ] || ! grep -q . <(pgrep -P $starter) || fail "$1: it hangs"
}
# says DIR COUNT PATTERN: so many lines of pipelag's own match it, and there are no others of its own.
says() {
  [ "$(grep -cE '^(pipelag: |rank [0-9]+, to which)' "$1.txt")" = "$2" ] && [ "$(grep -cE "$3" "$1.txt")" = "$2" ] ||
    fail "$1: not $2 times \"$3\": $(cat "$1.txt")"
}
# same A B: results, curves and the last checkpoints of two finished runs.
same() {
  local file
  diff <(grep -E '_loss|"steps"|"state"|bad_step' "$(folder "$1")/result.json") <(grep -E '_loss|"steps"|"state"|bad_step' "$(folder "$2")/result.json") ||
    fail "results of $1 and $2"
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
