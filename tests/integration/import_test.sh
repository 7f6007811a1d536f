# Runs made elsewhere, and collected files, on the command line: the paper's tables, analysis of one file, h5py, round trips.
PIPELAG=$1
root=$(dirname "$TESTS_SOURCE")
fail() {
  echo "FAILED: $*"
  exit 1
}
same() { diff "$1" "$2" >difference.txt || fail "$1 and $2 differ: $(head -20 difference.txt)"; }

echo "-- the paper's tables: gaps and parts won back as printed, one run each, so no intervals; no EF for Adan"
"$PIPELAG" import "$root/sweeps/examples/paper/import.json" -q -o paper
"$PIPELAG" analyze paper --csv >paper.csv
/usr/bin/python3 - <<'PY'
import csv
rows = [r for r in csv.DictReader(open("paper.csv")) if r["reading"] == "best"]
at = {(r["group"].split("=")[-1], r["optimizer"], r["delay"], r["correction"]): r for r in rows}
assert len(at) == 14, len(at)
gaps = {("360M", "adamw"): (0.278, 0.90), ("360M", "muon"): (0.012, 0.58), ("360M", "soap"): (0.027, 0.67),
        ("360M", "adan"): (0.010, None), ("10B", "unnamed"): (0.005, 1.00)}
for (size, optimizer), (gap, part) in gaps.items():
    delayed = at[size, optimizer, "1", "none"]
    assert abs(float(delayed["gap.mean"]) - gap) < 1e-9, (optimizer, delayed)
    assert delayed["gap.n"] == "1" and delayed["gap.low"] == "" and delayed["gap.high"] == "", delayed
    ef = at.get((size, optimizer, "1", "ef"))
    assert (ef is None) == (part is None)
    if ef: assert round(float(ef["won_back.mean"]) + 1e-9, 2) == part and ef["won_back.low"] == "", ef
PY
"$PIPELAG" analyze paper --table overview >overview.txt
grep -qE '^ *adan +1 +2.6410 +2.6510 +\+0.0100 +-$' overview.txt || fail "adan without EF is no dash: $(cat overview.txt)"
grep -q 'imported model.size=360M' overview.txt || fail "no mark of what was imported: $(cat overview.txt)"

echo "-- what an import did not state is a dash, an empty field or null, and never 0"
"$PIPELAG" analyze paper >paper.txt
grep -qE '^ *adamw +0 +none +- +2.6120 .* - +1/1$' paper.txt || fail "lr and tokens that nobody stated: $(head -5 paper.txt)"
"$PIPELAG" compare paper paper --csv >compared.csv
"$PIPELAG" report paper -o paper.report >/dev/null 2>&1
/usr/bin/python3 - <<'PY'
import csv, json
rows = list(csv.DictReader(open("paper.csv")))
stated = {"360M": "", "10B": "200000000000"}
assert rows and all(r["lr"] == "" and r["tokens"] == stated[r["group"].split("=")[-1]] for r in rows)
assert all(r["lr_a"] == "" for r in csv.DictReader(open("compared.csv")))
tables = json.load(open("paper.report/gap.json"))
assert {r["lr"] for r in tables["rows"]} == {None} and {r["tokens"] for r in tables["rows"]} == {None, 200000000000}
runs = list(csv.DictReader(open("paper.report/runs.csv")))
assert {r["tokens"] for r in runs} == set(stated.values()) and {r["steps"] for r in runs} == {""}
PY
printf 'step,val/loss\n' >curve.csv
printf '%s\n' 0,4 10,3.5 20,3 30,2.5 40,2 50,1.9 >>curve.csv
"$PIPELAG" import curve.csv -q -o bare --set optimizer=x
"$PIPELAG" import curve.csv -q -o bare --set optimizer=x --set delay=1
"$PIPELAG" analyze bare --target 3.2 --table reach --csv >bare.csv
/usr/bin/python3 - <<'PY'
import csv
rows = list(csv.DictReader(open("bare.csv")))
assert len(rows) == 2 and all(r["lr"] == r["tokens"] == "" and r["steps"] == "20" for r in rows), rows
PY
"$PIPELAG" report bare -o bare.report >said.txt 2>&1
! grep -rqE 'lr 0([^.0-9]|$)' bare.report || fail "a learning rate that nobody stated: $(grep -rlE 'lr 0([^.0-9]|$)' bare.report)"
! grep -q 'could not draw' said.txt || fail "$(cat said.txt)"

echo "-- run, retry, submit and cancel leave imported runs alone"
find paper -type f -exec md5sum {} + | sort >before.txt
for command in run retry submit cancel; do
  if "$PIPELAG" $command paper -y >said.txt 2>&1 && [ $command != cancel ]; then fail "$command: $(cat said.txt)"; fi
done
find paper -type f -exec md5sum {} + | sort >after.txt
same before.txt after.txt

echo "-- one collected file says what its directory says"
cat >sweep.json <<'JSON'
{
  "name": "small",
  "base": {
    "model": {"type": "quadratic", "dim": 16, "noise": 0.1},
    "train": {"steps": 40, "val_every": 5, "batch_tokens": 1, "val_tokens": 1, "weight_decay": 0, "warmup": 0}
  },
  "grid": {"optimizer": ["sgd"], "optimizer.lr": [0.05, 0.1, 0.2], "delay": [0, 1], "correction": ["none", "ef"]},
  "exclude": [{"delay": 0, "correction": "ef"}],
  "seeds": [0, 1, 2, 3]
}
JSON
"$PIPELAG" run sweep.json -q -o small >/dev/null
"$PIPELAG" run sweep.json -q -o staged --set optimizer.lr=0.1 --set pipeline.stages=2 --set model.layers=2 --set seeds=0,1 >/dev/null
for d in small staged paper; do "$PIPELAG" collect $d -q; done
mv small/sweep.h5 small.h5
mv staged/sweep.h5 staged.h5
mv paper/sweep.h5 paper.h5
for form in "" --json --csv "--at optimizer.lr=0.1" "--table reach" "--select-on 0"; do
  # shellcheck disable=SC2086
  "$PIPELAG" analyze small $form >folder.txt && "$PIPELAG" analyze small.h5 $form >file.txt
  same folder.txt file.txt
done
"$PIPELAG" analyze small paper staged >folder.txt
"$PIPELAG" analyze small.h5 paper.h5 staged.h5 >file.txt
same folder.txt file.txt
"$PIPELAG" compare small small.h5 >compared.txt
grep -qE '^36 runs in both, 0 only in A, 0 only in B; of 36 with a result in both, 0 differ' compared.txt || fail "$(cat compared.txt)"
status=0
"$PIPELAG" status small.h5 >said.txt 2>&1 || status=$?
[ $status = 2 ] || fail "status of a file: $status, $(cat said.txt)"

echo "-- h5py: every dataset of the table becomes a column, every configuration is JSON, every curve has one length"
/usr/bin/python3 - <<'PY'
import json
try: import h5py, numpy as np
except ImportError: raise SystemExit("no h5py for /usr/bin/python3: not read back by it")
for name, runs in (("small.h5", 36), ("paper.h5", 14)):
    f = h5py.File(name, "r")
    table = {k: (d.asstr()[:] if d.dtype.kind == "O" else d[:]) for k, d in f["table"].items()}
    assert {len(c) for c in table.values()} == {runs}, name
    rows = list(zip(*table.values()))          # what pandas.DataFrame(table) is made of
    assert len(rows) == runs and all(c.ndim == 1 for c in table.values())
    assert all(c.dtype.kind in "ifO" for c in table.values())
    for i, run in enumerate(table["id"]):
        group, config = f["runs"][run], json.loads(table["config"][i])
        assert config["optimizer"]["type"] == group.attrs["optimizer.type"] == table["optimizer"][i]
        assert config["seed"] == table["seed"][i] == group.attrs["seed"]
        json.loads(table["meta"][i])
        curve = {}
        group.visititems(lambda k, d: curve.update({k: d[:]}) if isinstance(d, h5py.Dataset) and not k.startswith("stages") else None)
        assert {"step", "tokens", "attempt", "train/loss", "val/loss", "lr"} <= set(curve)
        assert len({len(c) for c in curve.values()}) == 1 and all(c.ndim == 1 for c in curve.values())
        if name == "small.h5": assert curve["step"][-1] == table["steps"][i] == 40
assert np.isnan(table["lr"]).all(), "the paper's tables state no learning rate"
PY

echo "-- pandas: the table of a collected file, its configurations and its curves, as docs/formats.md reads them"
"$PIPELAG" analyze small --at optimizer.lr=0.1 --csv >fixed.csv
/usr/bin/python3 - <<'PY'
try: import h5py, pandas
except ImportError as e: raise SystemExit(print(f"skipped: {e} for /usr/bin/python3 (Debian: python3-h5py, python3-pandas)"))
import json
f = h5py.File("small.h5", "r")
runs = pandas.DataFrame({k: d.asstr()[:] if d.dtype.kind == "O" else d[:] for k, d in f["table"].items()})
assert len(runs) == 36 and runs["seed"].dtype.kind == "i" and runs["lr"].dtype.kind == "f", runs.dtypes
means = runs[runs.lr == 0.1].groupby(["delay", "correction"]).final_val_loss.mean()
fixed = pandas.read_csv("fixed.csv", dtype={"delay": str}, keep_default_na=False).query("reading == 'fixed'")
assert len(means) == len(fixed) == 3
for _, row in fixed.iterrows(): assert abs(float(row["loss.mean"]) - means[row.delay, row.correction]) < 1e-12, row
configs = pandas.json_normalize([json.loads(c) for c in runs.config])
assert (configs["optimizer.lr"] == runs.lr).all() and (configs["train.steps"] == 40).all()
curve = lambda i: pandas.DataFrame({k: f["runs"][i][k][:] for k in ("step", "train/loss", "val/loss")}).assign(id=i)
last = pandas.concat([curve(i) for i in runs.id]).dropna(subset=["val/loss"]).groupby("id")["val/loss"].last()
assert (last[runs.id].values == runs.final_val_loss.values).all()
table = h5py.File("paper.h5", "r")["table"]
paper = pandas.DataFrame({k: d.asstr()[:] if d.dtype.kind == "O" else d[:] for k, d in table.items()})
assert paper.lr.isna().all() and paper.final_val_loss.min() == 1.906, paper
PY

echo "-- export and import again: the same tables, as runs that were imported"
for form in csv jsonl tensorboard; do
  "$PIPELAG" export small --format $form -q -o out.$form
  "$PIPELAG" import out.$form/import.json -q -o in.$form
  "$PIPELAG" analyze in.$form --csv | sed 's/imported//' >again.txt
  "$PIPELAG" analyze small --csv >folder.txt
  same folder.txt again.txt
  [ "$("$PIPELAG" import out.$form/import.json -o in.$form)" = "0 runs imported into in.$form, 36 were there" ] || fail "$form"
done
"$PIPELAG" export small.h5 -q -o out.h5
diff -rq out.csv out.h5 || fail "export of the file differs from that of the directory"

echo "-- tokens to a loss from imported curves"
"$PIPELAG" analyze in.csv --table reach --csv | sed 's/^imported,//' >again.txt
"$PIPELAG" analyze small --table reach --csv | sed 's/^,//' >folder.txt
same folder.txt again.txt
[ "$(wc -l <again.txt)" = 4 ] || fail "$(cat again.txt)"

echo "-- a collected file needs a place for its report"
status=0
"$PIPELAG" report small.h5 >said.txt 2>&1 || status=$?
[ $status = 2 ] || fail "report of a file without -o: $status, $(cat said.txt)"
"$PIPELAG" report small.h5 -o report >/dev/null 2>&1
[ -s report/report.md ] || fail "no report of a collected file"
