#!/usr/bin/env bash
# cuda_failing_test.sh MPIEXEC PROGRAM: processes with GPUs that fail, which way arrays take, and the mistakes that NCCL's double finds.
set -u
failed=0
mpiexec=$1 program=$2

# check STATUS TEXT GPUS HOW [MPIEXEC'S FOR RANK 1...]: STATUS may be "any" for any but 0; TEXT, a pattern, is in the output, once.
check() {
  local out status wanted=$1 text=$2 gpus=$3 how=$4 before=$SECONDS
  shift 4
  out=$(timeout -s KILL 100 "$mpiexec" -np 1 "$program" "$gpus" "$how" : -np 1 "$@" "$program" "$gpus" "$how" 2>&1)
  status=$?
  if { [ "$wanted" = any ] && [ $status = 0 ]; } || { [ "$wanted" != any ] && [ $status != "$wanted" ]; } || [ $((SECONDS - before)) -ge 100 ] ||
    [ "$(grep -cE "$text" <<<"$out")" != 1 ]; then
    echo "$gpus $how $*: status $status instead of $wanted, or not once \"$text\":"
    echo "$out"
    failed=1
  fi
}
says='^rank 0 says:'
check 0 "$says between GPUs: NCCL 2\.28\.9$" 2 note
check 0 "$says between GPUs: copies in the hosts' memory; ranks 0 and 1 share GPU 0000:01:00\.0 of " 1 note
check 0 "$says between GPUs: copies in the hosts' memory; rank 1: NCCL 22703 is older than 22809" 2 old
check 0 "$says between GPUs: copies in the hosts' memory; rank 1: PIPELAG_NCCL is off$" 2 note -x PIPELAG_NCCL=off
check 42 "$says the environment variable PIPELAG_NCCL is \"no\"; allowed: on, off$" 2 note -x PIPELAG_NCCL=no

watchdog="$says rank 0: nothing went on for 2 s \(pipeline\.watchdog\); (stage 0 waits in|it waits for)"
for gpus in 1 2; do
  check 41 "$watchdog" $gpus stopped
  check any 'signal 9' $gpus killed
done

check 41 "$says NCCL failed while exchanging arrays with other ranks: remote process exited" 2 gone
check any '^nccl: rank [01] (sends|receives) array 1 of [56] numbers, rank [01] (sends|receives) 1 of [56]$' 2 sizes
check any '^nccl: a send that does not wait for the kernels that were launched last$' 2 early
check any '^cuda: kind 3 of a copy to host memory$' 2 host
exit $failed
