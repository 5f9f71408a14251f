"""Ours against PyTorch, ONNX Runtime, OpenVINO and sentence-transformers on this machine. See README.md."""

import argparse
import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path

from harness import machine, models, process, report, workloads
from harness.contest import OURS, Contestant, agreeing, choose_batches, medians, near_the_best, ratios, repeat
from harness.parts import avx2_part, memory_part, rerank_part
from harness.process import EngineError

ENCODER_KEYS = (
    "minilm_256", "base_256", "minilm_mixed_padded", "minilm_mixed_bucketed", "minilm_1x128", "minilm_40",
    "minilm_256_embed", "base_256_embed",
)  # fmt: skip
OTHER_KEYS = ("rerank", "memory", "avx2_minilm_256")
# PyTorch last: with the times of the others known, it is not compiled for batch sizes that cannot win.
LIBRARIES = ("openvino", "onnx", "torch")


class Bench:
    """One run: its options, models, words and log."""

    def __init__(self, options, root):
        self.options, self.root = options, Path(root)
        self.log = open(options.log, "w", encoding="utf-8")
        self.cache = self.root / "derived"
        self.cache.mkdir()
        self.directories, self.remark = models.make(self.root / "models", options.smoke)
        self.words = workloads.Words(self.directories["minilm"])
        self.workloads = workloads.encoder_workloads(self.words, options.quick, options.smoke)
        self.variants, self.versions = {}, {}
        # Peers that could not take part, by the key whose ratio lacks them.
        self.lacking = {}

    def wants(self, key):
        return not self.options.only or key in self.options.only

    def kernel(self):
        """The one that ours takes on this machine."""
        worker = process.ours(self.options.loxia, self.log)
        name = worker.ask(do="machine")["kernel"]
        worker.close()
        return name

    def pace(self):
        """Seconds, fewest and most repetitions of one workload."""
        return (0, 2, 2) if self.options.smoke else (12, 5, 9) if self.options.quick else (36, 5, 31)

    def start(self, threads):
        """Our worker and one of each library that is there."""
        workers = {OURS: process.ours(self.options.loxia, self.log)}
        self.versions[OURS] = workers[OURS].ask(do="machine")["version"]
        for library in self.options.libraries:
            worker = process.peer(library, threads, self.log)
            try:
                facts = worker.ask(do="machine")
            except EngineError as error:
                report.say(f"dropped: {library}: {error}")
                continue
            self.versions |= facts["versions"]
            self.variants[library] = facts["variants"]
            workers[library] = worker
        return workers

    def load(self, worker, library, variant, precision, model, threads):
        """A contestant with its model open, or None with the reason said."""
        one = Contestant(library, variant, precision, worker, model)
        extra = {} if library == OURS else {
            "variant": variant, "library": library, "cache": str(self.cache),
            "words": self.words.ids, "pairs": models.scores_pairs(model), "calibration": 8 if self.options.smoke else 64,
        }  # fmt: skip
        try:
            worker.ask(
                do="load", model=one.slot, directory=str(self.directories[model]), precision=precision,
                threads=threads, **extra,
            )  # fmt: skip
        except EngineError as error:
            report.say(f"dropped: {precision} {one.name} of {model}: {error}")
            return None
        return one

    def entries(self, precision, threads):
        """Library and variant of every peer that is to take part; a library that did not start has none to name."""
        for library in self.options.libraries:
            for variant in self.variants.get(library, {precision: [""]}).get(precision, []):
                parallel = variant.endswith(("streams", "throughput"))
                slow_to_start = variant in ("compile", "freeze") and (threads == 1 or not self.options.compile)
                if not (parallel and threads == 1) and not slow_to_start:
                    yield library, variant

    def note_lacking(self, key, precision, names, rows):
        """Says and keeps which of these engines have no row."""
        there = {row["engine"] for row in rows if row["precision"] == precision}
        missing = [name for name in names if name not in there and name != OURS]
        if missing and there:
            self.lacking[f"{key}_{precision}"] = missing
            report.say(f"the ratio {key}_{precision} lacks {', '.join(missing)}")

    def contestants(self, workers, model, threads):
        """Every engine, precision and variant that opens this model; peers only in precisions that ours has."""
        mine = [self.load(workers[OURS], OURS, "", precision, model, threads) for precision in ("f32", "int8")]
        found = [one for one in mine if one]
        for precision in [one.precision for one in found]:
            for library, variant in self.entries(precision, threads):
                if library in workers:
                    found.append(self.load(workers[library], library, variant, precision, model, threads))
        return [one for one in found if one]


def needs_even(variant):
    """Whether it is compiled for one shape, so that sequences of many lengths are not for it."""
    return "reshape" in variant


def encoder_part(bench, threads):
    """All workloads of token sequences; rows of medians by key."""
    wanted = [workload for key, workload in bench.workloads.items() if bench.wants(key)]
    results = {}
    if not wanted:
        return results
    workers = bench.start(threads)
    for model in dict.fromkeys(workload.model for workload in wanted):
        check = workloads.check_workload(bench.words, model)
        present = agreeing(bench.contestants(workers, model, threads), check, report.say)
        for workload in (workload for workload in wanted if workload.model == model):
            fitting = [one for one in present if workload.even or not needs_even(one.variant)]
            racing = choose_batches(fitting, workload, report.say)
            repeat(near_the_best(racing), lambda one: one.run(workload), report.say, *bench.pace())
            results[workload.key] = medians(racing)
            report.table(workload, threads, results[workload.key])
            for precision in dict.fromkeys(one.precision for one in present):
                entries = (entry for entry in bench.entries(precision, threads) if workload.even or not needs_even(entry[1]))
                names = [" ".join(entry).strip() for entry in entries]
                label = workload.key if threads == 2 else f"one thread's {workload.key}"
                bench.note_lacking(label, precision, names, results[workload.key])
        for one in present:
            with contextlib.suppress(EngineError):  # said when its process ended
                one.worker.ask(do="drop", model=one.slot)
    for worker in workers.values():
        worker.close()
    return results


def run(options, root):
    started = time.monotonic()
    bench = Bench(options, root)
    facts = machine.describe(Path(__file__).parent) | {"our kernel": bench.kernel(), "MiniLM": bench.remark}
    report.head(facts)
    before = machine.Others.over(seconds=2)
    report.others(before, "in the two seconds before this run")
    others = machine.Others()
    final, rest = {}, {}
    for threads in (2,) if options.quick and not options.smoke else (2, 1):
        rows = encoder_part(bench, threads)
        rest[f"{threads} thread{'s' * (threads > 1)}"] = rows
        clock, title = ("cpu", "one thread, CPU time") if threads == 1 else ("wall", "two threads, wall time")
        found = {key: ratios(medians, clock) for key, medians in rows.items()}
        report.ratios(title, found)
        if threads == 2:
            for key, pair in found.items():
                final |= {f"{key}_{precision}": ratio.value for precision, ratio in pair.items()}
    for key, part in (("rerank", rerank_part), ("avx2_minilm_256", avx2_part), ("memory", memory_part)):
        if bench.wants(key):
            ratios_found, rest[key] = part(bench)
            final |= ratios_found
    report.versions(bench.versions)
    report.say(f"took {(time.monotonic() - started) / 60:.0f} minutes")
    during = others.cores()
    report.others(during, "during this run")
    if options.json:
        busy = {"others before": before, "others during": during}
        everything = {"machine": facts | busy, "versions": bench.versions, "ratios": final, "lacking": bench.lacking}
        everything["medians"] = rest
        options.json.write_text(json.dumps(everything, indent=1))
    report.lacking(bench.lacking)
    print(json.dumps({key: float(f"{ratio:.3g}") for key, ratio in final.items()}))


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loxia", type=Path, required=True, help="our release binary")
    parser.add_argument("--quick", action="store_true", help="minutes: less work, two threads only, two batch sizes")
    parser.add_argument("--smoke", action="store_true", help="does everything run? numbers mean nothing")
    parser.add_argument("--only", nargs="+", metavar="KEY", choices=ENCODER_KEYS + OTHER_KEYS, help="these keys alone")
    parser.add_argument("--libraries", nargs="+", default=LIBRARIES, choices=LIBRARIES, help="these peers alone")
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, help="torch.compile too [full runs: yes]")
    parser.add_argument("--json", type=Path, help="write every median to this file")
    log = Path(tempfile.gettempdir()) / "loxia-peers.log"
    parser.add_argument("--log", type=Path, default=log, help=f"what libraries say [{log}]")
    parser.add_argument("--keep", type=Path, help="make models in this new directory and keep them")
    options = parser.parse_args()
    options.quick |= options.smoke
    if options.compile is None:
        options.compile = not options.quick
    if options.keep and options.keep.exists():
        parser.error(f"{options.keep} exists; --keep makes a new directory")
    if not options.loxia.is_file():
        parser.error(f"{options.loxia} is no program; build it with cargo build --release")
    options.loxia = options.loxia.resolve()
    return options


def main():
    options = parse()
    if options.keep:
        options.keep.mkdir(parents=True)
        run(options, options.keep)
    else:
        with tempfile.TemporaryDirectory(prefix="loxia-peers-") as root:
            run(options, root)


if __name__ == "__main__":
    sys.exit(main())
