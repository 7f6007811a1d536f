# status, cancel, retry, logs on a real cluster, and a sweep that moves between the cluster and this machine.
PIPELAG=$1
# shellcheck disable=SC1091
. "$TESTS_SOURCE/integration/slurm/lib.sh"
fail() {
  echo "FAILED: $*"
  for d in long moved; do [ ! -e $d ] || "$PIPELAG" status $d --runs 2>&1 | tail -n 40 || true; done
  exit 1
}
json() { "$PIPELAG" status "$@" --json || true; }
# shows DIR PATTERN: what status --json of DIR holds.
shows() { json "$1" | grep -qE "$2"; }
cluster_up
cat >long.json <<'JSON'
{
  "name": "long",
  "base": {
    "model": {"type": "quadratic", "dim": 64, "noise": 0.1},
    "optimizer": {"type": "sgd", "lr": 0.1},
    "train": {"steps": 50000000, "batch_tokens": 1, "val_tokens": 1, "weight_decay": 0, "checkpoint_every": 1000}
  },
  "seeds": [0, 1, 2, 3, 4, 5, 6, 7],
  "slurm": {"time": "10", "max_running": 4, "cpus": 4, "mem": "200M", "requeue": "never"}
}
JSON
sed 's/50000000/300/; s/"long"/"moved"/; s/"requeue"/"options": ["--hold"], "requeue"/' long.json >moved.json

echo "-- running and waiting, with Slurm's reason"
"$PIPELAG" submit long.json -q -o long >/dev/null
wait_until 20 shows long '"queued":4,"running":4'
shows long '"reason":"PENDING JobArrayTaskLimit","runs":4,"state":"queued"' || fail "reason: $(json long)"
job=$(sed -nE 's/.*"job": "([0-9]+)".*/\1/p' long/submissions/1.json)
"$PIPELAG" status long --runs >runs.txt || fail "status: $?"
grep -qE " running .*\[${job}_0 on n[1-4]\]" runs.txt || fail "$(cat runs.txt)"
folder() { find long/runs -name "$(awk -v t="$1" '$1 == t {print $3}' long/submissions/1.tsv)"; }
saved() { compgen -G "$(folder "$1")/ckpt/step-??????????.ckpt" >/dev/null; }
for task in 0 1 2 3; do wait_until 20 saved $task; done

echo "-- a running and a waiting task cancelled by scancel, a node lost, a task killed: each is told"
scancel "${job}_7"
wait_until 10 shows long '"ends":\{"cancelled by Slurm":1\}'
scancel "${job}_0"
wait_until 10 shows long '"cancelled by Slurm":2'
node=$(squeue -h -r -j "${job}_1" -o %N)
here=$(squeue -h -r -t running -w "$node" -o %i | wc -l)
node_down "$node"
wait_until 10 shows long "\"node failure\":$here"
node_up "$node"
others=$(squeue -h -r -t running -o '%K' | head -n 1)
pid=$(pgrep -f "pipelag task .*long 1 $others\$" | head -n 1)
kill -KILL "$pid"
wait_until 15 shows long '"killed":1' || fail "killed: $(json long)"
! "$PIPELAG" status long >text.txt || fail "exit 0 with a failed run"
grep -qE '^ +2 cancelled by Slurm +retry submits it again' text.txt && grep -qE '^ +1 killed +retry' text.txt && grep -qE 'node failure +retry submits it again, from its checkpoint' text.txt || fail "$(cat text.txt)"

echo "-- cancel one: marked, out of Slurm, not retried"
victim=$(squeue -h -r -t running,pending -o %K -j "$job" | tail -n 1)
"$PIPELAG" cancel long "$victim" >text.txt || fail "cancel: $?"
grep -q '1 runs cancelled, 1 tasks taken from Slurm' text.txt || fail "$(cat text.txt)"
gone() { ! squeue -h -r -t running,pending,completing -o %i | grep -qx "${job}_$victim"; }
wait_until 15 gone
wait_until 15 shows long '"cancelled":3'
[ -e "$(folder "$victim")/cancelled" ] || fail "no marker"

echo "-- retry submits exactly those that ended, with more memory, and touches no other"
count=$((3 + here))
live=$(squeue -h -r -t running,pending -o %i -j "$job" | sort | tr '\n' ' ')
"$PIPELAG" retry long -n >dry.txt
[ "$(wc -l <dry.txt)" = $count ] || fail "dry run: $(cat dry.txt)"
"$PIPELAG" retry long --set slurm.mem=150M >text.txt || fail "retry: $(cat text.txt)"
[ "$(tail -n +2 long/submissions/2.tsv | wc -l)" = $count ] || fail "submitted: $(cat long/submissions/2.tsv)"
! cut -f2 long/submissions/2.tsv | grep -qx "$victim" || fail "the cancelled run was retried"
second=$(sed -nE 's/.*"job": "([0-9]+)".*/\1/p' long/submissions/2.json)
scontrol -o show job "$second" | grep -q 'MinMemoryNode=150M' || fail "memory: $(scontrol -o show job "$second" | head -n 1)"
for i in $live; do squeue -h -r -t running,pending,completing -o %i | grep -qx "$i" || [ -z "$i" ] || fail "$i is gone"; done
got=0; "$PIPELAG" retry long >text.txt 2>&1 || got=$?
[ $got = 3 ] || fail "a second retry: $got $(cat text.txt)"
resumed() { grep -qs 'resum' "$(folder 0)/log.2.txt"; }
wait_until 30 resumed

echo "-- cancel all: nothing is left in Slurm, nothing starts again"
"$PIPELAG" cancel long >text.txt || fail "cancel: $(cat text.txt)"
empty() { ! squeue -h -r -t running,pending,completing -o %i | grep -q .; }
wait_until 20 empty
wait_until 10 shows long '"cancelled":8'
got=0; "$PIPELAG" retry long 2>/dev/null || got=$?
[ $got = 3 ] || fail "retry after cancel: $got"
"$PIPELAG" submit long >text.txt || fail "submit: $(cat text.txt)"
grep -q '0 to submit' text.txt && empty || fail "cancelled runs were submitted: $(cat text.txt)"

echo "-- a task that never got as far as a run: Slurm's own output tells why"
sed 's/"name": "long"/"name": "early"/; s/\[0, 1, 2, 3, 4, 5, 6, 7\]/[0]/; s/"requeue"/"setup": ["echo no such module >\&2", "exit 3"], "requeue"/' long.json >early.json
"$PIPELAG" submit early.json -q -o early >/dev/null
wait_until 15 shows early '"failed":1'
"$PIPELAG" logs early 0 >text.txt || fail "logs: $?"
grep -q '^no such module$' text.txt || fail "$(cat text.txt)"
json early --runs | grep -q '"reason":"its job failed and left no result"' || fail "$(json early --runs)"

echo "-- a sweep that waits in Slurm is finished here, one that was begun here goes to the cluster"
"$PIPELAG" submit moved.json -q -o moved >/dev/null
shows moved '"reason":"PENDING JobHeld(User|Admin)","runs":8' || fail "held: $(json moved)"
"$PIPELAG" run moved -q >text.txt || fail "run: $(cat text.txt)"
shows moved '"done":8,' || fail "$(json moved)"
scontrol release "$(sed -nE 's/.*"job": "([0-9]+)".*/\1/p' moved/submissions/1.json)"
(cd / && "$PIPELAG" status "$OLDPWD/moved" >/dev/null) || fail "from another folder"
mkdir begun && cd begun
"$PIPELAG" run ../long.json -q -j 1 -o ../there --set train.steps=200000 --set seeds=0,1 >/dev/null 2>&1 &
local_run=$!
wait_until 10 compgen -G '../there/runs/*/*/ckpt/step-??????????.ckpt' >/dev/null
kill -TERM $local_run
wait $local_run || true
cd ..
shows there '"stopped":1' || fail "$(json there)"
"$PIPELAG" submit there -q >/dev/null
wait_until 40 shows there '"done":2,'
wait_until 20 empty
