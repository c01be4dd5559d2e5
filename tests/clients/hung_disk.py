"""A disk that hangs: a file system that is mounted and answers nothing, as that of a server that is away.

    hung_disk.py DIRECTORY

Says "mounted", and "asked" when the first request waits for it. At the end of standard input it ends, and what waits fails.
Requests are left unread, because a process that waits for one that was read cannot even be killed.
"""

import ctypes
import os
import select
import struct
import sys

# From the kernel's `fuse.h`: the first request, which agrees on a version, and its answer.
FUSE_INIT = 26
HEAD = struct.Struct("<IIQ")
ANSWER = struct.Struct("<IiQ")
AGREED = struct.pack("<IIIIHHII8I", 7, 31, 65536, 0, 16, 12, 65536, 1, *[0] * 8)
MS_NOSUID, MS_NODEV, MNT_DETACH = 2, 4, 2


def main(directory):
    system = ctypes.CDLL(None, use_errno=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
    if system.mount(b"hung", directory.encode(), b"fuse", MS_NOSUID | MS_NODEV, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), "cannot mount (this needs root)")
    try:
        _, kind, number = HEAD.unpack_from(os.read(device, 1 << 17))
        assert kind == FUSE_INIT, kind
        os.write(device, ANSWER.pack(ANSWER.size + len(AGREED), 0, number) + AGREED)
        print("mounted", flush=True)
        ready, _, _ = select.select([device, sys.stdin], [], [])
        if device in ready:
            print("asked", flush=True)
            sys.stdin.read()
    finally:
        os.close(device)
        system.umount2(directory.encode(), MNT_DETACH)


if __name__ == "__main__":
    main(*sys.argv[1:])
