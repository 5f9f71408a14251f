"""The parts of a run that need processes of their own: reranking texts, peak memory, and AVX2 alone."""

import json

import numpy as np

from . import process, report, workloads
from .contest import OURS, agreeing, agreement, choose_batches, least_agreement, medians, ratios, repeat
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
    mine, theirs = process.ours(bench.options.loxia, bench.log), process.peer("sentence", THREADS, bench.log)
    try:
        return rerank_against(bench, mine, theirs)
    except PeerError as error:
        report.say(f"dropped: sentence-transformers: {error}")
        return no_rerank(bench, [])
    finally:
        mine.close()
        theirs.close()


class PeerError(Exception):
    """The one peer of a part has failed."""


def rerank_against(bench, mine, theirs):
    queries = 3 if bench.options.smoke else 6 if bench.options.quick else 43
    sources = {"check": bench.root / "check.jsonl", "rerank": bench.root / "rerank.jsonl"}
    # The check is the warm-up as well.
    for path, count in zip(sources.values(), (min(6, queries), queries)):
        workloads.write_rerank(bench.words, path, count)

    def ask(worker, **command):
        try:
            return worker.ask(**command)
        except EngineError as error:
            if worker is mine:
                raise
            raise PeerError(error) from error

    bench.versions |= ask(theirs, do="machine")["versions"]
    entries = [(theirs, "sentence", "predict", "f32"), (mine, OURS, "", "f32"), (mine, OURS, "", "int8")]
    racing = [bench.load(*entry, "cross", THREADS) for entry in entries]
    if not racing[0]:
        return no_rerank(bench, [])
    racing = [one for one in racing if one]
    output = lambda name, one: bench.root / f"{name}-{one.precision}.trec"
    for one in racing:
        for name, source in sources.items():
            files = [str(source), str(output(name, one))]
            ask(one.worker, do="workload", workload=f"{name} {one.precision}", model=one.slot, run=files)
    command = lambda name, one: {"do": "run", "model": one.slot, "workload": f"{name} {one.precision}"}
    wanted = np.array(ask(theirs, **command("check", racing[0]), values=True)["values"]).reshape(-1, 1)
    racing[0].agreement = 1.0  # with itself
    for one in racing[1:]:
        ask(mine, **command("check", one))
        scores = read_scores(output("check", one))
        found = np.array([[scores[place]] for place in pairs_of(sources["check"])])
        one.agreement = agreement(one.precision, found, wanted)
        if one.agreement < least_agreement(one.precision):
            what = f"our {one.precision} scores do not agree with sentence-transformers'"
            raise SystemExit(f"rerank: {what}: {one.agreement:.4f} below {least_agreement(one.precision)}")
    pace = (0, 2, 2) if bench.options.smoke else (5, 3, 5) if bench.options.quick else (90, 3, 5)
    repeat(racing, lambda one: one.worker.ask(**command("rerank", one)), report.say, *pace)
    rows = medians(racing)
    report.say(f"\nrerank, {THREADS} threads: {queries} queries x 100 passages, texts to run file")
    report.body(rows, 100 * queries, "pairs/s")
    # Both of our precisions against the f32 peer: that is what people would change from.
    base = next((row["wall"] for row in rows if row["engine"] != OURS), None)
    if not base:
        return no_rerank(bench, rows)
    return {f"rerank_{row['precision']}": base / row["wall"] for row in rows if row["engine"] == OURS}, rows


def no_rerank(bench, rows):
    """The result where the one peer, which both of our precisions stand against, could not take part."""
    bench.lacking |= {f"rerank_{precision}": ["sentence predict"] for precision in ("f32", "int8")}
    return {}, rows


def pairs_of(path):
    """(query, document) of every line of a JSON-lines run."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            yield record["qid"], record["docno"]


def avx2_part(bench):
    """f32 without AVX-512 on both sides."""
    if "torch" not in bench.options.libraries:
        return {}, []
    mine = process.ours(bench.options.loxia, bench.log, {"LOXIA_KERNEL": "avx2"})
    theirs = process.peer("torch", THREADS, bench.log, AVX2_SWITCHES)
    try:
        return avx2_against(bench, mine, theirs)
    finally:
        mine.close()
        theirs.close()


def avx2_against(bench, mine, theirs):
    workload = bench.workloads["minilm_256"]
    own = bench.load(mine, OURS, "", "f32", "cross", THREADS)
    if not own:
        return {}, []
    variants = ["sdpa", "freeze"] if bench.options.compile else ["sdpa"]
    peers = [bench.load(theirs, "torch", variant, "f32", "cross", THREADS) for variant in variants]
    racing = [one for one in (*peers, own) if one]
    if len(racing) == 1:
        bench.lacking["avx2_minilm_256_f32"] = [f"torch {variant}" for variant in variants]
        return {}, []
    racing = agreeing(racing, workloads.check_workload(bench.words, "cross"), report.say)
    racing = choose_batches(racing, workload, report.say)
    repeat(racing, lambda one: one.run(workload), report.say, *bench.pace())
    rows = medians(racing)
    report.say(f"\nboth sides limited to AVX2 (our kernel: {mine.ask(do='machine')['kernel']})")
    report.table(workload, THREADS, rows)
    bench.note_lacking("avx2_minilm_256", "f32", [f"torch {variant}" for variant in variants], rows)
    return {f"avx2_minilm_256_{precision}": ratio.value for precision, ratio in ratios(rows, "wall").items()}, rows


def memory_part(bench):
    """Peak resident memory of a fresh process that opens a model and computes a workload."""
    found, rows = {}, {}
    for key, name in (("memory", "minilm_256"), ("memory_base", "base_256")):
        rows[key] = memory_rows(bench, key, bench.workloads[name])
        report.memory(name, rows[key])
        found |= {f"{key}_{precision}": ratio.value for precision, ratio in ratios(rows[key], "peak").items()}
    return found, rows


def memory_rows(bench, key, workload):
    rows = [{"precision": "", "engine": "Python with NumPy alone", "peak": bare_peak(bench)}]
    for precision in ("f32", "int8"):
        mine = peak_of(bench, OURS, precision, "", workload)
        peers = MEMORY_VARIANTS[precision].items() if mine else ()
        found = {OURS: mine}
        for library, variants in peers:
            for variant in variants if library in bench.options.libraries else ():
                found[f"{library} {variant}"] = peak_of(bench, library, precision, variant, workload)
        made = [{"precision": precision, "engine": name, "peak": peak} for name, peak in found.items() if peak]
        bench.note_lacking(key, precision, found, made)
        rows += made
    return rows


def bare_peak(bench):
    """Bytes of a peer's worker without a library: what all of theirs start from."""
    worker = process.peer("numpy", THREADS, bench.log)
    worker.ask(do="machine")
    peak = worker.ask(do="memory")["peak"]
    worker.close()
    return peak


# One process for each engine; how work is spread over threads changes little.
MEMORY_VARIANTS = {
    "f32": {"torch": ["sdpa"], "onnx": ["threads"], "openvino": ["latency"]},
    "int8": {"torch": ["dynamic"], "onnx": ["threads"], "openvino": ["nncf latency", "dynamic latency"]},
}


def peak_of(bench, library, precision, variant, workload):
    """Bytes, or None with the reason said. Derived files are made in a first process, which does not count."""
    for counts in (False, True) if library in ("onnx", "openvino") else (True,):
        if library == OURS:
            worker = process.ours(bench.options.loxia, bench.log)
        else:
            worker = process.peer(library, THREADS, bench.log)
        try:
            one = bench.load(worker, library, variant, precision, workload.model, THREADS)
            if not one:
                return None
            if counts:
                one.give(workload, workload.batches[0])
                for _ in range(3):
                    one.run(workload)
                return worker.ask(do="memory")["peak"]
        except EngineError as error:
            if library == OURS:
                raise
            report.say(f"dropped: {precision} {library} {variant} of memory: {error}")
            return None
        finally:
            worker.close()
