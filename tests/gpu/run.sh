#!/usr/bin/env bash
# run.sh [--dry-run] [--out DIR] [--pack FILE] [--seconds N] [--only STEP,...]: settles on one GPU, in under six minutes, what tests without one cannot: right results, the same bits,
# how fast. It carries the programs that pack.sh has packed (build/gpu/pack.tar.gz), and builds here only where these do not start. Steps come in order of their value, each with a time
# limit of its own and all within N seconds (345). DIR ($OUT, else build/gpu/results) gets results.json, whole after every step, and log.txt.
#
# With --dry-run, or where no GPU is, the steps run with tiny sizes on programs that have the device's double in them (host.tar.gz beside FILE), in no hurry: that exercises everything but
# the GPU, and says "host double" where a GPU would have "passed". Exit status: 0; 1 when a step failed; 77 when no GPU was there.
#
# It reads the GPU's settings at most, and changes none.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=tests/gpu/lib.sh
. "$here/lib.sh"

# Name and limit in seconds.
steps=(ops:50 curve:30 arms:50 bits:30 resume:30 ranks:30 nccl:20 sanitizer:95 bench:150)
export GPU_DRY=false GPU_PACK='' GPU_LIBRARIES='' GPU_NAME=''
own_libraries=${LD_LIBRARY_PATH:-}
out=${OUT:-$root/build/gpu/results} pack='' whole='' only='' asked_dry=false started=$EPOCHREALTIME

usage() {
  echo "run.sh: $*; allowed: [--dry-run] [--out DIR] [--pack FILE] [--seconds N] [--only STEP,...]" >&2
  exit 2
}
while [ $# -gt 0 ]; do
  case $1 in
  --dry-run) asked_dry=true ;;
  --out | --pack | --seconds | --only)
    [ $# -gt 1 ] || usage "$1 without a value"
    case $1 in --out) out=$2 ;; --pack) pack=$2 ;; --seconds) whole=$2 ;; --only) only=$2 ;; esac
    shift
    ;;
  *) usage "saw \"$1\"" ;;
  esac
  shift
done
[[ ${whole:-1} =~ ^[1-9][0-9]*$ ]] || usage "--seconds: saw \"$whole\""
for name in ${only//,/ }; do [[ " ${steps[*]} " == *" $name:"* ]] || usage "--only: saw \"$name\", which is no step"; done
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$out/log.txt"

passed_seconds() { awk -v a="$started" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.1f", b - a}'; }

# folder_of NAME: ":" and the folder of a library of the driver or the toolkit, which the loader may not know by itself.
folder_of() {
  local path
  for path in "${CUDA_HOME:-/usr/local/cuda}"/lib64 /usr/local/cuda*/lib64 /usr/local/cuda*/targets/*/lib /usr/local/nvidia/lib64 /usr/lib/x86_64-linux-gnu \
    $(python3 -c 'import site; print(*site.getsitepackages())' 2>/dev/null | tr ' ' '\n' | sed 's|$|/nvidia/*/lib|'); do
    [ ! -e "$path/$1" ] || { echo ":$path" && return; }
  done
}

# open_pack FILE: unpacks it; its programs are the ones that run from then on.
open_pack() {
  rm -rf "$work/pack"
  mkdir "$work/pack"
  tar -C "$work/pack" -xzf "$1" || return 1
  GPU_PACK=$work/pack
  GPU_LIBRARIES=$GPU_PACK/lib$(folder_of libcuda.so.1)$(folder_of libcublasLt.so.13)$(folder_of libnccl.so.2)${own_libraries:+:$own_libraries}
}
version=none
starts() { version=$(pipelag --version 2>>"$out/log.txt"); }

# build_here: the same programs, made on this machine.
build_here() {
  local build=$work/build
  echo "the carried programs do not start; building here" | tee -a "$out/log.txt"
  command -v cmake nvcc >>"$out/log.txt" || return 1
  # shellcheck disable=SC2016
  timeout 200 bash -c 'cmake -S "$1" -B "$2" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-O2 && cmake --build "$2" -j "$(nproc)"' build "$root" "$build" \
    >>"$out/log.txt" 2>&1 || return 1
  rm -rf "$work/pack"
  mkdir -p "$work/pack/bin" "$work/pack/lib"
  cp "$build/pipelag" "$build/pipelag-cuda.so" "$work/pack/bin/"
  cp "$build"/tests/gpu_{ops,bench,peers,attention} "$work/pack/bin/"
  GPU_PACK=$work/pack
  starts
}

# What the programs find here: `list devices`, as JSON; the name of the first GPU.
devices=null
look() {
  devices=$(pipelag list devices --json 2>>"$out/log.txt") || devices=null
  GPU_NAME=$(sed -n 's/.*"gpus":\[{[^]]*"name":"\([^"]*\)".*/\1/p' <<<"$devices")
}

record() { # NAME STATUS SECONDS LIMIT REASON
  local figures=''
  [ ! -s "$work/$1/numbers" ] || figures=$(paste -sd, "$work/$1/numbers")
  printf '{"name": "%s", "status": "%s", "seconds": %s, "limit": %s, "reason": %s, "numbers": {%s}}' "$1" "$2" "$3" "$4" "$(text "$5")" "$figures" >"$work/record.$1"
  printf '%-10s %-14s %8s  %s\n' "$1" "$2" "$3" "$5" >>"$work/table"
}

write_results() {
  local step name first=true
  {
    printf '{"program": %s,\n"dry_run": %s,\n"seconds": %s,\n"machine": %s,\n"driver": %s,\n"devices": %s,\n"steps": [' "$(text "$version")" $GPU_DRY \
      "$(passed_seconds)" "$(text "$(uname -srm), $(nproc) CPUs")" "$(text "$driver")" "$devices"
    for step in "${steps[@]}"; do
      name=${step%:*}
      $first || printf ','
      first=false
      if [ -e "$work/record.$name" ]; then
        printf '\n%s' "$(<"$work/record.$name")"
      else
        printf '\n{"name": "%s", "status": "not run", "seconds": 0, "limit": %s, "reason": "not reached", "numbers": {}}' "$name" "${step#*:}"
      fi
    done
    printf '\n]}\n'
  } >"$out/results.json.new"
  mv "$out/results.json.new" "$out/results.json"
}

# status_of CODE: of a step that ended with this exit status.
status_of() {
  case $1 in
  0) if [[ $GPU_NAME == "host double"* ]]; then echo "host double"; else echo passed; fi ;;
  77) echo "not available" ;;
  *) echo failed ;;
  esac
}

run_step() { # NAME LIMIT
  local name=$1 limit=$2 left before code=0 reason=''
  left=$(awk -v w="$whole" -v p="$(passed_seconds)" 'BEGIN {print int(w - p)}')
  if [ "$left" -lt 5 ]; then
    record "$name" "not run" 0 "$limit" "the $whole seconds of the whole were over"
    return
  fi
  ! $GPU_DRY || limit=$left
  [ "$limit" -le "$left" ] || limit=$left
  mkdir "$work/$name"
  echo "== $name" | tee -a "$out/log.txt"
  before=$EPOCHREALTIME
  (cd "$work/$name" && exec timeout -k 5 "$limit" "$here/steps.sh" "$name") >>"$out/log.txt" 2>&1 || code=$?
  [ ! -s "$work/$name/reason" ] || reason=$(<"$work/$name/reason")
  case $code in
  0 | 77) ;;
  124 | 137) reason="stopped at its limit of $limit s" ;;
  *) [ -n "$reason" ] || reason="ended with status $code: $(tail -n 1 "$out/log.txt")" ;;
  esac
  record "$name" "$(status_of $code)" "$(awk -v a="$before" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.1f", b - a}')" "$limit" "$reason"
  [ "$(status_of $code)" != failed ] || failed=true
}

driver=$(nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem --format=csv,noheader 2>/dev/null || echo "nvidia-smi does not answer")
failed=false no_gpu=false why='' pack=${pack:-$root/build/gpu/pack.tar.gz}
if ! $asked_dry; then
  if { open_pack "$pack" 2>>"$out/log.txt" && starts; } || build_here; then
    look
    if [ -z "$GPU_NAME" ]; then
      no_gpu=true why=$(pipelag list devices | grep '^cuda: ' || echo "no GPU that opens")
    fi
  else
    why="the carried programs do not start, and none can be built here: see log.txt"
    failed=true
  fi
fi
if $asked_dry || $no_gpu; then
  $asked_dry || echo "$why: a dry run, on the device's double"
  GPU_DRY=true
  pack=$(dirname "$pack")/host.tar.gz
  if open_pack "$pack" 2>>"$out/log.txt" && starts; then
    look
    [[ $GPU_NAME == "host double"* ]] || { why="a dry run with programs that do not have the device's double in them" && failed=true; }
  else
    why="${why:+$why; }$pack cannot be unpacked, or what it has does not start" && failed=true
  fi
fi

if [ -z "$whole" ]; then whole=345 && ! $GPU_DRY || whole=3600; fi
: >"$work/table"
write_results
if $failed; then
  echo "$why" | tee -a "$out/log.txt" >&2
  for step in "${steps[@]}"; do record "${step%:*}" "not run" 0 "${step#*:}" "$why"; done
else
  for step in "${steps[@]}"; do
    if [ -n "$only" ] && [[ ",$only," != *",${step%:*},"* ]]; then
      record "${step%:*}" "not run" 0 "${step#*:}" "left out by --only"
    else
      run_step "${step%:*}" "${step#*:}"
    fi
    write_results
  done
fi
write_results

{
  echo
  printf '%-10s %-14s %8s\n' step status seconds
  cat "$work/table"
  $GPU_DRY || [ ! -s "$work/bench/aims.txt" ] || sed 's/^{"aim": "\(.*\)", "measured": \(.*\), "met": \(.*\)}$/\1; measured \2, met: \3/' "$work/bench/aims.txt"
  echo "${GPU_NAME:-no GPU}; multi-GPU: not run on hardware"
  echo "$(passed_seconds) s in all; results: $out/results.json"
} | tee -a "$out/log.txt"
! $failed || exit 1
! $no_gpu || exit 77
