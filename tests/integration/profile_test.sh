# `pipelag train --profile`: the run is the one without it, the shares add up, what the run did is there.
PIPELAG=$1
fail() {
  echo "FAILED: $*"
  exit 1
}
cat >run.json <<'JSON'
{
  "name": "small",
  "model": {"type": "transformer", "layers": 2, "d_model": 16, "heads": 2, "context": 16},
  "data": {"type": "synthetic", "vocab": 32},
  "optimizer": {"type": "muon", "lr": 0.01},
  "train": {"steps": 20, "batch_tokens": 64, "val_tokens": 64, "checkpoint_every": 5},
  "delay": 1,
  "correction": "ef"
}
JSON
"$PIPELAG" train run.json -q --json -o plain >plain.json
"$PIPELAG" train run.json -q --json -o measured --profile >measured.json
"$PIPELAG" train run.json -q -o table --profile >table.txt

losses() { grep -oE '"(best|final|initial)_val_loss":[^,]*' "$1"; }
[ "$(losses plain.json)" = "$(losses measured.json)" ] || fail "other losses with --profile"
grep -q '"profile"' plain.json && fail "a profile that nobody asked for"

# Shares have 17 digits in JSON and two decimals in the table.
adds_up() { awk -v most="$1" '{sum += $1} END {exit !(NR > 0 && sum > 1 - most && sum < 1 + most)}'; }
shares() { grep -oE '"share":[0-9.e+-]+' "$1" | cut -d: -f2; }
shares measured.json | adds_up 1e-12 || fail "the shares of $(cat measured.json) do not add up to 1"
shares measured.json | tail -n +2 | adds_up 1e-12 && fail "shares add up to 1 without one of them"
column() { sed -nE 's/.* ([0-9.]+)% .*/\1/p' "$1" | awk '{print $1 / 100}'; }
column table.txt | adds_up 1e-3 || fail "the shares of $(cat table.txt) do not add up to 100%"

parts="gemm attention norms activations embedding_loss vectors optimizer correction apply clip data validation checkpoint log ends other"
for part in $parts; do grep -q "\"$part\":{\"calls\":" measured.json || fail "no $part in $(cat measured.json)"; done
grep -q '"probe":\|"waiting":' measured.json && fail "parts that the run has not: $(cat measured.json)"
[ "$(grep -c % table.txt)" = "$(wc -w <<<"$parts")" ] || fail "not all parts: $(cat table.txt)"
grep -qE '^matrix products( +[0-9.]+){2}%( +[0-9.]+){2}$' table.txt || fail "no rate of matrix products: $(cat table.txt)"

# Two stages in one process pass messages.
"$PIPELAG" train run.json -q --json -o stages --profile --set pipeline.stages=2 --set train.clip=0 >stages.json
grep -q '"waiting":{"calls":' stages.json || fail "no messages in $(cat stages.json)"

# A run that is there already is not trained again, and has no profile.
"$PIPELAG" train run.json -q -o table --profile | grep -q '^profile: nothing was trained now$' || fail "a profile of nothing"
"$PIPELAG" train run.json -q --json -o table --profile | grep -q '"profile":{"parts":{},"seconds":0}' || fail "a profile of nothing"
