#!/usr/bin/env bash
# failing_test.sh MPIEXEC PROGRAM: of four processes the last fails; all end, with the right status and sentence.
set -u
failed=0
sentence='rank 3, stage 3, update 17: the loss is purple'

# check HOW STATUS TEXT: STATUS may be "any" for any but 0; TEXT is in the output, once.
check() {
  local out status
  out=$("$mpiexec" -np 4 "$program" "$1" 2>&1)
  status=$?
  if [ "$status" = 0 ] || { [ "$2" != any ] && [ "$status" != "$2" ]; } || [ "$(grep -cF "$3" <<<"$out")" != 1 ]; then
    echo "$1: status $status instead of $2, or not once \"$3\":"
    echo "$out"
    failed=1
  fi
}
mpiexec=$1 program=$2
check progress 41 "rank 0 says: $sentence"
check agree 41 "rank 0 says: $sentence"
check deaf 42 "rank 3, to which rank 0 does not listen: $sentence"
check killed any "signal 9"
exit $failed
