"""sentence-transformers' CrossEncoder: what people rerank with, in its default f32 backend."""

import json

import sentence_transformers
import torch
import transformers
from sentence_transformers import CrossEncoder

VARIANTS = {"f32": ["predict"]}


class SentenceModel:
    takes_texts = True

    def __init__(self, directory, _precision, _variant, threads, _cache):
        torch.set_num_threads(threads)
        self.model = CrossEncoder(str(directory), device="cpu")

    def read(self, path):
        """Pairs of a JSON-lines run; reading is not timed here, while ours pays for it."""
        with open(path, encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines]
        return [(record["query"], record["text"]) for record in records]

    def compute(self, pairs):
        return [self.model.predict(pairs, activation_fn=torch.nn.Identity(), show_progress_bar=False)]


def open_model(*arguments):
    return SentenceModel(*arguments)


def versions():
    return {"sentence-transformers": sentence_transformers.__version__, "transformers": transformers.__version__}
