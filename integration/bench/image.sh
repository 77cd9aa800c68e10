#!/usr/bin/env bash
# What `gpu-preflight image` costs, as ratios that are measured in one run side by side:
#
#   * an OCI layout beside `pigz -dc` of its largest layer to nowhere, and beside syft where that is on PATH
#   * one image as 1, 8, 32 and 127 layers, and as 10 thousand, 100 thousand and 1 million entries: time per entry
#   * a root file system in place beside `find`
#
#   integration/bench/image.sh [LAYOUT]
#
#   LAYOUT                  an OCI layout with a large gzip layer; without it one of 2 GB is made
#   GPU_PREFLIGHT_BIN=DIR   programs that packaging/build.sh has put there; else they are built first
#
# It is no test, as other work on the machine moves the figures. Needs python3, pigz, GNU time.
set -euo pipefail
export LC_ALL=C

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$(dirname "${BASH_SOURCE[0]}")/programs.sh"
program=$programs/gpu-preflight

# Layouts: WHAT is `big`, or `LAYERS ENTRIES` with so many small files in all.
make() { # OUT WHAT...
  python3 - "$@" <<'PYTHON'
import hashlib, io, json, os, random, subprocess, sys, tarfile
out, what = sys.argv[1], sys.argv[2:]
blobs = os.path.join(out, "blobs", "sha256")
os.makedirs(blobs)

def put(data):
    digest = hashlib.sha256(data).hexdigest()
    with open(os.path.join(blobs, digest), "wb") as file:
        file.write(data)
    return {"digest": "sha256:" + digest, "size": len(data)}

def moved(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for part in iter(lambda: file.read(1 << 20), b""):
            digest.update(part)
    size = os.path.getsize(path)
    os.replace(path, os.path.join(blobs, digest.hexdigest()))
    return {"digest": "sha256:" + digest.hexdigest(), "size": size}

def layer(write):
    path = os.path.join(blobs, "new")
    with open(path, "wb") as file:
        pigz = subprocess.Popen(["pigz", "-6", "-c"], stdin=subprocess.PIPE, stdout=file)
        with tarfile.open(fileobj=pigz.stdin, mode="w|", format=tarfile.GNU_FORMAT) as tar:
            write(tar)
        pigz.stdin.close()
        pigz.wait()
    return moved(path)

def add(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))

def big(tar):
    # as code is: half of it repeats
    chance = random.Random(1)
    words = [chance.randbytes(24) for _ in range(4096)]
    block = b"".join(chance.choice(words) + chance.randbytes(8) for _ in range(1 << 15))
    for number in range(64):
        data = block[number:] * 32
        add(tar, f"usr/lib/python3/dist-packages/torch/lib/lib{number}.so", b"\x7fELF" + data)

if what[0] == "big":
    layers = [layer(big)]
else:
    count, entries = int(what[0]), int(what[1])
    def small(start):
        def write(tar):
            for number in range(start, entries, count):
                add(tar, f"usr/lib/python3/dist-packages/package{number // 200}/module{number}.py", b"")
        return write
    layers = [layer(small(start)) for start in range(count)]
config = put(json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"diff_ids": []}}).encode())
manifest = put(json.dumps({"schemaVersion": 2, "config": config, "layers": layers}).encode())
with open(os.path.join(out, "index.json"), "w") as file:
    json.dump({"schemaVersion": 2, "manifests": [manifest]}, file)
with open(os.path.join(out, "oci-layout"), "w") as file:
    json.dump({"imageLayoutVersion": "1.0.0"}, file)
PYTHON
}

# The shortest of three runs in seconds, and the peak memory in kilobytes.
measure() { # COMMAND...
  for _ in 1 2 3; do
    /usr/bin/time -o "$work/time" -f '%e %M' "$@" >/dev/null 2>&1 || true
    tail -n 1 "$work/time"
  done | sort -n | head -n 1
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", (b > 0) ? a / b : 0 }'; }

layout=${1-}
if [ -z "$layout" ]; then
  layout=$work/big
  make "$layout" big
fi
largest=$(find -L "$layout/blobs" -type f -printf '%s %p\n' | sort -rn | head -n 1 | cut -d' ' -f2-)
read -r ours memory <<<"$(measure "$program" image "oci:$layout")"
read -r pigz _ <<<"$(measure pigz -dc "$largest")"
echo "layout, $(du -shL "$layout" | cut -f1): $ours s, $((memory / 1024)) MB; $(ratio "$ours" "$pigz") times pigz -dc of its largest layer ($pigz s; at most 0.8)"
if command -v syft >/dev/null; then
  read -r syft most <<<"$(measure syft -q "oci-dir:$layout" -o json)"
  echo "syft: $syft s, $((most / 1024)) MB: $(ratio "$syft" "$ours") times as long (at least 5), $(ratio "$most" "$memory") times as much memory (at least 10)"
fi

first=
for layers in 1 8 32 127; do
  make "$work/$layers" "$layers" 100000
  read -r took memory <<<"$(measure "$program" image "oci:$work/$layers")"
  first=${first:-$took}
  echo "100000 entries in $layers layers: $took s, $((memory / 1024)) MB; $(ratio "$took" "$first") times one layer"
done
first=
for entries in 10000 100000 1000000; do
  make "$work/e$entries" 1 "$entries"
  read -r took memory <<<"$(measure "$program" image "oci:$work/e$entries")"
  each=$(awk -v t="$took" -v n="$entries" 'BEGIN { printf "%.3f", t / n * 1e6 }')
  first=${first:-$each}
  echo "$entries entries: $took s, $((memory / 1024)) MB; $each us each, $(ratio "$each" "$first") times as of the fewest"
done

mkdir "$work/root"
tar -xzf "$work/e100000/blobs/sha256/"$(basename "$(find "$work/e100000/blobs" -type f -size +10k | head -n 1)") -C "$work/root"
read -r took memory <<<"$(measure "$program" image "rootfs:$work/root")"
read -r find _ <<<"$(measure find "$work/root")"
echo "in place, 100000 entries: $took s, $((memory / 1024)) MB; $(ratio "$took" "$find") times find ($find s; at most 3)"
