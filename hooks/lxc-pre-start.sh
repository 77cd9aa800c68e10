#!/bin/sh
# LXC: a container that must have a GPU does not start where the GPU cannot work, and one that may is warned of it.
#
# lxc.hook.pre-start = /usr/libexec/gpu-preflight/lxc-pre-start.sh
# in the container's configuration, or for all of them in a file below /usr/share/lxc/config/common.conf.d/.
gpu_preflight=/usr/bin/gpu-preflight

[ -r "${LXC_CONFIG_FILE-}" ] && [ -x "$gpu_preflight" ] || exit 0

# Its nodes come by mount entries, or by LXC's hook that calls nvidia-container-cli. An entry that says `optional`
# says that the container starts without.
given=$(grep -E '^[[:space:]]*lxc\.(mount\.entry *= */dev/nvidia|hook\.mount *=.*/hooks/nvidia)' "$LXC_CONFIG_FILE") ||
  exit 0

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
# LXC puts standard output into its own log, at level DEBUG.
printf 'gpu-preflight: start of %s %s %s\n' "${LXC_NAME-}" "$act" "$line"
logger -t gpu-preflight "start of ${LXC_NAME-} $act $line" 2>/dev/null
exit $code
