# Read by the benches: lays two bundles with one root file system, as an image without frameworks has it, below `$work`:
# `plain`, a container without a GPU, and `gpus`, one with 8 GPUs by CDI. Their program does nothing.

libraries=usr/lib/$(uname -m)-linux-gnu
mkdir -p "$work/rootfs/"{dev,proc,sys,tmp,etc,"$libraries"} "$work/plain" "$work/gpus"
ln -s usr/lib "$work/rootfs/lib"
printf 'ID=debian\nVERSION_ID="12"\n' >"$work/rootfs/etc/os-release"
printf 'int main(void) { return 0; }\n' >"$work/app.c"
cc -static -Os -o "$work/rootfs/app" "$work/app.c"
cc -shared -nostdlib -Wl,-soname,libcuda.so.1 -o "$work/libcuda.so.1" -x c /dev/null

spec() { # ENV DEVICES RULES MOUNTS
  cat <<JSON
{"ociVersion": "1.0.2",
 "process": {"user": {"uid": 0, "gid": 0}, "args": ["/app"], "cwd": "/", "env": ["PATH=/usr/bin:/bin"$1],
  "capabilities": {"bounding": ["CAP_CHOWN", "CAP_DAC_OVERRIDE"], "effective": ["CAP_CHOWN", "CAP_DAC_OVERRIDE"],
   "permitted": ["CAP_CHOWN", "CAP_DAC_OVERRIDE"]}},
 "root": {"path": "$work/rootfs", "readonly": true},
 "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
  {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]}$4],
 "linux": {"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}, {"type": "network"}],
  "devices": [$2], "resources": {"devices": [{"allow": false, "access": "rwm"}$3]}}}
JSON
}

nodes=("nvidiactl 195 255" "nvidia-modeset 195 254" "nvidia-uvm 511 0" "nvidia-uvm-tools 511 1")
for n in {0..7}; do nodes+=("nvidia$n 195 $n"); done
devices='' rules=''
for node in "${nodes[@]}"; do
  read -r name major minor <<<"$node"
  devices+="${devices:+, }{\"path\": \"/dev/$name\", \"type\": \"c\", \"major\": $major, \"minor\": $minor, \"fileMode\": 438, \"uid\": 0, \"gid\": 0}"
  rules+=", {\"allow\": true, \"type\": \"c\", \"major\": $major, \"minor\": $minor, \"access\": \"rw\"}"
done
mounts=''
for name in libcuda.so.550.163.01 libcuda.so.1 libnvidia-ml.so.550.163.01 libnvidia-ml.so.1; do
  mounts+=", {\"destination\": \"/$libraries/$name\", \"source\": \"$work/libcuda.so.1\", \"options\": [\"ro\", \"nosuid\", \"nodev\", \"rbind\"]}"
done
spec '' '' '' '' >"$work/plain/config.json"
spec ', "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_VISIBLE_DEVICES=void"' "$devices" "$rules" "$mounts" >"$work/gpus/config.json"
