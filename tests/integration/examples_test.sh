# The example sweeps: every one expands with its data there, to the number of runs that sweeps/examples/README.md tells; the small ones of
# a second give what their notes promise. examples_slow_test.sh trains the others.
PIPELAG=$1
EXAMPLES=$TESTS_SOURCE/../sweeps/examples
fail() { echo "FAILED: $*"; exit 1; }

# What every sweep expands to; paper/import.json is for `pipelag import`.
cat >expected.txt <<'TXT'
batch 180
delay 252
demo 57
depth 36
lr-delay 72
momentum 75
momentum-lm 90
optimizers 240
paper/batch 108
paper/delay 135
paper/depth 27
paper/lr-delay 72
paper/momentum-lm 216
paper/optimizers 64
paper/profiles 30
paper/schedules 21
paper/sync-start 126
profiles 50
random 13
schedules 45
stability 8
sync-start 30
TXT

echo "-- every example expands"
mkdir data paper
yes 'The examples read English; for expanding them any text does.' | head -c 8000000 >data/gcide.txt || true
"$PIPELAG" data data/gcide.txt -w data/fineweb_edu -t 4000000 >data.txt || fail "$(cat data.txt)"
(cd "$EXAMPLES" && ls -- *.json paper/*.json) | sed 's/\.json$//' | grep -v '^paper/import$' | LC_ALL=C sort >names.txt
LC_ALL=C sort expected.txt | cut -d' ' -f1 | cmp -s - names.txt || fail "other files than expected: $(cat names.txt)"
while read -r name runs; do
  sweep=$EXAMPLES/$name.json
  "$PIPELAG" expand "$sweep" --data-root data >"$name.txt" || fail "$sweep"
  [ "$(head -1 "$name.txt" | cut -d' ' -f1)" = "$runs" ] || fail "$name: expected $runs runs: $(head -1 "$name.txt")"
  [ "$(wc -l <"$name.txt")" = $((runs + 2)) ] || fail "$name: a count, a head and $runs lines: $(cat "$name.txt")"
  [ "$(tail -n +3 "$name.txt" | awk '{ print $2 }' | sort -u | wc -l)" = "$runs" ] || fail "$name: equal ids"
  grep -q '"notes": "' "$sweep" || fail "$name: no notes"
  case $name in
  paper/*) grep -q '"slurm": {"time"' "$sweep" || fail "$name: no section for Slurm" ;;
  esac
  row=$(grep -F "| \`$name.json\` |" "$EXAMPLES/README.md") || fail "$name: not in README.md"
  echo "$row" | grep -qE "\| $runs( =|:| \|)" || fail "$name: README.md tells another number than $runs: $row"
done <expected.txt

echo "-- the models of the paper-size sweeps have the sizes of SmolLM2"
one=(--data-root data --set seeds=0 --set delay=0 --set correction=none --set optimizer.lr=1e-3)
"$PIPELAG" schedule --model "$EXAMPLES/paper/lr-delay.json" "${one[@]}" | grep -qE '^0 +0-29 +135M ' || fail "no 135M parameters in 30 layers"
"$PIPELAG" schedule --model "$EXAMPLES/paper/delay.json" "${one[@]}" --set model.tied=false | grep -qE '^0 +0-29 +163M ' || fail "untied"

echo "-- the table has a column for each axis, and a head"
sed -n 2p profiles.txt | grep -qE '^index  id                optimizer  optimizer\.lr  delay +seed$' || fail "head: $(sed -n 2p profiles.txt)"
at=$(sed -n 2p profiles.txt | grep -bo 'delay ' | cut -d: -f1)
[ "$(tail -n +3 profiles.txt | cut -c$((at + 1))- | awk '{ print $1 }' | sort -u | tr '\n' ' ')" = "0 1 [0,1,2,3] [2,2,1,1] pipedream " ] ||
  fail "columns: $(cat profiles.txt)"

echo "-- stability: below the limit a run ends well, above it diverges"
"$PIPELAG" run "$EXAMPLES/stability.json" -q -o stability >stability.out || fail "$(cat stability.out)"
"$PIPELAG" status stability -v >stability.status
for lr in 1.98 0.99 0.612 0.344; do
  grep -qE " done .*optimizer\.lr=$lr\$" stability.status || fail "$lr: $(cat stability.status)"
done
for lr in 2.02 1.01 0.624 0.351; do
  grep -qE " diverged .*optimizer\.lr=$lr\$" stability.status || fail "$lr: $(cat stability.status)"
done
