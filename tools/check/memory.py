"""Memory while scoring: it may not grow with the collection beyond its ids.

Scores one query against 1,000 and against 200,000 generated items with the embedded tiny cross-encoder and
compares the peak of anonymous memory (RssAnon), sampled while `loxia score` runs.

    python3 tools/check/memory.py [path of the loxia program]
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOXIA = sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/release/loxia"
MODEL = ROOT / "assets/tiny-models/emb-cross-encoder"
SMALL, LARGE, BYTES_AN_ITEM, SHARE = 1_000, 200_000, 64, 0.05


def collection(directory: pathlib.Path, items: int) -> None:
    directory.mkdir()
    draw = random.Random(7)
    words = "move run walk turn carry fall rise swing across over under quickly slowly the a of water road".split()
    with open(directory / "corpus.jsonl", "w") as out:
        for number in range(items):
            text = " ".join(draw.choices(words, k=draw.randint(5, 60)))
            out.write(json.dumps({"_id": f"doc{number:08}", "title": draw.choice(words), "text": text}) + "\n")
    with open(directory / "queries.jsonl", "w") as out:
        out.write(json.dumps({"_id": "q1", "text": "carry something across the water"}) + "\n")


def peak_anonymous(directory: pathlib.Path, output: pathlib.Path) -> int:
    command = [LOXIA, "score", "--model", MODEL, "--data", directory, "--output", output, "--quiet"]
    process = subprocess.Popen(command)
    peak = 0
    while process.poll() is None:
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            peak = max(peak, *(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssAnon")), 0)
        except (FileNotFoundError, ProcessLookupError, TypeError):
            pass
        time.sleep(0.005)
    if process.returncode != 0:
        sys.exit(f"loxia score failed with {process.returncode}")
    return peak


with tempfile.TemporaryDirectory() as scratch:
    scratch = pathlib.Path(scratch)
    peaks = {}
    for items in (SMALL, LARGE):
        collection(scratch / f"data-{items}", items)
        peaks[items] = peak_anonymous(scratch / f"data-{items}", scratch / f"scores-{items}")
        print(f"{items:>8,} items: peak of anonymous memory {peaks[items] / 2**20:.1f} MiB")
allowed = peaks[SMALL] * (1 + SHARE) + LARGE * BYTES_AN_ITEM
extra = (peaks[LARGE] - peaks[SMALL]) / LARGE
print(f"difference {extra:.1f} bytes an item; allowed {allowed / 2**20:.1f} MiB")
if peaks[LARGE] > allowed:
    sys.exit("FAILED: memory grows with the collection")
print("ok")
