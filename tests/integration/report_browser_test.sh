# The report's page in a real browser: first screen, sorting, filtering, details of rows, both colour schemes, no error.
PIPELAG=$1
fail() { echo "FAILED: $*"; exit 1; }
for program in chromedriver chromium gnuplot python3; do
  command -v $program >/dev/null || { echo "skipped: there is no $program"; exit 77; }
done
cat >sweep.json <<'JSON'
{
  "name": "page",
  "base": {
    "model": {"type": "quadratic", "dim": 32, "noise": 0.1},
    "train": {"steps": 120, "batch_tokens": 1, "val_tokens": 1, "weight_decay": 0, "val_every": 10}
  },
  "grid": {"optimizer": ["adamw", "sgd"], "optimizer.lr": [0.02, 0.04, 0.08], "delay": [0, 1, 4], "correction": ["none", "ef"]},
  "exclude": [{"delay": 0, "correction": ["ef"]}],
  "seeds": [0, 1, 2]
}
JSON
"$PIPELAG" run sweep.json -q -o out >run.txt
# A text that wants to be more than a text.
sed -i '2s/$/ <script>window.planted = 1<\/script>/' out/runs.tsv
"$PIPELAG" report out >files.txt
mkdir pictures
python3 "$TESTS_SOURCE/integration/browser/report_page.py" out/report pictures || fail "the page"
