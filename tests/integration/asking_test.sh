# The question before acting on many runs: asked on a terminal, refused without one.
PIPELAG=$1
fail() {
  echo "FAILED: $*"
  exit 1
}
cat >sweep.json <<JSON
{"name": "many", "base": {"model": "quadratic", "optimizer": {"type": "sgd", "lr": 1e-3}, "train": {"steps": 1000000000, "batch_tokens": 16, "log_every": 1000, "val_every": 0}}, "seeds": [$(seq -s, 0 29)]}
JSON
# None of them ends before it is stopped.
"$PIPELAG" run sweep.json -q -y -j 1 -o many >/dev/null 2>&1 &
until compgen -G 'many/runs/*/*/journal' >/dev/null; do sleep 0.02; done
kill -TERM $!
wait $! || true
cancelled() { "$PIPELAG" status many --json | grep -o '"cancelled": *[0-9]*' | head -n 1 | grep -o '[0-9]*$' || echo 0; }
# on_terminal ANSWER ARGUMENT...: with a terminal of its own; the status of pipelag.
on_terminal() {
  local answer=$1
  shift
  printf '%s\n' "$answer" | script -qec "$(printf '%q ' "$PIPELAG" "$@")" /dev/null >screen.txt 2>&1
}
got=0
"$PIPELAG" cancel many </dev/null >out.txt 2>err.txt || got=$?
[ $got = 2 ] && grep -q 'without -y' err.txt || fail "no terminal: exit $got: $(cat err.txt)"
[ "$(cancelled)" = 0 ] || fail "no terminal: $(cancelled) cancelled"
for answer in n '' nonsense; do
  got=0
  on_terminal "$answer" cancel many || got=$?
  [ $got = 2 ] && grep -q 'cancel 30 runs of many? \[y/N\]' screen.txt && grep -q 'nothing was changed' screen.txt || fail "answer \"$answer\": exit $got: $(cat screen.txt)"
  [ "$(cancelled)" = 0 ] || fail "answer \"$answer\": $(cancelled) cancelled"
done
on_terminal y cancel many || fail "answer y: exit $?: $(cat screen.txt)"
[ "$(cancelled)" = 30 ] || fail "answer y: $(cancelled) cancelled"
got=0
"$PIPELAG" retry many --cancelled </dev/null >out.txt 2>err.txt || got=$?
[ $got = 2 ] && grep -q 'would retry 30 runs; allowed: at most 20 without -y' err.txt || fail "retry: exit $got: $(cat out.txt err.txt)"
[ "$(cancelled)" = 30 ] || fail "retry: $(cancelled) cancelled"
