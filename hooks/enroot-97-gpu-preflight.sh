#!/bin/sh
# enroot, and Slurm's pyxis: a container that asks for a GPU does not start where it cannot work.
#
# Goes to /etc/enroot/hooks.d/97-gpu-preflight.sh (0755), before 98-nvidia.sh, whose tool says less. It stops a start
# for nothing but an error of this machine that is certain.
gpu_preflight=/usr/bin/gpu-preflight

# As 98-nvidia.sh reads them: the user's environment before the container's, and the last line of that.
of_container() {
  sed -n "s/^$1=//p" "${ENROOT_ENVIRON:-/dev/null}" | tail -n 1
}
devices=${NVIDIA_VISIBLE_DEVICES-$(of_container NVIDIA_VISIBLE_DEVICES)}
capabilities=${NVIDIA_DRIVER_CAPABILITIES-$(of_container NVIDIA_DRIVER_CAPABILITIES)}

case $devices in '' | void | none) exit 0 ;; esac
[ "${GPU_PREFLIGHT-$(of_container GPU_PREFLIGHT)}" != off ] && [ -x "$gpu_preflight" ] || exit 0

# How this machine's other engines are set up is nothing to enroot. Without compute nobody needs nvidia-uvm.
ignored=$(timeout -k 1 5 "$gpu_preflight" checks |
  awk '/^[a-z]/ { stack = $1 == "stack" } stack && /^  [a-z]/ { printf "%s,", $1 }')
[ -n "$ignored" ] || exit 0
case ,$capabilities, in
  *,compute,* | *,all,*) ;;
  *) ignored=${ignored}uvm-module-not-loaded,uvm-node-missing, ;;
esac

# As root the tool that 98-nvidia.sh calls makes these.
said=$(timeout -k 1 10 "$gpu_preflight" host --quiet --color never \
  --ignore "${ignored}control-node-missing,device-nodes-not-created-yet" 2>/dev/null)
[ $? -eq 1 ] || exit 0
line=$(printf '%s\n' "$said" | sed -n '/^error /{s/^error /gpu-preflight: start refused /p;q;}')
[ -n "$line" ] || exit 0
# enroot shows what a hook prints on standard error, pyxis with it.
printf '%s To start anyway: export GPU_PREFLIGHT=off.\n' "$line" >&2
exit 1
