#!/usr/bin/env bash
# Makes the peers' Python environment in bench/.venv and prints what is in it.
# LOXIA_BENCH_PYTHON names an environment's interpreter to use instead; it is then only looked at.
set -euo pipefail
cd "$(dirname "$0")"

python="${LOXIA_BENCH_PYTHON:-}"
if [[ -z "$python" ]]; then
    [[ -x .venv/bin/python ]] || "${PYTHON:-python3}" -m venv .venv
    python=.venv/bin/python
    "$python" -m pip install --quiet --upgrade pip
    "$python" -m pip install --quiet --requirement requirements.txt
    # One at a time, so that one that cannot be had does not keep the others away.
    while read -r package; do
        [[ -z "$package" || "$package" == \#* ]] && continue
        "$python" -m pip install --quiet "$package" || echo "$package: not installed; going on without it"
    done < requirements-optional.txt
fi
"$python" versions.py
