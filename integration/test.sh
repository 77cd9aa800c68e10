#!/usr/bin/env bash
# Runs every test: the unit tests, then those through the built programs and real runtimes, and the demo.
#
#   integration/test.sh [--long] [FILTER]
#
#   --long    also the suites that take long
#   FILTER    only integration tests whose name contains it
#
# As root on Debian it installs what the tests need, and nothing is skipped. Without root it runs what needs
# none, and says what it skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. integration/tools.sh

filter=()
for arg in "$@"; do
  case $arg in
    --long) export GPU_PREFLIGHT_TEST_LONG=1 ;;
    -*) sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
    *) filter+=("$arg") ;;
  esac
done

if [ "$(id -u)" -eq 0 ]; then
  need cc=gcc readelf=binutils strace=strace runc=runc crun=crun unshare=util-linux podman=podman \
    newuidmap=uidmap dockerd=docker.io containerd=containerd docker-registry=docker-registry lxc-start=lxc \
    systemd-analyze=systemd
  need_trixie
  need_promtool
  # the programs as released: what runs with the oldest glibc runs here
  need_zigbuild
  export GLIBC=2.17
  need_driver
  export GPU_PREFLIGHT_TEST_SKIPS=forbidden
fi

failed=0
cargo test --locked --lib --bins || failed=1
programs=${CARGO_TARGET_DIR:-target}/programs
PROFILE=tested packaging/build.sh "$programs"
GPU_PREFLIGHT_BIN=$(realpath "$programs") cargo test --locked --test integration -- "${filter[@]}" || failed=1
if [ "$(id -u)" -eq 0 ] && [ ${#filter[@]} -eq 0 ]; then
  # the README's other command, with the programs that are built by now
  GPU_PREFLIGHT_BIN=$(realpath "$programs") integration/demo.sh || failed=1
fi
if [ -n "${GPU_PREFLIGHT_TEST_LONG-}" ] && [ ${#filter[@]} -eq 0 ]; then
  integration/fuzz/run.sh 120 || failed=1
fi
exit "$failed"
