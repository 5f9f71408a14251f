"""Models go both ways between Loxia and sentence-transformers with the same outputs.

For every family: sentence-transformers saves a model, Loxia reads it (outputs compared), Loxia writes it,
sentence-transformers reads that (outputs compared again). Run it with the newest release and with the newest 4.x
(tools/setup.sh makes both environments):

    .venv/bin/python tools/check/sentence_transformers_round_trip.py [path of the loxia program]
    .venv-st4/bin/python tools/check/sentence_transformers_round_trip.py [path of the loxia program]
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import sentence_transformers
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer

try:
    from sentence_transformers.sentence_transformer import modules
except ImportError:
    from sentence_transformers import models as modules

ROOT = Path(__file__).resolve().parents[2]
LOXIA = sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release/loxia"
FIXTURES = ROOT / "crates/loxia-model/tests/fixtures/models"
FAMILIES = ["bert", "roberta", "xlm-roberta", "electra", "distilbert", "mpnet"]
PAIRS = [
    ("crossbills feed", "they prise seeds from cones with crossed bills"),
    ("stove", "a wood stove burns logs"),
    ("which birds wander far when cones are few", " ".join(["finch"] * 60)),
    ("model", "one model reads both texts at once"),
]
FULL = {"model_kwargs": {"torch_dtype": torch.float32}, "device": "cpu"}


def loxia(*arguments):
    done = subprocess.run([LOXIA, *map(str, arguments), "--quiet"], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"loxia {arguments}: {done.stderr}")


def jsonl(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def check(what, found, expected, bound=1e-4):
    apart = float(numpy.abs(numpy.asarray(found) - numpy.asarray(expected)).max())
    print(f"{what:60} {apart:.1e}")
    if not apart < bound:
        raise SystemExit(f"{what}: differs by {apart}")


def scores(model, scratch):
    """Raw scores of PAIRS by Loxia: a run of one query each, reranked."""
    lines, output = scratch / "run.jsonl", scratch / "out.jsonl"
    jsonl(lines, ({"qid": str(n), "query": q, "docno": f"d{n}", "text": d} for n, (q, d) in enumerate(PAIRS)))
    loxia("rerank", "--model", model, "--run", lines, "--output", output, "--overwrite")
    found = {r["qid"]: r["score"] for r in map(json.loads, output.read_text().splitlines())}
    return [found[str(n)] for n in range(len(PAIRS))]


def cross(family, scratch):
    theirs, ours = scratch / "theirs", scratch / "ours"
    model = CrossEncoder(str(FIXTURES / f"{family}-odd"), **FULL)
    model.save_pretrained(str(theirs))
    raw = {"activation_fn": torch.nn.Identity(), "batch_size": 1}
    expected = model.predict(PAIRS, **raw)
    check(f"{family}: cross-encoder of theirs, scored by us", scores(theirs, scratch), expected)
    loxia("model", "convert", "--input", theirs, "--output", ours)
    check(f"{family}: cross-encoder of ours, scored by us", scores(ours, scratch), expected)
    again = CrossEncoder(str(ours), **FULL)
    check(f"{family}: cross-encoder of ours, scored by them", again.predict(PAIRS, **raw), expected)
    check(f"{family}: the same with their activation", again.predict(PAIRS, batch_size=1), model.predict(PAIRS, batch_size=1))


def dual(family, mode, scratch):
    theirs, ours, lines, output = scratch / "theirs", scratch / "ours", scratch / "texts.jsonl", scratch / "out.npy"
    transformer = modules.Transformer(str(FIXTURES / f"{family}-odd"), max_seq_length=24)
    torch.manual_seed(1)
    steps = [transformer, modules.Pooling(36, mode), modules.Dense(36, 10, activation_function=torch.nn.Tanh()), modules.Normalize()]
    model = SentenceTransformer(
        modules=steps, prompts={"query": "stove ", "document": "wood "}, similarity_fn_name="dot", device="cpu"
    ).float()
    model.save_pretrained(str(theirs))
    # Releases up to 5 strip texts and later ones do not, which an empty text after a prompt would show.
    texts = [text for pair in PAIRS for text in pair if text]
    expected = model.encode(texts, prompt_name="document", batch_size=1)
    jsonl(lines, ({"_id": str(n), "text": text} for n, text in enumerate(texts)))
    loxia("embed", "--model", theirs, "--data", lines, "--side", "item", "--output", output)
    check(f"{family}: {mode} encoder of theirs, embedded by us", numpy.load(output), expected)
    loxia("model", "convert", "--input", theirs, "--output", ours)
    loxia("embed", "--model", ours, "--data", lines, "--side", "item", "--output", output, "--overwrite")
    check(f"{family}: {mode} encoder of ours, embedded by us", numpy.load(output), expected)
    again = SentenceTransformer(str(ours), **FULL)
    check(f"{family}: {mode} encoder of ours, embedded by them", again.encode(texts, prompt_name="document", batch_size=1), expected)
    if again.similarity_fn_name != "dot" or again.prompts["query"] != "stove ":
        raise SystemExit(f"{family}: similarity or prompts were lost")


def main():
    print("sentence-transformers", sentence_transformers.__version__)
    for number, family in enumerate(FAMILIES):
        for work in (lambda path: cross(family, path), lambda path: dual(family, ["mean", "cls", "max"][number % 3], path)):
            scratch = Path(tempfile.mkdtemp())
            try:
                work(scratch)
            finally:
                shutil.rmtree(scratch)
    print("ok")


if __name__ == "__main__":
    main()
