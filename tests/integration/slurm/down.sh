#!/usr/bin/env bash
# down.sh FOLDER: ends what up.sh started there, jobs included: no process, namespace or link stays, the files do. Does nothing where nothing runs.
set -uo pipefail
D=$1
PATH=$PATH:/usr/sbin:/sbin
[ -e "$D/pids" ] || exit 0
export SLURM_CONF=$D/slurm.conf

# alive PID START: the process of that start time runs (not a later one with its number, not a zombie).
alive() { [ "$(awk '{ sub(/.*\) /, ""); if ($1 != "Z") print $20 }' "/proc/$1/stat" 2>/dev/null)" = "$2" ]; }
# job_processes: job steps and what they run, told by their environment.
job_processes() {
  local p
  for p in $(grep -lzxF "SLURM_CONF=$D/slurm.conf" /proc/[0-9]*/environ 2>/dev/null); do
    p=${p%/environ}
    if [ "$(cat "$p/comm" 2>/dev/null)" = slurmstepd ] || grep -qz '^SLURM_JOB_ID=' "$p/environ" 2>/dev/null; then echo "${p#/proc/}"; fi
  done
}
no_jobs() { [ -z "$(timeout 5 squeue -h -o %A 2>/dev/null)" ]; }
# until_true TENTHS COMMAND...
until_true() {
  local left=$1
  shift
  until "$@"; do
    [ $((left--)) -gt 0 ] || return 1
    sleep 0.1
  done
}

# Jobs first, while slurmctld answers: a job outlives a killed slurmd.
if timeout 3 scontrol ping >/dev/null 2>&1 && ! no_jobs; then
  timeout 10 scancel -u root 2>/dev/null
  until_true 100 no_jobs
fi
gone() { ! alive "$1" "$2"; }
tac "$D/pids" >"$D/stop"
while read -r _ pid start; do ! alive "$pid" "$start" || kill "$pid"; done <"$D/stop"
while read -r name pid start; do
  until_true 50 gone "$pid" "$start" || { echo "down.sh: $name ($pid) needed SIGKILL" >&2 && kill -KILL "$pid"; }
done <"$D/stop"
none_left() { [ -z "$(job_processes)" ]; }
for signal in TERM KILL; do
  none_left && break
  # shellcheck disable=SC2046
  kill -$signal $(job_processes) 2>/dev/null
  until_true 10 none_left
done
if [ -e "$D/bridge" ]; then
  bridge=$(cat "$D/bridge")
  for ns in $(ip netns list | awk -v b="$bridge-n" 'index($1, b) == 1 { print $1 }'); do
    ip link del "${ns/-n/.}" 2>/dev/null
    ip netns del "$ns"
  done
  ip link del "$bridge"
fi
if grep -q '^TaskPlugin=task/cgroup' "$D/slurm.conf" 2>/dev/null; then
  find /sys/fs/cgroup/memory/slurm_n* -depth -type d -exec rmdir {} +
fi
rm -f "$D/pids" "$D/stop" "$D/bridge"
