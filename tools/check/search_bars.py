"""Search quality on the standard splits of wordnet-scores:
python3 tools/check/search_bars.py LOXIA SCORES_DIR WORLDS_DIR [CHECK ...]

SCORES_DIR holds the npy files that data/wordnet-scores/unpack.py writes, WORLDS_DIR is data/wordnet-worlds. Every check
runs `loxia eval knn` and prints the mean recall over k = 10, 50, 100 and 50, 100, 200, 500 pairs of each method, or
how near the recall estimate is and what recall targets reach, and whether the bar is reached. Exits with 1 if one is
not. The estimate on verb.motion has no bar and is only reported. With names of checks, only those.
"""

import json
import subprocess
import sys

PUBLISHED = ("anncur", "adacur", "axn")
PLUS = tuple(name + "+" for name in PUBLISHED)
# Matrix, anchor rows, test rows, vectors, methods beside posterior, least mean recall of posterior.
CHECKS = {
    "artifact": ("emb.noun.artifact", "0..500", "500..700", "files", PUBLISHED + PLUS, 0.83),
    "motion": ("emb.verb.motion", "0..500", "500..1000", "files", PUBLISHED + PLUS, 0.86),
    "motion-cls": ("cls.verb.motion", "0..500", "500..1000", "files", PUBLISHED + PLUS, 0.835),
    "artifact-100-anchors": ("emb.noun.artifact", "0..100", "500..700", "files", (), 0.79),
    "artifact-no-vectors": ("emb.noun.artifact", "0..500", "500..700", "none", ("adacur-random",), 0.657),
    "artifact-tfidf": ("emb.noun.artifact", "0..500", "500..700", "tfidf", (), 0.77),
}
ESTIMATE, TARGETS, MOTION_ESTIMATE = "artifact-estimate", "artifact-targets", "motion-estimate"


class Loxia:
    """`loxia eval knn` on the files of this data."""

    def __init__(self, program, directory, worlds):
        self.program, self.directory, self.worlds = program, directory, worlds

    def rows(self, scores, anchors, test, vectors, *flags):
        world = scores.split(".", 1)[1]
        command = [self.program, "eval", "knn", "--scores", f"{self.directory}/{scores}.npy"]
        command += ["--anchors", anchors, "--test", test, "--vectors", vectors, *flags, "--json"]
        if vectors == "files":
            command += ["--item-vectors", f"{self.directory}/dual.{world}.items.npy"]
            command += ["--query-vectors", f"{self.directory}/dual.{world}.queries.npy"]
        elif vectors == "tfidf":
            command += ["--data", self.worlds, "--world", world, "--split", "test"]
        return json.loads(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout)

    def recalls(self, scores, anchors, test, vectors, methods):
        found = {}
        for row in self.rows(scores, anchors, test, vectors, "--methods", ",".join((*methods, "posterior"))):
            found.setdefault(row["method"], {})[row["cost"], row["k"]] = row["recall"]
        return found


ESTIMATE_FLAGS = ["--methods", "posterior", "--estimate", "--k", "10,50,100", "--cost", "100,200,400"]


def report_motion_estimate(loxia, _hold):
    for scores in ("emb.verb.motion", "cls.verb.motion"):
        for row in loxia.rows(scores, "0..500", "500..1000", "files", *ESTIMATE_FLAGS):
            apart, better = row["estimate"] - row["recall"], 1 - row["estimate_error"] / row["constant_error"]
            where = f"{scores}, k = {row['k']}, {row['cost']} pairs: recall {row['recall']:.3f}"
            print(f"  {where}, estimate {apart:+.3f}, error below a constant's by {better:+.2f}, in 90 % {row['covered']:.3f}")


def check_estimate(loxia, hold):
    for row in loxia.rows("emb.noun.artifact", "0..500", "500..700", "files", *ESTIMATE_FLAGS):
        where = f"k = {row['k']}, {row['cost']} pairs"
        print(f"  {where}: recall {row['recall']:.3f}, in the 90 % interval {row['covered']:.3f}")
        hold(f"{where}: estimate apart by", -abs(row["estimate"] - row["recall"]), -0.02)
        hold(f"{where}: interval apart from 90 % by", -abs(row["covered"] - 0.9), -0.05)
        if row["cost"] == 100 and row["k"] > 10:
            hold(f"{where}: error below a constant's by", 1 - row["estimate_error"] / row["constant_error"], 0.3)


def check_targets(loxia, hold):
    flags = ["--methods", "posterior", "--target", "0.9,0.95", "--k", "10,50", "--cost", "100"]
    for row in loxia.rows("emb.noun.artifact", "0..500", "500..700", "files", *flags):
        if "target" in row:
            hold(f"k = {row['k']}: recall at the target {row['target']}", row["recall"], row["target"] - 0.01)
            even = f"as a budget for all: recall {row['recall_at_even_cost']:.3f}; equal recall takes {row['even_budget']}"
            print(f"    {row['cost']:.0f} pairs a query on average; {even}")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    program, directory, worlds, *wanted = sys.argv[1:]
    loxia = Loxia(program, directory, worlds)
    good = True

    def hold(what, value, least):
        nonlocal good
        reached = value >= least - 1e-9
        good &= reached
        print(f"  {what:<44} {value:7.4f}   bar {least:7.4f}   {'ok' if reached else 'MISSED'}", flush=True)

    others = {ESTIMATE: check_estimate, TARGETS: check_targets, MOTION_ESTIMATE: report_motion_estimate}
    for name in wanted or [*CHECKS, *others]:
        if name in others:
            print(f"{name}:")
            others[name](loxia, hold)
            continue
        scores, anchors, test, vectors, methods, least = CHECKS[name]
        found = loxia.recalls(scores, anchors, test, vectors, methods)
        means = {}
        for method, cells in found.items():
            large = [recall for (_, k), recall in cells.items() if k > 1]
            means[method] = sum(large) / len(large)
        print(f"{name}: " + ", ".join(f"{method} {mean:.4f}" for method, mean in means.items()))
        own = found["posterior"]
        hold("mean recall of posterior", means["posterior"], least)
        if vectors == "files" and methods:
            best = [recall for (_, k), recall in own.items() if k == 1]
            print("  k = 1 by cost: " + ", ".join(f"{recall:.3f}" for recall in best))
            hold("k = 1, mean over costs", sum(best) / len(best), 0.995)
            hold("lead over the best published", means["posterior"] - max(means[m] for m in PUBLISHED), 0.04)
            hold("lead over the best regularised", means["posterior"] - max(means[m] for m in PLUS), 0.02)
            worst = min(own[cell] - max(found[m][cell] for m in PUBLISHED) for cell in own)
            hold("worst cell against the best published", worst, -0.005)
        elif methods:
            hold("lead over the best published", means["posterior"] - max(means[m] for m in methods), 0.0)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
