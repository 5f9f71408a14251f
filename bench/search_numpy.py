"""ADACUR as published, in numpy: a pseudo-inverse of the anchor items' columns in each round.

Prints one JSON object with the median processor time of a search in milliseconds, scorer excluded. Numbers are
random: the work does not depend on them.
"""
import os

# Before numpy: it reads them once.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import time

import numpy as np


def search(anchor_rows, scores, first, budget, rounds):
    """Item positions that were paid for."""
    paid = first
    for size in [budget // rounds] * (rounds - 1):
        weights = scores[paid] @ np.linalg.pinv(anchor_rows[:, paid])
        guess = weights @ anchor_rows
        guess[paid] = -np.inf
        best = np.argpartition(-guess, size)[:size]
        paid = np.concatenate([paid, best])
    return paid


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--anchors", type=int, default=500)
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--queries", type=int, default=3)
    flags = parser.parse_args()
    random = np.random.default_rng(0)
    rank = 64
    left = random.standard_normal((flags.anchors + flags.queries, rank), dtype=np.float32)
    right = random.standard_normal((rank, flags.items), dtype=np.float32)
    rows = left @ right + 0.1 * random.standard_normal((left.shape[0], flags.items), dtype=np.float32)
    times = []
    for query in range(flags.queries):
        row = rows[flags.anchors + query]
        first = random.choice(flags.items, flags.budget // flags.rounds, replace=False)
        before = time.thread_time()
        paid = search(rows[: flags.anchors], row, first, flags.budget, flags.rounds)
        times.append(time.thread_time() - before)
        assert len(set(paid.tolist())) == flags.budget
    print(json.dumps({"adacur_numpy_ms": float(np.median(times) * 1e3), "numpy": np.__version__}))


if __name__ == "__main__":
    main()
