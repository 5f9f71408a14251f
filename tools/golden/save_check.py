"""Models go both ways between Loxia and sentence-transformers with the same outputs.

For several families: sentence-transformers saves a model, Loxia reads it (outputs compared), Loxia writes it,
sentence-transformers reads that (outputs compared again). Run it once with the newest release and once with
the newest 4.x. EXAMPLES is the directory of the built examples of loxia-model.

    cargo build --release -p loxia-model --examples
    python tools/golden/save_check.py target/release/examples
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

FIXTURES = Path(__file__).resolve().parents[2] / "crates/loxia-model/tests/fixtures/models"
FAMILIES = ["bert", "roberta", "xlm-roberta", "electra", "distilbert", "mpnet"]
PAIRS = [
    ("crossbills feed", "they prise seeds from cones with crossed bills"),
    ("stove", "a wood stove burns logs"),
    ("which birds wander far when cones are few", " ".join(["finch"] * 60)),
    ("", "one model reads both texts at once"),
]
FULL = {"model_kwargs": {"torch_dtype": torch.float32}, "device": "cpu"}


def run(examples, name, *arguments):
    done = subprocess.run([examples / name, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{name} {arguments}: {done.stderr}")
    return done.stdout


def check(what, found, expected, bound=1e-4):
    apart = float(numpy.abs(numpy.asarray(found) - numpy.asarray(expected)).max())
    print(f"{what:60} {apart:.1e}")
    if not apart < bound:
        raise SystemExit(f"{what}: differs by {apart}")


def cross(examples, family, scratch):
    theirs, ours, lines = scratch / "theirs", scratch / "ours", scratch / "pairs.jsonl"
    model = CrossEncoder(str(FIXTURES / f"{family}-odd"), **FULL)
    model.save_pretrained(str(theirs))
    expected = model.predict(PAIRS, activation_fn=torch.nn.Identity(), batch_size=1)
    lines.write_text("".join(json.dumps({"query": q, "text": d}) + "\n" for q, d in PAIRS))
    found = [float(line) for line in run(examples, "score", theirs, lines).split()]
    check(f"{family}: cross-encoder of theirs, scored by us", found, expected)
    run(examples, "save", "cross", theirs, ours)
    again = CrossEncoder(str(ours), **FULL)
    check(f"{family}: cross-encoder of ours, scored by them", again.predict(PAIRS, activation_fn=torch.nn.Identity(), batch_size=1), expected)
    check(f"{family}: the same with their activation", again.predict(PAIRS, batch_size=1), model.predict(PAIRS, batch_size=1))


def dual(examples, family, mode, scratch):
    theirs, ours, lines, raw = scratch / "theirs", scratch / "ours", scratch / "texts.jsonl", scratch / "out.f32"
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
    lines.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    run(examples, "embed", theirs, lines, raw)
    check(f"{family}: {mode} encoder of theirs, embedded by us", numpy.fromfile(raw, "<f4").reshape(len(texts), -1), expected)
    run(examples, "save", "dual", theirs, ours)
    again = SentenceTransformer(str(ours), **FULL)
    check(f"{family}: {mode} encoder of ours, embedded by them", again.encode(texts, prompt_name="document", batch_size=1), expected)
    if again.similarity_fn_name != "dot" or again.prompts["query"] != "stove ":
        raise SystemExit(f"{family}: similarity or prompts were lost")


def main(examples):
    print("sentence-transformers", sentence_transformers.__version__)
    for number, family in enumerate(FAMILIES):
        for work in (lambda path: cross(examples, family, path), lambda path: dual(examples, family, ["mean", "cls", "max"][number % 3], path)):
            scratch = Path(tempfile.mkdtemp())
            try:
                work(scratch)
            finally:
                shutil.rmtree(scratch)
    print("all the same")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
