#!/usr/bin/env bash
# What the hook costs, as whole processes beside a Rust program that does nothing and is built the same way:
# a container without a GPU (at most 1.5 times as much is wanted), and one with 8 GPUs by CDI on a root file system
# without frameworks, created by runc on a simulated host (at most 3 times). Prints the ratios; no test, as other
# work on the machine moves them. Needs root, runc, a C compiler.
#
#   integration/bench/run.sh [RUNS]
#
#   GPU_PREFLIGHT_BIN=DIR   programs that packaging/build.sh has put there; else they are built first
set -euo pipefail
export LC_ALL=C

runs=${1:-2000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "${BASH_SOURCE[0]}")/programs.sh"

released=(--edition 2024 -C opt-level=3 -C lto=fat -C codegen-units=1 -C strip=symbols)
rustc "${released[@]}" "$here/integration/bench/measure.rs" -o "$work/measure"
rustc "${released[@]}" -C target-feature=+crt-static -C relocation-model=static "$here/integration/bench/empty.rs" \
  -o "$work/empty"

. "$here/integration/bench/bundles.sh"

# A hook at createRuntime finds the container made, its program not yet started. The hook that measures does so
# from there: what it starts sees what the hook would.
cat >"$work/from-hook" <<HOOK
#!/bin/sh
cat >"$work/state.json"
sed 's,/gpus",/plain",' "$work/state.json" >"$work/plain.json"
exec "$work/measure" $runs \\
  -- 'a program that does nothing' /dev/null "$work/empty" \\
  -- 'the hook, container without a GPU' "$work/plain.json" "$programs/gpu-preflight-hook" --log "$work/log" \\
  -- 'the hook, 8 GPUs by CDI' "$work/state.json" "$programs/gpu-preflight-hook" --log "$work/log" \\
  >"$work/answer" 2>&1
HOOK
chmod +x "$work/from-hook"
python3 - "$work" <<'PYTHON'
import json, sys
path = sys.argv[1] + "/gpus/config.json"
spec = json.load(open(path))
spec["hooks"] = {"createRuntime": [{"path": sys.argv[1] + "/from-hook", "env": ["PATH=/usr/bin:/bin"]}]}
json.dump(spec, open(path, "w"))
PYTHON

GPUS=8 "$here/integration/simhost.sh" run runc --root "$work/containers" run --bundle "$work/gpus" gpu-preflight-bench ||
  { cat "$work/answer" >&2; exit 1; }
cat "$work/answer"
[ -e "$work/log" ] || { echo "the hook judged no container with GPUs" >&2; exit 1; }
printf '\nof %d judged containers with GPUs %d started\n' "$(wc -l <"$work/log")" "$(grep -c '"decision":"start"' "$work/log")"
