"""examples_findings.py FOLDER: checks what examples_slow_test.sh has analysed; each finding can fail."""
import json
import sys

failed = 0


def check(holds, text):
    global failed
    failed += not holds
    print("  %-7s %s" % ("holds" if holds else "MISSED", text))


def read(name):
    with open("%s/%s.json" % (sys.argv[1], name), encoding="utf-8") as file:
        return json.load(file)


def rows(name, reading="best", **columns):
    """The rows of the gap table that have these values, by optimizer, delay, correction."""
    found = [r for r in read(name)["rows"] if r["reading"] == reading and all(r[k] == v for k, v in columns.items())]
    return {(r["optimizer"], r["delay"], r["correction"]): r for r in found}


def gap(row):
    return row["gap"]["mean"]


def shown(row):
    g = row["gap"]
    text = "%+.3f" % g["mean"]
    return text if g["low"] is None else "%s [%+.3f, %+.3f]" % (text, g["low"], g["high"])


def against(name, **columns):
    """(value, row) of a series of `--against`, by value."""
    found = [r for r in read(name)["against"] if all(r[k] == v for k, v in columns.items())]
    return sorted(((r["value"], r) for r in found), key=lambda pair: pair[0])


def slope(name, **columns):
    found = [r for r in read(name)["slopes"] if all(r[k] == v for k, v in columns.items())]
    return found[0]


def grows(pairs, few=3):
    gaps = [gap(row) for _, row in pairs]
    return len(gaps) >= few and all(a < b for a, b in zip(gaps, gaps[1:]))


def listed(pairs):
    return ", ".join("%g: %s" % (value, shown(row)) for value, row in pairs)


def optimizers():
    print("optimizers")
    r = rows("optimizers")
    for name in ("adamw", "muon"):
        none, ef = r[(name, "1", "none")], r[(name, "1", "ef")]
        check(gap(none) > 0.02, "%s pays for one update of delay: %s" % (name, shown(none)))
        check(gap(ef) < gap(none), "error feedback lowers it: %s" % shown(ef))
        part = 1 - gap(ef) / gap(none)
        check(part > 0.2, "it wins back %.0f%%" % (100 * part))
        check(gap(r[(name, "1", "lookahead")]) > gap(none), "look-ahead raises it: %s" % shown(r[(name, "1", "lookahead")]))


def lr_delay():
    print("lr-delay")
    best, moved = rows("lr-delay"), rows("lr-delay", "transferred")
    arms = [("adamw", d, "none") for d in ("0", "1", "4")]
    rates = [best[a]["lr"] for a in arms]
    check(rates[0] >= rates[1] >= rates[2] < rates[0], "the best learning rate falls with the delay: %s" % rates)
    for a in arms[1:]:
        check(gap(best[a]) < gap(moved[a]), "delay %s: %s when tuned for it, %s at the synchronous optimum"
              % (a[1], shown(best[a]), shown(moved[a])))


def delay():
    print("delay")
    none, ef = against("delay", correction="none"), against("delay", correction="ef")
    check(grows(none, 4), "the gap grows with the delay: %s" % listed(none))
    line = slope("delay", correction="none")
    check(line["low"] > 0, "its slope is above 0: %+.4f [%+.4f, %+.4f]" % (line["slope"], line["low"], line["high"]))
    for (k, a), (_, b) in zip(none, ef):
        check(gap(b) < gap(a), "delay %g: %s with error feedback" % (k, shown(b)))
    parts = [1 - gap(b) / gap(a) for (_, a), (_, b) in zip(none, ef)]
    check(parts[-1] < parts[0], "and wins back less of long delays: " + ", ".join("%.0f%%" % (100 * p) for p in parts))


def profiles():
    print("profiles")
    r = rows("profiles")
    for name in ("adamw", "muon"):
        front, back = r[(name, "pipedream", "none")], r[(name, "[0,1,2,3]", "none")]
        check(front["simulated"], "%s: a profile with a global clip is marked as simulated" % name)
        check(gap(front) > gap(back), "%s: late first stages cost more than late last ones: %s, %s"
              % (name, shown(front), shown(back)))


def schedules():
    print("schedules")
    found = read("schedules")["rows"]
    by = {(r["group"], r["delay"]): r for r in found if r["reading"] == "best"}
    many, one = "pipeline.microbatches=4", "pipeline.microbatches=1"
    for group, real, simulated in ((many, "1 2bw", "1 lagged"), (one, "[3,2,1,0] pipedream", "pipedream lagged"),
                                   (one, "3 pipedream-vertical", "3 lagged")):
        a, b = by[(group, real)], by[(group, simulated)]
        check(a["loss"] == b["loss"], "%s and its simulation give the same losses: %.17g" % (real, a["loss"]["mean"]))
    costs = [by[(many, "1 2bw")], by[(one, "[3,2,1,0] pipedream")], by[(one, "3 pipedream-vertical")]]
    check(gap(costs[0]) < gap(costs[1]) < gap(costs[2]), "2bw, pipedream, pipedream-vertical: " +
          ", ".join(shown(c) for c in costs))


def momentum():
    print("momentum")
    r = {(x["optimizer"], x["delay"], x["correction"]): x for x in read("momentum")["rows"] if x["reading"] == "best"}
    names = sorted({k[0] for k in r})
    parts = [1 - gap(r[(n, "1", "ef")]) / gap(r[(n, "1", "none")]) for n in names]
    check(parts[0] < parts[1] < parts[2] and parts[0] < 0 < parts[2], "error feedback needs momentum: " +
          ", ".join("%s %.0f%%" % (n, 100 * p) for n, p in zip(names, parts)))


def momentum_lm():
    print("momentum-lm")
    r = rows("momentum-lm")
    for name in sorted({k[0] for k in r}):
        none, ef = r[(name, "1", "none")], r[(name, "1", "ef")]
        check(0 < gap(none) > gap(ef), "%s pays, and error feedback lowers it: %s, %s"
              % (name, shown(none), shown(ef)))


def batch():
    print("batch")
    tokens, updates = against("batch"), against("batch-updates")
    check(len(tokens) == 3 and gap(tokens[0][1]) < gap(tokens[-1][1]),
          "at equal tokens the gap grows with the batch: %s" % listed(tokens))
    check(len(updates) == 3 and gap(updates[-1][1]) < gap(tokens[-1][1]),
          "at equal updates the largest batch costs less than that: %s" % listed(updates))


def depth():
    print("depth")
    profile, constant = against("depth", delay="pipedream"), against("depth", delay="1")
    check(grows(profile), "the profile of PipeDream costs more with each stage: %s" % listed(profile))
    check(gap(constant[-1][1]) < gap(profile[-1][1]), "one update of delay does not: %s" % listed(constant))


def sync_start():
    print("sync-start")
    pairs = against("sync-start")
    check(grows(pairs[:1:-1]) and gap(pairs[2][1]) < gap(pairs[0][1]), "the later the delay begins, the less it costs: %s" % listed(pairs))
    check(pairs[-1][1]["gap"]["low"] > 0, "but half a run without it does not save all: %s" % shown(pairs[-1][1]))


def others():
    print("random, stability")
    check(sum(r["total"] for r in read("random")["rows"] if r["reading"] == "best") > 0, "random is analysed")
    diverged = {r["delay"]: r["diverged"] for r in read("stability")["rows"] if r["reading"] == "best"}
    check(set(diverged) == {"0", "1", "2", "4"}, "stability has its four delays: %s" % sorted(diverged))


for part in (optimizers, lr_delay, delay, profiles, schedules, momentum, momentum_lm, batch, depth, sync_start, others):
    part()
print("%d findings missed" % failed)
sys.exit(failed > 0)
