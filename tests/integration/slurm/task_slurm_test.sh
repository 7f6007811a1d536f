# What an array task does on a real cluster: checkpoints and requeues itself alone after Slurm's warning, never after TERM or when cancelled, resumes after a
# requeue, on another node too, and ends like the undisturbed run.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/lib.sh"
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
    "optimizer": "sgd", "delay": 1,
    "train": {"steps": 10000, "batch_tokens": 64, "val_tokens": 64, "val_every": 500, "checkpoint_every": 100}
  },
  "seeds": [0, 1, 2, 3, 4, 5, 6, 7]
}
JSON
"$PIPELAG" run sweep.json -q -j 1 -o out >/dev/null 2>&1 & # the directory alone is wanted
until compgen -G 'out/runs/*/*/journal' >/dev/null; do sleep 0.02; done
kill -TERM $!
wait $! || true
rm -rf out/state out/runs/*/*/{journal,curves.h5,meta.json,result.json,log.*,ckpt,claim*}
gcc -O1 -shared -fPIC -o shim.so "$TESTS_SOURCE/integration/claim_shim.c" -ldl
cluster_up
mkdir out/submissions
# submission NUMBER REQUEUE "TASK RUN"...: made by hand; its job id is printed.
submission() {
  local number=$1 requeue=$2 row last=0
  shift 2
  printf 'task\tindex\tid\n' >"out/submissions/$number.tsv"
  for row; do
    printf '%s\t%s\t%s\n' "${row% *}" "${row#* }" "$(sed -n "$((${row#* } + 2))p" out/runs.tsv | cut -f2)" >>"out/submissions/$number.tsv"
    last=${row% *}
  done
  echo "{\"token\": \"pl-task-$number\", \"sent\": \"yes\", \"job\": \"\", \"requeue\": \"$requeue\", \"data_root\": \"$PWD\", \"binary_hash\": \"\"}" \
    >"out/submissions/$number.json"
  # shellcheck disable=SC2086
  sbatch ${OPTIONS:-} --parsable --requeue --open-mode=append -o "$PWD/out/submissions/$number.%a.txt" --array="0-$last" -J "pl-task-$number" <<SH
#!/bin/bash
# At first a disk so slow that no run is done before its turn comes.
[ -n "\${SLURM_RESTART_COUNT:-}" ] || export LD_PRELOAD="$PWD/shim.so" SHIM_SLOW=0.05
exec "$PIPELAG" task "$PWD/out" $number "\$SLURM_ARRAY_TASK_ID"
SH
}
folder_of() {
  local id
  id=$(sed -n "$(($1 + 2))p" out/runs.tsv | cut -f2)
  echo "out/runs/${id:0:2}/$id"
}
checkpointed() { [ -n "$(find "$(folder_of "$1")" -name 'step-??????????.ckpt' 2>/dev/null)" ]; }
state_is() { grep -q "\"state\": \"$2\"" "$(folder_of "$1")/result.json" 2>/dev/null; }
restarts() { scontrol -o show job "$1" | grep -oE ' Restarts=[0-9]+' | cut -d= -f2; }
says() { grep -q "$2" "out/submissions/$1.txt" || fail "$1 does not say \"$2\": $(cat "out/submissions/$1.txt")"; }
mute() { ! grep -q "$2" "out/submissions/$1.txt" || fail "$1 says \"$2\": $(cat "out/submissions/$1.txt")"; }

# 1: three tasks of which the last, whose own job id is the array's, is warned; 2: warned but cancelled; 3: warned, but not to be requeued; 4: scancel;
# 5: its node goes down; two runs are packed there.
warned=$(submission 1 auto "0 0" "1 1" "2 2")
cancelled=$(submission 2 auto "0 3")
never=$(submission 3 never "0 4")
ended=$(submission 4 auto "0 5")
lost=$(OPTIONS="-c 2 -x n1,n2" submission 5 auto "0 6" "0 7")
for run in 0 1 2 3 4 5 6 7; do wait_until 40 checkpointed $run; done

echo "-- warned; warned, but cancelled or never to be requeued; scancel; a node goes down"
scancel --signal=USR1 --batch "${warned}_2"
touch "$(folder_of 3)/cancelled"
scancel --signal=USR1 --batch "${cancelled}_0"
scancel --signal=USR1 --batch "${never}_0"
scancel "${ended}_0"
node=$(squeue -h -j "$lost" -o %N)
node_down "$node"
"$PIPELAG" run sweep.json -q -o plain >/dev/null &
plain=$!
wait_until 20 state_is 3 cancelled
wait_until 20 state_is 4 stopped
wait_until 20 state_is 5 stopped
wait_until 20 job_is "${ended}_0" CANCELLED
for run in 0 1 2 6 7; do wait_until 60 state_is $run done; done

says 1.2 "requeueing task ${warned}_2"
says 1.2 "1 done"
mute 1.0 requeueing
mute 1.1 requeueing
[ "$(restarts "${warned}_2")" = 1 ] && [ "$(restarts "${warned}_0")" = 0 ] && [ "$(restarts "${warned}_1")" = 0 ] ||
  fail "restarts: $(scontrol -o show job "$warned")"
for name in 2.0 3.0 4.0; do mute $name requeueing; done
for job in "${cancelled}_0" "${never}_0"; do [ "$(restarts "$job")" = 0 ] && job_is "$job" FAILED || fail "$job: $(job_states)"; done
scontrol -o show job "${cancelled}_0" | grep -q 'ExitCode=75:0' || fail "exit status: $(scontrol -o show job "${cancelled}_0")"
[ "$(restarts "${lost}_0")" = 1 ] || fail "node: $(scontrol -o show job "$lost")"
says 5.0 "2 runs, on $node"
says 5.0 "2 runs, on $([ "$node" = n3 ] && echo n4 || echo n3)"
says 5.0 "2 done"

echo "-- the rest by hand, and all as if nothing had been"
rm "$(folder_of 3)/cancelled"
"$PIPELAG" run sweep.json -q -o out >/dev/null
wait $plain
figures() { for f in "$1"/runs/*/*/result.json; do echo "$f" && grep -E '_loss|"steps"|"state"' "$f"; done | sed "s|^$1/||"; }
diff <(figures plain) <(figures out) || fail "figures differ"
grep -l '"start_step": [1-9]' out/runs/*/*/meta.json | wc -l | grep -qxE '[6-8]' || fail "not resumed"

echo "-- a claim from elsewhere is as good as Slurm's word about its job"
sed 's/"base": {//; s/"steps": 10000/"steps": 20/; s/^  },$//; s/"seeds": .*/"seed": 1/' sweep.json | tr -d '\n' | sed 's/"checkpoint_every": 100} *"seed"/"checkpoint_every": 100}, "seed"/' >one.json
running=$(sbatch --parsable -o /dev/null --wrap 'sleep 100')
wait_until 20 job_is "$running" RUNNING
"$PIPELAG" train one.json -q -o one >/dev/null
folder=$(echo one/runs/*/*)
# holder JOB YES|NO: whether a run that is held by a process of that job elsewhere can be taken over.
holder() {
  local got=no
  rm -f "$folder/result.json" "$folder"/claim*
  echo "elsewhere 0-boot pid:[1] 17 170 $1 0123456789abcdef 0000000000" >"$folder/claim"
  ! "$PIPELAG" train one.json -q -o one >/dev/null 2>err.txt || got=yes
  [ $got = yes ] || grep -q 'by another process' err.txt || fail "$1: $(cat err.txt)"
  [ $got = "$2" ] || fail "the holder $1: taken over: $got"
}
holder "private:$running/0" no
holder "private:${ended}_0/0" yes
holder "private:99999/0" yes
holder "elsewhere:99999/0" no
holder - no
SLURM_CONF=/dev/null holder "private:99999/0" no
scontrol requeue "$running"
wait_until 20 job_is "$running" PENDING
holder "private:$running/0" yes
