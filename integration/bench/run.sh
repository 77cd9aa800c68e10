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

# Two bundles with one root file system, as an image without frameworks has it.
libraries=usr/lib/$(uname -m)-linux-gnu
mkdir -p "$work/rootfs/"{dev,proc,sys,tmp,etc,"$libraries"} "$work/plain" "$work/gpus"
ln -s usr/lib "$work/rootfs/lib"
printf 'ID=debian\nVERSION_ID="12"\n' >"$work/rootfs/etc/os-release"
printf 'int main(void) { return 0; }\n' >"$work/app.c"
cc -static -Os -o "$work/rootfs/app" "$work/app.c"
cc -shared -nostdlib -Wl,-soname,libcuda.so.1 -o "$work/libcuda.so.1" -x c /dev/null

spec() { # ENV DEVICES RULES MOUNTS
  cat <<JSON
{"ociVersion": "1.0.2",
 "process": {"user": {"uid": 0, "gid": 0}, "args": ["/app"], "cwd": "/", "env": ["PATH=/usr/bin:/bin"$1],
  "capabilities": {"bounding": ["CAP_CHOWN", "CAP_DAC_OVERRIDE"], "effective": ["CAP_CHOWN", "CAP_DAC_OVERRIDE"],
   "permitted": ["CAP_CHOWN", "CAP_DAC_OVERRIDE"]}},
 "root": {"path": "$work/rootfs", "readonly": true},
 "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
  {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]}$4],
 "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}, {"type": "network"}],
  "devices": [$2], "resources": {"devices": [{"allow": false, "access": "rwm"}$3]}}}
JSON
}

nodes=("nvidiactl 195 255" "nvidia-modeset 195 254" "nvidia-uvm 511 0" "nvidia-uvm-tools 511 1")
for n in {0..7}; do nodes+=("nvidia$n 195 $n"); done
devices='' rules=''
for node in "${nodes[@]}"; do
  read -r name major minor <<<"$node"
  devices+="${devices:+, }{\"path\": \"/dev/$name\", \"type\": \"c\", \"major\": $major, \"minor\": $minor, \"fileMode\": 438, \"uid\": 0, \"gid\": 0}"
  rules+=", {\"allow\": true, \"type\": \"c\", \"major\": $major, \"minor\": $minor, \"access\": \"rw\"}"
done
mounts=''
for name in libcuda.so.550.163.01 libcuda.so.1 libnvidia-ml.so.550.163.01 libnvidia-ml.so.1; do
  mounts+=", {\"destination\": \"/$libraries/$name\", \"source\": \"$work/libcuda.so.1\", \"options\": [\"ro\", \"nosuid\", \"nodev\", \"rbind\"]}"
done
spec '' '' '' '' >"$work/plain/config.json"
spec ', "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_VISIBLE_DEVICES=void"' "$devices" "$rules" "$mounts" >"$work/gpus/config.json"

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
