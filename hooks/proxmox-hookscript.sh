#!/bin/sh
# Proxmox VE: a container (pct) that must have a GPU does not start where the GPU cannot work, and one that may is
# warned of it. Virtual machines (qm) bring their own driver: the host's is not theirs, and nothing is looked at.
#
# Goes to /var/lib/vz/snippets/gpu-preflight.sh (0755), a storage with content type "snippets"; then
#   pct set ID --hookscript local:snippets/gpu-preflight.sh
gpu_preflight=/usr/bin/gpu-preflight
containers=/etc/pve/lxc

[ "${2-}" = pre-start ] && [ -r "$containers/$1.conf" ] && [ -x "$gpu_preflight" ] || exit 0

# Behind the first section are the snapshots. An entry that says `optional` says that the container starts without.
given=$(sed '/^\[/,$d' "$containers/$1.conf" |
  grep -E '^(dev[0-9]+:.*/dev/nvidia|lxc\.mount\.entry:[[:space:]]*/dev/nvidia)') || exit 0

# Neither how this machine's container engines are set up, nor, as the container has its own, the driver's libraries;
# and nvidia-uvm only where the container has it.
ignored=$(timeout -k 1 5 "$gpu_preflight" checks |
  awk '/^[a-z]/ { stack = $1 == "stack" } stack && /^  [a-z]/ { printf "%s,", $1 }')
[ -n "$ignored" ] || exit 0
ignored=${ignored}driver-library-missing,driver-library-mismatch
case $given in *nvidia-uvm*) ;; *) ignored=$ignored,uvm-module-not-loaded,uvm-node-missing ;; esac

said=$(timeout -k 1 10 "$gpu_preflight" host --quiet --color never --ignore "$ignored" 2>/dev/null)
[ $? -eq 1 ] || exit 0
line=$(printf '%s\n' "$said" | sed -n '/^error /{s/^error //p;q;}')
[ -n "$line" ] || exit 0

act=refused code=1
if ! printf '%s\n' "$given" | grep -qv '[[:space:],]optional'; then act=goes-on code=0; fi
# Both are in the task's log, which the web interface shows.
printf 'gpu-preflight: start of %s %s %s\n' "$1" "$act" "$line" >&2
exit $code
