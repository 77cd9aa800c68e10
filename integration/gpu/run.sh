#!/usr/bin/env bash
# The whole of gpu-preflight on a machine with a real GPU, in under five minutes: what it says of the machine, of an image
# and of a container, what that costs, and whether what it read from NVML is what nvidia-smi says.
#
#   integration/gpu/run.sh [DIR]
#
#   DIR                     where the recorded machine goes, which must not be there yet (target/gpu/machine). Put below
#                           integration/machines/NAME as it is, it is judged by the tests from then on. It has the files
#                           below /proc and /sys that are read, what NVML said, and a host profile; UUIDs are replaced,
#                           and there is no name of a host or user. Look it through before you pass it on.
#   GPU_PREFLIGHT_BIN=DIR   programs that packaging/build.sh has put there; else they are built first
#
# Needs root, nvidia-smi, and Rust where there are no programs. Docker is asked for a container if it has GPUs. Nothing on the
# machine is changed, and no GPU is used but for cuInit. Exits 1 if a program failed, if NVML's fields are not nvidia-smi's,
# or if the recorded machine is judged otherwise than the real one.
#
# So far it has run beside a stand-in of NVIDIA's library and nvidia-smi only (integration/gpu/mod.rs), and never on
# a real GPU.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$here/integration/gpu/compare.sh"
. "$here/integration/gpu/record.sh"
machine=$(realpath -m "${1:-${CARGO_TARGET_DIR:-$here/target}/gpu/machine}")
[ "$(id -u)" -eq 0 ] || { echo "root is needed" >&2; exit 2; }
command -v nvidia-smi >/dev/null || { echo "nvidia-smi is not on PATH: this is for a machine with a GPU" >&2; exit 2; }
[ ! -e "$machine" ] || { echo "$machine is there already" >&2; exit 2; }
programs=${GPU_PREFLIGHT_BIN-}
if [ -z "$programs" ]; then
  programs=${CARGO_TARGET_DIR:-$here/target}/programs
  PROFILE=tested "$here/packaging/build.sh" "$programs" >&2
fi
programs=$(cd "$programs" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cli=$programs/gpu-preflight
failures=()
costs=()

failed() { failures+=("$*"); echo "FAILED  $*"; }

# What it is, the exit codes that are answers, and the command: runs it, shows what it says, and notes what it took.
step() { # NAME CODES CMD...
  local name=$1 codes=$2 begun code=0
  shift 2
  printf '\n==== %s\n$ %s\n' "$name" "${*/#$cli/gpu-preflight}"
  begun=$EPOCHREALTIME
  timeout --kill-after=5 30 "$@" >"$work/out" 2>"$work/err" || code=$?
  costs+=("$name $(took "$begun")")
  head -n 60 "$work/out"
  head -n 20 "$work/err"
  echo "exit code $code, $(took "$begun") ms"
  [[ " $codes " == *" $code "* ]] || failed "$name: exit code $code"
}

took() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%d", (b - a) * 1000 }'; }

# A layout with one layer, in which PyTorch for CUDA 12.4 is.
layout() { # DIR
  local packages=$work/layer/usr/lib/python3/dist-packages
  mkdir -p "$packages/torch" "$packages/torch-2.6.0+cu124.dist-info" "$1/blobs/sha256"
  printf "__version__ = '2.6.0+cu124'\ncuda: Optional[str] = '12.4'\n" >"$packages/torch/version.py"
  tar -C "$work/layer" -cf "$work/layer.tar" usr
  blob() { # FILE: puts it there, says its descriptor's end
    local sum
    sum=$(sha256sum "$1" | cut -d' ' -f1)
    cp "$1" "$layout_dir/blobs/sha256/$sum"
    printf '"digest":"sha256:%s","size":%d' "$sum" "$(stat -c %s "$1")"
  }
  local layout_dir=$1 kind=application/vnd.oci.image arch=amd64 layer
  [ "$(uname -m)" = x86_64 ] || arch=arm64
  layer=$(blob "$work/layer.tar")
  printf '{"architecture":"%s","os":"linux","config":{"Env":["NVIDIA_VISIBLE_DEVICES=all"]},"rootfs":{"type":"layers","diff_ids":["%s"]}}' \
    "$arch" "$(sed 's/"digest":"\([^"]*\)".*/\1/' <<<"$layer")" >"$work/config"
  printf '{"schemaVersion":2,"config":{"mediaType":"%s.config.v1+json",%s},"layers":[{"mediaType":"%s.layer.v1.tar",%s}]}' \
    "$kind" "$(blob "$work/config")" "$kind" "$layer" >"$work/manifest"
  printf '{"schemaVersion":2,"manifests":[{"mediaType":"%s.manifest.v1+json",%s}]}' "$kind" "$(blob "$work/manifest")" \
    >"$1/index.json"
  printf '{"imageLayoutVersion":"1.0.0"}' >"$1/oci-layout"
}

# The static health check alone in an image from nothing, with all GPUs.
in_docker() {
  if ! command -v docker >/dev/null || ! timeout 10 docker info >/dev/null 2>&1; then
    echo "no docker that answers: not tried"
    return
  fi
  local image=gpu-preflight-run-sh:$$
  local run=(docker run --rm --network=none --gpus all -e NVIDIA_VISIBLE_DEVICES=all "$image" /gpu-preflight-healthcheck)
  if ! tar -C "$programs" -cf - gpu-preflight-healthcheck | timeout 30 docker import - "$image" >/dev/null; then
    failed "no image could be made of the health check"
    return
  fi
  # what docker itself cannot start ends with 125 to 127
  if timeout 30 "${run[@]}" >/dev/null 2>"$work/err" || [ $? -eq 1 ]; then
    step "healthcheck in docker" "0 1" "${run[@]}" --verbose
  else
    echo "docker gives no GPUs: not tried ($(tail -n 1 "$work/err" | cut -c1-200))"
  fi
  docker rmi "$image" >/dev/null
}

step "nvidia-smi -L" 0 nvidia-smi -L
step "host" "0 1" "$cli" host
step "host --no-nvml" "0 1" "$cli" host --no-nvml --quiet
step "host as JSON" "0 1" "$cli" host --format json --save "$work/profile.json" --save-nvml "$work/nvml.json"
cp "$work/out" "$work/live.json"
step "host --cuda" "0 1" "$cli" host --cuda --quiet
step "host --compare" "0 1" "$cli" host --compare "$work/profile.json" --format json
grep -q '"changes": \[\]' "$work/out" || failed "the profile that was just saved differs from the machine"
step "healthcheck" "0 1" env NVIDIA_VISIBLE_DEVICES=all "$cli" healthcheck --verbose
layout "$work/image"
step "image" "0 1" "$cli" image "oci:$work/image"
printf '\n==== healthcheck in docker\n'
in_docker

printf '\n==== what NVML said beside nvidia-smi\n'
compare "$work/nvml.json" || failed "fields that NVML and nvidia-smi do not agree on"

printf '\n==== the recorded machine, %s\n' "$machine"
record "$machine" "$work"
cp -a "$machine/root" "$work/root"
make_nodes "$machine/nodes" "$work/root"
"$cli" host --host-root "$work/root" --nvml "$machine/nvml.json" --format json --fail-on never >"$work/replayed.json"
findings "$work/replayed.json" >"$machine/expected"
diff <(findings "$work/live.json") "$machine/expected" || failed "the recorded machine is judged otherwise than the real one"

printf '\n==== what it costs, beside nvidia-smi -L\n'
for cost in "${costs[@]}"; do
  awk -v name="${cost% *}" -v ms="${cost##* }" -v unit="${costs[0]##* }" \
    'BEGIN { printf "%-24s %6d ms  %5.1f\n", name, ms, ms / (unit ? unit : 1) }'
done
printf '\n%d failures\n' ${#failures[@]}
[ ${#failures[@]} -eq 0 ] || printf '  %s\n' "${failures[@]}"
[ ${#failures[@]} -eq 0 ]
