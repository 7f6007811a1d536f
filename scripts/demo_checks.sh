#!/usr/bin/env bash
# demo_checks.sh GAP.csv: what a right implementation shows on the demo sweep, each as met or missed, from the sweep's own results.
# The panel of stage-dependent delay is the group with 8 stages; the rest are the readings at optimizer.lr = 8e-3.
set -euo pipefail
awk -F, '
NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
{ reading = $column["reading"]; optimizer = $column["optimizer"]; delay = $column["delay"]; correction = $column["correction"]
  panel = $column["group"] ~ /stages=8/; gap = $column["gap.mean"]; won = $column["won_back.mean"] }
reading == "fixed" && !panel && delay == "1" && correction == "none" { fixed[optimizer] = gap; n[optimizer] = $column["gap.n"] }
reading == "fixed" && !panel && optimizer == "adamw" && correction == "ef" { won_back = won }
reading == "best" && panel { profile[optimizer, delay] = gap }
function check(ok, text) { printf "  %-6s  %s\n", ok ? "met" : "MISSED", text; missed += !ok }
function between(x, low, high) { return x != "" && x >= low && x <= high }
END {
  check(n["adamw"] == 5 && between(fixed["adamw"], 0.06, 0.15), sprintf("AdamW pays for one step of delay: mean gap %.4f over %d seeds, expected 0.06 to 0.15", fixed["adamw"], n["adamw"]))
  check(n["muon"] == 5 && fixed["muon"] < 0.035, sprintf("Muon hardly does: mean gap %.4f over %d seeds, expected under 0.035", fixed["muon"], n["muon"]))
  ratio = fixed["muon"] != 0 ? fixed["adamw"] / fixed["muon"] : 0
  check(ratio >= 2.5 || (fixed["muon"] != "" && fixed["muon"] <= 0), sprintf("AdamW pays %.1f times what Muon pays, expected at least 2.5", ratio))
  check(won_back >= 0.5, sprintf("error feedback wins back %.0f%% of AdamW'"'"'s gap, expected at least 50%%", 100 * won_back))
  a = profile["adamw", "1"]; b = profile["adamw", "pipedream"]; c = profile["muon", "1"]; d = profile["muon", "pipedream"]
  check(a > 0 && c > 0 && b > 2 * a && d > 2 * c, sprintf("eight PipeDream stages cost over twice a constant delay of 1: AdamW %.3f against %.3f, Muon %.3f against %.3f", b, a, d, c))
  exit missed > 0
}' "$1"
