# pipelag schedule --model and --plan: what they print, against numbers worked out by hand.
PIPELAG=$1
fail() {
  echo "FAILED: $*"
  exit 1
}
# says PATTERN COMMAND...: the command succeeds and prints a line that matches.
says() {
  local pattern=$1
  shift
  "$@" >said.txt 2>&1 || fail "$*: exit $?: $(cat said.txt)"
  grep -qE -- "$pattern" said.txt || fail "$*: no $pattern in: $(cat said.txt)"
}
# also PATTERN: of the same output.
also() { grep -qE -- "$1" said.txt || fail "no $1 in: $(cat said.txt)"; }
# holds EXPRESSION COMMAND...: of the JSON that the command prints, in Python, as x.
holds() {
  local expression=$1
  shift
  "$@" >said.json || fail "$*: exit $?"
  python3 -c 'import json, sys; x = json.load(open("said.json")); assert eval("(" + sys.argv[1] + ")"), x' "$expression" ||
    fail "$*: not $expression"
}

echo "-- the layers of a run's stages: one of 16384 FLOPs a token, five of 8192, a head of 40960"
cat >run.json <<'JSON'
{
  "model": {"type": "mlp", "layers": 6, "hidden": 64, "embedding": 32, "window": 4, "context": 8, "vocab": 320},
  "data": {"type": "bytes", "train": "text.txt", "val_block": 1024},
  "optimizer": "adamw",
  "correction": "ef",
  "train": {"steps": 5, "batch_tokens": 64, "val_tokens": 64},
  "pipeline": {"stages": 3, "microbatches": 4}
}
JSON
for i in $(seq 1200); do echo "line $i of a text"; done >text.txt
says 'run.json: mlp, 6 layers in 3 stages, pipeline.partition flops' "$PIPELAG" schedule --model run.json
also '^0 +0-1 +22.7k +24.6k +25.0% +0-1 +25.0%$'
also '^1 +2-4 +12.5k +24.6k +25.0% +2-3 +16.7%$'
also '^2 +5 +24.6k +49.2k +50.0% +4-5 +58.3%$'
also '^balance \(largest / mean\): 1.500; even: 1.750$'
says 'pipeline.partition as listed' "$PIPELAG" schedule --model run.json --set 'pipeline.partition=[1,4,1]'
also '^1 +1-4 '
says 'pipeline.partition even' "$PIPELAG" schedule --model run.json --set pipeline.partition=even
also '^balance .*: 1.750; flops: 1.500$'
holds 'x["stages"] == 2 and [s["layers"] for s in x["own"]["by_stage"]] == [5, 1] and
  sum(s["flops_per_token"] for s in x["own"]["by_stage"]) == 98304 and x["beside"]["partition"] == "even"' \
  "$PIPELAG" schedule --model run.json --stages 2 --json

echo "-- a plan from a run: FLOPs by a rate; with equal stages the bubble is (P-1)/(m+P-1)"
cat >equal.json <<'JSON'
{"model": {"type": "quadratic", "dim": 32, "layers": 8}, "optimizer": "sgd", "train": {"steps": 5, "batch_tokens": 64}}
JSON
# 2048 FLOPs a sample: 16 samples a microbatch, a quarter in each of four stages, forward and twice that backward
holds 'abs(x["schedules"][0]["step"] - 4 * 3 * 16 * 512 / 1e6) < 1e-12 and x["schedules"][0]["delay"] == 1 and
  abs(x["schedules"][0]["tokens_per_second"] - 64 / (4 * 3 * 16 * 512 / 1e6)) < 1e-6 and
  abs(x["schedules"][1]["bubble"] - 3 / 7) < 1e-12 and
  abs(x["schedules"][0]["token_overhead_against_1f1b"] - 0.75) < 1e-12' \
  "$PIPELAG" schedule 2bw --plan --model equal.json --stages 4 --microbatches 4 --flops-per-second 1e6 --json
# the vector of 32 floats goes along; a microbatch of 16 samples sends 16 of them in this cost model
holds 'abs(x["schedules"][0]["link_use"] * x["schedules"][0]["step"] - 4 * 16 * 128 / 1e9) < 1e-12' \
  "$PIPELAG" schedule 2bw --plan --model equal.json --stages 4 --microbatches 4 --flops-per-second 1e6 --bandwidth 1e9 --json
# ef keeps one array more where there is a delay
holds 'x["schedules"][0]["memory"] > 0' "$PIPELAG" schedule 2bw --plan --model run.json --flops-per-second 1e9 --json
cp said.json with.json
holds 'x["schedules"][0]["memory"] < json.load(open("with.json"))["schedules"][0]["memory"] and
  x["schedules"][1]["memory"] == json.load(open("with.json"))["schedules"][1]["memory"]' \
  "$PIPELAG" schedule 2bw --plan --model run.json --flops-per-second 1e9 --json --set correction=none

echo "-- a plan from a file: the slowest stage sets the step of 2bw; memory is versions, gradient, optimizer, activations"
cat >costs.json <<'JSON'
{"forward": [1e-3, 1e-3, 2e-3, 1e-3], "backward": [2e-3, 2e-3, 3e-3, 2e-3], "update": 5e-4, "tokens": 1000,
 "weights": 100, "gradient": 50, "optimizer": 200, "activations": [10, 20, 30, 40]}
JSON
holds 'abs(x["schedules"][0]["step"] - (8 * 5e-3 + 5e-4)) < 1e-12 and x["schedules"][0]["slowest_stage"] == 2 and
  [s["memory"] for s in x["schedules"][0]["by_stage"]] == [490, 510, 510, 490] and
  x["schedules"][1]["by_stage"][0]["memory"] == 390 and abs(x["schedules"][2]["by_stage"][3]["memory"] - 670) < 1e-9 and
  abs(x["schedules"][0]["tokens_per_second"] - 8000 / (8 * 5e-3 + 5e-4)) < 1e-6' \
  "$PIPELAG" schedule 2bw --plan --costs costs.json --microbatches 8 --json
says '^2bw +1 +40.5 ms ' "$PIPELAG" schedule 2bw --plan --costs costs.json --microbatches 8
also '^slowest stage of 2bw: 2, which computes 100.0% of the step$'
also '^2bw pays as long as it needs less than [0-9.]+% more tokens than 1f1b to the same loss.$'

echo "-- (P-1)/m more tokens; a synchronous schedule; every schedule that takes the numbers"
says 'less than 43.8% more tokens than 1f1b' "$PIPELAG" schedule 2bw --plan --stages 15 --microbatches 32
says '^1f1b is synchronous: it needs no more tokens than one process, and 30.4% of its stages. time is bubble.$' \
  "$PIPELAG" schedule 1f1b --plan --stages 15 --microbatches 32
says '^interleaved-1f1b +0 +34.5 +30.4%' "$PIPELAG" schedule --plan --stages 8 --microbatches 8
also '^zb-h1 +0 +31 +22.6%'
also '^pipedream: saw 8 microbatches; allowed: 1'
also '^2bw pays as long as it needs less than 87.5% more tokens than 1f1b to the same loss.$'
also '^2bw pays as long as it needs less than 29.2% more tokens than zb-h1 to the same loss.$'

echo "-- layers cut by their times; a slow link; a schedule of one's own"
cat >layers.json <<'JSON'
{"layers": 10, "layer_forward": 1, "layer_backward": 2, "last": 3, "message_bytes": 6e9, "bandwidth": 1e9}
JSON
# 13 layers' worth in four stages: 3, 3, 3 and 1 + 3
holds '[round(s["busy"] * x["schedules"][0]["step"] / 8, 9) for s in x["schedules"][0]["by_stage"]] == [9, 9, 9, 12] and
  x["schedules"][0]["step"] > 96 and abs(x["schedules"][0]["link_use"] - 48 / x["schedules"][0]["step"]) < 1e-12' \
  "$PIPELAG" schedule 2bw --plan --costs layers.json --stages 4 --microbatches 8 --json
"$PIPELAG" schedule 2bw --stages 2 --microbatches 2 --text | sed 's/^schedule .*/schedule mine/' >mine.txt
says '^mine +1 +6 ' "$PIPELAG" schedule --file mine.txt --plan
also '^mine pays as long as it needs less than 50.0% more tokens than 1f1b to the same loss.$'

echo "-- a thousand stages"
says '^1f1b +0 +3261 +94.1%' "$PIPELAG" schedule 1f1b --plan --stages 1024 --microbatches 64
