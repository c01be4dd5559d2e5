"""The hosts that `service.py` measures: how each is started, spoken to and looked at."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path

from origin import free_port

KEY = "benchmark-key-1"
# How long a start or an end may take.
PATIENCE_SECONDS = 60
# A source that is never asked: all tasks wait.
SOURCE = "http://127.0.0.1:9/path/to/a/file-{}.bin"
RPC_VERSION = 1


def rss_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024


def share_mib(pid: int) -> float:
    """Resident memory, where a page that several processes have counts for each in part."""
    told = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return int(re.search(r"^Pss:\s+(\d+)", told, re.MULTILINE).group(1)) / 1024


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def written_bytes(pid: int) -> int:
    told = Path(f"/proc/{pid}/io").read_text(encoding="ascii")
    return int(re.search(r"^write_bytes: (\d+)", told, re.MULTILINE).group(1))


class Connection:
    """A kept-alive HTTP connection that costs its user little."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def more(self) -> None:
        received = self.socket.recv(1 << 20)
        if not received:
            raise ConnectionError("the server closed the connection")
        self.rest += received

    def ask(self, head: str, body: bytes = b"") -> bytes:
        """Sends a request and gives the body of its answer, which must be a good one."""
        self.socket.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        while (end := self.rest.find(b"\r\n\r\n")) < 0:
            self.more()
        answer_head, self.rest = self.rest[:end].lower(), self.rest[end + 4 :]
        if not answer_head.split(b" ", 2)[1].startswith(b"2"):
            raise ConnectionError(answer_head.decode())
        length = re.search(rb"content-length: (\d+)", answer_head)
        return self.exactly(int(length.group(1))) if length else self.chunks()

    def exactly(self, length: int) -> bytes:
        parts, have = [self.rest], len(self.rest)
        while have < length:
            received = self.socket.recv(1 << 20)
            if not received:
                raise ConnectionError("the server closed the connection")
            parts.append(received)
            have += len(received)
        whole = b"".join(parts)
        self.rest = whole[length:]
        return whole[:length]

    def chunks(self) -> bytes:
        parts = []
        while True:
            while (end := self.rest.find(b"\r\n")) < 0:
                self.more()
            length = int(self.rest[:end], 16)
            self.rest = self.rest[end + 2 :]
            parts.append(self.exactly(length + 2)[:-2])
            if length == 0:
                return b"".join(parts)


class WebSocket(Connection):
    """A connection that is a WebSocket from its first answer on."""

    def __init__(self, port: int, path: str, header: str = "") -> None:
        super().__init__(port)
        nonce = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {nonce}\r\nSec-WebSocket-Version: 13\r\n{header}\r\n".encode()
        )
        while (end := self.rest.find(b"\r\n\r\n")) < 0:
            self.more()
        if b" 101 " not in self.rest[:end]:
            raise ConnectionError(self.rest[:end].decode())
        self.rest = self.rest[end + 4 :]

    def send(self, text: bytes) -> None:
        length = len(text)
        if length < 126:
            size = struct.pack(">B", 128 | length)
        elif length < 1 << 16:
            size = struct.pack(">BH", 128 | 126, length)
        else:
            size = struct.pack(">BQ", 128 | 127, length)
        # A mask of zeroes leaves the text as it is.
        self.socket.sendall(b"\x81" + size + bytes(4) + text)

    def frame(self) -> bytes:
        """The next text; nothing for a ping."""
        first, second = self.exactly(2)
        length = second & 127
        if length == 126:
            length = struct.unpack(">H", self.exactly(2))[0]
        elif length == 127:
            length = struct.unpack(">Q", self.exactly(8))[0]
        body = self.exactly(length)
        if first & 15 == 8:
            raise ConnectionError(f"the server closed the WebSocket: {closing(body)}")
        return body if first & 15 == 1 else b""


def closing(body: bytes) -> str:
    """What a close frame says."""
    return f"{int.from_bytes(body[:2])} {body[2:].decode(errors='replace')}".strip() if len(body) >= 2 else "no reason given"


class Aria2Socket(WebSocket):
    """A WebSocket of aria2's JSON-RPC that sent the key with its first call, as front ends do."""

    def __init__(self, rpc: JsonRpc) -> None:
        super().__init__(rpc.port, "/jsonrpc")
        self.send(json.dumps(rpc.call("getVersion")).encode())
        answer = b""
        while not answer:
            answer = self.frame()
        if b'"result"' not in answer:
            raise ConnectionError(f"the key is not accepted: {answer[:400].decode()}")


class RpcSocket(WebSocket):
    """The service's `/rpc`, as much of it as a batch needs."""

    def __init__(self, port: int) -> None:
        super().__init__(port, "/rpc", f"Authorization: Bearer {KEY}\r\n")
        self.call(
            "system.hello",
            clientName="bench",
            clientVersion="0",
            minProtocolVersion=RPC_VERSION,
            maxProtocolVersion=RPC_VERSION,
            requestedRole="agent",
        )

    def call(self, method: str, **params: object) -> None:
        """Calls and waits for the reply; events before it are passed over."""
        self.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())
        while True:
            frame = self.frame()
            if b'"id":1' in frame[:64] or b'"id":1' in frame[-64:]:
                if b'"error"' in frame[:200]:
                    raise ConnectionError(frame[:400].decode())
                return


class Interface(ABC):
    """How a host is asked to create and read tasks over HTTP."""

    def __init__(self, port: int, folder: Path) -> None:
        self.port = port
        self.folder = folder
        self.an_id = ""

    @abstractmethod
    def create_request(self, index: object = "x") -> tuple[str, bytes]:
        """The head and body of a request that creates a task."""

    @abstractmethod
    def create_batch(self, connection: Connection, count: int) -> None: ...

    @abstractmethod
    def request(self, kind: str) -> tuple[str, bytes]:
        """The head and body of a request that reads `one` task, a `page`, `all`, or the `smallest` thing."""

    def create(self, connection: Connection, index: int) -> None:
        connection.ask(*self.create_request(index))

    def read(self, connection: Connection, kind: str) -> bytes:
        return connection.ask(*self.request(kind))

    def connect(self) -> Connection:
        return Connection(self.port)

    def connect_batch(self) -> Connection:
        return self.connect()

    def load(self, kind: str, seconds: int, connections: int) -> float:
        return self.wrk(*self.request(kind), seconds, connections)

    def load_create(self, seconds: int, connections: int) -> float:
        return self.wrk(*self.create_request(), seconds, connections)

    def wrk(self, head: str, body: bytes, seconds: int, connections: int) -> float:
        """Requests a second over several connections."""
        lines = head.strip().split("\r\n")
        method, path, _ = lines[0].split(" ")
        script = self.folder / "load.lua"
        headers = "".join(
            f"wrk.headers[{json.dumps(name)}]={json.dumps(value)}\n"
            for name, value in (line.split(": ", 1) for line in lines[1:])
        )
        script.write_text(f"wrk.method={json.dumps(method)}\nwrk.body={json.dumps(body.decode())}\n{headers}", encoding="utf-8")
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", script, f"http://127.0.0.1:{self.port}{path}"]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        if "Non-2xx" in told:
            raise ConnectionError(told)
        return float(re.search(r"Requests/sec:\s+([\d.]+)", told).group(1))


class JsonRpc(Interface):
    """aria2's JSON-RPC, with the same bytes for every host: aria2c without a secret passes over the key."""

    def head(self) -> str:
        return f"POST /jsonrpc HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"

    def call(self, method: str, *params: object) -> dict[str, object]:
        return {"jsonrpc": "2.0", "id": 1, "method": f"aria2.{method}", "params": [f"token:{KEY}", *params]}

    def add(self, index: object) -> dict[str, object]:
        return self.call("addUri", [SOURCE.format(index)], {"pause": "true"})

    def create_request(self, index: object = "x") -> tuple[str, bytes]:
        return self.head(), json.dumps(self.add(index)).encode()

    def create_saved(self, connection: Connection, index: int) -> None:
        """Afterwards aria2c has written and synced its session file as well."""
        check_gids(answer["result"] for answer in self.ask(connection, [self.add(index), self.call("saveSession")]))

    def create_batch(self, connection: Connection, count: int) -> None:
        answers = self.ask(connection, [self.add(index) for index in range(count)])
        check_gids(answer["result"] for answer in answers)

    def create_multicall(self, connection: Connection, count: int) -> None:
        adds = map(self.add, range(count))
        calls = [{"methodName": add["method"], "params": add["params"]} for add in adds]
        answer = self.ask(connection, {"jsonrpc": "2.0", "id": 1, "method": "system.multicall", "params": [calls]})
        check_gids(gid for [gid] in answer["result"])

    def ask(self, connection: Connection, message: object) -> object:
        return json.loads(connection.ask(self.head(), json.dumps(message).encode()))

    def request(self, kind: str) -> tuple[str, bytes]:
        if kind == "one" and not self.an_id:
            with self.connect() as connection:
                self.an_id = json.loads(self.read(connection, "page"))["result"][0]["gid"]
        call = {
            "one": lambda: self.call("tellStatus", self.an_id),
            "page": lambda: self.call("tellWaiting", 0, 100),
            "all": lambda: self.call("tellWaiting", 0, 1_000_000),
            "smallest": lambda: self.call("getVersion"),
        }[kind]()
        return self.head(), json.dumps(call).encode()


def check_gids(gids: Iterable[object]) -> None:
    """Measures no refusals."""
    wrong = [gid for gid in gids if not isinstance(gid, str)]
    if wrong:
        raise ConnectionError(f"not created: {wrong[0]}")


class Rest(Interface):
    """The service's own interfaces: REST, and `/rpc` for batches."""

    def head(self, line: str) -> str:
        return f"{line} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {KEY}\r\n"

    def task(self, index: object) -> dict[str, object]:
        return {"url": SOURCE.format(index), "startPaused": True}

    def create_request(self, index: object = "x") -> tuple[str, bytes]:
        return self.head("POST /api/v1/tasks"), json.dumps(self.task(index)).encode()

    def connect_batch(self) -> Connection:
        return RpcSocket(self.port)

    def create_batch(self, connection: Connection, count: int) -> None:
        connection.call("daemon.task.createMany", requests=[self.task(index) for index in range(count)])

    def request(self, kind: str) -> tuple[str, bytes]:
        if kind == "one" and not self.an_id:
            with self.connect() as connection:
                self.an_id = json.loads(self.read(connection, "page"))[0]["taskId"]
        path = {
            "one": f"/api/v1/tasks/{self.an_id}",
            "page": "/api/v1/tasks?limit=100",
            "all": "/api/v1/tasks",
            "smallest": "/api/v1/queues",
        }[kind]
        return self.head(f"GET {path}"), b""


class Host(ABC):
    """A host that runs, with its state in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.port = free_port()
        self.json_rpc = JsonRpc(self.port, folder)
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @abstractmethod
    def command(self) -> list[str]: ...

    @abstractmethod
    def pids(self) -> list[int]: ...

    def connect(self) -> Connection:
        return self.json_rpc.connect()

    def start(self) -> None:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "SVC_TOKEN": KEY, "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen(
            self.command(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment, cwd=self.folder
        )
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            with contextlib.suppress(OSError, ConnectionError), self.connect() as connection:
                if b'"result"' in self.json_rpc.read(connection, "page"):
                    return
            if time.monotonic() > until or self.process.poll() is not None:
                raise RuntimeError(f"{self.command()[0]} did not start")
            time.sleep(0.001)

    def stop(self) -> None:
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(PATIENCE_SECONDS)
            self.process = None

    def restart(self) -> float:
        """Ends it in order and starts it; the seconds until a read is answered."""
        self.stop()
        began = time.perf_counter()
        self.start()
        return time.perf_counter() - began

    def rss(self) -> float:
        return sum(map(rss_mib, self.pids()))

    def share(self) -> float:
        return sum(map(share_mib, self.pids()))


class Service(Host):
    """`svc serve` and its daemon."""

    def __init__(self, program: Path, folder: Path) -> None:
        super().__init__(folder)
        self.rest = Rest(self.port, folder)
        self.program = program

    def command(self) -> list[str]:
        folder = str(self.folder)
        return [
            str(self.program), "serve", "--bind", f"127.0.0.1:{self.port}",
            "--data-dir", f"{folder}/data", "--save-dir", f"{folder}/files",
        ]  # fmt: skip

    def pids(self) -> list[int]:
        daemon = json.loads((self.folder / "data" / "daemon.json").read_text(encoding="utf-8"))
        return [self.process.pid, daemon["pid"]]


class Aria2(Host):
    """aria2c with its RPC. It keeps its tasks in memory, and in a session file when it ends."""

    def command(self) -> list[str]:
        session = self.folder / "session"
        session.touch()
        return [
            "aria2c", "--no-conf", "--enable-rpc", f"--rpc-listen-port={self.port}", "--quiet",
            "--rpc-max-request-size=64M", f"--save-session={session}", f"--input-file={session}",
            f"--dir={self.folder}/files",
        ]  # fmt: skip

    def pids(self) -> list[int]:
        return [self.process.pid]
