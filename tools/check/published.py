"""The methods against plain numpy scripts: published.py LOXIA SCORES_DIR BASELINES REFERENCE [WORLD ...]

Needs numpy and scipy. BASELINES is search-baselines.py, REFERENCE search-method.py, SCORES_DIR holds the npy files of
wordnet-scores. Both sides of the published methods search the same rows with 5 rounds; their mean recalls over k = 10, 50, 100 and 50, 100, 200, 500 pairs may be 0.015 apart. The
script draws ANNCUR's anchor items once; here its own functions are given five draws, to choose the split and to be
averaged, for that is what `loxia eval knn` does. posterior, with 10 rounds, may be 0.005 below its reference. Exits
with 1 if a method is further away.
"""

import importlib.util
import json
import re
import subprocess
import sys

import numpy as np

WORLDS = {"emb.noun.artifact": 200, "emb.verb.motion": 500, "cls.verb.motion": 500}
ANCHORS, ROUNDS, DRAWS, APART = 500, 5, 5, 0.015
POSTERIOR_ROUNDS, BELOW = 10, 0.005
COSTS, SPLITS = (50, 100, 200, 500), (0.2, 0.35, 0.5, 0.65, 0.8)
# Our name, and how the script's line begins.
NAMES = {
    "rerank": "DE rerank",
    "adacur-random": "ADACUR random",
    "adacur": "ADACUR DE raw",
    "adacur+": "ADACUR DE cen.ridge",
    "axn-dual": "AXN(DE)",
    "axn-factors": "AXN(MF",
}


def ours(loxia, matrix, items, queries, rows, methods, rounds):
    command = [loxia, "eval", "knn", "--scores", matrix, "--item-vectors", items, "--query-vectors", queries]
    command += ["--anchors", f"0..{ANCHORS}", "--test", f"{ANCHORS}..{ANCHORS + rows}", "--rounds", str(rounds)]
    command += ["--methods", ",".join(methods), "--k", "10,50,100", "--cost", ",".join(map(str, COSTS)), "--json"]
    found = {}
    for row in json.loads(subprocess.run(command, capture_output=True, check=True).stdout):
        found.setdefault(row["method"], []).append(row["recall"])
    return {method: float(np.mean(recalls)) for method, recalls in found.items()}


def anncur(script, scores, rows):
    """ANNCUR by the script's functions: the split that is best on held-out anchor rows, both over five draws."""
    anchors, test = scores[:ANCHORS], scores[ANCHORS : ANCHORS + rows]
    held_out = np.arange(ANCHORS) % 5 == 0

    def mean(of, on, split, costs):
        tops, recalls = script.tops(on), []
        for cost in costs:
            size = max(5, int(cost * split))
            for draw in range(DRAWS):
                chosen, map_to_all = script.anncur_maker(of, None, None, size, size + 1000 * draw)
                for row, top in zip(on, tops):
                    estimate = row[chosen] @ map_to_all
                    estimate[chosen] = -1e9
                    paid = np.concatenate([chosen, script.topk(estimate, cost - size)])
                    recalls.append(np.mean(script.rec(top, paid)[1:]))
        return float(np.mean(recalls))

    trial = anchors[held_out][:50]
    split = max(SPLITS, key=lambda split: mean(anchors[~held_out], trial, split, (100, 500)))
    return mean(anchors, test, split, COSTS)


def main():
    loxia, directory, baselines, reference, *wanted = sys.argv[1:]
    specification = importlib.util.spec_from_file_location("baselines", baselines)
    script = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(script)
    good = True
    for world in wanted or WORLDS:
        name = world.split(".", 1)[1]
        files = [f"{directory}/{world}.npy"] + [f"{directory}/dual.{name}.{side}.npy" for side in ("items", "queries")]
        matrix, items, queries = files
        rows = str(WORLDS[world])
        found = ours(loxia, matrix, items, queries, WORLDS[world], ["anncur", *NAMES], ROUNDS)
        command = [sys.executable, baselines, matrix, queries, items, str(ANCHORS), rows]
        printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        expected = {"anncur": anncur(script, np.load(matrix), WORLDS[world])}
        for method, start in NAMES.items():
            line = next(line for line in printed.splitlines() if line.startswith(start))
            expected[method] = float(re.search(r"mean ([0-9.]+)", line)[1])
        print(f"{world}, {WORLDS[world]} test rows, {ROUNDS} rounds")
        for method, value in expected.items():
            near = abs(found[method] - value) <= APART
            good &= near
            print(f"  {method:<14} ours {found[method]:.4f}   script {value:.4f}   {'ok' if near else 'APART'}", flush=True)
        own = ours(loxia, matrix, items, queries, WORLDS[world], ["posterior"], POSTERIOR_ROUNDS)["posterior"]
        command = [sys.executable, reference, matrix, queries, items, str(ANCHORS), "--rows", rows]
        printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        line = next(line for line in printed.splitlines() if line.startswith(f"posterior, {POSTERIOR_ROUNDS} rounds"))
        value = float(re.search(r"m12 ([0-9.]+)", line)[1])
        near = own >= value - BELOW
        good &= near
        print(f"  {'posterior':<14} ours {own:.4f}   script {value:.4f}   {'ok' if near else 'BELOW'}, {POSTERIOR_ROUNDS} rounds", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
