"""A server of SFTP on asyncssh that misbehaves as it is asked to. Prints its port and the fingerprint of its key (SHA-256,
and SHA-1 in hexadecimal) and the key itself, and then a line for each user who begins a login, and for each password.

Arguments: the folder, and any of `case=NAME` (see `Session`), `password=WORD` (canary-password), `questions=yes` (takes the
password as an answer only), `silent=yes` (never answers a password).
"""

import asyncio
import hashlib
import os
import stat
import struct
import sys
import time

import asyncssh

USER = "me"


class Server(asyncssh.SSHServer):
    def __init__(self, options, process):
        self.process = process
        self.password = options.get("password", "canary-password")
        self.questions = "questions" in options
        self.silent = "silent" in options

    def connection_made(self, conn):
        self.conn = conn

    def session_requested(self):
        return self.conn.create_server_channel(encoding=None), Process(self.process, None, 3, False)

    def begin_auth(self, username):
        print("user", flush=True)
        return True

    def public_key_auth_supported(self):
        return False

    def password_auth_supported(self):
        return not self.questions

    async def validate_password(self, username, password):
        print("login", flush=True)
        if self.silent:
            await asyncio.sleep(60)
        return username == USER and password == self.password

    def kbdint_auth_supported(self):
        return self.questions

    def get_kbdint_challenge(self, username, lang, submethods):
        return "", "", "", [("Password: ", False)]

    def validate_kbdint_response(self, username, responses):
        print("login", flush=True)
        return username == USER and list(responses) == [self.password]


def text(data):
    return struct.pack(">I", len(data)) + data


class End(Exception):
    """The connection ends here."""


class Session:
    """Requests of one client. `case` says what is done otherwise than it should be."""

    reads = 0

    def __init__(self, process, root, case):
        self.process, self.root, self.case = process, root, case
        self.handles, self.listed, self.next = {}, {}, 0
        self.closing = False

    async def run(self):
        try:
            await self.talk()
        except (End, asyncssh.Error, asyncio.IncompleteReadError, ConnectionError, BrokenPipeError):
            pass
        self.process.exit(0)

    async def packet(self):
        size = struct.unpack(">I", await self.process.stdin.readexactly(4))[0]
        return await self.process.stdin.readexactly(size)

    def raw(self, data):
        self.process.stdout.write(data)

    def send(self, kind, number, body):
        packet = bytes([kind]) + struct.pack(">I", number) + body
        self.raw(text(packet))

    def status(self, number, code, message=b"no"):
        self.send(101, number, struct.pack(">I", code) + text(message) + text(b"en"))

    def attributes(self, path, found=None):
        found = found or os.stat(path)
        size, mode, changed = found.st_size, found.st_mode, int(found.st_mtime)
        match self.case:
            case "size-too-large":
                size += 1000
            case "size-too-small":
                size -= 1000
            case "size-huge":
                size = (1 << 64) - 1
            case "no-size":
                return struct.pack(">III", 4 | 8, mode, changed) + struct.pack(">I", changed)
            case "is-a-device":
                mode = stat.S_IFCHR | 0o644
            case "no-mode":
                return struct.pack(">IQII", 1 | 8, size, changed, changed)
            case "changes-time":
                changed = int(time.time() * 1000) & 0x7FFFFFFF
            case "changes-once" if Session.reads > 3:
                changed += 5
            case "endless-attributes":
                return struct.pack(">II", 0x80000000, 0xFFFFFFFF)
        return struct.pack(">IQIII", 1 | 4 | 8, size, mode, changed, changed)

    async def talk(self):
        await self.packet()
        match self.case:
            case "packet-of-4-gib":
                return self.raw(b"\xff\xff\xff\xff" + b"x" * 100_000) or await asyncio.sleep(60)
            case "packet-of-300-kib":
                return self.raw(struct.pack(">I", 300 * 1024) + b"\x02" * 300 * 1024) or await asyncio.sleep(60)
            case "packet-of-nothing":
                return self.raw(bytes(4)) or await asyncio.sleep(60)
            case "silent-start":
                return await asyncio.sleep(60)
            case "old-version":
                return self.raw(text(bytes([2]) + struct.pack(">I", 2))) or await asyncio.sleep(60)
            case "text-before-packets":
                return self.raw(b"Welcome to this server!\r\n" * 50) or await asyncio.sleep(60)
            case "flood":
                while True:
                    self.raw(text(bytes([101]) + bytes(60_000)))
                    await self.process.stdout.drain()
        self.raw(text(bytes([2]) + struct.pack(">I", 3)))
        while True:
            packet = await self.packet()
            kind, number = struct.unpack(">BI", packet[:5])
            await self.answer(kind, number, packet[5:])
            await self.process.stdout.drain()

    def path(self, body):
        size = struct.unpack(">I", body[:4])[0]
        name = body[4:4 + size]
        return os.path.join(self.root, name.lstrip(b"/")), body[4 + size:]

    async def answer(self, kind, number, body):
        first, rest = self.path(body)
        if kind in (3, 11):
            if not os.path.exists(first):
                return self.status(number, 2, b"there is no canary-password")
            if kind == 11 and not os.path.isdir(first) or kind == 3 and os.path.isdir(first):
                return self.status(number, 4)
            if self.case == "huge-handle":
                return self.send(102, number, text(b"h" * 100_000))
            if self.case == "permission-denied":
                return self.status(number, 3)
            self.next += 1
            handle = b"%d" % self.next
            self.handles[handle] = first
            return self.send(102, number, text(handle))
        handle = first[len(os.path.join(self.root, b"")):]
        if kind == 4:
            return self.status(number, 0)
        if kind in (7, 17):
            if not os.path.lexists(first):
                return self.status(number, 2)
            return self.send(105, number, self.attributes(first, os.lstat(first) if kind == 7 else None))
        if kind == 8:
            return self.send(105, number, self.attributes(self.handles[handle]))
        if kind == 12:
            return self.names(number, handle)
        if kind != 5:
            return self.status(number, 8)
        offset, length = struct.unpack(">QI", rest)
        await self.read(number, self.handles[handle], offset, length)

    def names(self, number, handle):
        if self.case == "endless-names":
            file = struct.pack(">II", 4, stat.S_IFREG | 0o644)
            many = b"".join(text(b"f%d" % n) + text(b"") + file for n in range(1000))
            return self.send(104, number, struct.pack(">I", 1000) + many)
        if self.case == "empty-lists":
            return self.send(104, number, bytes(4))
        if self.case == "count-of-4-billion":
            return self.send(104, number, b"\xff\xff\xff\xff" + text(b"a"))
        if handle in self.listed:
            return self.status(number, 1)
        self.listed[handle] = True
        folder = self.handles[handle]
        names = [(name, os.lstat(os.path.join(folder, name))) for name in os.listdir(folder)]
        me = os.stat(folder)
        names += [(b".", me), (b"..", me)]
        if self.case == "names-that-lead-away":
            file = os.stat(os.path.join(folder, names[0][0]))
            names += [(name, file) for name in (b"../escaped", b"/escaped", b"a/../../escaped", b"a\0b", b"")]
            names += [(b"loop", me)] if b"loop" not in folder else []
        body = b"".join(text(name) + text(b"-") + self.attributes(None, found) for name, found in names)
        self.send(104, number, struct.pack(">I", len(names)) + body)

    async def read(self, number, path, offset, length):
        Session.reads += 1
        with open(path, "rb") as file:
            file.seek(offset)
            data = file.read(length)
        case, reads = self.case, Session.reads
        if not data and case != "more-than-size":
            return self.status(number, 1)
        match case:
            case "short-reads":
                data = data[:max(1, len(data) // 3)]
            case "reads-of-one-byte-once" if reads == 2:
                data = data[:1]
            case "empty-reads":
                data = b""
            case "longer-reads":
                data += b"x"
            case "wrong-number":
                return self.send(103, number + 77, text(data))
            case "answers-twice":
                self.send(103, number, text(data))
            case "early-end" if offset > 100_000:
                return self.status(number, 1)
            case "early-end-once" if reads == 3:
                return self.status(number, 1)
            case "breaks-off" if reads == 5:
                self.process.channel.abort()
                raise End
            case "stalls" if offset > 100_000:
                return await asyncio.sleep(60)
            case "read-fails" if offset > 100_000:
                return self.status(number, 4, b"disk \x1b[31mcanary")
            case "reply-of-another-kind":
                return self.send(102, number, text(b"1"))
            case "unknown-kind":
                return self.send(199, number, text(data))
            case "cut-packet":
                return self.send(103, number, struct.pack(">I", len(data) + 100) + data)
            case "more-than-size" if not data:
                data = b"x" * length
            case "out-of-order":
                if getattr(self, "held", None) is None and reads < 40:
                    self.held = (number, data)
                    asyncio.get_running_loop().call_later(0.05, self.release)
                    return
            case "shrinks" if reads == 4:
                os.truncate(path, offset // 2)
            case "grows" if reads % 5 == 4 and reads < 100:
                with open(path, "ab") as file:
                    file.write(b"more")
        self.send(103, number, text(data))

    def release(self):
        if self.held:
            number, data = self.held
            self.held = None
            self.send(103, number, text(data))


class Process(asyncssh.SSHServerProcess):
    """Gets the bytes of SFTP itself, in place of asyncssh's own server."""

    def subsystem_requested(self, subsystem):
        return subsystem == "sftp"

    def session_started(self):
        self._chan._subsystem = None
        super().session_started()


async def main():
    root = os.fsencode(sys.argv[1])
    options = dict(argument.split("=", 1) for argument in sys.argv[2:])
    key = asyncssh.generate_private_key("ssh-ed25519")

    async def process(process):
        await Session(process, root, options.get("case", "")).run()

    server = await asyncssh.listen(
        "127.0.0.1", 0, server_host_keys=[key], server_factory=lambda: Server(options, process),
        line_editor=False, login_timeout=30)
    public = key.export_public_key().decode().split()[:2]
    print(server.get_port(), key.get_fingerprint(), hashlib.sha1(key.public_data).hexdigest(), *public, flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
