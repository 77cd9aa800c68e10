#!/usr/bin/env bash
# What `explain` costs on a log of 50 MB: time and memory, of noise with one telling line, and of nothing but telling
# lines. Under a second is wanted, and memory that does not grow with the log. No test, as other work on the machine
# moves it.
#
#   integration/bench/explain.sh PROGRAM
set -euo pipefail
export LC_ALL=C

program=${1:?usage: integration/bench/explain.sh PROGRAM}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

line='2026-11-03T10:00:00Z INFO worker 3 step 17 loss 0.3118 nvidia gpu memory of the run on host-7, cuda:0 busy'
telling='nvidia-container-cli: device error: 7: unknown device: unknown.'
{
  yes "$line" | head -c 50000000 || true
  printf '\n%s\n' "$telling"
} >"$work/noise"
{ yes "$telling" | head -c 50000000 || true; } >"$work/telling"

for log in noise telling; do
  /usr/bin/time -f "$log: %e s, of it %U s at work, %M kB" "$program" explain --quiet <"$work/$log" >"$work/said"
  grep -q visible-devices-index-out-of-range "$work/said"
done
