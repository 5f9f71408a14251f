"""`loxia score` against the golden scores of tiny-models (PyTorch, float32), within 1e-3.

    .venv/bin/python tools/check/tiny_golden.py [path of the loxia program]

Reads LOXIA_TEST_DATA (default ../shared/data).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOXIA = sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release/loxia"
DATA = pathlib.Path(os.environ.get("LOXIA_TEST_DATA", ROOT / "../shared/data"))

golden = json.loads((DATA / "tiny-models/golden.json").read_text())
failed = False
with tempfile.TemporaryDirectory() as scratch:
    for variant, expected in golden.items():
        output = pathlib.Path(scratch) / f"{variant}.npy"
        rows = expected["rows"]
        subprocess.run(
            [LOXIA, "score", "--model", DATA / f"tiny-models/{variant}-cross-encoder", "--variant", variant,
             "--layout", "anncur", "--max-query", "64", "--max-item", "64", "--data", DATA / "wordnet-worlds",
             "--split", "test", "--world", "verb.motion", "--rows", f"{rows[0]}..{rows[-1] + 1}",
             "--output", output, "--quiet"],
            check=True,
        )
        scores = np.load(output)
        assert scores.dtype == np.float32, scores.dtype
        error = np.abs(scores[:, expected["items"]] - np.array(expected["scores"])).max()
        failed |= not error <= 1e-3
        print(f"{variant}: {scores.shape[0]} x {scores.shape[1]}, largest difference {error:.2e}")
sys.exit("FAILED" if failed else print("ok"))
