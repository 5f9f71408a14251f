"""What `loxia demo` promises: demo.py LOXIA

Runs the embedded demo twice and checks that it ends within two minutes and 1 GB, that posterior is never behind another
method and .03 ahead of the best of them on average, that the recall target is met within .03, and that both runs print
the same. Exits with 1 if something does not hold.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

SECONDS, BYTES, AHEAD, TARGET_APART = 120, 1 << 30, 0.03, 0.03


def run(loxia, *flags):
    """Standard output, seconds, and bytes of memory at most."""
    with tempfile.TemporaryDirectory() as directory:
        started = time.monotonic()
        child = subprocess.Popen(
            [loxia, "demo", "--report", os.path.join(directory, "demo.html"), *flags],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=directory,
        )  # fmt: skip
        printed = child.stdout.read().replace(directory.encode(), b"")
        _, status, usage = os.wait4(child.pid, 0)
        if status != 0:
            sys.exit(f"loxia demo {' '.join(flags)} ended with status {status}")
        return printed, time.monotonic() - started, usage.ru_maxrss * 1024


def main():
    loxia = os.path.abspath(*sys.argv[1:])
    good = True

    def hold(what, value, least):
        nonlocal good
        good &= value >= least
        print(f"  {what:<44} {value:9.3f}   at least {least:9.3f}   {'ok' if value >= least else 'MISSED'}", flush=True)

    text, seconds, memory = run(loxia)
    again, other_seconds, _ = run(loxia)
    hold("seconds left of two minutes", SECONDS - max(seconds, other_seconds), 0)
    hold("MiB left of 1 GB", (BYTES - memory) / (1 << 20), 0)
    hold("runs that print the same", float(text == again), 1)
    facts = json.loads(run(loxia, "--json")[0])
    cells = {}
    for row in facts["methods"]:
        cells.setdefault(row["method"], {})[row["cost"], row["k"]] = row["recall"]
    own = cells.pop("posterior")
    hold("least lead in a cell", min(own[cell] - max(other[cell] for other in cells.values()) for cell in own), 0)
    mean = lambda values: sum(values) / len(values)  # noqa: E731
    hold("lead on average", mean(own.values()) - max(mean(other.values()) for other in cells.values()), AHEAD)
    target = facts["recall_target"]
    hold("recall at the target, less the target", target["mean_recall"] - target["target"], -TARGET_APART)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
