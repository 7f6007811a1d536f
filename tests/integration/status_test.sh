# status, cancel, retry and logs without a cluster: what they say of local runs, and of what a fake Slurm answers.
PIPELAG=$1
n=0
trap 'kill -KILL $(jobs -p) 2>/dev/null || true' EXIT
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
tree() { find "$1" -printf '%p %s %T@ %y\n' | sort; find "$1" -type f -print0 | sort -z | xargs -0 cat | md5sum; }
wait_for() {
  for _ in $(seq 300); do
    if "$@"; then return 0; fi
    sleep 0.02
  done
  fail "never: $*"
}
json() { "$PIPELAG" status "$@" --json || true; }
folder() { find "$1/runs" -mindepth 2 -maxdepth 2 -name "$(sed -n "$(($2 + 2))p" "$1/runs.tsv" | cut -f2)"; }
cat >sweep.json <<'JSON'
{
  "name": "small",
  "base": {
    "model": {"type": "quadratic", "dim": 64, "noise": 0.1},
    "optimizer": {"type": "sgd", "lr": 0.1},
    "train": {"steps": 100, "batch_tokens": 1, "val_tokens": 1, "weight_decay": 0}
  },
  "seeds": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
}
JSON

echo "-- 3 of 10 failed: exit 1, its reason and what retry does; retry opens exactly those; finished ones are never touched"
"$PIPELAG" run sweep.json -q -o out >/dev/null
for i in 2 5 8; do
  d=$(folder out $i)
  rm "$d/result.json"
  cp "$d/config.json" "config.$i"
  echo '{' >"$d/config.json"
done
! "$PIPELAG" run sweep.json -q -o out >/dev/null 2>&1 || fail "the runs did not fail"
expect 1 '^ +3 failed +retry runs it again$' "$PIPELAG" status out
expect 1 'config.json' "$PIPELAG" status out --runs
json out | grep -q '"done":7,.*"failed":3,' || fail "$(json out)"
expect 0 '^ +2 .*failed' "$PIPELAG" retry out --failed -n
[ "$(wc -l <said.txt)" = 3 ] || fail "dry run: $(cat said.txt)"
expect 3 'no run to retry' "$PIPELAG" retry out --lost
expect 3 'run 0 is done' "$PIPELAG" retry out 0
expect 2 'keys of slurm' "$PIPELAG" retry out --set train.steps=3
expect 2 'never submitted' "$PIPELAG" retry out --set slurm.mem=1G
for i in 2 5 8; do cp "config.$i" "$(folder out $i)/config.json"; done
touch mark
expect 0 '3 runs are open again; .pipelag run out. runs them' "$PIPELAG" retry out
expect 0 '^3 done' "$PIPELAG" run out -q
[ "$(find out/runs -newer mark -name result.json | wc -l)" = 3 ] || fail "other runs were run again"
expect 0 '^ +10 done' "$PIPELAG" status out
expect 2 'the results of out stay there' "$PIPELAG" run out -o elsewhere
expect 2 'no result directory' "$PIPELAG" run .

echo "-- status changes nothing, not even times"
tree out >before.txt
json out --runs >/dev/null
"$PIPELAG" status out --verify >/dev/null
"$PIPELAG" logs out 3 >/dev/null
tree out | cmp - before.txt || fail "something was changed"

echo "-- a marker that lies is found by --verify, and only there"
rm "$(folder out 4)/result.json"
expect 1 'its marker says done, its folder says lost' "$PIPELAG" status out --verify
expect 0 '10 done' "$PIPELAG" status out
mv "out/state/done/$(basename "$(folder out 4)")" out/state/ && mkdir -p out/state/stopped && mv out/state/*??????????????* out/state/stopped/
expect 0 '1 stopped' "$PIPELAG" status out

echo "-- a killed run is lost; a running one can be followed, cancelled, revived"
long=(--set train.steps=50000000 --set train.checkpoint_every=1000 --set seeds=0,1)
cp "$PIPELAG" another-name # what is told to stop is told by the claim, not by what its program is called
./another-name run sweep.json -q -j 1 -o long "${long[@]}" >/dev/null 2>&1 &
pid=$!
wait_for test -e long/state/running
wait_for sh -c "find long -name 'step-??????????.ckpt' | grep -q ."
expect 0 '^ +1 running' "$PIPELAG" status long
expect 0 '/50000000 .*\[process [0-9]+ on host' "$PIPELAG" status long --runs
expect 3 'Slurm still has it|is running: left out|no run to retry' "$PIPELAG" retry long 0
"$PIPELAG" logs long 0 -f >followed.txt &
logs=$!
wait_for grep -q 'optimizer sgd' followed.txt
expect 0 '^2 runs cancelled, 1 processes here told to stop' "$PIPELAG" cancel long
wait $pid 2>/dev/null || true
wait $logs || fail "logs -f ended with $?"
expect 0 '^ +2 cancelled +retry runs it only with --cancelled or by name' "$PIPELAG" status long
expect 0 '0 to run' "$PIPELAG" run long
expect 3 'no run to cancel' "$PIPELAG" cancel long
expect 3 'no run to retry' "$PIPELAG" retry long
expect 0 '1 runs are open again' "$PIPELAG" retry long 0
"$PIPELAG" run long -q >/dev/null 2>&1 &
pid=$!
wait_for sh -c 'ls long/state/running | grep -q .'
trainer=$(sed -E 's/^[^ ]+ [^ ]+ [^ ]+ ([0-9]+) .*/\1/' "$(folder long 0)/claim")
kill -KILL $pid && kill -KILL "$trainer" 2>/dev/null || true
wait $pid 2>/dev/null || true
wait_for sh -c "! kill -0 $trainer 2>/dev/null"
expect 1 '^ +1 lost +retry runs it on from its last checkpoint' "$PIPELAG" status long
cp -r long one-lost
expect 0 '1 runs are open' "$PIPELAG" retry long --lost

echo "-- cancel: a process that has the number of a claim but began at another time is a stranger"
cp "$(command -v sleep)" pipelag
./pipelag 100 &
stranger=$!
begun=$(sed 's/.*) //' /proc/$stranger/stat | cut -d' ' -f20)
claim=$(folder one-lost 0)/claim
for start in $((begun + 1)) "$begun"; do
  awk -v pid=$stranger -v start="$start" '{ $4 = pid; $5 = start; print }' "$claim" >claim.new
  mv claim.new "$claim"
  touch "one-lost/state/running/$(basename "$(folder one-lost 0)")"
  "$PIPELAG" cancel one-lost 0 >said.txt
  "$PIPELAG" retry one-lost 0 -q >/dev/null 2>&1 || true
  if [ "$start" != "$begun" ]; then
    grep -qx '1 runs cancelled' said.txt && kill -0 $stranger || fail "a stranger was hit: $(cat said.txt)"
  else # so the claim was what mattered
    grep -qx '1 runs cancelled, 1 processes here told to stop' said.txt || fail "$(cat said.txt)"
    wait_for sh -c "! kill -0 $stranger 2>/dev/null"
  fi
done

echo "-- many runs are not changed without being asked"
sed 's/"seeds": .*/"seeds": [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]/' sweep.json >many.json
"$PIPELAG" run many.json -q -o many -j 1 --set train.steps=50000000 >/dev/null 2>&1 & pid=$!
wait_for test -e many/state/running
kill -TERM $pid && wait $pid 2>/dev/null || true
expect 2 'would cancel 21 runs; allowed: at most 20 without -y' "$PIPELAG" cancel many </dev/null
expect 0 '^would cancel 21 runs' "$PIPELAG" cancel many -n
expect 0 '^21 runs cancelled' "$PIPELAG" cancel many -y
expect 2 'would retry 21' "$PIPELAG" retry many --cancelled </dev/null
expect 0 '21 runs are open' "$PIPELAG" retry many --cancelled -y
expect 3 'matches 0 runs' "$PIPELAG" cancel many 99

echo "-- --watch: in a file a block of plain text for each change, to the end"
"$PIPELAG" run sweep.json -q -o watched --set train.steps=300000 >/dev/null 2>&1 & pid=$!
wait_for test -e watched/state/running
"$PIPELAG" status watched --watch >watch.txt
wait $pid
grep -qE '^ +[0-9]+ running' watch.txt && [ "$(tail -1 watch.txt)" = "      10 done" ] || fail "watch: $(cat watch.txt)"
[ "$(grep -c '^small: 10 runs ' watch.txt)" -ge 2 ] || fail "it looked once: $(cat watch.txt)"
awk -v RS= '$0 == last { exit 1 } { last = $0 }' watch.txt || fail "the same block twice: $(cat watch.txt)"
! grep -q $'\033' watch.txt || fail "terminal codes in a file"
"$PIPELAG" status watched --watch --json >watch.txt
[ "$(wc -l <watch.txt)" = 1 ] && grep -q '"done":10,' watch.txt || fail "watch --json: $(cat watch.txt)"

echo "-- --watch: a signal ends it, with the exit status that status has; so does that nothing moves"
"$PIPELAG" run sweep.json -q -o endless -j 1 --set train.steps=50000000 >/dev/null 2>&1 & pid=$!
wait_for test -e endless/state/running
for signal in TERM INT; do
  "$PIPELAG" status endless --watch >watch.txt & watcher=$!
  wait_for grep -q ' running' watch.txt
  kill -$signal $watcher
  wait $watcher || fail "interrupted by $signal: exit $?: $(cat watch.txt)"
done
kill -TERM $pid && wait $pid 2>/dev/null || true
expect 1 '^ +1 lost ' "$PIPELAG" status one-lost --watch
if command -v script >/dev/null; then
  script -qec "stty rows 5 cols 40; exec '$PIPELAG' status watched --watch --runs" /dev/null </dev/null >screen.txt
  [ "$(wc -l <screen.txt)" = 4 ] && grep -q $'^\033\\[H.*small: 10 runs .*\033\\[K' screen.txt || fail "screen: $(cat -v screen.txt)"
  grep -q '^\.\.\. 10 more lines' screen.txt || fail "cut at the last row: $(cat -v screen.txt)"
fi

echo "-- a fake Slurm: odd states are there, nothing is called ended, without accounting what is gone is lost"
bin=$PWD/bin
mkdir -p bin fake/submissions fake/runs
printf '#!/bin/sh\necho "Slurm accounting storage is disabled" >&2\nexit 1\n' >bin/sacct
printf '#!/bin/sh\ncat "%s/squeue.txt"\n' "$PWD" >bin/squeue
chmod +x bin/*
words=(PENDING CONFIGURING COMPLETING REQUEUED REQUEUE_HOLD RESV_DEL_HOLD SPECIAL_EXIT STAGE_OUT SUSPENDED SIGNALING QUITE_NEW)
gone=${#words[@]}
echo '{"name": "fake", "base": {}}' >fake/sweep.json
echo "{\"folder\": \"$PWD\"}" >fake/location.json
printf 'index\tid\tlabel\n' >fake/runs.tsv
printf 'task\tindex\tid\n' >fake/submissions/1.tsv
: >fake/current
for i in $(seq 0 "$gone"); do
  id=$(printf '%016x' $((i + 1000)))
  printf '%d\t%s\tseed=%d\n' "$i" "$id" "$i" >>fake/runs.tsv
  printf '%d\t%d\t%s\n' "$i" "$i" "$id" >>fake/submissions/1.tsv
  echo "$i" >>fake/current
  mkdir -p "fake/runs/${id:0:2}/$id"
done
cat >fake/submissions/1.json <<JSON
{"number": 1, "token": "pl-x-1-y", "sent": "yes", "job": "7", "throttle": 0, "data_root": "$PWD", "program": "/p", "binary_hash": "",
 "created_unix": 1000000000}
JSON
for i in "${!words[@]}"; do echo "pl-x-1-y|7|$i|$((7 + i))|${words[$i]}|Some, reason|0|0||"; done >squeue.txt
echo 'foreign|777|3-9%2|777|PENDING|Priority|0|0||' >>squeue.txt
tree fake >before.txt
PATH=$bin:$PATH json fake >said.txt
tree fake | cmp - before.txt || fail "status changed something"
grep -q '"failed":0,"lost":0,' said.txt && grep -q '"cancelled":1,' said.txt && grep -q '"queued":7,"running":4' said.txt || fail "$(cat said.txt)"
grep -q '"reason":"QUITE_NEW Some, reason"' said.txt || fail "an unknown state is not shown: $(cat said.txt)"
echo 'foreign|777|3|777|PENDING|Priority|0|0||' >squeue.txt
PATH=$bin:$PATH expect 1 '^ +12 lost ' "$PIPELAG" status fake

echo "-- with accounting: ends that squeue has forgotten are told apart, and retry takes exactly what is asked for"
for i in PREEMPTED TIMEOUT OUT_OF_MEMORY NODE_FAIL 'CANCELLED by 0' FAILED COMPLETED; do
  echo "pl-x-1-y|7_$((n++))|$i|0:0|n1"
done >sacct.txt
printf '#!/bin/sh\ncat "%s/sacct.txt"\n' "$PWD" >bin/sacct
PATH=$bin:$PATH json fake >said.txt
for end in preempted timeout 'out of memory' 'node failure' 'cancelled by Slurm'; do
  grep -q "\"$end\":[16]" said.txt || fail "no $end: $(cat said.txt)"
done
# Five more runs of the array are gone without a record: as its other tasks are listed, they were cancelled while they waited.
grep -q '"cancelled":6,' said.txt && grep -q '"failed":2,"lost":4,' said.txt || fail "$(cat said.txt)"
for case in "--timeout 1" "--failed 2" "--lost 3" "--cancelled 6"; do
  PATH=$bin:$PATH "$PIPELAG" retry fake "${case% *}" -n >said.txt
  [ "$(wc -l <said.txt)" = "${case#* }" ] || fail "$case: $(cat said.txt)"
done
PATH=$bin:$PATH "$PIPELAG" retry fake -n >said.txt
[ "$(wc -l <said.txt)" = 12 ] && grep -q '^ *0 .* preempted ' said.txt || fail "$(cat said.txt)"
printf '#!/bin/sh\necho "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2\nexit 1\n' >bin/squeue
PATH=$bin:$PATH expect 0 'Slurm could not be asked: .*Unable to contact slurm controller' "$PIPELAG" status fake
grep -q '12 queued' said.txt || fail "$(cat said.txt)"

echo "-- the time that is left: two runs took 60 s each, one runs, the other nine wait"
cp -r fake timed
mkdir -p timed/state/done
sed -i 's/"seconds": .*/"seconds": 60,/' "$(folder out 0)/result.json"
for i in 0 1; do
  id=$(printf '%016x' $((i + 1000)))
  touch "timed/state/done/$id"
  cp "$(folder out 0)/result.json" "timed/runs/${id:0:2}/$id/"
done
for i in $(seq 2 $gone); do echo "pl-x-1-y|7|$i|$((7 + i))|$([ $i = 2 ] && echo RUNNING || echo PENDING)|None|0|0||"; done >squeue.txt
printf '#!/bin/sh\ncat "%s/squeue.txt"\n' "$PWD" >bin/squeue
PATH=$bin:$PATH expect 0 '^fake: 12 runs .* 16%, about 09:30 left$' "$PIPELAG" status timed # (9 + 1/2) * 60 s
rm -r timed/state/done timed/runs/*/*/result.json
PATH=$bin:$PATH expect 1 "^fake: 12 runs " "$PIPELAG" status timed
! grep -q left said.txt || fail "an estimate from nothing: $(cat said.txt)"

echo "-- 10,000 runs in 10 arrays: under 2 seconds, no file of a run opened"
mkdir -p big/submissions big/state/done big/state/failed
cp fake/sweep.json fake/location.json big/
awk 'BEGIN {
  print "index\tid\tlabel" >"big/runs.tsv"
  for (i = 0; i < 10000; i++) {
    id = sprintf("%016x", i * 7919 + 4096)
    printf "%d\t%s\tseed=%d\n", i, id, i >"big/runs.tsv"
    print i >"big/current"
    n = int(i / 1000) + 1
    file = "big/submissions/" n ".tsv"
    if (i % 1000 == 0) print "task\tindex\tid" >file
    printf "%d\t%d\t%s\n", i % 1000, i, id >file
    if (i % 10 < 6) print "big/state/done/" id >"markers"
    else if (i % 10 == 6) print "big/state/failed/" id >"markers"
    else printf "pl-big-%d|%d|%d|%d|PENDING|JobArrayTaskLimit|0|0||\n", n, n, i % 1000, n >"squeue.txt"
  }
}'
xargs touch <markers
for n in $(seq 10); do sed "s/\"number\": 1/\"number\": $n/; s/pl-x-1-y/pl-big-$n/" fake/submissions/1.json >"big/submissions/$n.json"; done
printf '#!/bin/sh\ncat "%s/squeue.txt"\n' "$PWD" >bin/squeue
start=${EPOCHREALTIME/[.,]/}
PATH=$bin:$PATH expect 1 '^ +3000 queued +PENDING JobArrayTaskLimit 3000' "$PIPELAG" status big
took=$(((${EPOCHREALTIME/[.,]/} - start) / 1000))
echo "status of 10,000 runs: $took ms"
[ $took -lt 2000 ] || fail "$took ms"
[ ! -e big/runs ] || fail "a run folder was made"
if command -v strace >/dev/null; then
  ASAN_OPTIONS=detect_leaks=0 PATH=$bin:$PATH strace -c -o calls.txt "$PIPELAG" status big >/dev/null || true
  calls=$(tail -1 calls.txt | awk '{print $4}')
  echo "system calls: $calls"
  [ "$calls" -lt 3000 ] || fail "$(cat calls.txt)"
fi
