# shellcheck shell=bash
# Helpers of the tests on a real, private Slurm. A test sources this file and calls cluster_up once; squeue, sbatch, ... then speak to its own cluster.
slurm_tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cluster='' sampler=''

# cluster_up: a cluster with the settings of up.sh, taken down when this shell ends, however it ends. Exit 77 (skipped) where the machine can't have one.
# CLUSTER_TMP (default /tmp) is where its folder is made: short and open to others.
cluster_up() {
  local got=0 shell=$BASHPID
  cluster=$(mktemp -d "${CLUSTER_TMP:-/tmp}/plag-slurm.XXXXXX")
  trap cluster_down EXIT
  "$slurm_tests/up.sh" "$cluster" || got=$?
  [ $got != 2 ] || exit 77
  [ $got = 0 ] || exit 1
  # No trap runs when ctest kills a test that takes too long: a process out of its reach waits for our end.
  # shellcheck disable=SC2016
  (setsid bash -c 'echo $$ >"$2/guard" && tail --pid="$1" -f /dev/null && "$3/down.sh" "$2" && rm -rf "$2"' \
    guard "$shell" "$cluster" "$slurm_tests" </dev/null >/dev/null 2>&1 &)
  # shellcheck disable=SC1091
  . "$cluster/env.sh"
}

# cluster_down: shows what the cluster did if the test fails.
cluster_down() {
  local failed=$?
  [ -z "$sampler" ] || kill "$sampler" 2>/dev/null || true
  if [ $failed != 0 ] && [ $failed != 77 ]; then
    timeout 5 squeue -r -t all 2>&1 | tail -n 40 || true
    tail -n 15 "$cluster/log/slurmctld.log" || true
  fi
  [ ! -e "$cluster/guard" ] || kill -- "-$(cat "$cluster/guard")" 2>/dev/null || true
  "$slurm_tests/down.sh" "$cluster" || true
  rm -rf "$cluster"
}

# wait_until SECONDS COMMAND...: polls; the last failure is a failure.
wait_until() {
  local now=${EPOCHREALTIME/[.,]/} seconds=$1 end
  end=$((now + seconds * 1000000))
  shift
  until "$@"; do
    now=${EPOCHREALTIME/[.,]/}
    [ "$now" -lt $end ] || { echo "not within $seconds s: $*" >&2 && return 1; }
    sleep 0.1
  done
}

# job_states [SQUEUE OPTION...]: one line "ID STATE" per job or array task, finished ones too.
job_states() { squeue -h -r -t all -o '%i %T' "$@"; }
# job_is ID STATE: whether that job or task is in that state.
job_is() { job_states -j "$1" | grep -qx "$1 $2"; }

# sample_running FILE [SQUEUE OPTION...]: notes the number of running jobs in FILE, about ten times a second, until sampled_max FILE prints the highest.
sample_running() {
  local file=$1
  shift
  : >"$file"
  while sleep 0.1; do { squeue -h -r -t running -o %i "$@" || true; } | wc -l >>"$file"; done &
  sampler=$!
}
sampled_max() {
  kill "$sampler"
  wait "$sampler" || true
  sampler=''
  sort -n "$1" | tail -n 1
}

# node_down NODE, node_up NODE: what an administrator's (or a watchdog's) word does; the node's jobs are requeued at once.
node_down() { scontrol update NodeName="$1" State=DOWN Reason=test; }
node_up() {
  scontrol update NodeName="$1" State=RESUME
  wait_until 20 node_idle "$1"
}
node_idle() { sinfo -h -N -p debug -n "$1" -o %T | grep -qxE 'idle|mixed|allocated'; }

# fake_bin FOLDER: fake Slurm commands in FOLDER, to be put in front of PATH. Call number N of sbatch leaves FOLDER/calls/sbatch.N/{argv,env,stdin}: an argument a
# line, quoted as the shell would; stdin is kept for sbatch only. Its answer is read from FOLDER/sbatch.N.{out,err,rc,real}, or, without a file of that number,
# from FOLDER/sbatch.{out,err,rc,real}. With a file .real the real command is run first, and what .out and .rc don't replace is its own.
fake_bin() {
  local name
  mkdir -p "$1/calls"
  for name in sbatch squeue sacct scontrol scancel sacctmgr sinfo; do
    cp "$slurm_tests/fake.sh" "$1/$name"
    chmod +x "$1/$name"
  done
}
# fake_calls FOLDER NAME: how often the command was called.
fake_calls() { find "$1/calls" -maxdepth 1 -name "$2.*" | wc -l; }
