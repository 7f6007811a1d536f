# pipelag task without a cluster: what a job script starts does its own runs alone, whatever happens to one of them and whatever signal comes.
PIPELAG=$1
fail() {
  echo "FAILED: $*"
  exit 1
}
cat >sweep.json <<'JSON'
{
  "name": "task",
  "base": {
    "model": {"type": "mlp", "layers": 1, "hidden": 32, "embedding": 8, "context": 16},
    "data": {"type": "synthetic", "vocab": 32},
    "optimizer": "sgd",
    "train": {"steps": 300, "batch_tokens": 64, "val_tokens": 64, "val_every": 50, "checkpoint_every": 40}
  },
  "seeds": [0, 1, 2, 3, 4, 5]
}
JSON
# prepare DIR HASH [KEY: VALUE...]: a directory with a submission made by hand; task 0 has runs 0 to 3, task 7 has runs 4 and 5.
prepare() {
  local dir=$1 hash=$2
  shift 2
  "$PIPELAG" run sweep.json -q -j 1 -o "$dir" >/dev/null 2>&1 &
  local run=$!
  until compgen -G "$dir/runs/*/*/journal" >/dev/null; do sleep 0.02; done
  kill -TERM $run || true
  wait $run || true
  rm -rf "$dir"/state "$dir"/runs/*/*/{journal,curves.h5,meta.json,result.json,log.*,ckpt,claim*,restarts}
  mkdir -p "$dir/submissions"
  echo "{\"token\": \"pl-by-hand\", \"sent\": \"yes\", \"job\": \"1\", \"data_root\": \"$PWD\", \"binary_hash\": \"$hash\" $*}" >"$dir/submissions/1.json"
  {
    printf 'task\tindex\tid\n'
    sed -n '2,$s/^\([0-9]*\)\t\([0-9a-f]*\)\t.*/\1\t\2/p' "$dir/runs.tsv" | while read -r index id; do
      printf '%s\t%s\t%s\n' $((index < 4 ? 0 : 7)) "$index" "$id"
    done
  } >"$dir/submissions/1.tsv"
}
folder_of() { # DIR INDEX
  local id
  id=$(sed -n "$(($2 + 2))p" "$1/runs.tsv" | cut -f2)
  echo "$1/runs/${id:0:2}/$id"
}
states() { "$PIPELAG" status "$1" --json --runs 2>/dev/null | grep -oE '"state": *"[a-z]+"' | cut -d'"' -f4 | sort | uniq -c | tr -s ' ' | paste -sd, || true; }
has() { grep -q "\"state\": \"$2\"" "$1/result.json" || fail "$1 is not $2: $(cat "$1/result.json" 2>&1)"; }

echo "-- bad usage"
prepare none ""
for words in "none 2 0" "none 1 1" "none 0 0" "none 1 x" "gone 1 0"; do
  got=0
  # shellcheck disable=SC2086
  "$PIPELAG" task $words >out.txt 2>err.txt || got=$?
  [ $got = 2 ] && [ "$(wc -l <err.txt)" = 1 ] || fail "task $words: $got $(cat err.txt)"
done

echo "-- only its own runs; one that fails does not hurt the others; devices as they are named, one log each"
prepare packed ""
echo '{' >"$(folder_of packed 2)/config.json"
got=0
CUDA_VISIBLE_DEVICES='GPU-5f0e,MIG-7/1' "$PIPELAG" task packed 1 0 >out.txt 2>&1 || got=$?
[ $got = 1 ] || fail "exit $got: $(cat out.txt)"
for i in 0 1 3; do
  has "$(folder_of packed $i)" done
  [ "$(find "$(folder_of packed $i)" -name 'log.*' | wc -l)" = 1 ] || fail "logs"
  grep -oE '"CUDA_VISIBLE_DEVICES": "[^"]*"' "$(folder_of packed $i)/meta.json"
done | sort -u >devices.txt
grep -qE '"(GPU-5f0e|MIG-7/1)"' devices.txt && ! grep -q , devices.txt || fail "devices: $(cat devices.txt)"
has "$(folder_of packed 2)" failed
[ ! -e "$(folder_of packed 4)/journal" ] || fail "it ran what is another task's"
grep -q '3 done, 0 diverged, 1 failed' out.txt || fail "$(cat out.txt)"
"$PIPELAG" task packed 1 7 >out.txt 2>&1 || fail "task 7: $(cat out.txt)"
grep -q '"bitwise": true' "$(folder_of packed 4)/meta.json" || fail "no bitwise mark"
SLURM_RESTART_COUNT=1 "$PIPELAG" task packed 1 0 >out.txt 2>&1 && fail "a failure is forgotten"
[ "$(find "$(folder_of packed 2)" -name 'log.*' | wc -l)" = 0 ] || fail "what failed was tried again"

echo "-- another program than the submitted one"
prepare other 0123456789abcdef ', "libraries": {"libm.so.6": "0123456789abcdef"}'
"$PIPELAG" task other 1 7 >out.txt 2>&1 || fail "$(cat out.txt)"
folder=$(folder_of other 4)
for file in out.txt "$folder/log.1.txt" "$folder/meta.json"; do
  grep -qE 'the program differs from the one submitted: program \([0-9a-f]{16}, was 0123456789abcdef\), libm.so.6 \([0-9a-f]{16}, was' "$file" || fail "$file: $(cat "$file")"
done
grep -q '"bitwise": false' "$folder/meta.json" || fail "the mark is still there"

echo "-- every signal, to one process or to all, once or again: checkpointed, 75, no process left, and then as if nothing had been"
sed -i 's/"steps": 300/"steps": 8000/' sweep.json
"$PIPELAG" run sweep.json -q -j 2 -o plain >/dev/null &
plain=$!
for signal in INT TERM USR1 USR2; do
  rm -rf stopped
  prepare stopped ""
  setsid "$PIPELAG" task stopped 1 7 >out.txt 2>&1 &
  task=$!
  for i in 4 5; do
    for _ in $(seq 500); do [ -z "$(find "$(folder_of stopped $i)" -name 'step-??????????.ckpt')" ] && sleep 0.02 || break; done
  done
  children=$(pgrep -P $task | paste -sd' ')
  if [ $signal = TERM ]; then # as Slurm does: to all of them, and the task passes it on
    # shellcheck disable=SC2086
    kill -TERM $task $children
    kill -TERM $task
  else
    kill -$signal $task
  fi
  got=0
  wait $task || got=$?
  [ $got = 75 ] || fail "$signal: exit $got: $(cat out.txt)"
  for child in $children; do ! kill -0 "$child" 2>/dev/null || fail "$signal: process $child is left"; done
  for i in 4 5; do has "$(folder_of stopped $i)" stopped; done
done
"$PIPELAG" task stopped 1 7 >out.txt 2>&1 || fail "resumed: $(cat out.txt)"
wait $plain
for i in 4 5; do
  has "$(folder_of stopped $i)" done
  diff <(grep -E '_loss|"steps"' "$(folder_of plain $i)/result.json") <(grep -E '_loss|"steps"' "$(folder_of stopped $i)/result.json") ||
    fail "run $i differs from the undisturbed one"
done

echo "-- a cancelled run is not started"
rm -rf stopped
prepare stopped ""
touch "$(folder_of stopped 4)/cancelled"
"$PIPELAG" task stopped 1 7 >out.txt 2>&1 || fail "$(cat out.txt)"
grep -q '1 done, 0 diverged, 0 failed, 1 cancelled' out.txt && [ ! -e "$(folder_of stopped 4)/journal" ] || fail "$(cat out.txt)"
