#!/usr/bin/env bash
# steps.sh STEP: one step of run.sh, in the working folder. Exit status 0: passed; 77: not available; the reason of anything else is in the file reason, figures in the file numbers.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/gpu/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/gpu/steps_bench.sh
. "$here/steps_bench.sh"

# Every operation, on fresh random numbers, against float64.
step_ops() {
  local code=0 small=()
  ! $GPU_DRY || small=(--small)
  program gpu_ops "${small[@]}" >ops.txt || code=$?
  cat ops.txt
  number seed "$(sed -n 's/^{"seed":\([0-9]*\)}$/\1/p' ops.txt)"
  number checks "[$(grep '"op"' ops.txt | paste -sd,)]"
  [ $code = 0 ] || fail "gpu_ops ended with status $code; off: $(sed -n 's/.*"op":"\([^"]*\)","precision":"\([^"]*\)".*"good":false.*/\1 in \2/p' ops.txt | paste -sd,)"
  if [ -e "$GPU_PACK/bin/gpu_attention" ]; then program gpu_attention || fail "gpu_attention ended with status $?"; fi
}

# A short run against the same on the CPU; another run is further away; bf16 beside fp32.
step_curve() {
  local n most mean other
  n=$(steps 60 4)
  run_file "$n" cpu adamw >cpu.json
  run_file "$n" cuda adamw >cuda.json
  run_file "$n" cuda adamw '"seed": 1' >other.json
  run_file "$n" cuda adamw '"precision": "bf16"' >bf16.json
  for name in cpu cuda other bf16; do train $name; done
  read -r most mean < <(distance cpu cuda)
  number from_cpu "{\"largest\": $most, \"mean\": $mean, \"allowed\": 0.005}"
  below "$most" 0.005 || fail "the loss is up to $most from the CPU's; allowed: 0.005"
  read -r other _ < <(distance cpu other)
  below 0.005 "$other" || fail "another seed is no further away than $other: the comparison sees nothing"
  read -r most mean < <(distance cuda bf16)
  number bf16_from_fp32 "{\"largest\": $most, \"mean\": $mean, \"allowed\": 0.1}"
  below "$most" 0.1 || fail "in bf16 the loss is up to $most from that in fp32; allowed: 0.1"
}

# The final losses of a sweep's runs, in their order: INDEX LABEL LOSS.
finals() { # DIR
  local index id label
  tail -n +2 "$1/runs.tsv" | while IFS=$'\t' read -r index id label; do
    printf '%s\t%s\t%s\n' "$index" "$label" "$(sed -n 's/^ *"final_val_loss": \(.*\),$/\1/p' "$1/runs/${id:0:2}/$id/result.json")"
  done
}

# Delay 0 and 1, without a correction and with error feedback, AdamW and Muon, several at a time on the GPU, against the CPU.
step_arms() {
  local run
  run=$(run_file "$(steps 100 3)" cuda adamw)
  cat >sweep.json <<JSON
{"name": "arms", "base": $run,
 "grid": {"optimizer": ["adamw", "muon"], "optimizer.lr": [$(steps 0.002 0.01)], "delay": [0, 1], "correction": ["none", "ef"]}}
JSON
  sed -i 's/"base": {"name": "gpu", /"base": {/' sweep.json
  pipelag run sweep.json -q -j "$(steps 4 2)" -o cuda || fail "the sweep on the GPU ended with status $?"
  pipelag run sweep.json -q --set device=cpu -o cpu || fail "the sweep on the CPU ended with status $?"
  finals cuda >cuda.tsv
  finals cpu >cpu.tsv
  paste cuda.tsv cpu.tsv
  run=$(awk -F'\t' '{printf "%s{\"run\": \"%s\", \"loss\": %s}", (NR == 1 ? "" : ", "), $2, $3}' cuda.tsv)
  number runs "[$run]"
  paste cuda.tsv cpu.tsv | awk -F'\t' '{d = $3 - $6; if ($3 == "" || $6 == "" || d != d || d > 0.02 || d < -0.02) bad = 1; n++} END {exit bad || n != 8}' ||
    fail "a final loss is over 0.02 from the CPU's, or is missing"
  # In the order of the grid: none, ef without delay, then with it; AdamW, then Muon.
  awk -F'\t' '{loss[NR] = $3} END {exit loss[1] != loss[2] || loss[5] != loss[6]}' cuda.tsv || fail "error feedback without delay is not the identity"
  awk -F'\t' '{loss[NR] = $3} END {exit loss[1] == loss[3] || loss[3] == loss[4] || loss[5] == loss[7] || loss[7] == loss[8]}' cuda.tsv ||
    fail "a delay or a correction of it changes nothing"
}

# Twice the same bits.
step_bits() {
  local precision
  for precision in fp32 bf16; do
    for name in first second; do
      run_file "$(steps 40 3)" cuda muon '"delay": 1, "correction": "ef"' >$precision-$name.json
      train $precision-$name --set precision=$precision
    done
    cp $precision-first.json $precision-other.json
    train $precision-other --set precision=$precision --set seed=1
    same $precision-first $precision-second || fail "$precision: two runs differ"
    ! same $precision-first $precision-other || fail "$precision: another seed gives the same curve: the comparison sees nothing"
  done
}

# Stopped by a signal after a checkpoint, resumed, and compared with an undisturbed run.
step_resume() {
  local n pid code folder
  n=$(steps 400 8)
  for try in 1 2 3; do
    rm -rf stopped
    run_file "$n" cuda adamw '"delay": 1, "correction": "ef"' >stopped.json
    sed -i 's/"val_tokens"/"checkpoint_every": 2, "val_tokens"/' stopped.json
    LD_LIBRARY_PATH=$GPU_LIBRARIES "$GPU_PACK/bin/pipelag" train stopped.json -q -o stopped &
    pid=$! code=0
    until compgen -G 'stopped/runs/*/*/ckpt/step-??????????.ckpt' >/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
    kill -TERM $pid 2>/dev/null || true
    wait $pid || code=$?
    [ $code = 0 ] || break
    echo "try $try: $n updates were over before the signal"
    n=$((4 * n))
  done
  [ $code = 75 ] || fail "the signalled run ended with status $code; expected: 75"
  cp stopped.json whole.json
  train whole
  train stopped
  folder=$(echo stopped/runs/*/*)
  grep -q '"start_step": [1-9]' "$folder/meta.json" || fail "the run began anew"
  same stopped whole || fail "the resumed run differs from the undisturbed one"
}

# The carried mpirun with nothing of the machine's own; as root and with more processes than cores, as on a machine of this script alone.
carried_mpirun() {
  OPAL_PREFIX=$GPU_PACK/mpi OPAL_LIBDIR=$GPU_PACK/lib OPAL_PKGLIBDIR=$GPU_PACK/mpi/modules OPAL_PKGDATADIR=$GPU_PACK/mpi/share OPAL_SYSCONFDIR=$GPU_PACK/mpi \
    OMPI_MCA_mca_base_component_path=$GPU_PACK/mpi/modules PMIX_PKGLIBDIR=$GPU_PACK/mpi PMIX_MCA_mca_base_component_path=$GPU_PACK/mpi PMIX_MCA_pcompress_base_silence_warning=1 HWLOC_PLUGINS_PATH=$GPU_PACK/mpi OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1 \
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 LD_LIBRARY_PATH=$GPU_LIBRARIES "$GPU_PACK/mpi/bin/mpirun" "$@"
}

# Two stages on two processes that share the GPU, against one process.
step_ranks() {
  local code=0
  [ -e "$GPU_PACK/mpi/bin/mpirun" ] || not_available "mpirun was not carried"
  carried_mpirun -n 1 true || not_available "the carried mpirun does not start here (status $?)"
  run_file "$(steps 40 3)" cuda adamw '"pipeline": {"schedule": "2bw", "stages": 2, "microbatches": 2, "watchdog": 20}, "correction": "ef"' >two.json
  sed -i 's/"layers": 1/"layers": 2/' two.json
  cp two.json one.json
  carried_mpirun -n 2 "$GPU_PACK/bin/pipelag" train two.json -q --json -o two >two.out || code=$?
  cat two.out two/runs/*/*/log.*.txt
  [ $code = 0 ] || fail "two processes ended with status $code"
  train one
  same one two || fail "two processes differ from one"
}

# NCCL with one rank: arrays to itself, several at once, and an exchange that is cut off. (pipelag adds by exchanges too: it does not use NCCL's all-reduce.)
step_nccl() {
  local code=0 small=()
  ! $GPU_DRY || small=(--small)
  program gpu_peers "${small[@]}" >peers.txt 2>&1 || code=$?
  cat peers.txt
  ! $GPU_DRY || ! grep -qx 'nccl: ncclSend: rank 0 and rank 0' peers.txt || not_available "NCCL's double has no exchange of a rank with itself"
  [ $code != 77 ] || not_available "$(tail -n 1 peers.txt)"
  [ $code = 0 ] || fail "gpu_peers ended with status $code: $(tail -n 1 peers.txt)"
  number nccl "$(tail -n 1 peers.txt)"
}

sanitizer() {
  local path
  for path in compute-sanitizer /usr/local/cuda*/bin/compute-sanitizer /usr/local/cuda*/compute-sanitizer/compute-sanitizer; do
    ! command -v "$path" || return 0
  done
  return 1
}

# The checkers of the toolkit on the small sizes; a checker counts only where it sees an error that was planted.
step_sanitizer() {
  local tool code checker found=''
  $GPU_DRY && [ -z "${GPU_SANITIZER_ON_DOUBLE:-}" ] && not_available "compute-sanitizer cannot check the host double"
  checker=$(sanitizer) || not_available "compute-sanitizer is not on this machine"
  code=0
  LD_LIBRARY_PATH=$GPU_LIBRARIES timeout 20 "$checker" --tool memcheck --error-exitcode 9 "$GPU_PACK/bin/gpu_ops" --plant >plant.txt 2>&1 || code=$?
  cat plant.txt
  [ $code = 9 ] || not_available "compute-sanitizer does not see a planted error (status $code): $(grep -m 1 -iE 'error|not supported' plant.txt || tail -n 1 plant.txt)"
  for tool in memcheck racecheck synccheck; do
    code=0
    LD_LIBRARY_PATH=$GPU_LIBRARIES timeout 25 "$checker" --tool $tool --error-exitcode 9 "$GPU_PACK/bin/gpu_ops" --small >$tool.txt 2>&1 || code=$?
    tail -n 60 $tool.txt
    case $code in
    0) number $tool '"no error"' ;;
    124) number $tool '"not finished in 25 s"' && found="$found; $tool did not finish in 25 s" ;;
    *) number $tool "$(text "status $code: $(grep -m 1 '=========' $tool.txt | sed 's/=* *//')")" && found="$found; $tool: status $code" ;;
    esac
  done
  [ -z "$found" ] || fail "${found#; }"
}

"step_$1"
