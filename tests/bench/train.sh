#!/usr/bin/env bash
# Tokens per second of every shape, style, precision and optimizer, on one core; beside them GFLOP/s and their share of the measured peak, peak memory, and seconds from the
# start of the process to the end of a run of one step. With --vs-torch in turn with PyTorch on the same model, batch and optimizer on the same core, which first have to agree on
# the loss of the same weights. Usage: tests/bench/train.sh [--vs-torch] [--rounds N] [--core N] [--style llama|gpt2] [SHAPE...]; needs the target `bench`, and for --vs-torch
# /usr/bin/python3 with torch and h5py (not part of the tests); TORCH_PYTHON names an interpreter with another release, which runs eager and compiled, and of all the rival is the one
# that is fastest in a short run of the row. Rounds in which others took more than 5% of the core do not count. The last line is JSON.
set -euo pipefail
cd "$(dirname "$0")/../.."
source tests/bench/lib.sh
source tests/bench/shapes.sh
torch=false rounds=5 core=0 styles="llama gpt2" shapes=()
while [ $# -gt 0 ]; do
  case $1 in
  --vs-torch) torch=true ;;
  --rounds) rounds=$2 && shift ;;
  --core) core=$2 && shift ;;
  --style) styles=$2 && shift ;;
  -*) echo "train.sh: $1 is not known; allowed: --vs-torch, --rounds, --core, --style" >&2; exit 2 ;;
  *) shapes+=("$1") ;;
  esac
  shift
done
[ ${#shapes[@]} -gt 0 ] || shapes=(a b c d)
cores=$core
export ATEN_CPU_CAPABILITY=avx512
rivals=("/usr/bin/python3 tests/bench/rival_torch.py")
[ -z "${TORCH_PYTHON:-}" ] || rivals+=("$TORCH_PYTHON tests/bench/rival_torch.py" "$TORCH_PYTHON tests/bench/rival_torch.py --compile")
read -ra rival <<<"${rivals[0]}"
arms=(fp32)
grep -q avx512_bf16 /proc/cpuinfo && arms+=(bf16)
peak=$(taskset -c "$core" "$(bench_program gemm)" --peak)
# The fastest instructions for each precision.
peak_of() {
  local keys=fp32
  if [ "$1" = bf16 ]; then keys="amx_bf16 avx512_bf16 fp32"; fi
  for key in $keys; do number "$key" <<<"$peak" && return; done
}

ours() { # ARM: keeps rate and memory
  rm -rf "$work/o"
  alone "$1" taskset -c "$core" "$pipelag" train "$work/run.json" -q --json -o "$work/o" || return 1
  number tokens_per_second <"$work/out.$1" >>"$work/rate.$1"
  cut -d' ' -f4 "$work/used.$1" >>"$work/memory.$1"
}
ours_start() { # ARM
  rm -rf "$work/o"
  local before after
  before=$(date +%s.%N)
  taskset -c "$core" "$pipelag" train "$work/one.json" -q --json -o "$work/o" >/dev/null
  after=$(date +%s.%N)
  awk -v a="$before" -v b="$after" 'BEGIN {print b - a}' >>"$work/start.$1"
}
rival_options() { # SHAPE PRECISION OPTIMIZER STEPS
  options=(--shape "$1" --style "$style" --optimizer "$3" --steps "$4")
  [ "$1" != b ] || options+=(--warmup 1)
  [ "$2" != bf16 ] || options+=(--bf16)
}
# The fastest of the rivals becomes `rival`.
choose_rival() { # SHAPE PRECISION OPTIMIZER
  local options one rate best=0
  [ ${#rivals[@]} -gt 1 ] || return 0
  rival_options "$1" "$2" "$3" 5
  for one in "${rivals[@]}"; do
    # shellcheck disable=SC2086 # an interpreter and its arguments
    rate=$(taskset -c "$core" $one "${options[@]}" 2>/dev/null | number tokens_per_second) || rate=0
    echo "# $1 $style $2 $3: ${one/tests\/bench\/rival_torch.py/}: $rate tokens/s"
    if awk -v r="$rate" -v b="$best" 'BEGIN {exit !(r > b)}'; then
      best=$rate
      read -ra rival <<<"$one"
    fi
  done
}
theirs() { # ARM SHAPE PRECISION OPTIMIZER
  local options
  rival_options "$2" "$3" "$4" "$steps"
  alone "$1" taskset -c "$core" "${rival[@]}" "${options[@]}" || return 1
  number tokens_per_second <"$work/out.$1" >>"$work/rate.$1"
  number first_step <"$work/out.$1" >>"$work/start.$1"
  cut -d' ' -f4 "$work/used.$1" >>"$work/memory.$1"
}

# SHAPE: both give these weights the same loss on these tokens; an update of 0 leaves the weights as drawn.
same_model() {
  rm -rf "$work/o" "$work/tokens.bin" "$work/weights.h5"
  "${rival[@]}" --shape "$1" --tokens "$work/tokens.bin"
  cp "$work/tokens.bin" "$work/train.bin"
  run_file fp32 adamw 2 >"$work/same.json"
  "$pipelag" train "$work/same.json" -q --json -o "$work/o" --set data=tokens --set "data.train=$work/train.bin" --set "data.val=$work/tokens.bin" --set data.format=nanogpt \
    --set "data.vocab=$vocab" --set "train.val_tokens=$((64 * context))" --set train.checkpoint_every=1 --set optimizer.lr=0 >"$work/out.same"
  "$pipelag" checkpoint merge "$work/o" -q -o "$work/weights.h5"
  local x y
  x=$(number initial_val_loss <"$work/out.same")
  y=$("${rival[@]}" --shape "$1" --style "$style" --tokens "$work/tokens.bin" --weights "$work/weights.h5" | number loss)
  awk -v x="$x" -v y="$y" -v s="$1" -v t="$style" 'BEGIN {d = x - y; if (d < 0) d = -d; printf "# %s %s: loss %.6f here, %.6f in PyTorch, of the same weights\n", s, t, x, y; exit d > 1e-3}' ||
    { echo "train.sh: the two models are not the same" >&2; exit 1; }
}

value() { [ -s "$work/$1.$2" ] && median <"$work/$1.$2" || echo null; } # WHAT ARM
row() { # SHAPE PRECISION OPTIMIZER
  local a=$1-$style-$2-$3 line
  [ -s "$work/rate.$a" ] || return 0
  line=$(awk -v s="$1" -v t="$style" -v p="$2" -v o="$3" -v rate="$(value rate "$a")" -v range="$(range <"$work/rate.$a")" -v flops="$(flops_per_token)" -v peak="$(peak_of "$2")" \
    -v memory="$(value memory "$a")" -v start="$(value start "$a")" -v foreign="$(foreign "$a")" -v rival="$(value rate "$a.torch")" -v rival_memory="$(value memory "$a.torch")" \
    -v rival_start="$(value start "$a.torch")" 'BEGIN {
      g = 1e-9 * flops * rate
      printf "%-5s %-5s %-4s %-5s %9.0f (%s) %8.1f %5.1f%% %7.0f %7.3f %6.1f%%", s, t, p, o, rate, range, g, 100 * g / peak, memory / 1024, start, 100 * foreign
      if (rival != "null") printf " %9.0f %6.2f %7.0f %6.2f", rival, rate / rival, rival_memory / 1024, rival_start
      printf "\n{\"shape\":\"%s\",\"style\":\"%s\",\"precision\":\"%s\",\"optimizer\":\"%s\",\"tokens_per_second\":%s,\"gflops\":%.1f,\"of_peak\":%.3f,\"memory_kb\":%s,\"one_step_run\":%s,\"foreign\":%s,", s, t, p, o, rate, g, g / peak, memory, start, foreign
      printf "\"torch\":%s,\"torch_memory_kb\":%s,\"torch_first_step\":%s,\"ratio\":%s}\n", rival, rival_memory, rival_start, rival == "null" ? "null" : sprintf("%.3f", rate / rival)
    }')
  head -n 1 <<<"$line"
  rows+=("$(tail -n 1 <<<"$line")")
}

echo "# peak $peak"
echo "# kernel $("$(bench_program gemm)" --kernel), core $core, load $(cut -d' ' -f1 /proc/loadavg), medians of $rounds rounds"
echo "shape style prec optim  tokens/s (range)   GFLOP/s of peak  memory MB  one-step run s  foreign$($torch && echo '   PyTorch tokens/s  ratio  memory MB  first step s')"
rows=()
for shape in "${shapes[@]}"; do
  for style in $styles; do
    shape "$shape" "$style"
    ! $torch || same_model "$shape"
    for precision in "${arms[@]}"; do
      for optimizer in adamw muon; do
        arm=$shape-$style-$precision-$optimizer
        run_file "$precision" "$optimizer" "$steps" >"$work/run.json"
        run_file "$precision" "$optimizer" 1 >"$work/one.json"
        ! $torch || choose_rival "$shape" "$precision" "$optimizer"
        for ((round = 1; round <= rounds; round++)); do
          again ours "$arm"
          ours_start "$arm"
          ! $torch || again theirs "$arm.torch" "$shape" "$precision" "$optimizer"
        done
        row "$shape" "$precision" "$optimizer"
      done
    done
  done
done
json_result train "${rows[@]}"
