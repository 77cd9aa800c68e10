#!/usr/bin/env bash
# Builds the programs as they are released and puts them into a directory.
#
#   packaging/build.sh DIR
#
#   GLIBC=2.17            the oldest glibc that gpu-preflight is to run with: 2.17 as released, for machines and images
#                         from RHEL 7 and Ubuntu 14.04 on. Needs cargo-zigbuild (`pip install cargo-zigbuild ziglang`).
#                         Not given: this machine's own
#   PROFILE=release       cargo profile; `tested` builds in a fraction of the time (what the tests run)
#   CARGO_TARGET_DIR      where cargo works, default `target` beside Cargo.toml
#
# The hook has a cargo call of its own: other features (nothing of the CLI), other flags (static). It has a
# target directory of its own too, so that neither build undoes the other's work.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dir=${1:?usage: packaging/build.sh DIR}
profile=${PROFILE:-release}
triple=$(rustc -vV | sed -n 's/^host: //p')
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
cd "$here"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")

built() { # TARGET_DIR PROGRAM: where cargo put it
  local folder=$profile
  [ "$profile" = dev ] && folder=debug
  printf '%s/%s/%s' "$1" "$folder" "$2"
}

if [ -n "${GLIBC-}" ]; then
  # A linker takes the newest version of each symbol that its glibc has; zig has the list of every older one.
  command -v cargo-zigbuild >/dev/null || {
    echo "packaging/build.sh: GLIBC=$GLIBC needs cargo-zigbuild on PATH: pip install cargo-zigbuild ziglang" >&2
    exit 1
  }
  cargo zigbuild --locked --profile "$profile" --bin gpu-preflight --target "$triple.$GLIBC"
  cli=$target/$triple
else
  cargo build --locked --profile "$profile" --bin gpu-preflight
  cli=$target
fi
# `crt-static` only reaches the program, not the build scripts, where a target is named.
# No PIE: nothing is relocated at start; as static-pie the hook takes a tenth longer to start (measured, integration/bench).
CARGO_TARGET_DIR=$target/static RUSTFLAGS="-C target-feature=+crt-static -C relocation-model=static" \
  cargo build --locked --profile "$profile" --bin gpu-preflight-hook --no-default-features --target "$triple"

install -m 755 "$(built "$cli" gpu-preflight)" "$dir/gpu-preflight"
install -m 755 "$(built "$target/static/$triple" gpu-preflight-hook)" "$dir/gpu-preflight-hook"
# One file under all three names; a copy where the file system has no hard links.
for name in gpu-preflight-runtime gpu-preflight-healthcheck; do
  ln -f "$dir/gpu-preflight-hook" "$dir/$name" 2>/dev/null || install -m 755 "$dir/gpu-preflight-hook" "$dir/$name"
done

# A dynamic hook would load libraries that a container's environment chooses. cargo makes one without a
# word when a flag is lost, so what is in the file counts.
headers=$(readelf --wide --program-headers --dynamic "$dir/gpu-preflight-hook")
if grep -qE 'INTERP|\(NEEDED\)' <<<"$headers"; then
  echo "packaging/build.sh: gpu-preflight-hook is not static:" >&2
  grep -E 'INTERP|\(NEEDED\)' <<<"$headers" >&2
  exit 1
fi

# The newest version of a symbol of glibc's that it asks for: an older glibc refuses to start it.
glibc=$(readelf --wide --version-info "$dir/gpu-preflight" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -1)
if [ -n "${GLIBC-}" ] && [ "$(printf '%s\n' "$GLIBC" "$glibc" | sort -V | tail -1)" != "$GLIBC" ]; then
  echo "packaging/build.sh: gpu-preflight asks for glibc $glibc, not $GLIBC" >&2
  exit 1
fi

crates() { # CARGO_TREE_ARG...: how many crates of others are linked in
  cargo tree --locked --quiet --edges normal --prefix none --no-dedupe --target "$triple" "$@" |
    sed 's/ (.*//' | sort -u | grep -vc '^gpu-preflight '
}
printf '%-28s %9d bytes, %3d crates, dynamic, glibc %s or newer\n' gpu-preflight "$(stat -c %s "$dir/gpu-preflight")" \
  "$(crates)" "$glibc"
printf '%-28s %9d bytes, %3d crates, static\n' gpu-preflight-hook "$(stat -c %s "$dir/gpu-preflight-hook")" \
  "$(crates --no-default-features)"
