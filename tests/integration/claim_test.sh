# Two copies of one run never write the same directory: with answers that get lost, locks that do not work, reads that lag behind, two hosts, and an owner that
# was stopped for too long.
PIPELAG=$1
fail() {
  echo "FAILED: $*"
  exit 1
}
gcc -O1 -Wall -Wextra -Werror -shared -fPIC -o shim.so "$TESTS_SOURCE/integration/claim_shim.c" -ldl
# Sanitizers want to be loaded first, but the shim defines nothing that they need.
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0
shim() { env LD_PRELOAD="$PWD/shim.so" SHIM_LOG="$PWD/shim.log" SHIM_STALE_NAME=/claim "$@"; }
lies() { [ "$(tr -cd "$1" <shim.log | wc -c)" -gt 0 ] || fail "the shim told no lie of kind $1"; }

# sweep STEPS SEEDS: a small sweep.
sweep() {
  cat >sweep.json <<JSON
{
  "name": "claim",
  "base": {
    "model": {"type": "mlp", "layers": 1, "hidden": 32, "embedding": 8, "context": 16},
    "data": {"type": "synthetic", "vocab": 32},
    "optimizer": "muon", "delay": 2, "correction": "ef",
    "train": {"steps": $1, "batch_tokens": 64, "val_tokens": 64, "val_every": 50, "checkpoint_every": 40}
  },
  "seeds": $2
}
JSON
}
figures() { cat "$1"/runs/*/*/result.json | grep -E '_loss|"steps"|"state"' | sort; }
attempts() { grep -h '"attempt":' "$1"/runs/*/*/meta.json | tr -dc '0-9\n' | sort | uniq -c | tr -s ' ' | paste -sd,; }
whole() { # DIR: every run as in the untouched sweep
  [ "$(figures "$1")" = "$(figures plain)" ] || fail "$1: other figures than undisturbed: $(diff <(figures "$1") <(figures plain))"
}
# begin_and_kill DIR: all runs have begun and have a checkpoint each; then all processes are gone at once.
begin_and_kill() {
  local pool
  "$PIPELAG" run sweep.json -q -j 6 -o "$1" >/dev/null 2>&1 &
  pool=$!
  for _ in $(seq 300); do
    [ "$(find "$1" -name 'step-??????????.ckpt' 2>/dev/null | sed 's|/ckpt/.*||' | sort -u | wc -l)" -lt 6 ] || break
    sleep 0.02
  done
  kill -STOP $pool
  # shellcheck disable=SC2046
  kill -KILL $(pgrep -P $pool) $pool
  { wait $pool; } 2>/dev/null || true
  ended=$(find "$1" -name result.json | wc -l) # before it came to that, on a busy machine
  [ "$ended" -lt 6 ] || fail "$1: nothing was left to kill"
}

sweep 600 "[0, 1, 2, 3, 4, 5]"
"$PIPELAG" run sweep.json -q -o plain >/dev/null

echo "-- many takers of one claim, under every lie"
races=$(dirname "$PIPELAG")/tests/claim_test
if [ -x "$races" ]; then
  for lie in SHIM_LINK=1 SHIM_STALE=2; do
    shim PL_RACES_ONLY=1 $lie "$races" >races.txt 2>&1 || fail "$lie: $(cat races.txt)"
  done
  lies L && lies S
fi

echo "-- link(2) fails though it worked; locks do not work"
rm -f shim.log
shim SHIM_LINK=1 SHIM_LOCKS=1 "$PIPELAG" run sweep.json -q -o lost_answers >/dev/null
whole lost_answers
lies L
[ "$(attempts lost_answers)" = " 6 1" ] || fail "attempts: $(attempts lost_answers)"

echo "-- two take over the same dead runs, and see claims as they were up to 2 s before"
begin_and_kill stale
rm -f shim.log
for i in 1 2; do shim SHIM_STALE=2 "$PIPELAG" run sweep.json -j 3 -o stale >stale.$i.txt 2>&1 & done
wait
lies S
"$PIPELAG" run sweep.json -q -o stale >/dev/null # what each left to the other
whole stale
[ "$(attempts stale)" = " 6 1, $((6 - ended)) 2" ] || fail "attempts: $(attempts stale)"

echo "-- two hosts, which know nothing of each other's processes"
if unshare -u true 2>/dev/null; then
  for host in a b; do
    unshare -u bash -c 'hostname "$1" && exec "$2" run sweep.json -j 3 -o hosts' - "host-$host" "$PIPELAG" >hosts.$host.txt 2>&1 &
  done
  wait
  whole hosts
  [ "$(attempts hosts)" = " 6 1" ] || fail "attempts: $(attempts hosts)"
  grep -q 'by another process' hosts.?.txt || grep -qE '[1-6] run by others|, [0-5] to run' hosts.?.txt ||
    fail "they did not meet: $(cat hosts.?.txt)"
  begin_and_kill gone
  unshare -u bash -c 'hostname host-b && exec "$1" run sweep.json -o gone' - "$PIPELAG" >gone.txt 2>&1
  grep -q "$((6 - ended)) run by others" gone.txt || fail "a process of another host was taken for dead: $(cat gone.txt)"
fi

echo "-- an owner that was stopped for too long"
sweep 6000 "[0, 1]"
rm -rf plain
"$PIPELAG" run sweep.json -q -o plain >/dev/null
export PIPELAG_CLAIM_SECONDS=2
"$PIPELAG" run sweep.json -q -j 2 -o stopped >/dev/null 2>&1 &
until compgen -G 'stopped/runs/*/*/journal' >/dev/null; do sleep 0.02; done
kill -TERM $!
wait $! || true
mkdir stopped/submissions
echo '{"token": "pl-by-hand", "sent": "yes", "job": "1", "requeue": "never", "data_root": ".", "program": "", "binary_hash": ""}' >stopped/submissions/1.json
{
  printf 'task\tindex\tid\n'
  sed -n '2,$s/^\([0-9]*\)\t\([0-9a-f]*\)\t.*/\1\t\1\t\2/p' stopped/runs.tsv
} >stopped/submissions/1.tsv
run0=$(sed -n 2p stopped/runs.tsv | cut -f2)
folder=stopped/runs/${run0:0:2}/$run0
# run_by NAME: a task that trains run 0 in the background; its process is in NAME.pid, that of the run in NAME.run.
run_by() {
  "$PIPELAG" task stopped 1 0 >"$1.txt" 2>&1 &
  echo $! >"$1.pid"
}
log_of() { ls -t "$folder"/log.*.txt | head -n 1; }
count_logs() { find "$folder" -name 'log.*.txt' | wc -l; }
before=$(count_logs)
run_by owner
for _ in $(seq 100); do [ "$(count_logs)" = $before ] && sleep 0.02 || break; done
sleep 0.2
run=$(pgrep -P "$(cat owner.pid)")
kill -STOP "$run"
journal=$(stat -c %s "$folder/journal")
run_by taker
for _ in $(seq 400); do [ "$(count_logs)" = $((before + 1)) ] && sleep 0.02 || break; done
[ "$(count_logs)" = $((before + 2)) ] || fail "nobody took it over: $(cat taker.txt)"
kill -CONT "$run"
owner=0 taker=0
wait "$(cat owner.pid)" || owner=$?
wait "$(cat taker.pid)" || taker=$?
[ $owner = 1 ] && grep -q 'another process took the run over' owner.txt || fail "the owner went on ($owner): $(cat owner.txt)"
[ $taker = 0 ] && grep -q '1 done' taker.txt || fail "the taker ($taker): $(cat taker.txt)"
grep -q '"state": "done"' "$folder/result.json" || fail "result: $(cat "$folder/result.json")"
[ "$(stat -c %s "$folder/journal")" -gt "$journal" ] || fail "journal"
unset PIPELAG_CLAIM_SECONDS
"$PIPELAG" run sweep.json -q -o stopped >/dev/null
whole stopped
/usr/bin/python3 - plain stopped "$run0" <<'PY'
import h5py, sys
a, b = (h5py.File(f"{d}/runs/{sys.argv[3][:2]}/{sys.argv[3]}/curves.h5") for d in sys.argv[1:3])
names = []
a.visititems(lambda n, o: names.append(n) if isinstance(o, h5py.Dataset) else None)
assert "train/loss" in names and list(b["step"][()]) == list(range(6001))
for name in names:
    if name not in ("attempt", "seconds"):
        assert a[name][()].tobytes() == b[name][()].tobytes(), name
PY
[ -z "$(find stopped -name 'claim*')" ] || fail "left over: $(find stopped -name 'claim*')"
