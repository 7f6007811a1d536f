# shellcheck shell=bash disable=SC2034 # the scripts that source it use the numbers
# The models that the suites train: shape SHAPE STYLE sets the numbers; run_file prints a run. Tied heads; a, b, c, d as in docs/performance.md.
shape() {
  style=$2
  case $1 in
  a) layers=4 width=256 heads=4 kv_heads=2 ff=704 context=256 vocab=512 batch=8 steps=12 ;;
  b) layers=6 width=512 heads=8 kv_heads=4 ff=1408 context=256 vocab=8192 batch=4 steps=3 ;;
  c) layers=2 width=128 heads=4 kv_heads=2 ff=384 context=128 vocab=256 batch=8 steps=60 ;;
  d) layers=2 width=64 heads=4 kv_heads=2 ff=192 context=64 vocab=128 batch=8 steps=400 ;;
  demo) layers=2 width=32 heads=2 kv_heads=2 ff=88 context=64 vocab=256 batch=16 steps=400 ;;
  *) echo "shape $1 is not known; allowed: a, b, c, d, demo" >&2; exit 2 ;;
  esac
  tokens=$((batch * context))
  if [ "$style" = gpt2 ]; then kv_heads=$heads ff=$((4 * width)); fi
}

# PRECISION OPTIMIZER STEPS: of the shape, with data that cost little.
run_file() {
  local gpt2=''
  if [ "$style" = gpt2 ]; then gpt2='"norm": "layernorm", "activation": "gelu", "positions": "learned", "bias": true, '; fi
  cat <<JSON
{"name": "bench", "model": {"type": "transformer", "layers": $layers, "d_model": $width, "heads": $heads, "kv_heads": $kv_heads, "ff": $ff, "context": $context,
 $gpt2"vocab": $vocab, "tied": true, "init": "normal", "residual_scale": false}, "data": {"type": "synthetic", "vocab": $vocab}, "precision": "$1",
 "optimizer": {"type": "$2", "lr": 8e-3}, "train": {"steps": $3, "batch_tokens": $tokens, "val_tokens": $tokens}}
JSON
}

# Floating-point operations of a token, forward and backward: 6 a weight of a matrix, and attention without its mask (12 L T d), as is usual.
flops_per_token() {
  local mlp=3 kv=$((2 * width * width * kv_heads / heads))
  if [ "$style" = gpt2 ]; then mlp=2; fi
  echo $((6 * (layers * (2 * width * width + kv + mlp * width * ff) + vocab * width) + 12 * layers * context * width))
}
