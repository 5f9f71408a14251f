"""Goldens of crates/loxia-eval from ir_measures: what pytrec_eval does not have, and how names are printed.

    python tools/golden/eval_ir_measures.py crates/loxia-eval/tests/fixtures/ir_measures.json.gz

Needs ir_measures, pytrec-eval-terrier and, for exponential gains, perl. Scores do not tie here: for RR@k and
Judged@k ir_measures puts the smaller id first, we follow trec_eval everywhere.
"""

import gzip
import json
import random
import sys

import ir_measures

VALUES = [
    "Judged@1", "Judged@5", "Judged@50", "Judged", "RR@1", "RR@3", "RR(rel=2)@5", "RR(rel=2)",
    "nDCG(dcg='exp-log2')@1", "nDCG(dcg='exp-log2')@5", "nDCG(dcg='exp-log2')@50",
    "AP(judged_only=True)", "nDCG(judged_only=True)@5", "P(rel=2,judged_only=True)@3",
    "R(judged_only=True)@4", "SetF(beta=0.5)", "SetF(rel=2,beta=3.0)", "SetP(relative=True)",
    "SetP(judged_only=True)", "NumRet(rel=2)", "NumRelRet", "NumRel", "NumRet",
]
NAMES = [
    "nDCG@10", "NDCG", "MRR@10", "MAP(rel=2)@100", "Precision@5", "Recall(rel=2)@100", "RPrec", "BPref(rel=2)",
    "SetRelP", "NumRelRet", "NumRet(rel=2)", "IPrec@0.1", "IPrec(rel=2)@1.0", "SetF(beta=2.0)",
    "SetF(beta=1.0)", "infAP(rel=2)", "AP(rel=1)", "nDCG(dcg='exp-log2')@20", "nDCG(dcg='log2')@20",
    "Success(rel=3,judged_only=True)@1", "Judged@10", "NumQ",
]


def main():
    rng = random.Random(7)
    run, qrels = {}, {}
    for number in range(1, 61):
        ids = [f"d{i}" for i in range(rng.randrange(3, 30))]
        scores = rng.sample(range(1000), len(ids))
        kept = [(d, s / 8) for d, s in zip(ids, scores) if rng.random() < 0.8] or [(ids[0], 1.0)]
        run[str(number)] = dict(kept)
        qrels[str(number)] = {d: rng.choice([0, 0, 1, 2, 3]) for d in ids if rng.random() < 0.7} or {ids[0]: 1}
    measures = {name: ir_measures.parse_measure(name) for name in VALUES}
    by_measure = {repr(measure): name for name, measure in measures.items()}
    values = {name: {} for name in VALUES}
    for metric in ir_measures.iter_calc(list(measures.values()), qrels, run):
        values[by_measure[repr(metric.measure)]][metric.query_id] = float(f"{metric.value:.12g}")
    names = {name: repr(ir_measures.parse_measure(name)) for name in NAMES}
    golden = {"run": run, "qrels": qrels, "values": values, "names": names}
    with open(sys.argv[1], "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out:
        out.write(json.dumps(golden, separators=(",", ":")).encode())


if __name__ == "__main__":
    main()
