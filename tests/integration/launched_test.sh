# Processes that a launcher started, told by its environment, although the command is for one, or the build has no MPI: rank 0 refuses, the others leave it to that.
PIPELAG=$1
fail() {
  echo "FAILED: $*"
  exit 1
}
echo '{"model": "quadratic", "optimizer": "sgd", "train": {"steps": 10, "batch_tokens": 16}}' >run.json
# refused WORDS VARIABLES ARGUMENT...: the variables name a size; rank 0 says the words, rank 1 nothing.
refused() {
  local words=$1 size=$2 rank=$3 got=0
  shift 3
  env "$size=2" "$rank=0" "$PIPELAG" "$@" >out.txt 2>err.txt || got=$?
  [ $got = 2 ] && [ "$(wc -l <err.txt)" = 1 ] && grep -qF "$words" err.txt || fail "$*: exit $got: $(cat err.txt)"
  env "$size=2" "$rank=1" "$PIPELAG" "$@" >out.txt 2>err.txt || fail "$*: rank 1: exit $?"
  [ ! -s out.txt ] && [ ! -s err.txt ] && [ ! -e results ] || fail "$*: rank 1: $(cat out.txt err.txt)"
}
several='pipelag: run: mpirun or srun started several processes; allowed: one, or `pipelag train`'
refused "$several" OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK run run.json
refused "$several" SLURM_STEP_NUM_TASKS PMIX_RANK run run.json
if ! ldd "$PIPELAG" | grep -q libmpi; then
  refused 'this pipelag was built without MPI' OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK train run.json
fi
# A command line that is wrong: rank 0 says so and tells the exit status, which mpirun ends the others by.
refused 'unknown command "trian"' OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK trian run.json
for arguments in "train --bogus run.json" train "train run.json --max-runs=0"; do
  for names in "OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK" "SLURM_STEP_NUM_TASKS PMIX_RANK"; do
    read -r size rank <<<"$names"
    got=0
    # shellcheck disable=SC2086
    env "$size=2" "$rank=0" "$PIPELAG" $arguments >out.txt 2>err.txt || got=$?
    [ $got = 2 ] && grep -q '^pipelag train: ' err.txt || fail "$arguments: exit $got: $(cat err.txt)"
    # shellcheck disable=SC2086
    env "$size=2" "$rank=1" "$PIPELAG" $arguments >out.txt 2>err.txt || fail "$arguments: rank 1: exit $?"
    [ ! -s out.txt ] && [ ! -s err.txt ] || fail "$arguments: rank 1: $(cat out.txt err.txt)"
  done
done
# One that is alone is none of several, whoever started it.
OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 "$PIPELAG" run run.json -q -o one >/dev/null || fail "one process: exit $?"
