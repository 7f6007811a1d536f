#!/usr/bin/env bash
# Stands in for the Slurm command of its own name: see fake_bin in lib.sh.
set -u
here=$(cd "$(dirname "$0")" && pwd)
name=$(basename "$0")
n=1
until mkdir "$here/calls/$name.$n" 2>/dev/null; do n=$((n + 1)); done
call=$here/calls/$name.$n
[ $# = 0 ] || printf '%q\n' "$@" >"$call/argv"
env >"$call/env"
stdin=/dev/null
if [ "$name" = sbatch ] && [ ! -t 0 ]; then
  stdin=$call/stdin
  cat >"$stdin"
fi
# answer KIND: the file that holds this part of the answer.
answer() {
  local file=$here/$name.$n.$1
  [ -e "$file" ] || file=$here/$name.$1
  [ ! -e "$file" ] || echo "$file"
}
rc=0
if [ -n "$(answer real)" ]; then
  PATH=${PATH#"$here":} "$name" "$@" <"$stdin" >"$call/out" 2>"$call/err" || rc=$?
  [ -n "$(answer out)" ] || cat "$call/out"
  [ -n "$(answer err)" ] || cat "$call/err" >&2
fi
[ -z "$(answer out)" ] || cat "$(answer out)"
[ -z "$(answer err)" ] || cat "$(answer err)" >&2
[ -z "$(answer rc)" ] || rc=$(cat "$(answer rc)")
exit "$rc"
