"""What people read: a head, a table for each workload, and what was dropped."""

import os
import sys

from . import machine


def say(text):
    print(text, flush=True)


def head(facts):
    width = max(map(len, facts))
    for name, value in facts.items():
        say(f"{name:<{width}}  {value}")


def others(cores, when):
    """What else the machine did, with a warning where it was much."""
    say(f"others kept {cores:.2f} of {os.cpu_count()} cores busy {when}")
    if cores > machine.BUSY:
        say("WARNING: this machine is busy; ratios are less sure and times mean nothing")
        print("the machine is busy", file=sys.stderr)


def versions(found):
    say("\nversions: " + ", ".join(f"{name} {version}" for name, version in found.items()))


def table(workload, threads, rows):
    """Engines of one workload, fastest first in each precision."""
    count = f"{len(workload.sequences)} sequence{'s' * (len(workload.sequences) > 1)}"
    say(f"\n{workload.key}, {threads} thread{'s' * (threads > 1)}: {count}, {workload.tokens:,} tokens")
    body(rows, workload.tokens, "tokens/s")


def body(rows, count, unit):
    say(f"  {'':5} {'engine':36} {'batch':>5} {'wall ms':>9} {'CPU ms':>9} {unit:>10} {'runs':>5}  agreement")
    for row in sorted(rows, key=lambda row: (row["precision"], row["wall"])):
        batch = row["batch"] or ""
        agreement = "" if row["agreement"] is None else f"{row['agreement']:.5f}"
        say(
            f"  {row['precision']:5} {row['engine']:36} {batch:>5} {1e3 * row['wall']:9.1f} {1e3 * row['cpu']:9.1f} "
            f"{count / row['wall']:10,.0f} {row['runs']:5}  {agreement}"
        )


def ratios(title, found):
    """The ratio of each key in both precisions, and which peer it is against."""
    if not found:
        return
    say(f"\n{title}: best peer / ours (above 1: ours is faster)")
    say(f"  {'':24} {'f32':>6} {'best peer':36} {'int8':>6} best peer")
    for key, pair in found.items():
        cell = lambda precision: f"{pair[precision].value:6.2f} {pair[precision].peer:36}" if precision in pair else " " * 43
        say(f"  {key:24} {cell('f32')} {cell('int8')}".rstrip())


def lacking(found):
    """Peers that should have counted for a key and could not."""
    if found:
        say("lacking: " + "; ".join(f"{key} lacks {', '.join(names)}" for key, names in found.items()))


def memory(key, rows):
    say(f"\npeak memory, {key}, 2 threads, each engine in a process of its own")
    for row in sorted(rows, key=lambda row: (row["precision"], row["peak"])):
        say(f"  {row['precision']:5} {row['engine']:36} {row['peak'] / 2**20:8.0f} MiB")
