# What several processes cannot do is refused by rank 0 alone, in one sentence, with exit status 2 on all of them, and nothing is made.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/train_help.sh"
PIPELAG=$1
cat >run.json <<'JSON'
{
  "name": "refused",
  "model": {"type": "transformer", "layers": 4, "d_model": 16, "heads": 2, "context": 16},
  "data": {"type": "synthetic", "vocab": 64},
  "optimizer": "adamw", "train": {"steps": 100, "batch_tokens": 128, "val_tokens": 64},
  "pipeline": {"stages": 4, "microbatches": 4, "schedule": "2bw"}
}
JSON
# Two stages that wait for each other.
cat >waiting.txt <<'TEXT'
schedule waiting
stages 2
microbatches 2
stage 0
  body F0 >a0 <g0 B0 F1 >a1 <g1 B1 U
stage 1
  body <a0 F0 <a1 F1 B0 >g0 B1 >g1 U
TEXT
# refused PROCESSES SENTENCE ARGUMENT...
refused() {
  local processes=$1 sentence=$2 got=0
  shift 2
  # Each process says how it ended, which only those can that mpirun did not end before.
  timeout -s KILL $LIMIT "$MPIEXEC" -np "$processes" bash -c '"$@"; got=$?; echo "exit $got"; exit $got' refused "$PIPELAG" "$@" >said.txt 2>&1 || got=$?
  [ $got = 2 ] || fail "$*: exit $got: $(cat said.txt)"
  [ "$(grep -c '^pipelag' said.txt)" = 1 ] && grep -qF "pipelag: $sentence" said.txt || fail "$*: not once \"$sentence\": $(cat said.txt)"
  ! grep -qE "^exit [^2$apart]" said.txt || fail "$*: other exit statuses: $(cat said.txt)"
  [ ! -e out ] && [ ! -e results ] || fail "$*: a directory was made"
}
apart=''
train=(train run.json -o out)
refused 5 'run.json: 5 processes for a pipeline of 4 stages; allowed: 1 to 4' "${train[@]}"
refused 3 'run.json: 3 processes for 2 replicas of a pipeline of 4 stages; allowed: 1, and 2 times 1 to 4' "${train[@]}" --set pipeline.replicas=2
refused 4 'run.json: pipeline.schedule: 2bw: saw 3 microbatches with 4 stages; allowed: at least 4' "${train[@]}" --set pipeline.microbatches=3
refused 4 'run.json: pipeline.stages: ' "${train[@]}" --set pipeline.stages=5 --set pipeline.microbatches=5 --set train.batch_tokens=80
refused 2 'run.json: run 0: pipeline.schedule_file: schedule waiting: no stage can go on' "${train[@]}" --set pipeline.stages=2 --set pipeline.schedule=custom \
  --set pipeline.schedule_file=waiting.txt --set pipeline.microbatches=2
refused 2 'run.json: pipeline.schedule: lagged simulates its delay in one process, but there are 2' "${train[@]}" --set pipeline.schedule=lagged --set delay=1
refused 2 'run.json: run 0: data.train: cannot open "./none.txt"' "${train[@]}" --set data.type=bytes --set data.train=none.txt --set data.val=none.txt
refused 2 'run.json: --set pipeline.stagges: unknown key "stagges"' "${train[@]}" --set pipeline.stagges=4
refused 2 'none.json: cannot be read: No such file or directory' train none.json -o out
refused 2 'none: there is no submission 1 here' task none 1 0
apart=0 # they do not meet: all but rank 0 end with 0
refused 4 'run: mpirun or srun started several processes; allowed: one, or `pipelag train`' run run.json -o out
refused 2 'submit: mpirun or srun started several processes' submit run.json -o out

echo "-- one process that mpirun started is one"
"$MPIEXEC" -np 1 "$PIPELAG" run run.json -q -o out >/dev/null
state_is out done
