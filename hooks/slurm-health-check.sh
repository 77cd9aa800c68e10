#!/bin/sh
# Slurm: a node whose driver cannot run its GPUs takes no new jobs, before one of them finds out.
#
# slurm.conf: HealthCheckProgram=/usr/libexec/gpu-preflight/slurm-health-check.sh and HealthCheckInterval=300;
# or, where a health check is there already, a line in it. Running jobs run on. Who has repaired the node says
# `scontrol update nodename=NODE state=resume`: this only drains, and only for an error that is certain.
# It exits with 0 always: newer versions of slurmd do not register while this program fails.
gpu_preflight=/usr/bin/gpu-preflight
# slurmd gives its programs no search path.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/slurm/bin

[ -x "$gpu_preflight" ] || exit 0

# As in slurm-prolog.sh: neither the container engines, nor what the first CUDA program makes by itself.
ignored=$(timeout -k 1 5 "$gpu_preflight" checks |
  awk '/^[a-z]/ { stack = $1 == "stack" } stack && /^  [a-z]/ { printf "%s,", $1 }')
[ -n "$ignored" ] || exit 0
ignored=${ignored}uvm-module-not-loaded,uvm-node-missing,control-node-missing,device-nodes-not-created-yet

said=$(timeout -k 1 10 "$gpu_preflight" host --quiet --color never --ignore "$ignored" 2>/dev/null)
[ $? -eq 1 ] || exit 0
line=$(printf '%s\n' "$said" | sed -n '/^error /{s/^error /gpu-preflight: /p;q;}')
[ -n "$line" ] || exit 0

# A card that Slurm does not hand out is nobody's concern here, and a reason that somebody gave stays.
node=${SLURMD_NODENAME:-$(hostname -s)}
state=$(timeout -k 1 5 scontrol --oneliner show node "$node") || exit 0
field=${state##* State=}
case ${field%% *} in *DRAIN*) exit 0 ;; esac
field=${state##* Gres=}
case ${field%% *} in gpu*|*,gpu*) ;; *) exit 0 ;; esac
timeout -k 1 5 scontrol update nodename="$node" state=drain reason="$line"
exit 0
