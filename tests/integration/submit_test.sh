# submit, cancel and retry without a cluster, Slurm is a shell script: names and folders, 10,000 runs, and where something is missing, full or not to be
# written one sentence, and nothing that is half done.
PIPELAG=$1
fail() {
  echo "FAILED: $*"
  exit 1
}
if [ "${2:-}" != inside ]; then # file systems of its own, where the machine allows them
  for flags in -m -rm; do
    if unshare $flags sh -c 'mkdir -p mnt && mount -t tmpfs none mnt' 2>/dev/null; then exec unshare $flags bash -euo pipefail "$0" "$PIPELAG" inside; fi
  done
fi
# refused STATUS PATTERN COMMAND...: the exit status, and one sentence with the pattern.
refused() {
  local status=$1 pattern=$2 got=0
  shift 2
  "$@" >out.txt 2>err.txt || got=$?
  [ $got = "$status" ] || fail "$*: exit $got, expected $status: $(cat out.txt err.txt)"
  [ "$(wc -l <err.txt)" = 1 ] && grep -qE -- "$pattern" err.txt || fail "$*: no $pattern in: $(cat err.txt)"
}
sent() { [ "$(touch sent; wc -l <sent)" = "$1" ] || fail "sbatch was called $(wc -l <sent) times, expected $1"; }
mkdir -p bin
cat >bin/slurm <<SH
#!/bin/sh
cd "$PWD"
SH
cat >>bin/slurm <<'SH'
accept() {
  name=$(printf '%s\n' "$@" | sed -n 's/^--job-name=//p')
  for i in $(seq 0 "$(printf '%s\n' "$@" | sed -n 's/^--array=0-\([0-9]*\).*/\1/p')"); do echo "$name|9|$i|9|PENDING|Priority|0|0||"; done >>queue
}
case ${0##*/}" $*" in
"sbatch --version") echo slurm 22.05.8 ;;
sbatch*) echo "$1" >>sent && cat >script && . ./answer ;;
squeue*-O*) cat queue ;;
squeue*) ;;
scontrol*config*) printf 'ClusterName = fake\nMaxArraySize = 1001\nMaxJobCount = 100000\n' ;;
scontrol*partition*) echo 'PartitionName=debug Default=YES QoS=N/A' ;;
scancel*) echo "$1" >>cancelled && sed -i 's/PENDING/CANCELLED/' queue ;;
*) exit 1 ;;
esac
SH
chmod +x bin/slurm
for name in sbatch squeue sacct scontrol scancel sacctmgr; do ln -sf slurm bin/$name; done
PATH=$PWD/bin:$PATH
: >queue
echo 'accept "$@"; echo 9' >answer
cat >sweep.json <<'JSON'
{
  "name": "small",
  "base": {"model": {"type": "quadratic", "dim": 8}, "optimizer": "sgd", "train": {"steps": 20, "batch_tokens": 1, "val_tokens": 1}},
  "seeds": {"range": [0, 9]}
}
JSON

echo "-- a name that is not ASCII, in any locale, from another folder; the script runs from anywhere, with the data beside the sweep file"
mkdir -p "proj/dé İ'x" "elsewhere"
for i in $(seq 400); do echo "line $i of a text, $((i * 7919 % 1000))"; done >"proj/dé İ'x/corpus.txt"
cat >"proj/dé İ'x/sweep.json" <<'JSON'
{
  "name": "délai-τ8",
  "base": {
    "model": {"type": "mlp", "layers": 1, "hidden": 8, "embedding": 4, "context": 8},
    "data": {"type": "bytes", "train": "corpus.txt", "val_block": 512, "val_fraction": 0.1}, "optimizer": "sgd",
    "train": {"steps": 20, "batch_tokens": 32, "val_tokens": 64, "val_every": 10}
  },
  "seeds": [0, 1],
  "slurm": {"env": {"CUDA_VISIBLE_DEVICES": "it's $(touch PWNED) 100%"}}
}
JSON
(cd elsewhere && LC_ALL=C.UTF-8 "$PIPELAG" submit "../proj/dé İ'x/sweep.json" -q -o other) >said.txt || fail "$(cat said.txt)"
(cd elsewhere && LANG=C LC_ALL=C "$PIPELAG" submit "../proj/dé İ'x/sweep.json" -q -o "ö ut") >said.txt || fail "$(cat said.txt)"
cmp "elsewhere/ö ut/runs.tsv" elsewhere/other/runs.tsv || fail "other runs in another locale"
(cd / && env -i PATH=/usr/bin:/bin HOME=/ SLURM_ARRAY_TASK_ID=1 bash "$OLDPWD/script") >said.txt 2>&1 || fail "$(cat said.txt)"
(cd elsewhere && "$PIPELAG" status "ö ut" --json | grep -q '"done":1,') || fail "$(cat said.txt)"
grep -qF "\"CUDA_VISIBLE_DEVICES\": \"it's \$(touch PWNED) 100%\"" "elsewhere/ö ut"/runs/*/*/meta.json || fail "env did not get there"
[ ! -e PWNED ] && [ ! -e /PWNED ] || fail "a value was run"

echo "-- 10,000 runs: as many calls as there are arrays, a file per run"
rm sent
: >queue
sed 's/small/big/; s/"range": \[0, 9\]/"range": [0, 9999]/' sweep.json >big.json
start=${EPOCHREALTIME/[.,]/}
"$PIPELAG" submit big.json -o big >said.txt || fail "$(cat said.txt)"
echo "submission of 10,000 runs: $(((${EPOCHREALTIME/[.,]/} - start) / 1000)) ms, $(wc -l <sent) calls of sbatch, $(find big -type f | wc -l) files"
grep -q '^10000 runs submitted in 10 arrays$' said.txt || fail "$(cat said.txt)"
sent 10
[ "$(find big -type f | wc -l)" -lt 10100 ] || fail "$(find big -type f | wc -l) files"
"$PIPELAG" submit big >said.txt || fail "$(cat said.txt)"
grep -q '0 already finished, 10000 in the queue, 0 to submit' said.txt || fail "$(cat said.txt)"
"$PIPELAG" cancel big -y >said.txt || fail "$(cat said.txt)"
grep -q '10000 runs cancelled, 10000 tasks taken from Slurm' said.txt && [ "$(wc -l <cancelled)" = 10 ] || fail "$(cat said.txt cancelled)"
sent 10
rm -r big sent
: >queue

echo "-- no sbatch; a folder of another sweep, of somebody else"
refused 2 'sbatch: not found on PATH' env PATH=/nowhere "$PIPELAG" submit sweep.json -o out
[ ! -e out ] || fail "something was made"
"$PIPELAG" submit sweep.json -q -o out >/dev/null
sent 1
sed 's/small/other/' sweep.json >other.json
refused 2 'belongs to the sweep "small", not to "other"' "$PIPELAG" submit other.json -o out
mkdir foreign && echo mine >foreign/notes
refused 2 'holds "notes" and was not made by pipelag' "$PIPELAG" submit sweep.json -o foreign
[ "$(ls foreign)" = notes ] || fail "somebody else's folder: $(ls foreign)"
sent 1

echo "-- cancelled runs stay cancelled when retry cannot submit them"
"$PIPELAG" cancel out >/dev/null
cancelled() { [ "$(find out/runs -name cancelled | wc -l)" = "$1" ] || fail "$(find out/runs -name cancelled | wc -l) runs are cancelled, expected $1"; }
refused 2 'sbatch: not found on PATH' env PATH=/nowhere "$PIPELAG" retry out --cancelled
refused 2 'slurm.mem: "32" has no unit' "$PIPELAG" retry out --cancelled --set slurm.mem=32
refused 2 'no partition "nope"' "$PIPELAG" retry out --cancelled --set slurm.partition=nope
cancelled 10
sent 1
echo 'echo "sbatch: error: Batch job submission failed: Invalid qos specification" >&2; exit 1' >answer
refused 2 'Slurm refused submission 2 \(10 runs\): .*Invalid qos' "$PIPELAG" retry out --cancelled --set slurm.qos=nope
cancelled 10
echo 'accept "$@"; echo 9' >answer
"$PIPELAG" retry out --cancelled >/dev/null
cancelled 0
sent 3

if [ "${2:-}" != inside ]; then
  echo "-- no file systems of its own here: full and read-only ones are left out"
  exit 0
fi
mkdir -p mnt
echo "-- a directory that may not be written"
mount -t tmpfs none mnt
: >queue
"$PIPELAG" submit sweep.json -q -o mnt/out >/dev/null
mount -o remount,ro mnt
rm sent
refused 1 'mnt/new: .*Read-only file system' "$PIPELAG" submit sweep.json -o mnt/new
refused 1 'Read-only file system' "$PIPELAG" submit mnt/out
refused 1 'Read-only file system' "$PIPELAG" cancel mnt/out
grep -q PENDING queue || fail "cancelled in Slurm though it could not be marked"
"$PIPELAG" status mnt/out | grep -q '10 queued' || fail "status of it"
sed -i 's/PENDING/TIMEOUT/' queue
refused 1 'Read-only file system' "$PIPELAG" retry mnt/out
sent 0
umount mnt

echo "-- a full disk: before anything is sent, and between sbatch and the note of its answer"
mount -t tmpfs -o size=64k none mnt
: >queue
refused 1 'No space left on device' "$PIPELAG" submit sweep.json --set 'seeds={"range":[0,99]}' -o mnt/out
sent 0
umount mnt
mount -t tmpfs -o size=400k none mnt
echo 'accept "$@"; dd if=/dev/zero of=mnt/fill bs=1k count=600 2>/dev/null; echo 9' >answer
refused 1 'submission 1 is in Slurm as job 9, but that could not be noted: .*No space left' "$PIPELAG" submit sweep.json -o mnt/out
sent 1
"$PIPELAG" status mnt/out | grep -q '10 queued' || fail "it is not listed: $("$PIPELAG" status mnt/out)"
rm mnt/fill
"$PIPELAG" submit mnt/out >out.txt || fail "$(cat out.txt)"
grep -q 'Slurm has it as job 9' out.txt && grep -q '10 in the queue, 0 to submit' out.txt || fail "$(cat out.txt)"
sent 1
umount mnt
