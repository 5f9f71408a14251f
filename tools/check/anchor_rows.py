"""Search on anchor rows alone: what may be looked at before a constant is chosen.

python3 tools/check/anchor_rows.py LOXIA SCORES_DIR [recall] [coverage] [unlike]

Needs numpy. SCORES_DIR holds the npy files of wordnet-scores. The first 500 rows of a matrix are turned round, the first
of them serve as anchors and the others are searched; the standard test rows are never read.
  recall    mean recall of posterior and its worst cell against the published methods, by matrix and number of anchors
  coverage  noun.artifact, five turns of 400 anchors: how many recalls lie in the 90 % intervals
  unlike    the same matrix with the columns of the searched rows shuffled, or with noise as large as their spread
Reports; nothing here is a bar.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROWS, PUBLISHED = 500, ("anncur", "adacur", "axn")
COSTS = (50, 100, 200, 500)
ARTIFACT = "emb.noun.artifact"


class Rows:
    """The anchor rows of one matrix, turned by some of them, in files of their own."""

    def __init__(self, program, scores, name, turn, folder, change=lambda searched: searched, anchors=0):
        world = name.split(".", 1)[1]
        order = np.roll(np.arange(ROWS), -turn)
        values = np.load(scores / f"{name}.npy", mmap_mode="r")[:ROWS][order]
        values[anchors:] = change(values[anchors:])
        np.save(folder / "scores.npy", values)
        np.save(folder / "queries.npy", np.load(scores / f"dual.{world}.queries.npy")[:ROWS][order])
        self.command = [program, "eval", "knn", "--scores", folder / "scores.npy", "--json"]
        self.command += ["--item-vectors", scores / f"dual.{world}.items.npy", "--query-vectors", folder / "queries.npy"]

    def ask(self, anchors, *flags):
        command = [*self.command, "--anchors", f"0..{anchors}", "--test", f"{anchors}..{ROWS}", *flags]
        return json.loads(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout)


def recall(program, scores, folder):
    for name in (ARTIFACT, "emb.verb.motion", "cls.verb.motion"):
        for anchors in (100, 150, 200, 300, 400):
            cells = {}
            for turn in (0, 200):
                rows = Rows(program, scores, name, turn, folder)
                for row in rows.ask(anchors, "--methods", ",".join((*PUBLISHED, "posterior"))):
                    cells.setdefault((row["method"], row["cost"], row["k"]), []).append(row["recall"])
            cells = {cell: np.mean(values) for cell, values in cells.items()}
            own = {cell[1:]: value for cell, value in cells.items() if cell[0] == "posterior"}
            mean = np.mean([value for (_, k), value in own.items() if k > 1])
            worst = min((own[cell] - max(cells[(method, *cell)] for method in PUBLISHED), cell) for cell in own)
            where = f"worst cell {worst[0]:+.4f} (k = {worst[1][1]}, {worst[1][0]} pairs)"
            print(f"{name}, {anchors} anchors: mean recall {mean:.4f}, {where}", flush=True)


ESTIMATE = ("--methods", "posterior", "--estimate", "--k", "1,10,50,100", "--cost", "100,200,400")


def tell(rows):
    for row in rows:
        what = f"recall {row['recall']:.3f}, estimate {row['estimate']:.3f}, in the interval {row['covered']:.3f}"
        print(f"  k = {row['k']}, {row['cost']} pairs: {what}", flush=True)


def coverage(program, scores, folder):
    turns = [Rows(program, scores, ARTIFACT, turn, folder).ask(400, *ESTIMATE) for turn in range(0, ROWS, 100)]
    means = [{key: float(np.mean([row[key] for row in cell])) for key in ("recall", "estimate", "covered")} for cell in zip(*turns)]
    print(f"{ARTIFACT}, five turns of 400 anchors:")
    tell([{**mean, "k": row["k"], "cost": row["cost"]} for mean, row in zip(means, turns[0])])


def unlike(program, scores, folder):
    random = np.random.default_rng(0)
    changes = {
        "shuffled": lambda rows: rows[:, random.permutation(rows.shape[1])],
        "with noise": lambda rows: rows + random.standard_normal(rows.shape).astype(np.float32) * rows.std(1, keepdims=True),
    }
    for name, change in changes.items():
        print(f"{ARTIFACT}, 400 anchors, searched rows {name}:")
        tell(Rows(program, scores, ARTIFACT, 0, folder, change, 400).ask(400, *ESTIMATE))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    program, scores, *wanted = sys.argv[1:]
    parts = {"recall": recall, "coverage": coverage, "unlike": unlike}
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted or parts:
            parts[name](program, Path(scores), Path(folder))


if __name__ == "__main__":
    main()
