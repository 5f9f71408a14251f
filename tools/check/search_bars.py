"""Search quality on the standard splits of wordnet-scores: python3 tools/check/search_bars.py LOXIA SCORES_DIR [CHECK ...]

SCORES_DIR holds the npy files that data/wordnet-scores/unpack.py writes. Every check runs `loxia eval knn` and prints
the mean recall over k = 10, 50, 100 and 50, 100, 200, 500 pairs of each method, and whether the bar is reached. Exits
with 1 if one is not. With names of checks, only those.
"""

import json
import subprocess
import sys

PUBLISHED = ("anncur", "adacur", "axn")
PLUS = tuple(name + "+" for name in PUBLISHED)
# Matrix, anchor rows, test rows, whether with vectors, methods beside posterior, least mean recall of posterior.
CHECKS = {
    "artifact": ("emb.noun.artifact", "0..500", "500..700", True, PUBLISHED + PLUS, 0.83),
    "motion": ("emb.verb.motion", "0..500", "500..1000", True, PUBLISHED + PLUS, 0.86),
    "motion-cls": ("cls.verb.motion", "0..500", "500..1000", True, PUBLISHED + PLUS, 0.835),
    "artifact-100-anchors": ("emb.noun.artifact", "0..100", "500..700", True, (), 0.79),
    "artifact-no-vectors": ("emb.noun.artifact", "0..500", "500..700", False, ("adacur-random",), 0.657),
}


def recalls(loxia, directory, scores, anchors, test, vectors, methods):
    world = scores.split(".", 1)[1]
    command = [loxia, "eval", "knn", "--scores", f"{directory}/{scores}.npy", "--anchors", anchors, "--test", test]
    if vectors:
        command += ["--item-vectors", f"{directory}/dual.{world}.items.npy"]
        command += ["--query-vectors", f"{directory}/dual.{world}.queries.npy"]
    else:
        command += ["--vectors", "none"]
    command += ["--methods", ",".join((*methods, "posterior")), "--json"]
    rows = json.loads(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout)
    found = {}
    for row in rows:
        found.setdefault(row["method"], {})[row["cost"], row["k"]] = row["recall"]
    return found


def main():
    loxia, directory, *wanted = sys.argv[1:]
    good = True

    def hold(what, value, least):
        nonlocal good
        reached = value >= least - 1e-9
        good &= reached
        print(f"  {what:<44} {value:7.4f}   bar {least:7.4f}   {'ok' if reached else 'MISSED'}", flush=True)

    for name in wanted or CHECKS:
        scores, anchors, test, vectors, methods, least = CHECKS[name]
        found = recalls(loxia, directory, scores, anchors, test, vectors, methods)
        means = {}
        for method, cells in found.items():
            large = [recall for (_, k), recall in cells.items() if k > 1]
            means[method] = sum(large) / len(large)
        print(f"{name}: " + ", ".join(f"{method} {mean:.4f}" for method, mean in means.items()))
        own = found["posterior"]
        hold("mean recall of posterior", means["posterior"], least)
        if vectors and methods:
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
