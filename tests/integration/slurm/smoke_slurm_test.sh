# The private cluster and the helpers do what the tests of the launcher rely on.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/lib.sh"
fail() {
  echo "FAILED: $*"
  exit 1
}
field() { scontrol -o show job "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"; }
finished() { ! job_states -j "$1" | grep -qE ' (PENDING|RUNNING|COMPLETING)$'; }
started=$EPOCHREALTIME
cluster_up
echo "-- up in $(bc <<<"$EPOCHREALTIME - $started") s"
[ "$(srun -N4 --ntasks-per-node=1 bash -c 'echo $SLURMD_NODENAME' | sort | paste -sd' ')" = "n1 n2 n3 n4" ] || fail "four nodes"

cat >retried.sh <<'SH'
#!/bin/bash
echo "start ${SLURM_RESTART_COUNT:-0}"
[ -n "${SLURM_RESTART_COUNT:-}" ] || sleep 100
SH
cat >warned.sh <<'SH'
#!/bin/bash
trap 'echo warned; scontrol requeue $SLURM_JOB_ID; kill $!; wait; exit 0' USR1
[ -z "${SLURM_RESTART_COUNT:-}" ] || { echo resumed && exit 0; }
sleep 100 & wait $!
SH

echo "-- started together: an array of 20 with a throttle of 4, a job to requeue, one to warn, one to lose its node"
array=$(sbatch --parsable --array=0-19%4 -o array.%a --wrap 'sleep 0.5')
sample_running samples -j "$array"
requeued=$(sbatch --parsable --open-mode=append -o requeued.txt retried.sh)
warned=$(sbatch --parsable --signal=B:USR1@60 --time=10 --open-mode=append -o warned.txt warned.sh)
lost=$(sbatch --parsable -w n3 --open-mode=append -o lost.txt retried.sh)
scancel "${array}_17" # a waiting task leaves no trace, a running one is listed as cancelled
! job_states -j "$array" | grep -q "^${array}_17 " || fail "cancelled task: $(job_states -j "$array")"
wait_until 10 job_is "${array}_0" RUNNING
scancel "${array}_0"
wait_until 5 job_is "${array}_0" CANCELLED
for id in $requeued $warned $lost; do wait_until 10 job_is "$id" RUNNING; done
wait_until 5 grep -q start requeued.txt
wait_until 5 grep -q start lost.txt
scontrol requeue "$requeued"
node_down n3
wait_until 5 job_is "$lost" PENDING
node_up n3
sleep 0.3
scancel --signal=USR1 --batch "$warned"
for id in $array $requeued $warned $lost; do wait_until 30 finished "$id"; done

echo "-- what came of them"
highest=$(sampled_max samples)
{ [ "$highest" -ge 2 ] && [ "$highest" -le 4 ]; } || fail "$highest ran at once"
[ "$(job_states -j "$array" | grep -c COMPLETED)" = 18 ] || fail "array: $(job_states -j "$array")"
[ "$(find . -name 'array.*' | wc -l)" = 19 ] || fail "a cancelled task ran"
for name in requeued lost; do
  [ "$(field "${!name}" Restarts)" = 1 ] || fail "$name: $(scontrol -o show job "${!name}")"
  [ "$(grep start "$name.txt" | paste -sd' ')" = "start 0 start 1" ] || fail "$name: $(cat "$name.txt")"
done
[ "$(grep -cE '^(warned|resumed)$' warned.txt)" = 2 ] || fail "warned: $(cat warned.txt)"
job_is "$warned" COMPLETED || fail "warned: $(job_states)"

echo "-- without a throttle more than 4 run, and the sampler sees it"
free=$(sbatch --parsable --array=0-11 -o /dev/null --wrap 'sleep 1')
sample_running samples -j "$free"
wait_until 20 finished "$free"
[ "$(sampled_max samples)" -gt 4 ] || fail "the sampler saw $(sort -n samples | tail -n 1)"

echo "-- fake commands: an answer of our own, an answer lost after the real thing was done, an error"
fake_bin "$PWD/fake"
real=$(sbatch --parsable --hold --wrap true)
echo 77 >fake/sbatch.1.out
: >fake/sbatch.2.real
: >fake/sbatch.2.out
echo 'sbatch: error: no' >fake/sbatch.3.err
echo 1 >fake/sbatch.3.rc
fakes=$PWD/fake:$PATH
[ "$(A='b c' PATH=$fakes sbatch --parsable -J 'x y' <<<'#!/bin/bash')" = 77 ] || fail "canned answer"
[ "$(cat fake/calls/sbatch.1/argv)" = $'--parsable\n-J\nx\\ y' ] && grep -qx 'A=b c' fake/calls/sbatch.1/env && grep -qx '#!/bin/bash' fake/calls/sbatch.1/stdin ||
  fail "log: $(head fake/calls/sbatch.1/*)"
[ -z "$(PATH=$fakes sbatch --parsable --hold -J lost-answer <<<'#!/bin/bash')" ] || fail "the answer is there"
[ "$(squeue -h -n lost-answer -o %i)" = $((real + 1)) ] || fail "the real command did not run: $(job_states)"
! PATH=$fakes sbatch x 2>err.txt </dev/null && grep -qx 'sbatch: error: no' err.txt || fail "error"
[ "$(fake_calls fake sbatch)" = 3 ] || fail "$(ls fake/calls)"

echo "-- a second cluster beside it, on plain nodes, taken down though its test fails"
(
  CLUSTER_NET=0 CLUSTER_NODES=2 CLUSTER_MAX_ARRAY=20 cluster_up
  echo "$cluster" >second.txt
  [ "$(srun -N2 bash -c 'echo $SLURMD_NODENAME' | sort | paste -sd' ')" = "n1 n2" ] || touch wrong
  sbatch --parsable -o /dev/null --array=0-19 --wrap 'sleep 100 & sleep 100' && ! sbatch -o /dev/null --array=0-20 --wrap true || touch wrong
  wait_until 5 job_is 2_0 RUNNING
  false
) >second.log 2>&1 && fail "the second test passed"
[ ! -e wrong ] || fail "second cluster: $(cat second.log)"
[ ! -e "$(cat second.txt)" ] || fail "its folder is left"
! grep -lzxF "SLURM_CONF=$(cat second.txt)/slurm.conf" /proc/[0-9]*/environ 2>/dev/null || fail "a process is left"
job_is "${array}_1" COMPLETED || fail "the first cluster is gone"
