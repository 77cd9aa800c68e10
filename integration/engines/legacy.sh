#!/bin/sh
# Stands for nvidia-container-runtime-hook and nvidia-container-cli, and makes in the container what they make
# there: the host's nodes and the driver's library by bind mounts, and rules of the device cgroup (v1).
#   nvidia-container-runtime-hook prestart                         as docker and podman call it, the state on stdin
#   nvidia-container-cli ... configure ... --pid=PID ROOTFS        as containerd calls it
set -eu

value() { sed -n "s/.*\"$1\":[ ]*\"\{0,1\}\([^\",}]*\).*/\1/p" | head -n 1; }

case $0 in
  *-cli)
    for word in "$@"; do
      case $word in --pid=*) pid=${word#--pid=} ;; /*) rootfs=$word ;; esac
    done
    ;;
  *)
    state=$(tr -d '\n')
    pid=$(printf '%s' "$state" | value pid)
    bundle=$(printf '%s' "$state" | value bundle)
    config=$(tr -d '\n' <"$bundle/config.json")
    asked=$(printf '%s' "$config" | tr '"' '\n' | sed -n 's/^NVIDIA_VISIBLE_DEVICES=//p' | tail -n 1)
    case $asked in '' | void | none) exit 0 ;; esac
    rootfs=$(printf '%s' "$config" | grep -o '"root":[ ]*{[^}]*}' | value path)
    case $rootfs in /*) ;; *) rootfs=$bundle/$rootfs ;; esac
    ;;
esac

library=/usr/lib/$(uname -m)-linux-gnu/libcuda.so.1
nsenter --mount="/proc/$pid/ns/mnt" sh -eu -c '
  rootfs=$1 library=$2
  for node in /dev/nvidia0 /dev/nvidia1 /dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-uvm-tools; do
    # a missing nvidia-uvm is a warning to libnvidia-container, no more
    if [ -e "$node" ]; then : >>"$rootfs$node"; mount --bind "$node" "$rootfs$node"; fi
  done
  for file in "$library" "$(readlink -f "$library")"; do
    : >>"$rootfs$file"
    mount --bind "$(readlink -f "$library")" "$rootfs$file"
  done
' sh "$rootfs" "$library"

group=$(sed -n 's/^[0-9]*:devices:/\/sys\/fs\/cgroup\/devices/p' "/proc/$pid/cgroup")
if [ -z "$group" ]; then echo "the stand-in sets rules in a device cgroup of version 1 alone" >&2; exit 1; fi
uvm=$(sed -n 's/ nvidia-uvm$//p' /proc/devices)
for major in 195 $uvm; do echo "c $major:* rw" >"$group/devices.allow"; done
