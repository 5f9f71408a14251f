#!/usr/bin/env bash
# Fuzzes every parser: ten minutes of processor time each for safetensors, pickle, npy and manifests, two for the
# others. Stops at the first crash, hang (10 s on one input) or input that takes 2 GB of memory, and says how to see it
# again.
#
#     tools/check/fuzz.sh [SECONDS_MAIN [SECONDS_OTHER]]      # 600 and 120 unless given
#
# FUZZ_TARGETS="npy zip"   only these
# FUZZ_JOBS=1              how many at once (2 unless set)
# FUZZ_SANITIZER=none      where the address sanitizer does not link
set -euo pipefail
cd "$(dirname "$0")/../.."

main_seconds=${1:-600}
other_seconds=${2:-120}
jobs=${FUZZ_JOBS:-2}
main_targets="safetensors pickle npy manifest"

command -v cargo-fuzz > /dev/null || cargo install --locked cargo-fuzz
# Coverage and the sanitizer are unstable options of rustc; this lets the stable toolchain take them.
export RUSTC_BOOTSTRAP=1
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/fuzz/target}
all_targets=$(cargo fuzz list)
targets=${FUZZ_TARGETS:-"$main_targets $(printf '%s\n' $all_targets | grep -vxF "$(printf '%s\n' $main_targets)")"}
build() { cargo fuzz build --sanitizer "${FUZZ_SANITIZER:-address}" "$@"; }
if [ -n "${FUZZ_TARGETS:-}" ]; then
    for target in $targets; do build "$target"; done
else
    build
fi
triple=$(rustc -vV | sed -n 's/^host: //p')
export binaries=$CARGO_TARGET_DIR/$triple/release

# Whether an input that was too slow by the clock is too slow by its processor time: busy machines raise false alarms.
is_slow() {
    ! (ulimit -t 10 && exec "$binaries/$1" -timeout=3600 "$2") > /dev/null 2>&1
}

# One target: TARGET SECONDS, of processor time. 255 makes xargs start no other.
fuzz_one() {
    local target=$1 seconds=$2 corpus=fuzz/corpus/$1 artifacts=fuzz/artifacts/$1
    local log=$artifacts/log spent=0 executions=0 coverage=0 started=$SECONDS failed input cpu
    mkdir -p "$corpus" "$artifacts"
    rm -f "$artifacts"/*
    while [ $((seconds - spent)) -gt $((seconds / 20)) ]; do
        failed=
        TIMEFORMAT='%U %S'
        cpu=$({ time nice -n 10 "$binaries/$target" -max_total_time=$((seconds - spent)) -timeout=10 \
            -rss_limit_mb=2048 -malloc_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
            -artifact_prefix="$artifacts/" "$corpus" "fuzz/seeds/$target" > "$log" 2>&1; } 2>&1) || failed=yes
        for input in "$artifacts"/timeout-*; do
            if [ -e "$input" ] && ! is_slow "$target" "$input"; then
                rm "$input"
                failed=
            fi
        done
        if [ -n "$failed" ]; then
            tail -n 40 "$log"
            printf '%s FAILED; see %s, and again with: %s/%s INPUT\n' "$target" "$log" "$binaries" "$target"
            return 255
        fi
        spent=$((spent + $(awk '{ printf "%d", $1 + $2 + 0.5 }' <<< "$cpu")))
        executions=$((executions + $(sed -n 's/^stat::number_of_executed_units: *//p' "$log")))
        coverage=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1 | cut -d' ' -f2)
    done
    printf '%-16s %5s s (%s s by the clock) %12s executions %6s edges\n' \
        "$target" "$spent" "$((SECONDS - started))" "$executions" "$coverage"
}
export -f is_slow fuzz_one

for target in $targets; do
    case " $main_targets " in
    *" $target "*) echo "$target $main_seconds" ;;
    *) echo "$target $other_seconds" ;;
    esac
done | xargs -P "$jobs" -L 1 bash -c 'fuzz_one "$@"' _
