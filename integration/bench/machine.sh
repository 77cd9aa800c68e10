#!/usr/bin/env bash
# What `host` and `healthcheck` cost on a simulated machine with 8 GPUs, as whole processes beside a program that does
# nothing: `host` by files alone and with NVML, which a stand-in answers at once, and both programs of the health
# check. Wanted are at most 100 ms for the first and 50 ms for the last two. Prints the ratios; no test, as other work
# on the machine moves them. Needs root, a C compiler.
#
#   integration/bench/machine.sh [RUNS]
#
#   GPU_PREFLIGHT_BIN=DIR   programs that packaging/build.sh has put there; else they are built first
set -euo pipefail
export LC_ALL=C

runs=${1:-100}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "${BASH_SOURCE[0]}")/programs.sh"

rustc --edition 2024 -C opt-level=3 "$here/integration/bench/measure.rs" -o "$work/measure"
rustc --edition 2024 -C opt-level=3 "$here/integration/bench/empty.rs" -o "$work/empty"
cc -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 "$here/integration/nvml/stand_in.c" -o "$work/libnvidia-ml.so"

# To open a node that nobody serves fails: the container's have the numbers of /dev/null and its kin, and a
# proc/devices that says so.
mkdir "$work/container" "$work/state"
GPUS=8 NVML=$work/libnvidia-ml.so "$here/integration/simhost.sh" lay "$work/container"
(
  cd "$work/container"
  rm -f dev/nvidia*
  sed -i -e '/^ *1 mem/d' -e 's/^195 /1 /' -e 's/^51[01] /1 /' proc/devices
  cp -a /dev/null dev/nvidiactl
  cp -a /dev/full dev/nvidia-uvm
  for gpu in 0 1 2 3 4 5 6 7; do cp -a /dev/zero "dev/nvidia$gpu"; done
)
checked=(/usr/bin/setpriv --bounding-set=-all --inh-caps=-all)

export STAND_IN_NVML=gpus=8 NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
export XDG_RUNTIME_DIR=$work/state GPU_PREFLIGHT_FAIL_ON=never
GPUS=8 NVML=$work/libnvidia-ml.so "$here/integration/simhost.sh" run "$work/measure" "$runs" \
  -- 'a program that does nothing' /dev/null "$work/empty" \
  -- 'host, by files alone' /dev/null "$programs/gpu-preflight" host --no-nvml \
  -- 'host' /dev/null "$programs/gpu-preflight" host \
  -- 'setpriv and that program' /dev/null "${checked[@]}" "$work/empty" \
  -- 'setpriv and healthcheck' /dev/null "${checked[@]}" "$programs/gpu-preflight" healthcheck --host-root "$work/container" \
  -- 'setpriv and the static one' /dev/null "${checked[@]}" "$programs/gpu-preflight-healthcheck" --host-root "$work/container"
