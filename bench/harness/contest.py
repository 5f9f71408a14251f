"""Engines against each other: who takes part, whether their outputs agree, and how long they take.

Every repetition runs all engines once, in a new random order, so that whatever else the machine does falls on all of
them alike. What is compared are medians.
"""

import math
import random
import statistics
import time
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .process import EngineError

OURS = "loxia"
# Largest difference of an f32 output from PyTorch's, relative to the largest output.
F32_TOLERANCE = 2e-3
# Least mean cosine (of vectors) or correlation (of scores) of an int8 engine's outputs with f32's: the same function,
# however roughly. How rough is printed.
INT8_AGREEMENT = 0.85
# Between runs, so that threads that still spin for the last engine do not slow the next.
PAUSE = 0.05
# Scores that spread this many times as much or as little as f32's are another function, however well they correlate.
SPREAD = 2.0
# A peer whose trials are so much slower than the fastest's is not repeated; the better of them is its time.
HOPELESS = 1.5
# One so much slower than the fastest peer with every batch size so far is not tried with others: none makes up for it.
FAR_BEHIND = 2.0


@dataclass
class Contestant:
    """One engine with one model, precision and variant."""

    library: str
    variant: str
    precision: str
    worker: object
    model: str
    batch: int | None = None
    # With the f32 reference; None until measured.
    agreement: float | None = None
    walls: list = field(default_factory=list)
    cpus: list = field(default_factory=list)
    # Fastest run before the repetitions, and whether there were any.
    best: float = 0.0
    repeated: bool = False

    @property
    def name(self):
        return OURS if self.library == OURS else f"{self.library} {self.variant}"

    @property
    def slot(self):
        """Name of the loaded model in its worker."""
        return f"{self.model} {self.precision} {self.variant}"

    def give(self, workload, batch):
        """Sends a workload; rectangular engines get it cut into batches."""
        cut = {"batch": batch, "order": workload.order, "separator": workload.separator}
        extra = {} if self.library == OURS else cut
        self.worker.ask(do="workload", workload=workload.key, model=self.slot, ids=workload.sequences, **extra)

    def run(self, workload, **extra):
        time.sleep(PAUSE)
        return self.worker.ask(do="run", model=self.slot, workload=workload.key, repeat=workload.repeat, **extra)

    def values(self, workload):
        self.give(workload, workload.batches[0])
        return np.array(self.run(workload, values=True)["values"]).reshape(len(workload.sequences), -1)


def agreement(precision, values, reference):
    """1 for the same function: by the largest difference in f32, by direction in int8."""
    if values.shape != reference.shape or not np.isfinite(values).all():
        return 0.0
    if precision == "f32":
        return 1.0 - float(np.abs(values - reference).max() / np.abs(reference).max())
    if values.shape[1] == 1:
        spread = values.std() / reference.std()
        correlation = np.corrcoef(values[:, 0], reference[:, 0])[0, 1]
        return float(min(correlation, SPREAD * min(spread, 1 / spread)))
    norms = np.linalg.norm(values, axis=1) * np.linalg.norm(reference, axis=1)
    return float(((values * reference).sum(axis=1) / norms).mean())


def least_agreement(precision):
    return 1.0 - F32_TOLERANCE if precision == "f32" else INT8_AGREEMENT


def agreeing(contestants, workload, say):
    """Those whose outputs agree with PyTorch's f32, or with another f32 engine's where PyTorch has failed.

    The others are named and left out; if ours is one of them, the run ends.
    """
    found = []
    for one in contestants:
        try:
            found.append((one, one.values(workload)))
        except EngineError as error:
            say(f"dropped: {one.precision} {one.name}: {error}")
    exact = [pair for pair in found if pair[0].precision == "f32"]
    if not exact:
        raise SystemExit(f"no f32 engine of {workload.model} is left to compare with")
    first, reference = min(exact, key=lambda pair: (pair[0].library != "torch", pair[0].library == OURS))
    if first.library != "torch":
        say(f"PyTorch f32 is not there; outputs are compared with those of {first.name}")
    kept = []
    for one, values in found:
        one.agreement = agreement(one.precision, values, reference)
        bar = least_agreement(one.precision)
        if one.agreement >= bar:
            kept.append(one)
        else:
            what = f"{one.precision} {one.name} does not agree with {first.name} f32"
            say(f"dropped: {what}: {one.agreement:.4f} below {bar}")
    ours_in = lambda group: sum(one.library == OURS for one in group)
    if ours_in(kept) < max(ours_in(contestants), 1):
        raise SystemExit(f"our own outputs for {workload.model} are not there or do not agree: nothing can be compared")
    return kept


def best_trial(one, workload, size):
    """The faster of two runs with a batch size, after one that builds kernels or compiles and does not count."""
    one.give(workload, size)
    one.run(workload)
    return min((one.run(workload) for _ in range(2)), key=lambda took: took["wall"])


def trials_of(one, workload, fastest, say):
    """Best trials of a peer by batch size: those to begin with, and on while the best lies on the edge.

    A size beyond those to begin with that fails ends the search for better ones, and nothing else.
    """
    trials = {}
    wall = lambda size: trials[size]["wall"]
    for size in workload.batches:
        trials[size] = best_trial(one, workload, size)
        # Only its best tells: one batch for two streams is slow, two of half the size may be the fastest of all.
        if min(map(wall, trials)) > FAR_BEHIND * fastest:
            return trials
    while size := workload.next_batch(min(trials, key=wall), trials):
        try:
            trials[size] = best_trial(one, workload, size)
        except EngineError as error:
            say(f"{one.precision} {one.name} on {workload.key}: batches of {size} fail: {error}")
            break
    return trials


def choose_batches(contestants, workload, say):
    """Finds the batch size each engine is fastest with, and tries that once more; those that fail are left out."""
    kept, fastest = [], {}
    for one in contestants:
        known = fastest.get(one.precision, math.inf)
        try:
            if one.library == OURS:
                trials = {None: best_trial(one, workload, None)}
            else:
                trials = trials_of(one, workload, known, say)
            one.batch = min(trials, key=lambda size: trials[size]["wall"])
            one.give(workload, one.batch)
            better = min(trials[one.batch], one.run(workload), key=lambda took: took["wall"])
        except EngineError as error:
            say(f"dropped: {one.precision} {one.name} on {workload.key}: {error}")
            continue
        one.walls, one.cpus, one.repeated = [better["wall"]], [better["cpu"]], False
        one.best = better["wall"]
        if one.library != OURS:
            fastest[one.precision] = min(one.best, known)
        kept.append(one)
    return kept


def near_the_best(contestants):
    """Ours, and the peers that may be the best of their precision: a trial within HOPELESS of the fastest."""
    fastest = {}
    for one in contestants:
        if one.library != OURS:
            fastest[one.precision] = min(one.best, fastest.get(one.precision, one.best))
    return [one for one in contestants if one.library == OURS or one.best <= HOPELESS * fastest[one.precision]]


def repeat(contestants, run, say, seconds, fewest, most):
    """Runs all contestants in random orders until the time is up, and keeps these times only.

    A peer that fails on the way, its process restarted once, keeps no time; ours must not fail.
    """
    order, stream, started = list(contestants), random.Random(0), time.monotonic()
    rounds = 0
    for one in order:
        one.walls, one.cpus, one.repeated = [], [], True
    while rounds < fewest or (rounds < most and time.monotonic() - started < seconds):
        stream.shuffle(order)
        for one in list(order):
            try:
                took = run(one)
            except EngineError as error:
                if one.library == OURS:
                    raise
                say(f"dropped: {one.precision} {one.name}: {error}")
                order.remove(one)
                one.walls, one.cpus = [], []
                continue
            one.walls.append(took["wall"])
            one.cpus.append(took["cpu"])
        rounds += 1


def medians(contestants):
    """Median wall and CPU seconds of everyone who ran, with batch size and agreement."""
    return [
        {
            "precision": one.precision, "engine": one.name, "batch": one.batch, "agreement": one.agreement,
            "wall": statistics.median(one.walls), "cpu": statistics.median(one.cpus), "runs": len(one.walls),
            "repeated": one.repeated,
        }
        for one in contestants
        if one.walls
    ]  # fmt: skip


class Ratio(NamedTuple):
    """A peer's figure over ours."""

    value: float
    peer: str


def ratios(rows, clock):
    """The best peer's figure over ours, by precision; a precision one side lacks has none.

    Every peer that ran counts, also one that was not repeated: its better trial.
    """
    found = {}
    for precision in ("f32", "int8"):
        counted = [row for row in rows if row["precision"] == precision]
        mine = [row[clock] for row in counted if row["engine"] == OURS]
        peers = [row for row in counted if row["engine"] != OURS]
        if mine and peers:
            best = min(peers, key=lambda row: row[clock])
            found[precision] = Ratio(best[clock] / mine[0], best["engine"])
    return found
