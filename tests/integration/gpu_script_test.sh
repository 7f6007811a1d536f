# tests/gpu: what pack.sh packs lacks nothing that a bare machine lacks; run.sh goes from its first step to the last on the device's double and never says "passed" there; what it says of
# steps that fail, hang or cannot be had, and that its results are whole after every step.
PIPELAG=$1
build=$(dirname "$PIPELAG") gpu=$TESTS_SOURCE/gpu
[ -x "$build/tests/gpu_ops_host" ] || { echo "no device's double in this build" && exit 77; }
fail() {
  echo "FAILED: $*"
  tail -n 40 results*/log.txt 2>/dev/null || true
  exit 1
}
unset OUT "${!GPU_@}" "${!PL_PRETEND_@}"

echo "-- the pack"
"$gpu/pack.sh" --host "$build" "$PWD/packs" || fail "pack.sh"
mkdir pack
tar -C pack -xzf packs/host.tar.gz
for file in pack/bin/* pack/lib/* pack/mpi/bin/* pack/mpi/modules/*; do
  [ -e "$file" ] || continue
  LD_LIBRARY_PATH=$PWD/pack/lib ldd "$file" | awk -v own="$PWD/pack/lib/" '$2 == "=>" && index($3, own) != 1 {print $1}' |
    grep -vE '^(libc|libm|libdl|librt|libpthread|libresolv|libutil|libgcc_s|libstdc\+\+)\.so' && fail "$file finds these outside of the pack"
done
! "$gpu/pack.sh" --host "$PWD/nowhere" "$PWD/packs2" >out.txt 2>&1 && grep -q 'pack.sh: .*/pipelag_host_cuda is not there; allowed' out.txt || fail "$(cat out.txt)"

# packed NAME PROGRAM SCRIPT: another pack, in which that program is a script.
packed() {
  rm -rf other
  cp -r pack other
  rm "other/bin/$2"
  printf '#!/bin/bash\n%s\n' "$3" >"other/bin/$2"
  chmod +x "other/bin/$2"
  mkdir -p "$1"
  tar -C other -czf "$1/host.tar.gz" .
}
# status STEP: of the last results, which must be JSON.
status() {
  /usr/bin/python3 -c 'import json, sys; print({s["name"]: s["status"] + (": " + s["reason"] if s["reason"] else "") for s in json.load(open("results/results.json"))["steps"]}[sys.argv[1]])' "$1"
}
# run_sh STATUS PACKS OPTION...: run.sh ends with that status.
run_sh() {
  local expected=$1 packs=$2 got=0
  shift 2
  "$gpu/run.sh" --pack "$PWD/$packs/pack.tar.gz" --out results "$@" >out.txt 2>&1 || got=$?
  [ $got = "$expected" ] || fail "run.sh $*: exit $got instead of $expected: $(cat out.txt)"
}
# is STEP STATUS: a pattern of the whole.
is() { [[ $(status "$1") == $2 ]] || fail "$1: $(status "$1"); expected: $2"; }

echo "-- all steps on the double"
run_sh 0 packs --dry-run
cp -r results results-all
/usr/bin/python3 - <<'PY' || fail "$(cat results/results.json)"
import json
d = json.load(open("results/results.json"))
steps = {s["name"]: s for s in d["steps"]}
assert list(steps) == ["ops", "curve", "arms", "bits", "resume", "ranks", "nccl", "sanitizer", "bench"], list(steps)
assert d["dry_run"] is True and d["devices"]["multi_gpu"] == "not run on hardware"
absent = {"sanitizer"} | {n for n in ("ranks", "nccl") if steps[n]["status"] == "not available"}
for name, step in steps.items():
    assert step["status"] == ("not available" if name in absent else "host double"), step
    assert bool(step["reason"]) == (name in absent), step
n = {k: s["numbers"] for k, s in steps.items()}
assert len(n["ops"]["checks"]) == 14 and all(c["good"] for c in n["ops"]["checks"])
assert n["curve"]["from_cpu"]["largest"] < 0.005 and len(n["arms"]["runs"]) == 8
assert len(n["bench"]["train"]) == 6 and n["bench"]["ceilings"]["copy_gb_per_second"] > 0 and len(n["bench"]["kernels"]["kernels"]) == 27
assert [a["met"] for a in n["bench"]["aims"]] == [None] * 5 and n["bench"]["train"][0]["mfu"] is None
PY
! grep -rw passed results out.txt || fail "something has passed on the double"
grep -q 'multi-GPU: not run on hardware' out.txt || fail "$(cat out.txt)"
if command -v mpirun >/dev/null; then is ranks 'host double'; fi

echo "-- steps that fail, hang, or are left out"
packed failing gpu_ops 'echo "{\"seed\":1}"; echo "{\"op\":\"gemm\",\"precision\":\"fp32\",\"worst\":1,\"allowed\":2e-05,\"good\":false}"; exit 1'
run_sh 1 failing --dry-run --only ops
is ops 'failed: gpu_ops ended with status 1; off: gemm in fp32'
is bench 'not run: left out by --only'
touch hangs
packed hanging gpu_peers "while [ -e '$PWD/hangs' ]; do sleep 0.2; done"
run_sh 1 hanging --dry-run --seconds 20 --only nccl,sanitizer
is nccl 'failed: stopped at its limit of * s'
is sanitizer 'not run: the 20 seconds of the whole were over'
packed crashing gpu_peers 'echo \"broken\\words\"; kill -SEGV $$'
run_sh 1 crashing --dry-run --only nccl
is nccl 'failed: gpu_peers ended with status 139*'

echo "-- what the steps look for: a GPU with other numbers, other bits, a resume from the beginning, ranks that differ"
packed wrong pipelag '
case "$1 $2" in
"train cuda.json" | "train fp32-second.json" | "train two.json") set -- "$@" --set train.data_seed=5 ;;
"train stopped.json") rm -rf stopped/runs/*/*/ckpt ;;
"run sweep.json") [[ $* == *device=cpu* ]] || set -- "$@" --set train.data_seed=5 ;;
esac
exec "$(dirname "$0")/own" "$@"'
cp pack/bin/pipelag other/bin/own
tar -C other -czf wrong/host.tar.gz .
run_sh 1 wrong --dry-run --only curve,arms,bits,resume,ranks
is curve "failed: the loss is up to * from the CPU's; allowed: 0.005"
is arms "failed: a final loss is over 0.02 from the CPU's, or is missing"
is bits 'failed: fp32: two runs differ'
is resume 'failed: the run began anew'
if command -v mpirun >/dev/null; then is ranks 'failed: two processes differ from one'; fi

echo "-- results that are whole whenever it ends"
"$gpu/run.sh" --pack "$PWD/hanging/pack.tar.gz" --dry-run --out results --only sanitizer,ranks,nccl >out.txt 2>&1 &
until grep -q '"name": "ranks", "status": "\(host double\|not available\)"' results/results.json 2>/dev/null; do
  kill -0 $! || fail "it has ended: $(cat out.txt)"
  sleep 0.2
done
kill -KILL $!
wait $! || true
rm hangs
is nccl 'not run: not reached'
is ops 'not run: left out by --only'

echo "-- compute-sanitizer: a tool that refuses, one that sees nothing, one that works and one that finds something"
mkdir tools
export GPU_SANITIZER_ON_DOUBLE=1
# sanitizer SCRIPT: the tool, with the name of the checker as $tool and that of the planted error as $planted.
sanitizer() {
  printf '#!/bin/bash\ntool=$2 planted=false\n[ "${!#}" != --plant ] || planted=true\n%s\n' "$1" >tools/compute-sanitizer
  chmod +x tools/compute-sanitizer
  PATH=$PWD/tools:$PATH run_sh "$2" packs --dry-run --only sanitizer
}
sanitizer 'echo "========= Error: Device not supported"; exit 1' 0
is sanitizer 'not available: compute-sanitizer does not see a planted error (status 1): ========= Error: Device not supported'
sanitizer 'exit 0' 0
is sanitizer 'not available: compute-sanitizer does not see a planted error (status 0):*'
sanitizer '$planted && exit 9; exit 0' 0
is sanitizer 'host double'
sanitizer '$planted && exit 9; [ $tool != racecheck ] || { echo "========= Error: Race reported between Write and Read" && exit 9; }' 1
is sanitizer 'failed: racecheck: status 9'
grep -q '"racecheck": "status 9: Error: Race reported' results/results.json || fail "$(cat results/results.json)"
unset GPU_SANITIZER_ON_DOUBLE
rm tools/compute-sanitizer

echo "-- no GPU: a dry run, and an exit status of its own"
rm -rf other && cp -r pack other && cp "$PIPELAG" other/bin/pipelag && tar -C other -czf packs/pack.tar.gz .
if "$PIPELAG" list devices | grep -q '^cuda: no device'; then
  run_sh 77 packs --only sanitizer
  grep -q '^cuda: no device (.*): a dry run' out.txt || fail "$(cat out.txt)"
  is sanitizer 'not available: *'
else
  echo "(this machine has a GPU)"
fi

echo "-- programs that do not start: built here, where that can be done"
packed broken pipelag 'exit 1'
mv broken/host.tar.gz broken/pack.tar.gz
printf '#!/bin/bash\nexit 1\n' | tee tools/cmake >tools/nvcc
chmod +x tools/cmake tools/nvcc
PATH=$PWD/tools:$PATH run_sh 1 broken --only nccl
is nccl 'not run: the carried programs do not start, and none can be built here*'
cat >tools/cmake <<SH
#!/bin/bash
[ "\$1" = --build ] || exit 0
mkdir -p "\$2/tests" && cp "$build/tests/pipelag_host_cuda" "\$2/pipelag" && : >"\$2/pipelag-cuda.so"
for name in ops bench peers; do cp "$build/tests/gpu_\${name}_host" "\$2/tests/gpu_\$name"; done
cp "$build/tests/gpu_ops_host" "\$2/tests/gpu_attention"
SH
PATH=$PWD/tools:$PATH run_sh 0 broken --only sanitizer
is sanitizer 'not available: *'
grep -q 'the carried programs do not start; building here' out.txt || fail "$(cat out.txt)"

echo "-- options"
for words in '--only nothing' '--seconds 0' '--seconds' '--fast'; do
  # shellcheck disable=SC2086
  run_sh 2 packs $words
  grep -q '^run.sh: .*; allowed: ' out.txt || fail "$(cat out.txt)"
done
