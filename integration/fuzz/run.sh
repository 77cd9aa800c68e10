#!/usr/bin/env bash
# Fuzzes the readers of what an image's author wrote, each for some time; what makes one fail is kept.
#
#   integration/fuzz/run.sh [SECONDS] [TARGET...]
#
# SECONDS a target, default 60; TARGETs: archive layer program metadata configuration, default all. A find is put into
# finds/TARGET, where the unit tests try it again on every run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

seconds=${1:-60}
[ $# -gt 0 ] && shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(archive layer program metadata configuration)
triple=$(rustc -vV | sed -n 's/^host: //p')
work=${CARGO_TARGET_DIR:-$PWD/../../target}/fuzz
mkdir -p "$work"
work=$(realpath "$work")

# What cargo-fuzz sets, but for the sanitizers: those need a nightly compiler, and the readers have no unsafe code. The
# target is named so that build scripts are built without it.
export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"
CARGO_TARGET_DIR=$work cargo build --locked --release --target "$triple"

failed=()
for target in "${targets[@]}"; do
  corpus=$work/corpus/$target
  mkdir -p "$corpus" "finds/$target"
  python3 seeds.py "$target" "$corpus"
  printf '\n== %s, %s s\n' "$target" "$seconds"
  "$work/$triple/release/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=65536 \
    -print_final_stats=1 -artifact_prefix="finds/$target/" "$corpus" "finds/$target" >"$work/$target.log" 2>&1 || failed+=("$target")
  grep -E 'panicked|ERROR|SUMMARY|Test unit|stat::(number_of_executed_units|average_exec_per_sec)|cov:' "$work/$target.log" | tail -8 || true
done
[ ${#failed[@]} -eq 0 ] || printf '\nfailed: %s\n' "${failed[@]}" >&2
exit $((${#failed[@]} > 0))
