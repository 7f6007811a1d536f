# Checkpoints shown, merged into one file, and made into those of another number of stages, which go on to the same bits.
PIPELAG=$1
fail() { echo "FAILED: $*"; exit 1; }
# says PATTERN COMMAND...: the command succeeds and its output holds the pattern.
says() {
  local pattern=$1
  shift
  "$@" >said.txt 2>said.err || fail "$*: exit $?: $(cat said.err)"
  grep -qE -- "$pattern" said.txt || fail "$*: no $pattern in: $(cat said.txt)"
}
# refuses STATUS PATTERN COMMAND...
refuses() {
  local status=$1 pattern=$2 got=0
  shift 2
  "$@" >said.txt 2>said.err || got=$?
  [ "$got" = "$status" ] || fail "$*: exit $got; expected $status: $(cat said.err)"
  grep -qE -- "$pattern" said.err || fail "$*: no $pattern in: $(cat said.err)"
}
run_of() { echo "$1"/runs/*/*; }
figures() { grep -E '_loss"|"steps"|"state"' "$(run_of "$1")/result.json"; }
mkdir there
for i in $(seq 400); do echo "line $i of a text that a small model can learn from, $((i * 7919 % 1000))"; done >there/text
cat >there/run.json <<'JSON'
{
  "name": "small",
  "base": {
    "model": {"type": "transformer", "layers": 4, "d_model": 16, "heads": 2, "context": 8, "tied": true},
    "data": {"type": "bytes", "train": "text", "val_block": 512, "val_fraction": 0.1},
    "optimizer": {"type": "adamw", "lr": 0.004},
    "correction": "ef",
    "train": {"steps": 20, "batch_tokens": 32, "val_tokens": 64, "val_every": 5, "checkpoint_every": 6},
    "pipeline": {"stages": 2, "microbatches": 4, "schedule": "2bw"}
  }
}
JSON

echo "-- nothing there yet"
"$PIPELAG" run there/run.json -q -o fresh --set train.checkpoint_every=0 >/dev/null
refuses 3 'there is no checkpoint; one is written when' "$PIPELAG" checkpoint show fresh
refuses 3 'fresh: its runs have no checkpoint' "$PIPELAG" checkpoint repartition fresh --stages 4
refuses 3 'fresh: run [0-9a-f]{16} has no checkpoint' "$PIPELAG" checkpoint merge fresh 0 -o x.h5

echo "-- show"
"$PIPELAG" run there/run.json -q -o out >/dev/null
id=$(basename "$(run_of out)")
says "^  0  $id +18 +2 +[0-9]+  whole\$" "$PIPELAG" checkpoint show out
[ "$(grep -c whole said.txt)" = 2 ] || fail "two are kept: $(cat said.txt)"
bytes=$(cat "$(run_of out)"/ckpt/step-0000000012* | wc -c)
says "\"bytes\":$bytes,\"damage\":null,\"id\":\"$id\",\"index\":0,\"stages\":2,\"step\":12,\"whole\":true" "$PIPELAG" checkpoint show out "${id:0:5}" --json

echo "-- another number of stages goes on to the bits of a run that always had it"
find out -type f -exec cksum {} + | sort >before.txt
for stages in 1 4; do
  "$PIPELAG" run there/run.json -q -o whole$stages --set pipeline.stages=$stages >/dev/null
  says "^made to$stages: run $(basename "$(run_of whole$stages)")\$" "$PIPELAG" checkpoint repartition out --stages $stages -o to$stages/
  grep -q 'bit for bit' said.txt && grep -q "^go on with: pipelag train to$stages\$" said.txt || fail "$(cat said.txt)"
  [ $stages = 1 ] || grep -q "^or: mpirun -n $stages pipelag train to$stages\$" said.txt || fail "$(cat said.txt)"
  says '"stopped":1[,}]' "$PIPELAG" status to$stages --json
  says '^done: 20 steps' "$PIPELAG" train to$stages
  grep -q 'resumed from the checkpoint of step 18' "$(run_of to$stages)/log.1.txt" || fail "it began anew"
  diff <(figures whole$stages) <(figures to$stages) || fail "$stages stages differ"
  diff <(figures out) <(figures to$stages) || fail "$stages stages differ from 2"
  grep -q '"bitwise": true' "$(run_of to$stages)/meta.json" || fail "the mark is lost: $(cat "$(run_of to$stages)/meta.json")"
  grep -A 6 '"origin"' "$(run_of to$stages)/meta.json" | grep -q "\"id\": \"$id\"" || fail "no origin"
done
find out -type f -exec cksum {} + | sort | diff - before.txt || fail "the run that is read was changed"
says '"stages":4,"step":18' "$PIPELAG" checkpoint show to4 --json

echo "-- by default below results/, once; dry runs make nothing; JSON"
(cd there && "$PIPELAG" checkpoint repartition ../out --stages 4 -n >said.txt && grep -q '^would make results/small-run0-stages4' said.txt && [ ! -e results ]) || fail "dry run: $(cat there/said.txt)"
says '"bitwise":true,"dir":"results/small-run0-stages4",' "$PIPELAG" checkpoint repartition out --stages 4 --json
refuses 2 'results/small-run0-stages4: is there already' "$PIPELAG" checkpoint repartition out --stages 4
[ -z "$(find . -name '*.tmp*')" ] || fail "left behind: $(find . -name '*.tmp*')"

echo "-- refused"
refuses 2 '--stages: saw "0"; allowed: a whole number from 1' "$PIPELAG" checkpoint repartition out --stages 0 -o no
refuses 2 'pipeline.stages: 5 is more than the model has layers; allowed: 1 to 4' "$PIPELAG" checkpoint repartition out --stages 5 -o no
refuses 2 'saw 3 microbatches with 4 stages; allowed: at least 4' "$PIPELAG" checkpoint repartition out --stages 4 -o no --set pipeline.microbatches=3
refuses 2 'saw 2, which run [0-9a-f]{16} has; allowed: another' "$PIPELAG" checkpoint repartition out --stages 2 -o no
refuses 2 'optimizer.lr=1.*but this stays the same run' "$PIPELAG" checkpoint repartition out --stages 4 -o no --set optimizer.lr=1
refuses 3 'run "77" matches 0 runs' "$PIPELAG" checkpoint repartition out 77 --stages 4 -o no
refuses 2 '--restart-ring is given; allowed: with repartition' "$PIPELAG" checkpoint show out --restart-ring
[ ! -e no ] || fail "a refusal made files"
"$PIPELAG" checkpoint repartition out --stages 4 -q -o listed --set 'pipeline.partition=[1,1,1,1]'
refuses 2 "pipeline.partition: the run's is for 4 stages; allowed: one for 2, with --set" "$PIPELAG" checkpoint repartition listed --stages 2 -o no
says 'bit for bit' "$PIPELAG" checkpoint repartition listed --stages 2 -o unlisted --set pipeline.partition=even

echo "-- delays that change need --restart-ring"
"$PIPELAG" run there/run.json -q -o dream --set pipeline.schedule=pipedream --set pipeline.microbatches=1 --set train.clip_scope=stage --set model.tied=false --set pipeline.partition=even >/dev/null
refuses 2 'have the delays \[1,0\] and 4 of pipedream have \[3,2,1,0\]' "$PIPELAG" checkpoint repartition dream --stages 4 -o no
says 'dropped: all weight versions but the newest.*; corrections start from nothing, or are off, in stages 2$' "$PIPELAG" checkpoint repartition dream --stages 4 -o dream4 --restart-ring
grep -q 'norms are those of the new stages' said.txt || fail "$(cat said.txt)"
says '^(done|diverged): 20 steps' "$PIPELAG" train dream4
grep -q '"bitwise": false' "$(run_of dream4)/meta.json" || fail "it is not what an uninterrupted run is"

echo "-- one file of the weights, the same from any number of stages"
says "^all.h5: [0-9]+ parameters of run $id at step 18\$" "$PIPELAG" checkpoint merge out -o all.h5
"$PIPELAG" checkpoint merge to4 -q -o all4.h5
"$PIPELAG" checkpoint merge listed --json -o other.h5 | grep -q '"step":18' || fail "merge --json"
/usr/bin/python3 - "$id" "$(run_of out)/ckpt" <<'PY' || fail "the merged file"
import h5py, json, numpy, sys
a, b = h5py.File("all.h5"), h5py.File("all4.h5")
assert a.attrs["id"] == sys.argv[1] and a.attrs["step"] == 18 and json.loads(a.attrs["config"])["pipeline"]["stages"] == 2
assert set(a) == set(b) and "head" not in a and a["embedding"].shape == (256, 16) and a["layers.3.mlp.down"].shape == (16, 48)
for name in a:
    assert a[name].dtype == numpy.float32 and a[name][()].tobytes() == b[name][()].tobytes(), name
# The embedding is the first segment of stage 0; version 18 lies in slot 0 of 2.
raw = open(sys.argv[2] + "/step-0000000018.stage-000.ckpt", "rb").read()
assert raw[88:88 + 256 * 16 * 4] == a["embedding"][()].tobytes()
PY

echo "-- damage: the checkpoint before it is taken, with a line; none left is a failure"
cp -r out damaged
ckpt=$(run_of damaged)/ckpt
printf x | dd of="$ckpt/step-0000000018.stage-001.ckpt" bs=1 seek=200 conv=notrunc 2>/dev/null
says ' 18 .*stage-001.ckpt is damaged: its checksum does not fit' "$PIPELAG" checkpoint show damaged
says '"step":12,"whole":true' "$PIPELAG" checkpoint show damaged --json
grep -q '"step":18,"whole":false' said.txt || fail "$(cat said.txt)"
says 'at step 12: 2 stages become 4' "$PIPELAG" checkpoint repartition damaged --stages 4 -o from12
grep -q 'passed over: .*stage-001.ckpt is damaged' said.err || fail "nothing said: $(cat said.err)"
says '^done: 20 steps' "$PIPELAG" train from12
diff <(figures whole4) <(figures from12) || fail "from step 12"
rm "$ckpt/step-0000000012.stage-000.ckpt"
says ' 12 .*stage-000.ckpt cannot be read: No such file' "$PIPELAG" checkpoint show damaged
refuses 1 'run [0-9a-f]{16} has no checkpoint that is whole' "$PIPELAG" checkpoint repartition damaged --stages 4 -o no
truncate -s 100 "$ckpt/step-0000000018.ckpt"
says ' 18 .*step-0000000018.ckpt is cut off' "$PIPELAG" checkpoint show damaged
refuses 1 'step-0000000018.ckpt is cut off' "$PIPELAG" checkpoint merge damaged -o x.h5
[ ! -e no ] && [ ! -e x.h5 ] || fail "a failure made files"

echo "-- several runs: one is named"
"$PIPELAG" run there/run.json -q -o two --set seed=0,1 >/dev/null
refuses 2 'two: 2 runs have checkpoints; allowed: to name one, e.g. 0' "$PIPELAG" checkpoint repartition two --stages 4
says 'run 1 ' "$PIPELAG" checkpoint repartition two 1 --stages 4 -o second
says '^done: 20 steps' "$PIPELAG" train second
[ "$("$PIPELAG" checkpoint show two | grep -c whole)" = 4 ] || fail "show all"
