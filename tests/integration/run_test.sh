# The local runner: finishing, repeating, extending, failing, stopping, two at once, and what it prints.
PIPELAG=$1
fail() { echo "FAILED: $*"; exit 1; }
# says PATTERN COMMAND...: the command succeeds and its output holds the pattern.
says() {
  local pattern=$1
  shift
  "$@" >said.txt 2>said.err || fail "$*: exit $?: $(cat said.err)"
  grep -qE "$pattern" said.txt || fail "$*: no $pattern in: $(cat said.txt)"
}
states() { "$PIPELAG" status "$1" --json || true; }
expect_state() { states "$1" >said.txt; grep -q "\"$2\":$3[,}]" said.txt || fail "$1: expected $3 $2: $(cat said.txt)"; }
cat >sweep.json <<'JSON'
{
  "name": "small",
  "base": {
    "model": {"type": "quadratic", "dim": 64, "noise": 0.1},
    "optimizer": {"type": "sgd", "lr": 0.1},
    "train": {"steps": 200, "batch_tokens": 1, "val_tokens": 1, "weight_decay": 0}
  },
  "grid": {"delay": [0, 1], "optimizer.lr": [0.05, 0.1]},
  "seeds": [0, 1]
}
JSON

echo "-- dry run changes nothing"
says '^8 runs' "$PIPELAG" run sweep.json -n -o out
[ ! -e out ] || fail "a dry run made files"

echo "-- first run, then again: nothing to do"
"$PIPELAG" run sweep.json -o out >first.txt 2>progress.txt
grep -q '8 done, 0 diverged, 0 failed' first.txt || fail "first run: $(cat first.txt)"
! grep -q $'\r' progress.txt || fail "a bar in a file"
[ "$(grep -c '^run .* done, val loss' progress.txt)" = 8 ] || fail "plain lines: $(cat progress.txt)"
find out -name result.json -newer first.txt | grep -q . && fail "files are written after the end"
touch mark && sleep 0.02
"$PIPELAG" run sweep.json -o out >again.txt 2>&1
grep -q '8 already finished, 0 to run' again.txt || fail "again: $(cat again.txt)"
[ -z "$(find out/runs -newer mark -type f)" ] || fail "a second run touched $(find out/runs -newer mark -type f | head -3)"

echo "-- an added axis value runs only what is new; an added axis at its old default keeps ids"
sed 's/"seeds": \[0, 1\]/"seeds": [0, 1, 2]/' sweep.json >more.json
says '^4 done' "$PIPELAG" run more.json -q -o out
sed 's/"delay": \[0, 1\]/"delay": [0, 1], "optimizer.momentum": [0.9]/; s/"seeds": \[0, 1\]/"seeds": [0, 1, 2]/' sweep.json >axis.json
says '12 already finished, 0 to run' "$PIPELAG" run axis.json -o out
[ -f out/sweep.json ] && [ -f out/sweep.1.json ] || fail "frozen copies: $(ls out)"

echo "-- a failed run does not stop the rest, and shows its last lines"

"$PIPELAG" run sweep.json -q -o broken --set train.steps=100 >/dev/null
victim=$(find broken/runs -mindepth 2 -maxdepth 2 | sort | head -1)
for d in broken/runs/*/*; do rm "$d/result.json"; done
echo '{"broken": ' >"$victim/config.json"
got=0; "$PIPELAG" run sweep.json -o broken --set train.steps=100 >out.txt 2>err.txt || got=$?
[ $got = 1 ] || fail "exit $got"
grep -q '7 done, 0 diverged, 1 failed' out.txt || fail "$(cat out.txt)"
grep -q 'FAILED' err.txt && grep -q 'config.json' err.txt || fail "no reason shown: $(cat err.txt)"
expect_state broken failed 1

echo "-- fail-fast stops"
for d in broken/runs/*/*; do rm -f "$d/result.json"; echo '{' >"$d/config.json"; done
got=0; "$PIPELAG" run sweep.json -o broken -j 1 --fail-fast --set train.steps=100 >out.txt 2>/dev/null || got=$?
[ $got = 1 ] && grep -q '7 not started' out.txt || fail "fail-fast: $got $(cat out.txt)"

echo "-- SIGTERM and Ctrl-C: checkpoints, exit 75, resumed to the same bits"
long=(--set train.steps=60000 --set train.checkpoint_every=500)
"$PIPELAG" run sweep.json -q -o whole "${long[@]}" >/dev/null
for signal in TERM INT; do
  setsid "$PIPELAG" run sweep.json -q -o stopped-$signal "${long[@]}" >/dev/null 2>&1 &
  pid=$!
  for _ in $(seq 200); do find stopped-$signal -name 'step-??????????.ckpt' 2>/dev/null | grep -q . && break; sleep 0.02; done
  kill -$signal $pid
  got=0; wait $pid || got=$?
  [ $got = 75 ] || fail "$signal: exit $got"
  states stopped-$signal | grep -qE '"stopped":[1-9]' || fail "$signal: $(states stopped-$signal)"
  ! pgrep -f "stopped-$signal" >/dev/null || fail "$signal: processes left"
  "$PIPELAG" run sweep.json -q -o stopped-$signal "${long[@]}" >/dev/null
  expect_state stopped-$signal done 8
  for d in whole/runs/*/*; do
    other=stopped-$signal/${d#whole/}
    [ "$(grep final_val_loss "$d/result.json")" = "$(grep final_val_loss "$other/result.json")" ] || fail "$signal: $other differs"
  done
done

echo "-- two invocations at once: every run once"
"$PIPELAG" run sweep.json -o both --set train.steps=20000 >a.txt 2>a.err & a=$!
"$PIPELAG" run sweep.json -o both --set train.steps=20000 >b.txt 2>b.err & b=$!
wait $a && wait $b || fail "two at once: $(cat a.err b.err)"
"$PIPELAG" run sweep.json -q -o both --set train.steps=20000 >/dev/null
expect_state both done 8
for d in both/runs/*/*; do
  [ "$(ls "$d"/log.*.txt | wc -l)" = 1 ] || fail "$d was run $(ls "$d"/log.*.txt | wc -l) times"
done

echo "-- a crash is a failed run; a killed parent leaves no orphans"
"$PIPELAG" run sweep.json -q -j 1 -o orphan --set train.steps=10000000 --set train.checkpoint_every=1000 >/dev/null 2>&1 & pid=$!
for _ in $(seq 200); do find orphan -name 'step-??????????.ckpt' 2>/dev/null | grep -q . && break; sleep 0.02; done
kill -KILL $pid; wait $pid 2>/dev/null || true
for _ in $(seq 250); do pgrep -f 'run sweep.json -q -j 1 -o orphan' >/dev/null || break; sleep 0.02; done
! pgrep -f 'run sweep.json -q -j 1 -o orphan' >/dev/null || fail "an orphan trains on"
states orphan | grep -q '"stopped":1' || fail "orphan: $(states orphan)"

echo "-- a bar on a terminal"
script -qec "$PIPELAG run sweep.json -o tty --set train.steps=40000" /dev/null </dev/null >tty.txt
grep -q $'\r\\[' tty.txt || fail "no bar on a terminal"

echo "-- logs and status"
says ' done ' "$PIPELAG" status out -v
says '== attempt 1 ==' "$PIPELAG" logs out 0
got=0; "$PIPELAG" logs out zzzz 2>/dev/null || got=$?; [ $got = 3 ] || fail "logs of nothing: $got"
