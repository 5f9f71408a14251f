#!/usr/bin/env bash
# Builds the release binary and measures it against the peers; options go to peers.py (--help lists them).
set -euo pipefail
cd "$(dirname "$0")"

python="${LOXIA_BENCH_PYTHON:-.venv/bin/python}"
if [[ ! -x "$python" ]]; then
    echo "no $python: run bench/setup.sh first, or name an interpreter in LOXIA_BENCH_PYTHON" >&2
    exit 2
fi
cargo build --release --quiet --package loxia-cli --manifest-path ../Cargo.toml
exec "$python" peers.py --loxia "${CARGO_TARGET_DIR:-../target}/release/loxia" "$@"
