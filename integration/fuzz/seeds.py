#!/usr/bin/env python3
"""Inputs from which a fuzzer starts: small and whole, so that it need not find out the formats by itself.

usage: seeds.py TARGET DIR
"""
import gzip, io, json, struct, sys, tarfile, hashlib

target, out = sys.argv[1:]


def put(name, data):
    with open(f"{out}/seed-{name}", "wb") as file:
        file.write(data)


def elf():
    """A library with a fatbin of two entries in a section of its own, and libcudart among its needs."""
    entry = struct.pack("<HHIQIIHHIIIQQQ", 2, 0x101, 64, 8, 0, 0, 7, 1, 90, 0, 0, 0x11, 0, 0) + b"\0" * 8
    ptx = struct.pack("<HHIQIIHHIIIQQQ", 1, 0x101, 64, 8, 0, 0, 8, 7, 90, 0, 0, 0x11, 0, 0) + b"\0" * 8
    code = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entry + ptx)) + entry + ptx
    names = b"\0.nv_fatbin\0.shstrtab\0"
    strings = b"\0libcudart.so.12\0$ORIGIN/../lib\0"
    at = 64 + 2 * 56
    dynamic = struct.pack("<8Q", 1, 1, 29, 17, 5, at, 0, 0)
    places = [strings, dynamic, b"\0" * (-(at + len(strings + dynamic)) % 8), code, names]
    place = at + len(b"".join(places[:3]))
    body = b"".join(places)
    sections = at + len(body)
    head = b"\x7fELF\x02\x01\x01" + b"\0" * 9
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, sections, 0, 64, 56, 2, 64, 3, 2)
    load = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, sections, sections, 4096)
    table = struct.pack("<IIQQQQQQ", 2, 4, at + len(strings), at + len(strings), 0, len(dynamic), len(dynamic), 8)
    section = lambda name, kind, where, size: struct.pack("<IIQQQQIIQQ", name, kind, 2, 0, where, size, 0, 0, 8, 0)
    body += section(0, 0, 0, 0) + section(1, 1, place, len(code)) + section(12, 3, place + len(code), len(names))
    return head + load + table + body


def tar(files, how="w"):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=how, format=tarfile.PAX_FORMAT) as archive:
        for name, content in files:
            info = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                info.size, info.mode = len(content), 0o755
                archive.addfile(info, io.BytesIO(content))
            else:
                info.type, info.linkname = content
                archive.addfile(info)
    return data.getvalue()


TORCH = b"__version__ = '2.9.0+cu128'\ndebug = False\ncuda: Optional[str] = '12.8'\n"
FILES = [
    ("usr/lib/python3/dist-packages/torch/version.py", TORCH),
    ("usr/lib/python3/dist-packages/torch-2.9.0.dist-info/METADATA", b"Name: torch\nVersion: 2.9.0\n"),
    ("usr/lib/libcudart.so.12", elf()),
    ("lib", (tarfile.SYMTYPE, "usr/lib")),
    ("usr/lib/libhard.so", (tarfile.LNKTYPE, "usr/lib/libcudart.so.12")),
    ("usr/.wh.gone", b""),
    ("opt/.wh..wh..opq", b""),
    ("usr/" + "long/" * 60 + "libx.so", b"x"),
]


def docker(layer):
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Env": ["A=b"]},
                         "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}})
    manifest = [{"Config": "c.json", "RepoTags": ["x:latest"], "Layers": ["l.tar"]}]
    return tar([("l.tar", layer), ("c.json", config.encode()), ("manifest.json", json.dumps(manifest).encode())])


layer = tar(FILES)
if target == "archive":
    put("docker", docker(layer))
    put("packed", gzip.compress(docker(gzip.compress(layer))))
elif target == "layer":
    put("plain", layer)
    put("packed", gzip.compress(layer))
elif target == "program":
    put("elf", b"\x40" + elf())
elif target == "metadata":
    texts = [TORCH, b"build_info = collections.OrderedDict([('cuda_version', '12.5.1'), ('cudnn_version', '9')])\n",
             b"cuda_version = '11.8'\nwith_gpu = 'ON'\n", b"cuda_version = '12.8'\nversion = '1.20'\n",
             b'{"packaging": 1, "cuda": "12.x"}', b"Name: torch\nVersion: 2.9.0\nRequires-Dist: nvidia-cudnn-cu12==9\n",
             b'{"name": "pytorch", "version": "2.5.1", "build": "py3.12_cuda12.4_cudnn9_0", "depends": []}',
             b"Package: cuda-cudart-12-4\nStatus: install ok installed\nVersion: 12.4.127-1\n\n", b"SQLite format 3\0",
             b"include /etc/ld.so.conf.d/*.conf\n/usr/local/cuda/lib64\n", b"glibc-ld.so.cache1.1",
             b'{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}}', b"# R36 (release), REVISION: 4.0\n",
             b"#!/bin/sh\nexec conda run -n x python\n"]
    for number, text in enumerate(texts):
        put(f"{number}", bytes([number]) + text)
elif target == "configuration":
    put("config", json.dumps({"architecture": "amd64", "config": {
        "Env": ["NVIDIA_REQUIRE_CUDA=cuda>=12.4 brand=tesla,driver>=535,driver<536", "LD_LIBRARY_PATH=/a:/b"],
        "Labels": {"a": "b"}, "User": "1000", "Entrypoint": ["/x"], "Cmd": None, "WorkingDir": "/w",
        "Healthcheck": {"Test": ["CMD-SHELL", "nvidia-smi"]}}, "rootfs": {"diff_ids": ["sha256:00"]}}).encode())
