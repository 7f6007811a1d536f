# The example sweeps: every one expands with its data there, says what it shows, and the small one gives what its notes promise.
PIPELAG=$1
EXAMPLES=$TESTS_SOURCE/../sweeps/examples
fail() { echo "FAILED: $*"; exit 1; }

echo "-- every example expands"
mkdir data
yes 'The examples read English; for expanding them any text does.' | head -c 8000000 >data/gcide.txt || true
for sweep in "$EXAMPLES"/*.json; do
  name=$(basename "$sweep" .json)
  "$PIPELAG" expand "$sweep" --data-root data >"$name.txt" || fail "$sweep"
  runs=$(head -1 "$name.txt" | cut -d' ' -f1)
  [ "$(wc -l <"$name.txt")" = $((runs + 2)) ] || fail "$name: a count, a head and $runs lines: $(cat "$name.txt")"
  [ "$(tail -n +3 "$name.txt" | awk '{ print $2 }' | sort -u | wc -l)" = "$runs" ] || fail "$name: equal ids"
  head -1 "$name.txt"
  [ "$name" = demo ] || grep -q '"notes": "' "$sweep" || fail "$name: no notes"
done

echo "-- the table has a column for each axis, and a head"
sed -n 2p profiles.txt | grep -qE '^index  id                optimizer  optimizer\.lr  delay$' || fail "head: $(sed -n 2p profiles.txt)"
at=$(sed -n 2p profiles.txt | grep -bo 'delay$' | cut -d: -f1)
[ "$(tail -n +3 profiles.txt | cut -c$((at + 1))- | sort -u | tr '\n' ' ')" = "0 1 [0,1,2,3] [2,2,1,1] pipedream " ] ||
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
