# GPUs that Slurm gives (pretended ones): two array tasks of a node at the same time have different ones, each run trains on the one of its task, and the ranks of one run on one node take
# one each, whoever starts them.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/lib.sh"
HOST=$(dirname "$1")/tests/pipelag_host_cuda
[ -x "$HOST" ] || { echo "no device's double in this build" && exit 77; }
fail() {
  echo "FAILED: $*"
  tail -n 50 out*/submissions/*.txt taken* 2>/dev/null || true
  exit 1
}
CLUSTER_NODES=1 CLUSTER_GPUS=2 cluster_up
environment=$(env | sed -nE 's/^(OMPI_[A-Za-z_]+)=(.*)/"\1": "\2"/p' | paste -sd,)
# sweep MODEL REST SLURM LOG: of runs on the GPU.
sweep() {
  cat <<JSON
{
  "name": "gpus",
  "base": {
    "model": $1, "data": {"type": "synthetic", "vocab": 16}, "optimizer": "adamw", "device": "cuda",
    "train": {"steps": 2, "batch_tokens": 16, "val_tokens": 16}$2
  },
  "slurm": {"env": {"PL_PRETEND_GPUS": "2", "PL_PRETEND_LOG": "$PWD/$4"${environment:+, $environment}}, "gpus": 1, $3}
}
JSON
}
mlp='{"type": "mlp", "layers": 1, "hidden": 12, "embedding": 6, "window": 2, "context": 8}'
all_done() { [ "$(grep -lE '"state": "(done|diverged)"' "$1"/runs/*/*/result.json 2>/dev/null | wc -l)" = "$2" ]; }

echo "-- a run for each GPU"
# The first two wait for each other, so that both hold a GPU.
mkdir marks
setup="touch $PWD/marks/\$SLURM_ARRAY_TASK_ID; until [ \$(ls $PWD/marks | wc -l) -ge 2 ]; do sleep 0.1; done; echo \\\"visible: \$CUDA_VISIBLE_DEVICES\\\""
sweep "$mlp" '' "\"setup\": [\"$setup\"]" taken | sed 's/"slurm"/"seeds": [0, 1, 2, 3], "slurm"/' >sweep.json
"$HOST" submit sweep.json -q -o out >/dev/null
wait_until 120 all_done out 4
for run in 0 1 2 3; do
  visible=$(sed -n 's/^visible: //p' "out/submissions/1.$run.txt")
  id=$(sed -n "$((run + 2))p" out/runs.tsv | cut -f2)
  grep -qE '^[01]$' <<<"$visible" || fail "task $run sees \"$visible\""
  grep -qF "\"kernel\": \"host double $visible " "out/runs/${id:0:2}/$id/meta.json" || fail "task $run sees $visible: $(grep -h '"kernel"' "out/runs/${id:0:2}/$id/meta.json")"
done
[ "$(grep -hx 'visible: [01]' out/submissions/*.txt | sort -u | wc -l)" = 2 ] || fail "the tasks shared one GPU"
[ "$(wc -l <taken)" = 4 ] || fail "$(cat taken)"

echo "-- both for the two ranks of a run"
for way in pmix mpirun; do
  transformer='{"type": "transformer", "layers": 2, "d_model": 8, "heads": 1, "context": 8}'
  sweep "$transformer" ', "pipeline": {"schedule": "2bw", "stages": 2, "microbatches": 2}' "\"tasks\": 2, \"nodes\": 1, \"mpi\": \"$way\"" taken-$way | sed 's/"gpus": 1/"gpus": 2/' >sweep.json
  "$HOST" submit sweep.json -q -o "out-$way" >/dev/null
  wait_until 120 all_done "out-$way" 1
  [ "$(sed -E 's/, Slurm.*//' taken-$way | sort | paste -sd' ')" = 'GPU 0 of 0,1 GPU 1 of 0,1' ] || fail "$way: $(cat taken-$way)"
done
