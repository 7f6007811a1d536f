# `submit` on a real Slurm: a sweep larger than an array may be, a limit, hostile names, extension, lost answers.
PIPELAG=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/lib.sh"
fail() {
  echo "FAILED: $*"
  exit 1
}
# refused CODE PATTERN COMMAND...: ends with that code and says the pattern.
refused() {
  local code=$1 pattern=$2 got=0
  shift 2
  "$@" >said.txt 2>&1 || got=$?
  [ $got = "$code" ] || fail "$*: exit $got instead of $code: $(cat said.txt)"
  grep -qE "$pattern" said.txt || fail "$*: no $pattern in: $(cat said.txt)"
}
queue_empty() { [ -z "$(squeue -h)" ]; }
# sweep NAME SEEDS SLURM: a sweep file of a quadratic, 3 runs per seed.
sweep() {
  cat >"$1.json" <<JSON
{
  "name": "$1",
  "base": {
    "model": {"type": "quadratic", "dim": 16, "noise": 0.1}, "optimizer": {"type": "sgd"},
    "train": {"steps": 50, "batch_tokens": 1, "val_tokens": 1, "weight_decay": 0}
  },
  "grid": {"optimizer.lr": [0.05, 0.1, 0.2]},
  "seeds": $2,
  "slurm": {"time": "00:05:00", "mem": "200M", $3}
}
JSON
}
CLUSTER_MAX_ARRAY=20 cluster_up

echo "-- 75 runs where an array has at most 20 tasks, never more than 5 at once, in a folder with a hostile name"
sweep large '{"range": [0, 24]}' '"max_running": 5, "env": {"V": "it'"'"'s $(touch PWNED) 100%"}, "setup": ["echo \"[$HOME]\""]'
dir="o t'; touch PWNED #(1)%a\"=é"
sample_running samples
"$PIPELAG" submit large.json -o "$dir" >first.txt || fail "$(cat first.txt)"
grep -q '^75 runs submitted in 4 arrays$' first.txt || fail "$(cat first.txt)"
[ "$(squeue -h -o %A | sort -u | wc -l)" = 4 ] || fail "$(squeue)"

echo "-- extended in the middle of its grid while that waits, from another folder"
sweep large '{"range": [0, 26]}' '"max_running": 5'
sed -i 's/0.05, 0.1, 0.2/0.05, 0.07, 0.1, 0.2/' large.json
base=$PWD
(cd / && "$PIPELAG" submit "$base/large.json" -o "$base/$dir") >second.txt || fail "$(cat second.txt)"
grep -q '^33 runs submitted in 2 arrays$' second.txt || fail "$(cat second.txt)"

echo "-- meanwhile: what is wrong is said before anything is sent"
sweep wrong '[0]' '"partition": "debog"'
refused 2 'no partition "debog"; did you mean "debug"' "$PIPELAG" submit wrong.json -o wrong
sweep wrong '[0]' '"gres": "gpu:1"'
refused 2 'refused submission 1 \(3 runs\): .*gres' "$PIPELAG" submit wrong.json -o wrong
sweep wrong '[0]' '"memory": "1G"'
refused 2 'unknown key "memory"; did you mean "mem"' "$PIPELAG" run wrong.json -o wrong
refused 2 'sbatch: not found on PATH' env PATH=/nowhere "$PIPELAG" submit large.json -o wrong2
[ ! -e wrong2 ] || fail "something was made"

wait_until 60 queue_empty
highest=$(sampled_max samples)
{ [ "$highest" -ge 3 ] && [ "$highest" -le 5 ]; } || fail "$highest ran at once"
"$PIPELAG" status "$dir" --json | grep -q '"done":108[,}]' || fail "$("$PIPELAG" status "$dir") $(tail -n 3 "$dir"/submissions/*.txt)"
[ ! -e PWNED ] && [ ! -e "$dir/PWNED" ] || fail "a name was run"
[ "$(find "$dir/submissions" -name '*.txt' | wc -l)" = 108 ] || fail "outputs: $(ls "$dir/submissions")"
grep -rh bitwise "$dir"/runs/*/*/meta.json | sort -u | grep -q false && fail "a program that differs"
"$PIPELAG" submit "$dir" >again.txt
grep -q '108 already finished, 0 in the queue, 0 to submit' again.txt || fail "$(cat again.txt)"
"$PIPELAG" run large.json -q -o local >local.txt || fail "$(cat local.txt)"
values() { find "$1/runs" -name result.json -exec grep -H final_val_loss {} + | sed 's|.*/runs/||' | sort; }
diff <(values "$dir") <(values local) >/dev/null || fail "numbers differ from a local run"

echo "-- packed, from inside another allocation, from a path with a backslash, with a copy of the program"
sweep packed '[0, 1]' '"pack": 4, "cpus": 2, "snapshot": true'
cp "$PIPELAG" copy
cat >outer.sh <<SH
#!/bin/bash
cd /
"$PWD/copy" submit "$PWD/packed.json" -v -o '$PWD/b\\u s'
SH
outer=$(SLURM_CPU_BIND=none sbatch --parsable -n 2 -c 1 -o outer.txt outer.sh)
wait_until 20 job_is "$outer" COMPLETED || fail "$(cat outer.txt)"
grep -q "inside of Slurm job $outer" outer.txt || fail "$(cat outer.txt)"
rm copy
wait_until 20 queue_empty
"$PIPELAG" status "b\\u s" --json | grep -q '"done":6[,}]' || fail "$(cat "b\\u s"/submissions/*.txt outer.txt)"
[ "$(cat "b\\u s/submissions/1.tsv" | cut -f1 | uniq -c | awk '{ print $1 }' | paste -sd' ')" = "1 4 2" ] || fail "packing"

echo "-- an answer that is lost because the controller stands still while it is asked"
fake_bin "$PWD/fake"
ctld=$(awk '$1=="slurmctld"{print $2}' "$cluster/pids")
cat >fake/sbatch <<SH
#!/bin/bash
PATH=\${PATH#"$PWD/fake":}
[ "\$1" != --version ] || exec sbatch --version
kill -STOP $ctld
(sleep 11; kill -CONT $ctld) </dev/null >/dev/null 2>&1 &
exec sbatch "\$@"
SH
for name in squeue sacct scontrol scancel sacctmgr sinfo; do rm "fake/$name"; done
sweep lost '[0, 1]' '"max_running": 2'
got=0
PATH=$PWD/fake:$PATH "$PIPELAG" submit lost.json -o lost >lost.txt 2>&1 || got=$?
[ $got = 0 ] || { sleep 1 && "$PIPELAG" submit lost.json -o lost >>lost.txt; }
grep -qE 'found in the queue as job|Slurm has it as job' lost.txt || fail "$(cat lost.txt)"
wait_until 20 queue_empty
"$PIPELAG" status lost --json | grep -q '"done":6[,}]' || fail "$("$PIPELAG" status lost)"
[ "$(squeue -h -r -t all -o %j | grep -c "^$(sed -n 's/^  "token": "\(.*\)",$/\1/p' lost/submissions/1.json)$")" = 6 ] || fail "doubled"
