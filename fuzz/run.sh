#!/bin/sh
# Runs each target of crates/fuzz under libFuzzer, for FUZZ_SECONDS (600) each; with target names as arguments, only those.
#
# Stable Rust: the coverage that libFuzzer uses needs no sanitizer. New inputs go to target/libfuzzer/corpus; an input that
# breaks a target ends the run, is stored in target/libfuzzer/artifacts, and belongs in fuzz/corpus once it is fixed.
set -eu
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-600}
host=$(rustc -vV | sed -n 's/^host: //p')
mkdir -p "${CARGO_TARGET_DIR:-target}"
out=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)/libfuzzer
# The same versions as in the product; cargo adds libFuzzer's own.
cp Cargo.lock fuzz/Cargo.lock
coverage="-Cpasses=sancov-module"
for arg in level=4 inline-8bit-counters pc-table trace-compares; do
    coverage="$coverage -Cllvm-args=-sanitizer-coverage-$arg"
done
# With --target, build scripts and macros are compiled without these flags.
RUSTFLAGS="${RUSTFLAGS:-} --cfg fuzzing -Ccodegen-units=1 $coverage" CARGO_TARGET_DIR="$out" \
    cargo build --quiet --release --manifest-path fuzz/Cargo.toml --target "$host"
if [ $# -eq 0 ]; then
    for file in fuzz/fuzz_targets/*.rs; do set -- "$@" "$(basename "$file" .rs)"; done
fi
for target in "$@"; do
    mkdir -p "$out/corpus/$target" "$out/artifacts/$target"
    echo "fuzz: $target for $seconds s"
    "$out/$host/release/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=16384 -print_final_stats=1 \
        -verbosity=0 -artifact_prefix="$out/artifacts/$target/" "$out/corpus/$target" "fuzz/corpus/$target"
done
