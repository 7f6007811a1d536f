#!/usr/bin/env bash
# Installs what is missing, builds, trains the demo sweep on real English text, and ends with the gap table, five checks and the report.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

work=build/demo
text=$work/gcide.txt
sweep=sweeps/examples/demo.json
dictionary=/usr/share/dictd/gcide.dict.dz
data=()

install_packages "${build_packages[@]}" gnuplot-nox
install_packages dict-gcide || echo "note: the text package dict-gcide is not there"
build release
mkdir -p "$work"
if [ -s "$dictionary" ]; then
  [ -s "$text" ] || { zcat "$dictionary" >"$text.tmp" && mv "$text.tmp" "$text"; }
  results=$work/results
else
  echo "note: no English text here; the demo uses the built-in synthetic language, whose gaps are not those of the README"
  data=(--set 'data={"type":"synthetic","vocab":256}' --set name=demo-synthetic)
  results=$work/results-synthetic
fi

pipelag=build/release/pipelag
started=$(date +%s)
echo "== training"
"$pipelag" run "$sweep" --data-root "$work" -o "$results" "${data[@]}"
echo "== results"
"$pipelag" analyze "$results" --at optimizer.lr=8e-3 --table gap
"$pipelag" analyze "$results" --at optimizer.lr=8e-3 --csv >"$work/gap.csv"
"$pipelag" report "$results" --at optimizer.lr=8e-3
missed=0
if [ "${#data[@]}" = 0 ]; then
  echo "== the five checks (this run's own numbers)"
  scripts/demo_checks.sh "$work/gap.csv" || missed=1
fi
echo "time after installation and build: $(($(date +%s) - started)) s"
exit $missed
