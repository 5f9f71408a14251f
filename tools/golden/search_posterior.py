"""Goldens of loxia-search's posterior method: python3 search_posterior.py REFERENCE.py OUT_DIR

REFERENCE.py is the numpy reference of the method. Writes a small synthetic world as npy and, as JSON, what
the reference makes of it: prior mean and variance of some test queries and the items it pays for.
"""
import importlib.util
import json
import pathlib
import sys

import numpy as np

spec = importlib.util.spec_from_file_location("reference", sys.argv[1])
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)
out = pathlib.Path(sys.argv[2])

rng = np.random.default_rng(3)
anchors, tests, items, width = 60, 4, 240, 10
queries = rng.normal(size=(anchors + tests, width)).astype(np.float32)
vectors = rng.normal(size=(items, width)).astype(np.float32)
lean = 2 * np.outer(queries[:, 0], vectors[:, 1])
scores = queries @ vectors.T + lean + 0.5 * rng.normal(size=(anchors + tests, items))
scores = np.exp(scores / 4).astype(np.float32)
np.save(out / "posterior.scores.npy", scores)
np.save(out / "posterior.queries.npy", queries)
np.save(out / "posterior.items.npy", vectors)

cases = []
for delta in (None, 0.3):
    for with_vectors in (True, False):
        anchor_queries, item_vectors = (queries[:anchors], vectors) if with_vectors else (None, None)
        model = reference.fit(scores[:anchors], anchor_queries, item_vectors, delta=delta)
        for row in range(anchors, anchors + tests):
            query = queries[row] if with_vectors else None
            mean, variance = reference.prior(model, query)
            paid = reference.search(model, query, scores[row], reference.even(50, 5))
            cases.append({
                "transform": delta,
                "vectors": with_vectors,
                "row": row,
                "mean": [round(float(x), 5) for x in mean[::7]],
                "variance": [round(float(x), 6) for x in variance[::7]],
                "paid": [int(x) for x in paid],
            })
with open(out / "posterior.json", "w") as file:
    json.dump(cases, file)
    file.write("\n")
