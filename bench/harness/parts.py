"""The parts of a run that need processes of their own: reranking texts, peak memory, and AVX2 alone."""

import json

import numpy as np

from . import process, report, workloads
from .contest import F32_TOLERANCE, OURS, choose_batches, medians, ratios, repeat
from .process import EngineError

THREADS = 2
# PyTorch's own switches, its matrix libraries' included.
AVX2_SWITCHES = {
    "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2", "FBGEMM_ISA": "AVX2",
}  # fmt: skip


def read_scores(path):
    """Scores of a TREC run by (query, document)."""
    with open(path, encoding="utf-8") as lines:
        fields = (line.split() for line in lines)
        return {(query, document): float(score) for query, _, document, _, score, _ in fields}


def rerank_part(bench):
    """43 queries x 100 passages from file to file, against CrossEncoder.predict on texts in memory."""
    queries = 3 if bench.options.smoke else 6 if bench.options.quick else 43
    sources = {"check": bench.root / "check.jsonl", "rerank": bench.root / "rerank.jsonl"}
    for (name, path), count in zip(sources.items(), (2, queries)):
        workloads.write_rerank(bench.words, path, count)
    mine, theirs = process.ours(bench.options.loxia, bench.log), process.peer("sentence", THREADS, bench.log)
    try:
        bench.versions |= theirs.ask(do="machine")["versions"]
    except EngineError as error:
        report.say(f"dropped: sentence-transformers: {error}")
        return {}, []
    entries = [(theirs, "sentence", "predict", "f32"), (mine, OURS, "", "f32"), (mine, OURS, "", "int8")]
    racing = [bench.load(worker, library, variant, precision, "cross", THREADS) for worker, library, variant, precision in entries]
    racing = [one for one in racing if one]
    output = lambda name, one: bench.root / f"{name}-{one.precision}.trec"
    for one in racing:
        for name, source in sources.items():
            files = [str(source), str(output(name, one))]
            one.worker.ask(do="workload", workload=f"{name} {one.precision}", model=one.slot, run=files)
    run = lambda name, one, **extra: one.worker.ask(
        do="run", model=one.slot, workload=f"{name} {one.precision}", **extra
    )
    wanted = np.array(run("check", racing[0], values=True)["values"])
    for one in racing[1:]:
        run("check", one)
        scores = read_scores(output("check", one))
        found = np.array([scores[place] for place in pairs_of(sources["check"])])
        one.agreement = float(np.corrcoef(found, wanted)[0, 1])
        difference = float(np.abs(found - wanted).max())
        if one.precision == "f32" and difference > F32_TOLERANCE * np.abs(wanted).max():
            raise SystemExit(f"rerank: our scores differ from sentence-transformers' by {difference}")
    repeat(racing, lambda one: run("rerank", one), *((5, 2, 3) if bench.options.quick else (90, 2, 5)))
    rows = medians(racing)
    report.say(f"\nrerank, {THREADS} threads: {queries} queries x 100 passages, texts to run file")
    report.body(rows, 100 * queries, "pairs/s")
    for worker in (mine, theirs):
        worker.close()
    # Both of our precisions against the f32 peer: that is what people would change from.
    base = next(row["wall"] for row in rows if row["engine"] != OURS)
    return {f"rerank_{row['precision']}": base / row["wall"] for row in rows if row["engine"] == OURS}, rows


def pairs_of(path):
    """(query, document) of every line of a JSON-lines run."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            yield record["qid"], record["docno"]


def avx2_part(bench):
    """f32 without AVX-512 on both sides."""
    workload = bench.workloads["minilm_256"]
    mine = process.ours(bench.options.loxia, bench.log, {"LOXIA_KERNEL": "avx2"})
    theirs = process.peer("torch", THREADS, bench.log, AVX2_SWITCHES)
    racing = [
        bench.load(theirs, "torch", "eager", "f32", "minilm", THREADS),
        bench.load(mine, OURS, "", "f32", "minilm", THREADS),
    ]
    if not all(racing):
        return {}, []
    racing = choose_batches(racing, workload, {}, report.say)
    repeat(racing, lambda one: one.run(workload), *bench.pace())
    rows = medians(racing)
    report.say("\nboth sides limited to AVX2")
    report.table(workload, THREADS, rows)
    for worker in (mine, theirs):
        worker.close()
    return {f"avx2_minilm_256_{precision}": ratio for precision, ratio in ratios(rows, "wall").items()}, rows


def memory_part(bench):
    """Peak resident memory of a fresh process that opens the model and computes minilm_256."""
    workload = bench.workloads["minilm_256"]
    rows = []
    for library, precision, variant in memory_entries(bench):
        peak = peak_of(bench, library, precision, variant, workload)
        if peak:
            name = OURS if library == OURS else f"{library} {variant}"
            rows.append({"precision": precision, "engine": name, "peak": peak})
    report.memory(rows)
    return {f"memory_{precision}": ratio for precision, ratio in ratios(rows, "peak").items()}, rows


def memory_entries(bench):
    """One process for each engine; how work is spread over threads changes little."""
    for precision in ("f32", "int8"):
        yield OURS, precision, ""
        if "torch" in bench.options.libraries:
            yield "torch", precision, {"f32": "eager", "int8": "dynamic"}[precision]
        if "onnx" in bench.options.libraries:
            yield "onnx", precision, "threads"
        if "openvino" in bench.options.libraries:
            for variant in {"f32": ["latency"], "int8": ["nncf latency", "dynamic latency"]}[precision]:
                yield "openvino", precision, variant


def peak_of(bench, library, precision, variant, workload):
    """Bytes, or None. Peers run twice: derived files are made in a first process and do not count."""
    for attempt in ("make", "measure"):
        if library == OURS:
            worker = process.ours(bench.options.loxia, bench.log)
        else:
            worker = process.peer(library, THREADS, bench.log)
        one = bench.load(worker, library, variant, precision, "minilm", THREADS)
        if not one:
            worker.close()
            return None
        if attempt == "measure" or library == OURS:
            one.give(workload, workload.batches[0])
            for _ in range(3):
                one.run(workload)
            peak = worker.ask(do="memory")["peak"]
            worker.close()
            return peak
        worker.close()
