#!/usr/bin/env bash
# slowest.sh BUILD: run by ctest after the tests; prints the ten that took longest, from ctest's own record of this run.
set -eu
log=$1/Testing/Temporary/LastTest.log.tmp
[ -f "$log" ] || log=$1/Testing/Temporary/LastTest.log
echo "Ten slowest tests:"
awk '/^[0-9]+\/[0-9]+ Test: / {name = $3} /^Test time = / {printf "%8.2f s  %s\n", $4, name}' "$log" | sort -rn | head -n 10
