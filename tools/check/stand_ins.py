"""What it costs in recall when sentences of items, or the items, stand in for anchor queries.

    python3 tools/check/stand_ins.py LOXIA [ANCHORS]        needs numpy; about two minutes

On the collection and the models that the demo embeds: an index from ANCHORS real queries (120 unless given), one from as
many sentences and one from as many items; then the last 80 queries are searched in each.
"""

import collections
import gzip
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy

ASSETS = pathlib.Path(__file__).resolve().parents[2] / "assets"
KS, BUDGETS = (1, 10, 50), (50, 100, 200)


def lines(name: str, key: str) -> list[str]:
    with gzip.open(ASSETS / "worlds" / name, "rt") as file:
        return [json.loads(line)[key] for line in file]


def main() -> None:
    loxia, anchors = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 120
    models = ASSETS / "tiny-models"
    model = ["--model", str(models / "emb-cross-encoder")]
    data = ["--data", str(ASSETS / "worlds"), "--split", "test", "--world", "verb.motion"]
    dual = ["--dual", f"{models / 'dual-query'},{models / 'dual-item'}"]
    items = numpy.array(lines("documents/verb.motion.jsonl.gz", "document_id"))
    queries = lines("mentions/test.jsonl.gz", "mention_id")[120:]
    rows = ["--rows", f"120..{120 + len(queries)}"]
    with tempfile.TemporaryDirectory() as scratch:
        work = pathlib.Path(scratch)

        def run(*arguments: str) -> None:
            subprocess.run([loxia, *arguments, "--quiet"], check=True)

        run("score", *model, *data, *rows, "--output", str(work / "exact.npy"))
        exact = numpy.load(work / "exact.npy")
        best = {query: items[numpy.argsort(-scores, kind="stable")] for query, scores in zip(queries, exact)}
        print("anchors made of  pairs  " + "  ".join(f"k={k:<4}" for k in KS))
        for source, chosen in (("queries", f"0..{anchors}"), ("sentences", str(anchors)), ("items", str(anchors))):
            index = str(work / source)
            run("index", "build", *model, *data, *dual, "--anchors-from", source, "--anchors", chosen, "--output", index)
            for budget in BUDGETS:
                output = work / f"{source}.{budget}.run"
                run("search", "--index", index, *model, *data, *dual, *rows, "--budget", str(budget), "--k", str(max(KS)),
                    "--output", str(output))
                found = collections.defaultdict(list)
                for line in output.read_text().splitlines():
                    query, _, item, *_ = line.split()
                    found[query].append(item)
                recall = [numpy.mean([len({*best[q][:k]} & {*found[q][:k]}) / k for q in queries]) for k in KS]
                print(f"{source:<15}  {budget:<5}  " + "  ".join(f"{value:.3f} " for value in recall), flush=True)


if __name__ == "__main__":
    main()
