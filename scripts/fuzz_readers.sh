#!/usr/bin/env bash
# Coverage-guided fuzzing of the Rust readers with AFL++, then what came of it, a line per reader.
#   fuzz_readers.sh [EXECUTIONS [READER...]]     10,000,000 of each of pdh, iostat and trace, where nothing is named
# Needs `cargo install cargo-afl` and `cargo afl config --build` once. Goes on where it was stopped; `rm -r target/fuzz/out`
# begins anew. Inputs that crash or hang are in target/fuzz/out/READER/default. Exit status 1 when there are some.
set -euo pipefail
cd "$(dirname "$0")/.."
EXECUTIONS=${1:-10000000}
shift $(($# > 0 ? 1 : 0))
READERS=("$@")
((${#READERS[@]})) || READERS=(pdh iostat trace)
command -v cargo-afl >/dev/null || { echo 'cargo-afl not found: cargo install cargo-afl && cargo afl config --build' >&2; exit 4; }

# No window of AFL's, no pinned core, no change to the system's settings; a crash is seen by its signal all the same.
export AFL_NO_UI=1 AFL_NO_AFFINITY=1 AFL_SKIP_CPUFREQ=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_AUTORESUME=1
export CARGO_TARGET_DIR=target/fuzz RAYON_NUM_THREADS=1
cargo afl build --release --quiet --locked --manifest-path crates/leadline-fuzz/Cargo.toml >&2

seeds_of() {
    case $1 in
    pdh) ls tests/importers/seeds/{esxtop,perfmon}* ;;
    iostat) ls tests/fixtures/iostat/*.txt ;;
    trace) ls tests/fixtures/fio/logs/*lat.1.log crates/leadline-fuzz/seeds/* ;;
    *) echo "no reader $1: pdh, iostat, trace" >&2; exit 2 ;;
    esac
}

status=0
printf '%-8s %12s %8s %8s %8s %10s\n' reader executions crashes hangs edges per_second
for reader in "${READERS[@]}"; do
    seeds=target/fuzz/seeds/$reader out=target/fuzz/out/$reader
    rm -rf "$seeds" && mkdir -p "$seeds" "$out"
    seeds_of "$reader" | while read -r file; do head -c 8000 "$file" >"$seeds/$(basename "$file")"; done
    cargo afl fuzz -E "$EXECUTIONS" -t 2000 -i "$seeds" -o "$out" "target/fuzz/release/$reader" >"$out/log.txt" 2>&1 ||
        { tail -n 20 "$out/log.txt" >&2; exit 4; }
    value() { sed -n "s/^$1 *: *//p" "$out/default/fuzzer_stats"; }
    printf '%-8s %12s %8s %8s %8s %10s\n' "$reader" "$(value execs_done)" "$(value saved_crashes)" "$(value saved_hangs)" \
        "$(value edges_found)" "$(value execs_per_sec)"
    (($(value saved_crashes) + $(value saved_hangs) == 0)) || status=1
done
exit $status
