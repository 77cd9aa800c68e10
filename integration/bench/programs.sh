# Read by the benches: where the programs are that are measured, those that GPU_PREFLIGHT_BIN names, else built as they
# are released. Sets `here` and `programs`.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
programs=${GPU_PREFLIGHT_BIN-}
if [ -z "$programs" ]; then
  programs=${CARGO_TARGET_DIR:-$here/target}/programs-release
  "$here/packaging/build.sh" "$programs" >&2
fi
programs=$(cd "$programs" && pwd)
