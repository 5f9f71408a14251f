#!/usr/bin/env bash
# Every check that needs real data, Python or time; the tests proper are `cargo test`.
# Needs tools/setup.sh once, and LOXIA_TEST_DATA (default ../shared/data). Fuzzing is tools/check/fuzz.sh,
# the AVX-512 kernels on machines without AVX-512 tools/check/avx512.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."

cargo build --release
loxia=${CARGO_TARGET_DIR:-target}/release/loxia
export HF_HUB_OFFLINE=1
data=${LOXIA_TEST_DATA:-../shared/data}
scores=$(mktemp -d)
trap 'rm -rf "$scores"' EXIT

step() { printf '\n== %s\n' "$*"; "$@"; }
step .venv/bin/python tools/check/tiny_golden.py "$loxia"
step .venv/bin/python tools/check/sentence_transformers_round_trip.py "$loxia"
step .venv-st4/bin/python tools/check/sentence_transformers_round_trip.py "$loxia"
step .venv/bin/python tools/check/memory.py "$loxia"
step .venv/bin/python tools/check/minilm.py "$loxia"
step .venv/bin/python tools/check/demo.py "$loxia"
step .venv/bin/python "$data/wordnet-scores/unpack.py" "$scores"
step .venv/bin/python tools/check/search_bars.py "$loxia" "$scores" "$data/wordnet-worlds"
step .venv/bin/python tools/check/published.py "$loxia" "$scores" "$data/../search-baselines.py" "$data/../search-method.py"
