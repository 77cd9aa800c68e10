#!/usr/bin/env bash
# Shows what a user sees: seven real containers under runc on a simulated GPU host, two that start and five that
# would not have found their GPU. Needs root, runc, a C compiler and Python; fails if one behaves otherwise.
#
#   integration/demo.sh
#
#   GPU_PREFLIGHT_BIN=DIR   programs that packaging/build.sh has put there; else they are built first
#   RUNTIME=runc            the OCI runtime; crun shows the user only the exit code
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
runtime=${RUNTIME-runc}
. "$here/integration/tools.sh"
need cc=gcc readelf=binutils python3=python3 unshare=util-linux "$runtime=$runtime"
bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR-}" ]; then bold=$'\e[1m' plain=$'\e[0m'; fi

programs=${GPU_PREFLIGHT_BIN-}
if [ -z "$programs" ]; then
  programs=${CARGO_TARGET_DIR:-$here/target}/programs
  PROFILE=tested "$here/packaging/build.sh" "$programs" >&2
fi
programs=$(cd "$programs" && pwd)

# What runs in every container: it says that it started.
mkdir -p "$work/rootfs/"{dev,proc,sys,etc,tmp,lib64,usr/lib/"$(uname -m)-linux-gnu"}
printf '#include <unistd.h>\nint main(void) { return write(1, "the container runs\\n", 19) != 19; }\n' >"$work/app.c"
cc -static -Os -o "$work/rootfs/app" "$work/app.c"
# A glibc image has its loader.
cp -L "$(readelf --wide --program-headers "$(command -v env)" | sed -n 's/.*interpreter: \(.*\)\]/\1/p')" "$work/rootfs/lib64/"
# Stands for the driver's library, which CDI mounts into the container.
cc -shared -nostdlib -Wl,-soname,libcuda.so.1 -o "$work/libcuda.so.1" -x c /dev/null

# The same with PyTorch as `pip install torch` gives it since 2.11: built for CUDA 13.
cp -r "$work/rootfs" "$work/torch"
packages=$work/torch/usr/lib/python3/dist-packages
mkdir -p "$packages/torch" "$packages/torch-2.11.0.dist-info"
printf "__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\n" >"$packages/torch/version.py"

bundle() { # NAME CHANGE: a bundle as docker writes it for a CDI device, changed by a line of Python
  mkdir -p "$work/$1"
  python3 - "$1" "$2" "$work" "$programs/gpu-preflight-hook" >"$work/$1/config.json" <<'PYTHON'
import json, platform, sys

name, change, work, hook = sys.argv[1:]
numbers = {"nvidia0": (195, 0), "nvidiactl": (195, 255), "nvidia-uvm": (511, 0), "nvidia-uvm-tools": (511, 1)}
capabilities = ["CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_SETGID", "CAP_SETUID", "CAP_MKNOD", "CAP_KILL"]
env = ["PATH=/usr/local/bin:/usr/bin:/bin", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_VISIBLE_DEVICES=void"]
mode, user = 0o666, 0
gpu, rootfs = True, "rootfs"
exec(change)

libraries = f"/usr/lib/{platform.machine()}-linux-gnu/"
mounts = [("/proc", "proc", "proc", ["nosuid", "noexec", "nodev"]), ("/dev", "tmpfs", "tmpfs", ["nosuid", "mode=755"])]
if gpu:
    mounts += [(libraries + file, "", work + "/libcuda.so.1", ["ro", "nosuid", "nodev", "rbind", "rprivate"])
               for file in ("libcuda.so.550.163.01", "libcuda.so.1")]
else:
    numbers = {}
devices = [{"path": "/dev/" + node, "type": "c", "major": major, "minor": minor, "fileMode": mode,
            "uid": 0, "gid": 44 if mode == 0o660 else 0} for node, (major, minor) in numbers.items()]
rules = [{"allow": False, "access": "rwm"}, {"allow": True, "type": "c", "major": 1, "minor": 3, "access": "rwm"}]
rules += [{"allow": True, "type": "c", "major": d["major"], "minor": d["minor"], "access": "rw"} for d in devices]
json.dump({
    "ociVersion": "1.0.2",
    "process": {
        "user": {"uid": user, "gid": user}, "args": ["/app"], "cwd": "/", "env": env, "noNewPrivileges": True,
        "capabilities": {kind: capabilities for kind in ("bounding", "effective", "permitted")},
    },
    "root": {"path": work + "/" + rootfs, "readonly": True},
    "hostname": name,
    "mounts": [dict(zip(("destination", "type", "source", "options"), mount)) for mount in mounts],
    "hooks": {"createRuntime": [{
        "path": hook, "args": ["gpu-preflight-hook", "--stage", "createRuntime", "--log", work + "/hook.jsonl"],
        "env": ["PATH=/usr/bin:/bin"], "timeout": 5,
    }]},
    "linux": {
        "namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts", "network")],
        "devices": devices, "resources": {"devices": rules},
    },
}, sys.stdout)
PYTHON
}

wrong=0

show() { # NAME WORDS CODE ID HOST CHANGE: CODE 0 means that it starts, else the hook's exit code and the check
  local name=$1 words=$2 code=$3 id=$4 host=$5 change=$6 out rc=0 line found=0
  bundle "$name" "$change"
  out=$(env "$host" "$here/integration/simhost.sh" run \
    "$runtime" --root "$work/state" run --bundle "$work/$name" "$name" </dev/null 2>&1) || rc=$?
  printf '\n%s# %s%s\n$ %s run %s\n' "$bold" "$words" "$plain" "$runtime" "$name"
  line=$out
  if [ "$rc" -ne 0 ]; then
    # runc says: … error running hook: exit status 10, stdout: , stderr: THE HOOK'S LINES
    found=$(sed -nE 's/.*(exit status|exit code:) ([0-9]+).*/\2/p' <<<"$out" | head -1)
    line=$(sed -E 's/.*stderr: //; s/\\"/"/g; s/\\n/\n/g; s/"$//' <<<"$out")
  fi
  printf '%s\n' "$line" | sed '/^$/d; s/^/  /'
  printf '  exit code %s' "$rc"
  [ "$rc" -eq 0 ] || printf ', of the hook %s' "${found:-none}"
  printf '\n'
  if [ "$code" -eq 0 ]; then
    [ "$rc" -eq 0 ] && [ "$out" = "the container runs" ] && return
  else
    [ "$rc" -ne 0 ] && [ "${found:-0}" -eq "$code" ] && { [ "$runtime" != runc ] || [[ $out == *"$id"* ]]; } && return
  fi
  printf '  WRONG: expected %s\n' "$([ "$code" -eq 0 ] && echo 'that it starts' || echo "$code, $id")"
  wrong=$((wrong + 1))
}

loaded='MODULES=nvidia nvidia_uvm nvidia_modeset'

show web 'no GPU wanted, none given: not our business' 0 - "$loaded" 'gpu = False; env = env[:1]'
show training 'everything right' 0 - "$loaded" 'pass'
show no-gpus-flag '--gpus forgotten: the image wants a GPU, the engine gave none' 10 gpu-not-requested \
  "$loaded" 'gpu = False; env = env[:2]'
show no-uvm 'the kernel module nvidia_uvm is not loaded: cuInit would fail with 999' 12 uvm-module-not-loaded \
  'MODULES=nvidia nvidia_modeset' 'numbers = {n: d for n, d in numbers.items() if "uvm" not in n}'
show stale-uvm 'the node nvidia-uvm has the number of an earlier boot' 11 uvm-major-mismatch \
  "$loaded" 'numbers["nvidia-uvm"] = (507, 0); numbers["nvidia-uvm-tools"] = (507, 1)'
show foreign-user 'the container'"'"'s user may not open the nodes' 11 node-access-refused \
  "$loaded" 'mode, user = 0o660, 1000'
show cuda-too-new 'PyTorch for CUDA 13, and a driver that offers CUDA 12.4: error 35, or silently on the CPU' 14 \
  framework-cuda-newer-than-driver "$loaded" 'rootfs = "torch"'

echo
if [ "$wrong" -gt 0 ]; then
  echo "$wrong of 7 containers did not behave as they should"
  exit 1
fi
echo "all 7 containers behaved as they should"
