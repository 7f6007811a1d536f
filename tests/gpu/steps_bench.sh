# shellcheck shell=bash
# The step that measures: what the GPU can do, the device's kernels, training. Each figure is in the results as soon as it is there.

# peak: floating-point operations a second of dense bf16 products by the vendor's datasheet, for GPUs whose sheet is known; nothing for others.
peak() {
  case $GPU_NAME in
  *H200* | *H100*HBM3*) echo 989.4e12 ;;
  *"H100 PCIe"*) echo 756e12 ;;
  *A100*) echo 312e12 ;;
  esac
}

# measured NAME PART: what gpu_bench finds.
measured() {
  local found small=()
  ! $GPU_DRY || small=(--small)
  found=$(program gpu_bench "$2" "${small[@]}" | tail -n 1) || fail "gpu_bench $2 ended with status $?"
  number "$1" "$found"
}

# shape NAME: sets the numbers of a model. microbatch: tokens that are computed at once.
shape() {
  style=llama microbatch=16384 vocab=49152
  case $1 in
  gpt2-124m) style=gpt2 layers=12 width=768 heads=12 kv_heads=12 ff=3072 context=1024 vocab=50304 ;;
  smollm2-135m) layers=30 width=576 heads=9 kv_heads=3 ff=1536 context=2048 ;;
  smollm2-360m) layers=32 width=960 heads=15 kv_heads=5 ff=2560 context=2048 ;;
  small) layers=2 width=64 heads=4 kv_heads=4 ff=192 context=64 vocab=128 microbatch=512 ;;
  esac
  if $GPU_DRY; then layers=1 width=8 heads=1 kv_heads=1 ff=16 context=8 vocab=16 microbatch=8; fi
}

# Floating-point operations of a token, forward and backward: 6 a weight of a matrix, and attention without its mask (12 L T d), as is usual.
flops_of_token() {
  local mlp=3 kv=$((2 * width * width * kv_heads / heads))
  if [ "$style" = gpt2 ]; then mlp=2; fi
  echo $((6 * (layers * (2 * width * width + kv + mlp * width * ff) + vocab * width) + 12 * layers * context * width))
}

# bench_file MICROBATCHES OPTIMIZER STEPS [KEYS]: a run of the shape in bf16.
bench_file() {
  local gpt2=''
  if [ "$style" = gpt2 ]; then gpt2='"norm": "layernorm", "activation": "gelu", "positions": "learned", "bias": true, '; fi
  cat <<JSON
{"name": "bench", "model": {"type": "transformer", "layers": $layers, "d_model": $width, "heads": $heads, "kv_heads": $kv_heads, "ff": $ff, "context": $context, ${gpt2}"vocab": $vocab,
 "tied": true, "init": "normal", "residual_scale": false}, "data": {"type": "synthetic", "vocab": $vocab}, "device": "cuda", "precision": "bf16",
 "optimizer": {"type": "$2", "lr": 1e-3}, "pipeline": {"microbatches": $1}, "train": {"steps": $3, "batch_tokens": $(($1 * microbatch)), "val_tokens": $microbatch}${4:+, $4}}
JSON
}

# step_seconds NAME: the median time between two points of its curve, without the first two updates.
step_seconds() {
  awk -F, 'NR == 1 {for (i = 1; i <= NF; i++) if ($i == "seconds") c = i; next}
    {if ($1 > 2) print $c - before; before = $c}' "$(curve "$1")" | sort -g | awk '{x[NR] = $1} END {if (NR == 0) exit 1; print x[int((NR + 1) / 2)]}'
}

# arm NAME SHAPE MICROBATCHES OPTIMIZER [KEYS]: trains it and writes a line of the results.
arm() {
  local seconds tokens flops
  shape "$2"
  bench_file "$3" "$4" "$(steps 6 4)" "${5:-}" >"$1.json"
  train "$1"
  grep -h 'GPU memory' "$1"/runs/*/*/log.*.txt || true
  seconds=$(step_seconds "$1") || fail "$1: no time of a step"
  tokens=$(($3 * microbatch)) flops=$(flops_of_token)
  awk -v name="$1" -v s="$seconds" -v t=$tokens -v f="$flops" -v peak="$(peak)" 'BEGIN {
    printf "{\"run\": \"%s\", \"step_tokens\": %d, \"step_seconds\": %.6g, \"tokens_per_second\": %.6g, \"flops_per_token\": %.6g, \"tflops\": %.5g, \"mfu\": %s}\n",
      name, t, s, t / s, f, 1e-12 * t * f / s, peak == "" ? "null" : sprintf("%.4f", t * f / s / peak)}' | tee -a train.txt
  { grep -v '^"train"' numbers || true; } >rest
  printf '"train": [%s]\n' "$(paste -sd, train.txt)" >>rest
  mv rest numbers
}

# of RUN KEY: a figure of an arm.
of() { sed -n "s/^{\"run\": \"$1\",.*\"$2\": \([^,}]*\)[,}].*/\1/p" train.txt; }

# aim WORDS VALUE least|most LIMIT: a line of the results about one of the aims; what the double takes tells nothing.
aim() {
  awk -v words="$1" -v value="$2" -v kind="$3" -v limit="$4" -v dry="$GPU_DRY" 'BEGIN {
    known = dry == "false" && value != "" && value != "null"
    met = known && (kind == "least" ? value >= limit : value <= limit)
    printf "{\"aim\": \"%s: at %s %s\", \"measured\": %s, \"met\": %s}\n", words, kind, limit, known ? value : "null", known ? (met ? "true" : "false") : "null"}' | tee -a aims.txt
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN {if (a != "" && b + 0 > 0) printf "%.4f\n", a / b}'; }

# The same runs one after the other and all at a time on the GPU: their speed-up.
packing() {
  local before seconds=() slots count seeds
  count=$(steps 8 2)
  seeds=$(seq -s, 0 $((count - 1)))
  shape small
  bench_file 1 adamw "$(steps 300 2)" >packed.json
  sed -i "s/{\"name\": \"bench\", /{\"name\": \"packed\", \"seeds\": [$seeds], \"base\": {/; \$ s/\$/}/" packed.json
  for slots in 1 "$count"; do
    before=$EPOCHREALTIME
    pipelag run packed.json -q -j "$slots" -o "packed$slots" || fail "packed runs ended with status $?"
    seconds+=("$(awk -v a="$before" -v b="$EPOCHREALTIME" 'BEGIN {print b - a}')")
  done
  number packing "{\"runs\": $count, \"one_at_a_time_seconds\": ${seconds[0]}, \"all_at_a_time_seconds\": ${seconds[1]}}"
  aim "$count small runs at a time against one after the other, speed-up" "$(ratio "${seconds[0]}" "${seconds[1]}")" least 1
}

step_bench() {
  local many few
  many=$(steps 32 2) few=$(steps 16 2)
  measured ceilings ceilings
  arm gpt2-124m gpt2-124m "$many" adamw
  arm gpt2-124m-muon gpt2-124m "$many" muon
  measured muon muon
  measured kernels kernels
  arm smollm2-360m smollm2-360m "$few" adamw
  arm smollm2-135m smollm2-135m "$few" adamw
  arm gpt2-124m-delay gpt2-124m "$many" adamw '"delay": 1'
  arm gpt2-124m-delay-ef gpt2-124m "$many" adamw '"delay": 1, "correction": "ef"'
  aim "GPT-2 124M-like, bf16, share of the datasheet's peak" "$(of gpt2-124m mfu)" least 0.45
  aim "SmolLM2-360M-like, bf16, share of the datasheet's peak" "$(of smollm2-360m mfu)" least 0.5
  aim "Muon's share of a step of 0.5M tokens" \
    "$(ratio "$(sed -n 's/^"muon": .*"muon_bf16_ms":\([0-9.e+-]*\).*/\1/p' numbers)" "$(awk -v s="$(of gpt2-124m-muon step_seconds)" 'BEGIN {print 1000 * s}')")" most 0.1
  aim "a step with delay and error feedback against one without" "$(ratio "$(of gpt2-124m-delay-ef step_seconds)" "$(of gpt2-124m step_seconds)")" most 1.02
  packing
  number aims "[$(paste -sd, aims.txt)]"
}
