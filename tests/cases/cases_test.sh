# Each folder here is one bad input: input.json, error.txt (what standard error must contain, line by line), and optionally
#   command  shell line (default: "$PIPELAG" run input.json), setup  shell lines before it, status  exit status (default 2),
#   after    shell lines that must succeed afterwards.
# With status 2 nothing may have been created.
PIPELAG=$1
export PIPELAG
failed=0 count=0

run_case() {
  local case=$1 name folder
  name=$(basename "$case")
  folder=$PWD/$name
  cp -r "$case" "$folder"
  (
    cd "$folder"
    [ ! -f setup ] || bash -eu setup
    find . | sort >../before
    local expected=2 got=0
    [ ! -f status ] || expected=$(cat status)
    if [ -f command ]; then bash -u command >../out 2>../err || got=$?; else "$PIPELAG" run input.json >../out 2>../err || got=$?; fi
    [ "$got" = "$expected" ] || { echo "$name: exit status $got; expected $expected"; cat ../err; exit 1; }
    while IFS= read -r line; do
      grep -qF -- "$line" ../err || { echo "$name: standard error lacks: $line"; echo "it holds:"; cat ../err; exit 1; }
    done <error.txt
    if [ "$expected" = 2 ]; then
      [ "$(wc -l <../err)" -le 1 ] || { echo "$name: more than one line of error"; cat ../err; exit 1; }
      find . | sort | cmp -s - ../before || { echo "$name: something was created"; find . | sort | diff ../before -; exit 1; }
    fi
    [ ! -f after ] || bash -eu after || { echo "$name: the check afterwards failed"; exit 1; }
  ) || return 1
  chmod -R u+w "$folder" && rm -rf "$folder"
}

for case in "$TESTS_SOURCE"/cases/*/; do
  count=$((count + 1))
  run_case "${case%/}" || failed=$((failed + 1))
done
echo "$count cases, $failed failed"
[ "$count" -ge 90 ] && [ "$failed" = 0 ]
