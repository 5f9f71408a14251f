#!/bin/sh
# What search costs beside the scorer (issue bars on overhead): one thread, processor time of the whole process,
# made-up scores.
#
#   bench/search.sh [--quick]        LOXIA_BENCH_PYTHON: a Python with numpy (default that of bench/setup.sh, else python3)
#
# Prints the machine, a JSON line for each step, and at the end one flat JSON object. Ratios are "allowed over
# measured" or "peer over ours": larger is better, and 1 is the bar unless its name says otherwise.
set -eu
cd "$(dirname "$0")/.."
python=${LOXIA_BENCH_PYTHON:-bench/.venv/bin/python}
[ -n "${LOXIA_BENCH_PYTHON:-}" ] || [ -x "$python" ] || python=python3
"$python" -c 'import numpy' 2>/dev/null || {
    echo "bench/search.sh: $python has no numpy: run bench/setup.sh or name another with LOXIA_BENCH_PYTHON" >&2
    exit 2
}
large=1000000
[ "${1:-}" = "--quick" ] && large=200000

work=$(mktemp -d "${TMPDIR:-/tmp}/loxia-bench-search.XXXXXX")
trap 'rm -rf "$work"' EXIT
cargo build --release --quiet -p loxia-search --example search_bench
bench=${CARGO_TARGET_DIR:-target}/release/examples/search_bench

grep -m1 'model name' /proc/cpuinfo || true
echo "flags: $(grep -m1 -o -w -E 'avx2|avx512f' /proc/cpuinfo | tr '\n' ' ')  cores: $(nproc)  load: $(cut -d' ' -f1-3 /proc/loadavg)"
date -u +%Y-%m-%dT%H:%MZ

echo "100,000 items, 500 anchors: build with cross-validation"
"$bench" build --items 100000 --anchors 500 --dims 384 --cross-validate yes --output "$work/small" | tee "$work/build.json"
# Ours and the peer take turns: the machine may change under them.
for turn in 1 2 3; do
    echo "turn $turn: 100,000 items, budget 200, 10 rounds"
    "$bench" search --index "$work/small" --budget 200 --rounds 10 --queries 20 | tee "$work/search.$turn.json"
    "$python" bench/search_numpy.py --items 100000 --anchors 500 --budget 200 --rounds 10 | tee "$work/numpy.$turn.json"
done
echo "$large items x 200 dimensions, from mapped files, at most 300 MB of memory of its own"
"$bench" build --items "$large" --anchors 200 --dims 200 --output "$work/large" | tee "$work/build-large.json"
# The limit is on private writable memory: the search fails if it needs more. 134 MB of it are the meter's.
(ulimit -d 434000 && "$bench" search --index "$work/large" --budget 200 --rounds 10 --queries 8) | tee "$work/large.json"

"$python" - "$work" <<'PYTHON'
import json
import pathlib
import statistics
import sys

work = pathlib.Path(sys.argv[1])
read = lambda name: json.loads((work / name).read_text())
searches = [read(f"search.{turn}.json") for turn in (1, 2, 3)]
peers = [read(f"numpy.{turn}.json") for turn in (1, 2, 3)]
build, large = read("build.json"), read("large.json")
middle = lambda values: statistics.median(values)
print(json.dumps({
    "query_ms": middle(s["query_ms"] for s in searches),
    "query_limit_over_ours": middle(s["limit_over_query"] for s in searches),
    "adacur_numpy_over_ours_bar_4": middle(
        p["adacur_numpy_ms"] / s["query_with_first_stage_ms"] for p, s in zip(peers, searches)),
    "fit_60s_over_ours": 60 / build["fit_s"],
    "fit_2500mb_over_ours": 2500 / build["fit_peak_mb"],
    "cross_validation_120s_over_ours": 120 / build["cross_validation_s"],
    "large_300mb_over_ours": 300 / max(large["anonymous_mb"], 1),
    "large_scan_over_half_bandwidth": 2 * large["scan_over_read"],
}))
PYTHON
