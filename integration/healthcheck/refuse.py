"""Attaches a program to a cgroup of version 2 that refuses one device, as engines have one for the devices they allow.

Usage: refuse.py CGROUP MAJOR MINOR
"""

import ctypes
import os
import struct
import sys

BPF_PROG_LOAD, BPF_PROG_ATTACH, BPF_PROG_TYPE_CGROUP_DEVICE, BPF_CGROUP_DEVICE = 5, 8, 15, 6
SYSCALL = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attributes):
    buffer = ctypes.create_string_buffer(attributes, 144)
    result = libc.syscall(SYSCALL, command, buffer, len(buffer))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def step(code, to, offset, value, source=0):
    return struct.pack("<BBhi", code, source << 4 | to, offset, value)


group, major, minor = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY), int(sys.argv[2]), int(sys.argv[3])
program = b"".join([
    step(0x61, 2, 4, 0, source=1),  # r2 = the device's major
    step(0x61, 3, 8, 0, source=1),  # r3 = its minor
    step(0xB7, 0, 0, 1),  # r0 = allowed
    step(0x55, 2, 2, major),  # another major: end
    step(0x55, 3, 1, minor),  # another minor: end
    step(0xB7, 0, 0, 0),  # r0 = refused
    step(0x95, 0, 0, 0),
])
code, licence = ctypes.create_string_buffer(program, len(program)), ctypes.create_string_buffer(b"Apache-2.0")
loaded = bpf(BPF_PROG_LOAD, struct.pack("<IIQQ", BPF_PROG_TYPE_CGROUP_DEVICE, len(program) // 8,
                                        ctypes.addressof(code), ctypes.addressof(licence)))
bpf(BPF_PROG_ATTACH, struct.pack("<IIII", group, loaded, BPF_CGROUP_DEVICE, 0))
