"""Goldens of crates/loxia-eval from pytrec_eval: random rankings with many ties, graded and negative levels.

    python tools/golden/eval_ties.py crates/loxia-eval/tests/fixtures/ties.json.gz

Needs pytrec-eval-terrier. A case is one evaluator run at one relevance level over one to three queries.
Left out on purpose: IPrec where trec_eval 9 (inside pytrec_eval) and trec_eval 10 choose another rank, and
queries without any judgement of 0 or more, for which trec_eval reads uninitialised memory.
"""

import gzip
import json
import math
import random
import sys

import pytrec_eval

CASES = 1000
MEASURES = {
    "ndcg", "ndcg_cut_1,3,5,10", "map", "map_cut_1,3,5", "recip_rank", "Rprec", "bpref", "infAP",
    "P_1,3,5,20", "recall_1,3,5,20", "success_1,3,5", "set_P", "set_relative_P", "set_recall", "set_map",
    "set_F", "num_ret", "num_rel", "num_rel_ret", "iprec_at_recall_0,0.1,0.25,0.5,0.8,1",
}


def draw_query(rng):
    alphabet = ["d", "D", "doc-", "é", "~"]
    ids = sorted({rng.choice(alphabet) + str(rng.randrange(40)) for _ in range(rng.randrange(2, 28))})
    rng.shuffle(ids)
    # Few distinct scores, some of which are one only in 32 bits.
    scores = [0.0, -0.0, 1.0, 1.0 + 1e-9, 1.5, -2.0, 1e6, 1e6 + 0.01, rng.random(), 16777217.0, 16777216.0]
    pool = scores[: rng.randrange(1, len(scores) + 1)]
    levels = rng.choice([[0, 1], [0, 1, 2, 3], [-1, 0, 1], [-2, -1, 0, 1, 2], [0, 0, 0, 0, 1, 3], [0]])
    retrieved = [d for d in ids if rng.random() < 0.8] or ids[:1]
    judged = {d: rng.choice(levels) for d in ids if rng.random() < rng.choice([0.3, 0.7, 1.0])}
    judged.setdefault("unretrieved", rng.choice([level for level in levels if level >= 0]))
    return {d: rng.choice(pool) for d in retrieved}, judged


def same_rank_in_both_versions(name, relevant):
    recall = float(name.rsplit("_", 1)[1])
    return math.floor(recall * relevant + 0.5) == int(recall * relevant + 0.9)


def main():
    rng = random.Random(20240)
    cases = []
    while len(cases) < CASES:
        queries = [draw_query(rng) for _ in range(rng.randrange(1, 4))]
        level = rng.choice([1, 1, 1, 2, 3])
        run = {f"q{i}": scores for i, (scores, _) in enumerate(queries)}
        qrels = {f"q{i}": levels for i, (_, levels) in enumerate(queries)}
        values = pytrec_eval.RelevanceEvaluator(qrels, MEASURES, relevance_level=level).evaluate(run)
        for query, results in values.items():
            relevant = sum(value >= level for value in qrels[query].values())
            # pytrec_eval ignores the level in num_rel.
            results["num_rel"] = relevant
            for name in [name for name in results if name.startswith("iprec")]:
                if not same_rank_in_both_versions(name, relevant):
                    del results[name]
        rounded = {q: {m: float(f"{v:.12g}") for m, v in sorted(r.items())} for q, r in values.items()}
        cases.append({"level": level, "run": run, "qrels": qrels, "values": rounded})
    with open(sys.argv[1], "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out:
        out.write(json.dumps(cases, ensure_ascii=False, separators=(",", ":")).encode())


if __name__ == "__main__":
    main()
