#!/bin/sh
# Slurm: a job that was given GPUs does not start on a node whose driver cannot run them.
#
# Goes to /etc/slurm/prolog.d/50-gpu-preflight.sh (root, 0755); slurm.conf: Prolog=/etc/slurm/prolog.d/*.sh
# A Prolog that fails drains the node and requeues the job, so this one fails for nothing but an error that is
# certain: a warning, something unknown, a time-out or an absent gpu-preflight pass.
gpu_preflight=/usr/bin/gpu-preflight
# slurmd gives its programs no search path.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/slurm/bin

[ -n "${SLURM_JOB_GPUS-}" ] && [ -x "$gpu_preflight" ] || exit 0

# How this machine's container engines are set up is not the node's health. And what the first CUDA program makes
# by itself (nvidia-modprobe is setuid root) stops no job that is no container.
ignored=$(timeout -k 1 5 "$gpu_preflight" checks |
  awk '/^[a-z]/ { stack = $1 == "stack" } stack && /^  [a-z]/ { printf "%s,", $1 }')
[ -n "$ignored" ] || exit 0
ignored=${ignored}uvm-module-not-loaded,uvm-node-missing,control-node-missing,device-nodes-not-created-yet

said=$(timeout -k 1 10 "$gpu_preflight" host --quiet --color never --ignore "$ignored" 2>/dev/null)
[ $? -eq 1 ] || exit 0
line=$(printf '%s\n' "$said" | sed -n '/^error /{s/^error /gpu-preflight: /p;q;}')
[ -n "$line" ] || exit 0

# For slurmd's log, and for `sinfo -R`, where Slurm's own reason would be "Prolog error".
printf '%s\n' "$line"
timeout -k 1 5 scontrol update nodename="${SLURMD_NODENAME:-$(hostname -s)}" state=drain reason="$line"
exit 1
