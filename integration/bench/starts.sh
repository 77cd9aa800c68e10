#!/usr/bin/env bash
# What we add to the start of a container: runc by itself, with the hook in the specification as hooks.d puts it there,
# and through our runtime; by `runc run`, and by the commands that an engine gives for one container; without a GPU, and
# with 8 GPUs by CDI on a simulated host. Of `runc run` of an empty container at most 5 parts in 100 are wanted for
# the hook, and 10 for the runtime. No test, as other work on the machine moves the numbers. Needs root, runc, a C
# compiler, python3.
#
#   integration/bench/starts.sh [ROUNDS [plain|gpus]...]
#
#   GPU_PREFLIGHT_BIN=DIR   programs that packaging/build.sh has put there; else they are built first
set -euo pipefail
export LC_ALL=C

rounds=${1:-200}
bundles=("${@:2}")
[ ${#bundles[@]} -gt 0 ] || bundles=(plain gpus)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "${BASH_SOURCE[0]}")/programs.sh"
. "$here/integration/bench/bundles.sh"
rustc --edition 2024 -O "$here/integration/bench/starts.rs" -o "$work/starts"
rustc --edition 2024 -C opt-level=3 -C lto=fat -C codegen-units=1 -C strip=symbols -C target-feature=+crt-static \
  -C relocation-model=static "$here/integration/bench/empty.rs" -o "$work/empty"

python3 - "$work" "$programs/gpu-preflight-hook" <<'PYTHON'
import json, os, sys
work, program = sys.argv[1:]
arguments = ["gpu-preflight-hook", "--stage", "createRuntime", "--log", work + "/log"]
for name in "plain", "gpus":
    spec = json.load(open(f"{work}/{name}/config.json"))
    json.dump(spec, open(f"{work}/{name}/original.json", "w"))
    for kind, path in ("hook", program), ("empty", work + "/empty"):
        hook = {"path": path, "args": arguments, "env": ["PATH=/usr/bin:/bin"], "timeout": 5}
        spec["hooks"] = {"createRuntime": [hook]}
        os.mkdir(f"{work}/{name}-{kind}")
        json.dump(spec, open(f"{work}/{name}-{kind}/original.json", "w"))
PYTHON

runc=(runc --root "$work/containers")
ours=("$programs/gpu-preflight-runtime" --runtime "$(command -v runc)" --gpu-preflight-hook-arg "--log=$work/log"
  --root "$work/containers")
ways=()
for how in run engine; do
  name='runc run'
  [ "$how" = run ] || name='runc create, state, start, delete'
  for bundle in "${bundles[@]}"; do
    what='without a GPU'
    [ "$bundle" = plain ] || what='with 8 GPUs'
    ways+=(-- "$name, $what:" "$how" "$work/$bundle" "${runc[@]}"
      -- 'with a hook that does nothing' "$how" "$work/$bundle-empty" "${runc[@]}"
      -- 'with the hook' "$how" "$work/$bundle-hook" "${runc[@]}"
      -- 'through the runtime' "$how" "$work/$bundle" "${ours[@]}")
  done
done
GPUS=8 "$here/integration/simhost.sh" run "$work/starts" "$rounds" "${ways[@]}"
if [ -e "$work/log" ]; then
  printf '\nof %d judged containers with GPUs %d started\n' "$(wc -l <"$work/log")" "$(grep -c '"decision":"start"' "$work/log")"
fi
