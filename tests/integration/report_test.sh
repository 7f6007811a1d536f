# The report as a command: the same bytes from a copy in another folder at another time, the files of every kind, and --watch.
PIPELAG=$1
fail() { echo "FAILED: $*"; exit 1; }
cat >sweep.json <<'JSON'
{
  "name": "small",
  "base": {
    "model": {"type": "quadratic", "dim": 32, "noise": 0.1},
    "train": {"steps": 100, "batch_tokens": 1, "val_tokens": 1, "weight_decay": 0, "val_every": 10}
  },
  "grid": {"optimizer": ["adamw"], "optimizer.lr": [0.02, 0.04, 0.08], "delay": [0, 2], "correction": ["none", "ef"]},
  "exclude": [{"delay": 0, "correction": ["ef"]}],
  "seeds": [0, 1, 2]
}
JSON
"$PIPELAG" run sweep.json -q -o out >run.txt
plots=0; command -v gnuplot >/dev/null && plots=1

echo "-- files of every kind"
"$PIPELAG" report out --at optimizer.lr=0.04 >said.txt
for f in report.html report.md gap.csv runs.csv gap.json latex/gap.tex latex/report.tex files.txt; do
  [ -s "out/report/$f" ] || fail "no $f"
done
[ $plots = 0 ] || for f in loss_curves loss_vs_lr gap_vs_delay heat; do
  for ending in svg png pdf csv gp dat; do [ -s "out/report/plots/$f.$ending" ] || fail "no plots/$f.$ending"; done
done
(cd out/report && find . -type f ! -name files.txt | sed 's/^..//' | sort) >there.txt
cut -c18- out/report/files.txt | sort >listed.txt
cmp there.txt listed.txt || fail "files.txt lists other files: $(diff there.txt listed.txt)"
grep -q 'command: pipelag report small --at optimizer.lr=0.04' out/report/report.md || fail "the command is not told"
grep -q '"name": "small"' out/report/report.md || fail "the sweep file is not shown"
newest=$(sed -n 's/.*"ended": "\(.*\)".*/\1/p' out/runs/*/*/result.json | sort | tail -1)
grep -q "newest result: $newest" out/report/report.md || fail "the newest result is not $newest"

echo "-- the same bytes, whatever the folder, the time, the zone and the locale"
mkdir -p elsewhere/far
cp -r out elsewhere/far/copy
rm -r elsewhere/far/copy/report
find elsewhere -exec touch -d 2001-02-03 {} +
(cd elsewhere && TZ=Asia/Tokyo LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8 SOURCE_DATE_EPOCH=1 "$PIPELAG" report "$PWD/far/copy" \
  --at optimizer.lr=0.04 -o made >/dev/null)
diff -r out/report elsewhere/made || fail "the report of the copy differs"
! grep -rqF "$PWD" out/report || fail "a path is told: $(grep -rlF "$PWD" out/report)"
sed 's/"final_val_loss": [0-9.]*/"final_val_loss": 0.5/' -i elsewhere/far/copy/runs/*/*/result.json
"$PIPELAG" report elsewhere/far/copy --at optimizer.lr=0.04 -o elsewhere/made >/dev/null
! cmp -s out/report/report.html elsewhere/made/report.html || fail "other results gave the same page"

echo "-- bad axes"
for heat in optimizer.lr optimizer.lr, ,delay a,b,c; do
  got=0; "$PIPELAG" report out --heat "$heat" -o bad >/dev/null 2>err.txt || got=$?
  [ $got = 2 ] && grep -q 'allowed: two keys' err.txt || fail "--heat $heat: $got $(cat err.txt)"
done

echo "-- watching: written when something changed, and no more; the last page stays"
cp -r elsewhere/far/copy watched
seen() { grep -c report.html watch.txt; }
wait_for() { for _ in $(seq 600); do eval "$1" && return 0; sleep 0.1; done; fail "waited in vain for $1: $(cat watch.txt watch.err)"; }
: >watch.txt
: >watch.err
"$PIPELAG" report watched --watch >watch.txt 2>watch.err & pid=$!
wait_for '[ "$(seen)" = 1 ]'
grep -q 'http-equiv="refresh"' watched/report/report.html || fail "the page does not load itself again"
victim=$(ls -d watched/runs/*/* | head -1)
sed 's/"final_val_loss": 0.5/"final_val_loss": 0.75/' "$victim/result.json" >new.json
mv new.json "$victim/result.json"
wait_for '[ "$(seen)" = 2 ]'
touch "$victim/journal"
kill -INT $pid
got=0; wait $pid || got=$?
[ $got = 130 ] || fail "ended by SIGINT: $got $(cat watch.err)"
[ "$(seen)" = 2 ] || fail "written again without a change: $(cat watch.txt)"
! grep -q 'http-equiv="refresh"' watched/report/report.html || fail "the last page still loads itself again"
[ -z "$(find watched/report -name '*.tmp.*')" ] || fail "half files are left"

echo "-- watching what has no result yet waits; what is none of ours does not"
cp -r out early
rm early/runs/*/*/result.json
"$PIPELAG" report early --watch >watch.txt 2>watch.err & pid=$!
wait_for 'grep -q "has a result yet" watch.err'
kill -TERM $pid
got=0; wait $pid || got=$?
[ $got = 143 ] || fail "ended by SIGTERM: $got"
got=0; "$PIPELAG" report elsewhere --watch >/dev/null 2>&1 || got=$?
[ $got = 2 ] || fail "watching another folder: $got"
