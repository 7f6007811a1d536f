# `pipelag list devices`: what this machine has, and why not. Runs on a GPU where there is none: refused in that sentence before anything is made. Pools give each run a GPU of those
# that are to be seen, as many at a time as there are, and the driver is never asked in the process that starts them.
PIPELAG=$1
HOST=$(dirname "$PIPELAG")/tests/pipelag_host_cuda
fail() {
  echo "FAILED: $*"
  exit 1
}
# has PATTERN: a line of the last answer.
has() { grep -qE "^$1\$" out.txt || fail "no line \"$1\" in: $(cat out.txt)"; }
# refused STATUS SENTENCE COMMAND...: without a file of a run.
refused() {
  local expected=$1 sentence=$2 got=0
  shift 2
  "$@" >out.txt 2>err.txt || got=$?
  [ $got = "$expected" ] && grep -qxF "pipelag: $sentence" err.txt || fail "$*: exit $got: $(cat out.txt err.txt)"
}
cat >sweep.json <<'JSON'
{
  "name": "gpus",
  "base": {
    "model": {"type": "mlp", "layers": 1, "hidden": 12, "embedding": 6, "window": 2, "context": 8},
    "data": {"type": "synthetic", "vocab": 16}, "optimizer": "adamw", "device": "cuda",
    "train": {"steps": 2, "batch_tokens": 16, "val_tokens": 16}
  },
  "seeds": [0, 1, 2, 3]
}
JSON
sed 's/"seeds": .*/"seeds": [0]/' sweep.json >one.json

echo "-- without a GPU"
"$PIPELAG" list devices >out.txt
has 'cpu +fp32(, bf16)? +(base|avx2|avx512) kernels.*'
has 'paranoid +fp32(, bf16)? +.*; checks every access, for tests'
has 'multi-GPU: not run on hardware'
"$PIPELAG" list devices --json >devices.json
/usr/bin/python3 - <<'PY' || fail "$(cat devices.json)"
import json
d = json.load(open("devices.json"))
names = [x["name"] for x in d["devices"]]
assert names == ["cpu", "paranoid", "cuda"] and d["multi_gpu"] == "not run on hardware", d
assert d["devices"][0]["precisions"][0] == "fp32" and d["devices"][0]["kernel"] and d["devices"][0]["reason"] is None
PY
refused 2 'list devices: unexpected name "x"; allowed: no name' "$PIPELAG" list devices x
refused 2 'list: saw --json; allowed: with `devices` alone' "$PIPELAG" list run --json
if sentence=$("$PIPELAG" list devices | grep '^cuda: no device ('); then
  refused 2 "$sentence" "$PIPELAG" train one.json -o none
  refused 2 "$sentence" "$PIPELAG" run sweep.json -o none
  [ ! -e none ] || fail "a directory was made"
  "$PIPELAG" run sweep.json -n >out.txt
  grep -qxF "these runs cannot start here: $sentence" out.txt || fail "$(cat out.txt)"
else
  echo "(this machine has a GPU)"
fi

[ -x "$HOST" ] || { echo "(no device's double in this build)" && exit 0; }
echo "-- with pretended GPUs"
PL_PRETEND_GPUS=2 "$HOST" list devices >out.txt
has 'cuda +fp32, bf16 +GPU 0: host double 0, 16384 MiB, compute capability 9.0'
has 'cuda +fp32, bf16 +GPU 1: host double 1, 16384 MiB, compute capability 9.0'
PL_PRETEND_GPUS=2 "$HOST" list devices --json | grep -qF '"gpus":[{"compute_capability":"9.0","memory_mib":16384,"name":"host double 0"},{' || fail "json"
PL_PRETEND_GPUS='no driver' "$HOST" list devices >out.txt
has 'cuda: no device \(driver not found\)'
PL_PRETEND_GPUS='no driver' refused 2 'cuda: no device (driver not found)' "$HOST" train one.json -o none
CUDA_VISIBLE_DEVICES='' refused 2 'cuda: no device (no CUDA-capable device is detected)' "$HOST" run sweep.json -o none
[ ! -e none ] || fail "a directory was made"

echo "-- places"
# places GPUS VISIBLE OPTION...: what the dry run says; VISIBLE - : not set.
places() {
  local gpus=$1 visible=$2
  shift 2
  if [ "$visible" = - ]; then
    PL_PRETEND_GPUS=$gpus "$HOST" run sweep.json -n "$@" | tail -n 1
  else
    CUDA_VISIBLE_DEVICES=$visible PL_PRETEND_GPUS=$gpus "$HOST" run sweep.json -n "$@" | tail -n 1
  fi
}
[ "$(places 1 -)" = '1 at the same time, on GPU 0' ] || fail "$(places 1 -)"
[ "$(places 2 -)" = '2 at the same time, on GPUs 0, 1 in turn' ] || fail "$(places 2 -)"
[ "$(places 2 1)" = '1 at the same time, on GPU 1' ] || fail "$(places 2 1)"
[ "$(places 3 GPU-pretended-2,0,7,1 -j 4)" = '4 at the same time, on GPUs GPU-pretended-2, 0 in turn' ] || fail "$(places 3 GPU-pretended-2,0,7,1 -j 4)"
# The runs of 4 places go to both; each process sees one alone.
CUDA_VISIBLE_DEVICES=GPU-pretended-2,0,7,1 PL_PRETEND_GPUS=3 PL_PRETEND_LOG=$PWD/taken "$HOST" run sweep.json -q -j 4 -o out >/dev/null || fail "exit $?"
[ "$(sort taken | uniq -c | sed 's/,.*//; s/^ *//')" = $'2 GPU 0 of 0\n2 GPU 2 of GPU-pretended-2' ] || fail "$(cat taken)"
grep -hoE 'host double [0-9]' out/runs/*/*/meta.json | sort | uniq -c | sed 's/^ *//' | paste -sd, | grep -qx '2 host double 0,2 host double 2' || fail "$(grep -h '"kernel"' out/runs/*/*/meta.json)"
# One after the other on one, by default.
rm taken
PL_PRETEND_GPUS=1 PL_PRETEND_LOG=$PWD/taken "$HOST" run sweep.json -q -o alone >/dev/null || fail "exit $?"
[ "$(grep -c '^GPU 0 of 0,' taken)" = 4 ] || fail "$(cat taken)"
# Nothing is left to run: no GPU is asked for.
PL_PRETEND_GPUS='no driver' "$HOST" run sweep.json -q -o alone >out.txt || fail "exit $?: $(cat out.txt)"
