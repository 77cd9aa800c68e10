#!/usr/bin/env bash
# A simulated NVIDIA GPU host: files and device nodes as the driver makes them, without a driver.
#
#   integration/simhost.sh lay DIR       lays the host out below DIR, as `--host-root` takes it
#   integration/simhost.sh run CMD...    runs a command on this machine made to look like that host
#
#   GPUS=2                  how many GPUs; 0: a machine without any part of NVIDIA's
#   DRIVER=550.163.01       the driver's version
#   GPU_NAME='NVIDIA …'     what the driver calls them
#   GPU_ID=0x2330           their PCI device id
#   MODULES="nvidia …"      the kernel modules that are loaded
#   UVM_MAJOR=511           the number that the kernel gave nvidia-uvm
#   NVML=FILE               what stands for libnvidia-ml, if not a library without code
#   SPOIL='rm dev/nvidia0'  a shell command that spoils the host, run in its root before it is used
#   FRESH=DIR               `run` only: the machine's own files, to be written at will: what the command writes is
#                           gone with it, but for DIR, which it sees at the same place. Below DIR, on a real disk,
#                           lie what engines cannot have on an overlay, /home and /run. Its processes end with it.
#   ROOT=TREE               with FRESH: the files of TREE, another Debian's, in place of this machine's
#
# `run` needs root: in a mount namespace of its own /proc/driver, /proc/devices, /sys/module, the PCI bus and
# the driver's libraries are mounted over this machine's, and /dev is a new one with real nodes. Opening one
# gives ENXIO, as nobody drives it; looking at it shows what a driver's node shows. Nothing outlives the command.
set -euo pipefail
export LC_ALL=C

GPUS=${GPUS-2}
DRIVER=${DRIVER-550.163.01}
GPU_NAME=${GPU_NAME-NVIDIA H100 80GB HBM3}
GPU_ID=${GPU_ID-0x2330}
MODULES=${MODULES-nvidia nvidia_uvm nvidia_modeset nvidia_drm}
UVM_MAJOR=${UVM_MAJOR-511}
SPOIL=${SPOIL-}
NVML=${NVML-}
FRESH=${FRESH-}
ROOT=${ROOT-/}
ARCH=$(uname -m)
LIBRARIES=usr/lib/$ARCH-linux-gnu

has() { [[ " $MODULES " == *" $1 "* ]]; }

lay() { # DIR
  mkdir -p "$1"
  cd "$1"
  mkdir -p proc/driver proc/sys/kernel sys/module sys/bus/pci/devices dev etc "$LIBRARIES"
  uname -r >proc/sys/kernel/osrelease
  printf 'Character devices:\n  1 mem\n  5 /dev/tty\n' >proc/devices
  : >proc/modules
  printf 'ID=debian\nVERSION_ID="12"\n' >etc/os-release
  if [ "$GPUS" -gt 0 ]; then
    lay_bus
    lay_driver
    lay_libraries
    # Without root there are no nodes: who asks for them sees none, and the tests that need them say so.
    [ "$(id -u)" -ne 0 ] || lay_nodes
  fi
  printf '\nBlock devices:\n  7 loop\n' >>proc/devices
  eval "$SPOIL"
}

address() { printf '0000:%02x:00.0' $(($1 + 1)); }

lay_bus() {
  local n pci
  mkdir -p sys/bus/pci/drivers/nvidia
  for ((n = 0; n < GPUS; n++)); do
    pci=sys/bus/pci/devices/$(address "$n")
    mkdir -p "$pci"
    echo 0x10de >"$pci/vendor"
    echo "$GPU_ID" >"$pci/device"
    echo 0x030200 >"$pci/class"
    if has nvidia; then ln -s ../../drivers/nvidia "$pci/driver"; fi
  done
}

lay_driver() {
  local module n
  for module in $MODULES; do
    mkdir -p "sys/module/$module"
    echo "$DRIVER" >"sys/module/$module/version"
    echo live >"sys/module/$module/initstate"
    echo POE >"sys/module/$module/taint"
    echo "$module 1000000 0 - Live 0x0000000000000000 (O)" >>proc/modules
  done
  if has nvidia; then
    mkdir -p proc/driver/nvidia/gpus proc/driver/nvidia/capabilities/mig
    printf 'DeviceFileMinor: 1\nDeviceFileMode: 256\nDeviceFileModify: 1\n' >proc/driver/nvidia/capabilities/mig/config
    printf 'NVRM version: NVIDIA UNIX %s Kernel Module  %s  Tue Apr  8 12:41:17 UTC 2025\nGCC version:  gcc version 12.2.0\n' \
      "$ARCH" "$DRIVER" >proc/driver/nvidia/version
    printf 'DeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\nModifyDeviceFiles: 1\n' >proc/driver/nvidia/params
    for ((n = 0; n < GPUS; n++)); do
      mkdir -p "proc/driver/nvidia/gpus/$(address "$n")"
      printf 'Model: \t\t %s\nIRQ:   \t\t 40\nGPU UUID: \t GPU-0000000%d-0000-4000-8000-000000000001\nVideo BIOS: \t 96.00.74.00.01\nBus Type: \t PCIe\nBus Location: \t %s\nDevice Minor: \t %d\nGPU Excluded: \t No\n' \
        "$GPU_NAME" "$n" "$(address "$n")" "$n" >"proc/driver/nvidia/gpus/$(address "$n")/information"
    done
    printf '195 nvidia\n195 nvidia-modeset\n195 nvidiactl\n' >>proc/devices
    printf '510 nvidia-caps\n' >>proc/devices
  fi
  if has nvidia_uvm; then printf '%s nvidia-uvm\n' "$UVM_MAJOR" >>proc/devices; fi
}

lay_libraries() {
  local name
  # Real shared objects, with a name and no code.
  for name in libcuda libnvidia-ml; do
    cc -shared -nostdlib -Wl,-soname,$name.so.1 -o "$LIBRARIES/$name.so.$DRIVER" -x c /dev/null
    ln -s "$name.so.$DRIVER" "$LIBRARIES/$name.so.1"
  done
  if [ -n "$NVML" ]; then cp "$NVML" "$LIBRARIES/libnvidia-ml.so.$DRIVER"; fi
}

lay_nodes() {
  local n
  if has nvidia; then
    for ((n = 0; n < GPUS; n++)); do mknod -m 666 "dev/nvidia$n" c 195 "$n"; done
    mknod -m 666 dev/nvidiactl c 195 255
    mknod -m 666 dev/nvidia-modeset c 195 254
  fi
  if has nvidia_uvm; then
    mknod -m 666 dev/nvidia-uvm c "$UVM_MAJOR" 0
    mknod -m 666 dev/nvidia-uvm-tools c "$UVM_MAJOR" 1
  fi
}

cover() { # BY PATH: only what is there can be covered
  if [ -e "$2" ]; then mount --bind "$1" "$2"; fi
}

# A new /dev: the usual nodes and what the driver made.
mount_dev() { # HOST
  local name
  for name in null zero full random urandom tty fuse kmsg; do
    if [ -e "/dev/$name" ]; then cp -a "/dev/$name" "$1/dev/"; fi
  done
  ln -s /proc/self/fd "$1/dev/fd"
  for name in pts shm mqueue; do mkdir "$1/dev/$name"; done
  if [ -d /dev/pts ]; then mount --bind /dev/pts "$1/dev/pts"; ln -s pts/ptmx "$1/dev/ptmx"; fi
  mount -t tmpfs tmpfs "$1/dev/shm"
  mount --rbind "$1/dev" /dev
}

# crun refuses the v1 controllers with a v2 hierarchy beside them; on v2 alone everything stays as it is.
mount_cgroups() {
  local id controllers path name
  [ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ] || return 0
  mount -t tmpfs tmpfs /sys/fs/cgroup
  while IFS=: read -r id controllers path; do
    [ -n "$controllers" ] || continue
    mkdir "/sys/fs/cgroup/${controllers#name=}"
    mount -t cgroup -o "$controllers" cgroup "/sys/fs/cgroup/${controllers#name=}"
    for name in ${controllers//,/ }; do
      [ -e "/sys/fs/cgroup/${name#name=}" ] || ln -s "$controllers" "/sys/fs/cgroup/$name"
    done
  done </proc/self/cgroup
}

# A root of its own. A tmpfs takes what is written: an overlay's upper directory may not lie below its lower one.
enter_root() { # HOST: is at /mnt then
  local base=$FRESH/.root name
  local new=$base/root
  mkdir -p "$base"
  mount -t tmpfs -o mode=755 tmpfs "$base"
  mkdir "$base/upper" "$base/work" "$new"
  mount -t overlay -o "lowerdir=$ROOT,upperdir=$base/upper,workdir=$base/work" overlay "$new"
  for name in proc sys dev; do mount --rbind "/$name" "$new/$name"; done
  mkdir -p "$new$FRESH"
  mount --bind "$FRESH" "$new$FRESH"
  for name in var/lib/docker var/lib/containers var/lib/containerd home run; do
    mkdir -p "$FRESH/$name" "$new/$name"
    mount --bind "$FRESH/$name" "$new/$name"
  done
  # Engines without root may mount a proc and a sysfs only where a whole one is in sight: these will be covered.
  mkdir -p "$new/.whole/proc" "$new/.whole/sys"
  mount -t proc proc "$new/.whole/proc"
  mount -t sysfs sysfs "$new/.whole/sys"
  mount --move "$1" "$new/mnt"
  cd "$new"
  mkdir .old
  pivot_root . .old
  umount -l /.old
  rmdir /.old
}

mounted() { # CMD...: inside the namespace
  local here=$PWD host
  host=$(mktemp -d ${FRESH:+-p "$FRESH"})
  mount -t tmpfs -o mode=755 tmpfs "$host"
  lay "$host"
  if [ -n "$FRESH" ]; then
    enter_root "$host"
    rmdir "$host"
    here=$FRESH
    host=/mnt
  fi
  cd "$here"
  cover "$host/proc/driver" /proc/driver
  cover "$host/proc/devices" /proc/devices
  cover "$host/proc/modules" /proc/modules
  cover "$host/sys/module" /sys/module
  cover "$host/sys/bus/pci/devices" /sys/bus/pci/devices
  if [ -e "$host/$LIBRARIES/libcuda.so.1" ]; then
    mount -t overlay -o "lowerdir=$host/$LIBRARIES:/$LIBRARIES" overlay "/$LIBRARIES"
  fi
  mount_cgroups
  mount_dev "$host"
  umount -l "$host"
  [ -n "$FRESH" ] || rmdir "$host"
  exec "$@"
}

case ${1-} in
  lay) lay "${2:?usage: simhost.sh lay DIR}" ;;
  run)
    shift
    export GPUS DRIVER GPU_NAME GPU_ID MODULES UVM_MAJOR NVML SPOIL FRESH ROOT
    own=()
    [ -z "$FRESH" ] || own=(--pid --fork --kill-child --mount-proc)
    exec unshare --mount --propagation private "${own[@]}" "${BASH_SOURCE[0]}" mounted "$@"
    ;;
  mounted)
    shift
    mounted "$@"
    ;;
  *)
    sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
    exit 2
    ;;
esac
