# shellcheck shell=bash
# What the steps of run.sh share. They read GPU_PACK, GPU_LIBRARIES, GPU_DRY (true, false) and GPU_NAME; each runs in an empty folder of its own.

# program NAME ARGUMENT...: a carried program with its libraries.
program() { LD_LIBRARY_PATH=$GPU_LIBRARIES "$GPU_PACK/bin/$1" "${@:2}"; }
pipelag() { program pipelag "$@"; }

# How a step ends that did not pass; its last words.
fail() {
  echo "$*" | tee reason >&2
  exit 1
}
not_available() {
  echo "$*" | tee reason >&2
  exit 77
}

# number NAME JSON: something for the results.
number() { printf '"%s": %s\n' "$1" "$2" >>numbers; }

# text WORDS: as JSON.
text() {
  local words
  words=$(tr -d '\000-\037' <<<"$*")
  words=${words//\\/\\\\}
  printf '"%s"' "${words//\"/\\\"}"
}

# run_file STEPS DEVICE OPTIMIZER [KEYS]: a run of a small model, with further keys of the root.
run_file() {
  local model='"layers": 4, "d_model": 256, "heads": 4, "context": 256' vocab=512 batch=1024 lr=0.002
  ! $GPU_DRY || model='"layers": 1, "d_model": 8, "heads": 1, "context": 8' vocab=16 batch=16 lr=0.01
  cat <<JSON
{"name": "gpu", "model": {"type": "transformer", $model}, "data": {"type": "synthetic", "vocab": $vocab}, "device": "$2", "optimizer": {"type": "$3", "lr": $lr},
 "train": {"steps": $1, "batch_tokens": $batch, "val_tokens": $batch}${4:+, $4}}
JSON
}

# steps REAL DRY: the first on a GPU, the second on its double.
steps() { if $GPU_DRY; then echo "$2"; else echo "$1"; fi; }

# train NAME [OPTION...]: NAME.json, into the folder NAME; its answer in NAME.out.
train() {
  pipelag train "$1.json" -q --json -o "$1" "${@:2}" >"$1.out" || fail "$1: pipelag train ended with status $?: $(tail -n 1 "$1.out")"
  cat "$1.out"
}

# curve NAME: the path of its curve as CSV.
curve() {
  pipelag export "$1" -q --format csv -o "$1/csv"
  echo "$1"/csv/*.csv
}

# distance NAME NAME: the largest difference of train/loss, then the mean one, over the updates, which must be the same.
distance() {
  awk -F, 'FNR == 1 {for (i = 1; i <= NF; i++) if ($i == "train/loss") c = i; next}
    NR == FNR {first[$1] = $c; count++; next}
    {if (!($1 in first) || ($c == "") != (first[$1] == "")) bad = 1
     if ($c != "") {n++; d = first[$1] - $c; if (d < 0) d = -d; sum += d; if (d > most) most = d; if (d != d) bad = 1}
     count--}
    END {if (bad || n < 2 || count != 0) exit 1; printf "%.6g %.6g\n", most, sum / n}' "$(curve "$1")" "$(curve "$2")" || fail "the curves of $1 and $2 have other updates"
}
# below A B: whether A < B.
below() { awk -v a="$1" -v b="$2" 'BEGIN {exit !(a < b)}'; }

# figures NAME: its curve without what a clock has measured.
figures() {
  awk -F, 'FNR == 1 {for (i = 1; i <= NF; i++) clock[i] = $i == "seconds" || $i == "bubble"}
    {for (i = 1; i <= NF; i++) if (!clock[i]) printf "%s,", $i; print ""}' "$(curve "$1")"
}
same() { cmp -s <(figures "$1") <(figures "$2"); }
