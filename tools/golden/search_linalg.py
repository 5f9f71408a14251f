"""Goldens of loxia-search's linear algebra, from numpy and scipy: python3 search_linalg.py OUT.json

Well-conditioned, ill-conditioned (condition number 1e10), rank-deficient, zero and one-element cases.
"""
import json
import sys

import numpy as np
import scipy.linalg as sl

rng = np.random.default_rng(7)


def with_spectrum(rows, cols, values):
    k = len(values)
    u = np.linalg.qr(rng.normal(size=(rows, k)))[0]
    v = np.linalg.qr(rng.normal(size=(cols, k)))[0]
    return (u * values) @ v.T


def matrix(a):
    a = np.atleast_2d(np.asarray(a, dtype=np.float64))
    return {"rows": a.shape[0], "cols": a.shape[1], "values": [float(f"{x:.17g}") for x in a.ravel()]}


cases = {
    "tall": with_spectrum(9, 5, [5, 4, 3, 2, 1]),
    "wide": with_spectrum(4, 11, [3, 2, 1, 0.5]),
    "ill_conditioned": with_spectrum(8, 6, [1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10]),
    "rank_deficient": with_spectrum(7, 6, [4, 2, 1]),
    "rank_deficient_wide": with_spectrum(5, 8, [4, 2]),
    "zero": np.zeros((3, 4)),
    "one": np.array([[-2.5]]),
}
out = []
for name, a in cases.items():
    rows, cols = a.shape
    b = rng.normal(size=rows)
    lam = 0.1
    gram = a @ a.T
    kernel_right = rng.normal(size=(rows, 3))
    out.append({
        "name": name,
        "a": matrix(a),
        "b": b.tolist(),
        "singular_values": np.linalg.svd(a, compute_uv=False).tolist(),
        "rcond": 1e-7,
        "pinv": matrix(np.linalg.pinv(a, rcond=1e-7)),
        "min_norm": (np.linalg.pinv(a, rcond=1e-7) @ b).tolist(),
        "lambda": lam,
        "ridge": np.linalg.solve(a.T @ a + lam * np.eye(cols), a.T @ b).tolist(),
        "eigenvalues": sl.eigvalsh(gram).tolist(),
        "kernel_right": matrix(kernel_right),
        "kernel_ridge": matrix(np.linalg.solve(gram + lam * np.eye(rows), kernel_right)),
        "cholesky": matrix(sl.cholesky(gram + lam * np.eye(rows), lower=True)),
        "r_diagonal": np.abs(np.diag(sl.qr(a, mode="economic")[1])).tolist(),
    })
with open(sys.argv[1], "w") as file:
    json.dump(out, file, indent=0)
    file.write("\n")
