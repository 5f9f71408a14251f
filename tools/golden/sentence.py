"""Vectors of sentence-transformers for small directories: prompts, poolings, lower case, limits.

Writes crates/loxia-model/tests/fixtures/sentence/golden.json: for every case the configuration files of a
directory around the fixture `roberta-odd`, the texts, and what encode_query and encode_document make of them.

    python tools/golden/sentence.py
"""

import json
import shutil
import tempfile
from pathlib import Path

from sentence_transformers import SentenceTransformer

FIXTURES = Path(__file__).resolve().parents[2] / "crates/loxia-model/tests/fixtures"
MODEL = "roberta-odd"
TEXTS = ["", "burns logs", "Crossbills EAT seeds from cones", "birds wander far when cones are few " * 4]
PROMPTS = {"query": "Stove ", "document": "WOOD burns: "}


def case(pooling, include=True, prompts=None, default=None, truncate=None, lower=False, limit=None):
    general = {"prompts": prompts or {}, "default_prompt_name": default}
    if truncate:
        general["truncate_dim"] = truncate
    return {
        "1_Pooling/config.json": {"word_embedding_dimension": 36, "pooling_mode": pooling, "include_prompt": include},
        "config_sentence_transformers.json": general,
        "sentence_bert_config.json": {"max_seq_length": limit, "do_lower_case": lower},
    }


CASES = {
    "no prompt": case("mean"),
    "mean, prompt counted": case("mean", prompts=PROMPTS),
    "mean, prompt left out": case("mean", include=False, prompts=PROMPTS),
    "max, prompt left out": case("max", include=False, prompts=PROMPTS),
    "cls, prompt left out": case("cls", include=False, prompts=PROMPTS),
    "lower case, prompt left out": case("mean", include=False, prompts=PROMPTS, lower=True),
    "cut, prompt left out": case("mean", include=False, prompts=PROMPTS, limit=12),
    "prompt longer than the limit": case("cls", include=False, prompts={"query": "stove wood " * 9}, limit=10),
    "passage is no document": case("mean", prompts={"query": "stove ", "passage": "wood burns "}),
    "default is for neither": case("mean", prompts={"topic": "stove "}, default="topic"),
    "truncated": case("mean", prompts=PROMPTS, truncate=8),
}


def encode(files):
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for file in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
            shutil.copy(FIXTURES / "models" / MODEL / file, root)
        (root / "1_Pooling").mkdir()
        modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
        files = files | {
            "modules.json": [
                {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"}
                for n, (path, kind) in enumerate(modules)
            ]
        }
        for path, value in files.items():
            (root / path).write_text(json.dumps(value))
        model = SentenceTransformer(name, device="cpu", model_kwargs={"dtype": "float32"})
        rows = lambda vectors: [[float(f"{value:.7g}") for value in row] for row in vectors.tolist()]
        # One at a time: padding of a batch would change the last digits.
        return {
            "files": files,
            "query": rows(model.encode_query(TEXTS, batch_size=1)),
            "item": rows(model.encode_document(TEXTS, batch_size=1)),
        }


if __name__ == "__main__":
    golden = {"model": MODEL, "texts": TEXTS, "cases": {name: encode(files) for name, files in CASES.items()}}
    out = FIXTURES / "sentence"
    out.mkdir(exist_ok=True)
    (out / "golden.json").write_text(json.dumps(golden) + "\n")
