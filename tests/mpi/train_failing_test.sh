# A rank of a real pipeline that is killed, stopped, slowed, told to stop, diverging or without a disk: all end, say why once, and the run goes on from its last
# checkpoint to the bits of one process that nothing happened to.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/train_help.sh"
PIPELAG=$1
# config STEPS MORE: a run.
config() {
  cat <<JSON
{
  "name": "failing",
  "model": {"type": "transformer", "layers": 4, "d_model": 16, "heads": 2, "context": 16},
  "data": {"type": "synthetic", "vocab": 64},
  "optimizer": "adamw", "correction": "ef",
  "train": {"steps": $1, "batch_tokens": 128, "val_tokens": 64, "val_every": 100, "checkpoint_every": 20},
  "pipeline": {"stages": 4, "microbatches": 4, "schedule": "2bw", "watchdog": 3}$2
}
JSON
}
config 8000 '' >run.json
"$PIPELAG" train run.json -q -o whole >/dev/null
waits='nothing went on for 3 s \(pipeline.watchdog\); (stage [0-3] waits in "[a-z ]+" of update [0-9]+|it waits for the others)'

echo "-- killed"
start ended
kill -KILL "${rank[2]}"
ended ended
[ $got != 0 ] && grep -q 'rank 2 .* signal 9' ended.txt || fail "exit $got: $(cat ended.txt)"
"$PIPELAG" status ended --json >status.txt || true
grep -q '"lost":1' status.txt || fail "not lost: $(cat status.txt)"

echo "-- stopped"
start ended
kill -STOP "${rank[2]}"
ended ended
[ $got = 1 ] || fail "exit $got"
says ended 1 "^pipelag: rank [013]: $waits"
grep -qE "\"error\": \"rank [013]: nothing went on" "$(folder ended)/result.json" && state_is ended failed || fail "no record"

echo "-- rank 0 stopped"
start ended
kill -STOP "${rank[0]}"
ended ended
[ $got != 0 ] && [ "$(grep -cE "^rank [1-3], to which rank 0 does not listen: rank [1-3]: $waits" ended.txt)" = 1 ] || fail "exit $got: $(cat ended.txt)"

# told WHAT ID SIGNAL: all stop at the same update and checkpoint there.
told() {
  echo "-- $3 to $1"
  kill "-$3" "$2"
  ended ended
  state_is ended stopped && [ "$(newest ended)" = "$(sed -n 's/^  "steps": \(.*\),$/\1/p' "$(folder ended)/result.json")" ] ||
    fail "exit $got: $(cat ended.txt "$(folder ended)/result.json")"
}
start ended
told "rank 1" "${rank[1]}" USR1
[ $got = 75 ] || fail "exit $got: $(cat ended.txt)"
start ended
told "rank 3" "${rank[3]}" TERM
[ $got = 75 ] || fail "exit $got: $(cat ended.txt)"
start ended -np 2 "$PIPELAG" train run.json -q -o ended # another number of processes goes on too
told mpirun "$mpirun" USR1
[ $got = 75 ] || fail "exit $got: $(cat ended.txt)"

echo "-- TERM to mpirun, which gives its processes a second"
start ended
kill -TERM "$mpirun"
ended ended
[ $got != 0 ] || fail "exit $got: $(cat ended.txt)"

echo "-- slowed: it goes on, to the same bits"
start ended
for i in 0 1 2 3 0 1 2 3; do
  if kill -STOP "${rank[i]}" 2>/dev/null; then
    sleep 0.2
    kill -CONT "${rank[i]}"
  fi
done
ended ended
[ $got = 0 ] || fail "exit $got: $(cat ended.txt)"
same whole ended
[ "$(grep -c '"start_step": [1-9]' "$(folder ended)/meta.json")" = 7 ] || fail "attempts: $(grep start_step "$(folder ended)/meta.json")"

# full DIR RANK PATTERN WHOLE: that process may write files of 1 KiB only, as on a full disk; then all may, and it ends like WHOLE.
full() {
  local dir=$1 train=("$PIPELAG" train run.json -q -o "$1") small
  small=(bash -c 'trap "" XFSZ; ulimit -f 1; exec "$@"' small)
  echo "-- rank $2 cannot write"
  got=0
  timeout -s KILL $LIMIT "$MPIEXEC" -np "$2" "${train[@]}" : -np 1 "${small[@]}" "${train[@]}" : -np $((3 - $2)) "${train[@]}" >"$dir.txt" 2>&1 || got=$?
  [ $got = 1 ] || fail "exit $got: $(cat "$dir.txt")"
  says "$dir" 1 "$3"
  state_is "$dir" failed || fail "not failed"
  start "$dir"
  ended "$dir"
  [ $got = 0 ] || fail "exit $got: $(cat "$dir.txt")"
  same "$4" "$dir"
}
config 60 '' >run.json
"$PIPELAG" train run.json -q -o short >/dev/null
full full 2 "^pipelag: rank 2: .*/step-0000000020.stage-002.ckpt.*: writing failed: File too large" short

echo "-- diverging: at the same step, and that is no failure"
config 60 '' | sed 's/"optimizer": "adamw"/"optimizer": "sgd", "optimizer.lr": 1e6/' >run.json
"$PIPELAG" train run.json -q -o diverged1 >/dev/null
got=0
timeout -s KILL $LIMIT "$MPIEXEC" -np 4 "$PIPELAG" train run.json -q -o diverged4 >diverged4.txt 2>&1 || got=$?
[ $got = 0 ] && state_is diverged4 diverged || fail "exit $got: $(cat diverged4.txt)"
grep -q '"first_bad_step": [1-9]' "$(folder diverged4)/result.json" || fail "it did not diverge as it should: $(cat "$(folder diverged4)/result.json")"
same diverged1 diverged4
