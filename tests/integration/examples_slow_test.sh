# Every small example sweep is trained and analysed; what sweeps/examples/README.md tells of it holds in a weaker form. The demo needs real
# text: scripts/demo.sh trains and checks it. Results that are in the folder EXAMPLES_OUT are used again.
PIPELAG=$1
EXAMPLES=$TESTS_SOURCE/../sweeps/examples
OUT=${EXAMPLES_OUT:-$PWD/out}
fail() { echo "FAILED: $*"; exit 1; }
# run NAME: trains it and says what that took.
run() {
  local TIMEFORMAT='   %R s, %U s of CPU time'
  echo "-- $1"
  time "$PIPELAG" run "$EXAMPLES/$1.json" -q -o "$OUT/$1" >"$1.out" 2>"$1.err" || fail "$1: $(cat "$1.out" "$1.err")"
}
# analyze FILE NAME OPTION...: its tables as FILE.json.
analyze() {
  local file=$1 name=$2
  shift 2
  "$PIPELAG" analyze "$OUT/$name" "$@" --json >"$file.json" 2>"$file.err" || fail "$name: $(cat "$file.err")"
}

for sweep in "$EXAMPLES"/*.json; do
  name=$(basename "$sweep" .json)
  [ "$name" = demo ] || run "$name"
done
analyze lr-delay lr-delay --select-on 0
analyze delay delay --against delay
analyze depth depth --against model.layers,pipeline.stages
analyze sync-start sync-start --against delay_start
analyze batch batch --against train.batch_tokens,train.steps
analyze batch-updates batch --at train.steps=600 --against train.batch_tokens
for name in optimizers momentum momentum-lm profiles schedules random stability; do analyze $name $name; done
python3 "$TESTS_SOURCE/integration/examples_findings.py" "$PWD"
