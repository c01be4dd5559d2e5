"""The programs of a swarm on loopback: seeders of libtorrent, opentracker, and the downloaders that are compared."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from pathlib import Path

import measure
from hosts import KEY, Connection, Service, cpu_seconds
from origin import MIB, free_port

CLIENTS = Path(__file__).resolve().parent.parent / "clients"
PATIENCE_SECONDS = 300
# How often a host is asked whether it is done: of the wall time, that much is doubt.
LOOK_EVERY_SECONDS = 0.01
SEEDING, COMPLETED, FAILED = 1, 3, 4


def wait_until(is_so, what: str, every_seconds: float = LOOK_EVERY_SECONDS) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > until:
            raise measure.RunFailed(f"not within {PATIENCE_SECONDS} s: {what}")
        time.sleep(every_seconds)


def peak_mib(pid: int) -> float:
    """The most resident memory that a process has had."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+)", status).group(1)) / 1024


# Over uTP, which it tries first, libtorrent moves a few MiB per second on the loopback.
TCP_ONLY = {"enable_outgoing_utp": False, "enable_incoming_utp": False}


class Libtorrent:
    """A process with a session of libtorrent, in Python."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [CLIENTS / "python", CLIENTS / "torrent_peer.py", json.dumps(TCP_ONLY)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Libtorrent:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def ask(self, do: str, **arguments: object) -> dict:
        self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise measure.RunFailed("libtorrent ended")
        return json.loads(line)

    def make(self, path: Path, torrent: Path, piece_bytes: int, trackers: list[str]) -> None:
        self.ask("make", path=str(path), torrent=str(torrent), piece=piece_bytes, trackers=trackers)

    def seed(self, torrent: Path, folder: Path, trackers: list[str]) -> int:
        return self.ask("add", torrent=str(torrent), directory=str(folder), seed=True, trackers=trackers)["port"]

    def connect(self, ports: list[int]) -> None:
        self.ask("connect", peers=[["127.0.0.1", port] for port in ports])


class Opentracker:
    """A tracker. Debian's serves the torrents of a list only, which it reads as another user."""

    def __init__(self, folder: Path, info_hash: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/announce"
        self.folder = folder
        folder.mkdir(mode=0o755)
        folder.parent.chmod(0o755)
        (folder / "list").write_text(f"{info_hash}\n")

    def __enter__(self) -> Opentracker:
        command = ["opentracker", "-i", "127.0.0.1", "-p", str(self.port), "-P", str(self.port), "-w", self.folder / "list"]
        self.process = subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        wait_until(lambda: is_listening(self.port), "opentracker listens")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def is_listening(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


class Swarm:
    """Seeders of one torrent and their tracker."""

    def __init__(self, data: Path, torrent: Path, seeders: list[Libtorrent], ports: list[int]) -> None:
        self.data, self.torrent, self.seeders, self.ports = data, torrent, seeders, ports

    def connect_to(self, port: int) -> None:
        for seeder in self.seeders:
            seeder.connect([port])


class Downloader(ABC):
    """A program that downloads torrents, with all its state in a folder of its own."""

    name: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = folder / "files"
        self.files.mkdir(parents=True)

    @abstractmethod
    def download(self, swarm: Swarm) -> measure.Cost: ...


class Running(Downloader):
    """One that runs already and is asked to download: what it costs is what the download adds, and its peak memory."""

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def pids(self) -> list[int]: ...

    @abstractmethod
    def add(self, swarm: Swarm) -> None: ...

    @abstractmethod
    def is_complete(self) -> bool: ...

    def download(self, swarm: Swarm) -> measure.Cost:
        self.start()
        try:
            before = sum(map(cpu_seconds, self.pids()))
            began = time.perf_counter()
            self.add(swarm)
            wait_until(self.is_complete, f"{self.name} has everything")
            wall = time.perf_counter() - began
            cpu = sum(map(cpu_seconds, self.pids())) - before
            return measure.Cost(wall, cpu, round(sum(map(peak_mib, self.pids())) * MIB))
        finally:
            self.stop()


class Svc(Running):
    """The service: agent and daemon."""

    name = "svc"

    def __init__(self, program: Path, folder: Path) -> None:
        super().__init__(folder)
        self.service = Service(program, folder / "service")

    def start(self) -> None:
        self.service.start()
        self.connection = Connection(self.service.port)
        port = free_port()
        quiet = {
            "bt_enable_dht": "false", "bt_enable_lsd": "false", "bt_enable_upnp": "false",
            "bt_tracker_sub_enabled": "false", "bt_port_start": str(port), "bt_port_end": str(port),
        }  # fmt: skip
        with self.service.rest.connect_batch() as rpc:
            rpc.call("daemon.config.patch", expectedRevision=0, values=quiet)

    def stop(self) -> None:
        self.connection.socket.close()
        self.service.stop()

    def close(self) -> None:
        self.stop()

    def pids(self) -> list[int]:
        return self.service.pids()

    def ask(self, line: str, body: object = None) -> object:
        sent = json.dumps(body).encode() if body is not None else b""
        head = self.service.rest.head(line) + ("Content-Type: application/json\r\n" if sent else "")
        return json.loads(self.connection.ask(head, sent))

    def create(self, torrent: Path, folder: Path, **more: object) -> str:
        content = base64.b64encode(torrent.read_bytes()).decode()
        request = {"url": "", "torrentB64": content, "saveDir": str(folder), **more}
        return self.ask("POST /api/v1/tasks", request)["taskId"]

    def add(self, swarm: Swarm) -> None:
        self.task = self.create(swarm.torrent, self.files)

    def is_complete(self) -> bool:
        task = self.ask(f"GET /api/v1/tasks/{self.task}")
        if task["status"] == FAILED:
            raise measure.RunFailed(task["errorMessage"])
        return task["status"] == COMPLETED

    def add_seeding(self, torrents: list[Path], folder: Path) -> None:
        self.tasks = [self.create(torrent, folder, checkIntegrity=True) for torrent in torrents]

    def seeding(self) -> int:
        tasks, offset = [], 0
        while page := self.ask(f"GET /api/v1/tasks?limit=1000&offset={offset}"):
            tasks += page
            offset += len(page)
            if len(page) < 1000:
                break
        return sum(task["seedingStatus"] == SEEDING for task in tasks)

    def restart(self) -> None:
        self.connection.socket.close()
        self.service.stop()
        self.service.start()
        self.connection = Connection(self.service.port)


class Transmission(Running):
    """transmission-daemon. It connects to no peer of the loopback by itself: the seeders connect to it."""

    name = "transmission"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.rpc, self.peer, self.session = free_port(), free_port(), ""

    def start(self) -> None:
        settings = {
            "bind-address-ipv4": "127.0.0.1", "peer-port": self.peer, "peer-port-random-on-start": False,
            "rpc-bind-address": "127.0.0.1", "rpc-port": self.rpc, "rpc-whitelist-enabled": False,
            "dht-enabled": False, "lpd-enabled": False, "utp-enabled": False, "port-forwarding-enabled": False,
            "download-dir": str(self.files), "ratio-limit-enabled": False,
        }  # fmt: skip
        (self.folder / "settings.json").write_text(json.dumps(settings))
        self.process = subprocess.Popen(
            ["transmission-daemon", "--foreground", "--config-dir", self.folder],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        wait_until(lambda: is_listening(self.rpc), "transmission answers")

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.stop()

    def pids(self) -> list[int]:
        return [self.process.pid]

    def ask(self, method: str, **arguments: object) -> dict:
        body = json.dumps({"method": method, "arguments": arguments}).encode()
        while True:
            headers = {"X-Transmission-Session-Id": self.session}
            request = urllib.request.Request(f"http://127.0.0.1:{self.rpc}/transmission/rpc", body, headers)
            try:
                with urllib.request.urlopen(request) as answer:
                    return json.load(answer)["arguments"]
            except urllib.error.HTTPError as error:
                # It wants a number of its own back, against requests of web pages.
                if error.code != 409:
                    raise
                self.session = error.headers["X-Transmission-Session-Id"]

    def create(self, torrent: Path, folder: Path) -> None:
        metainfo = base64.b64encode(torrent.read_bytes()).decode()
        added = self.ask("torrent-add", **{"metainfo": metainfo, "download-dir": str(folder)})
        if "torrent-added" not in added:
            raise measure.RunFailed(f"transmission: {added}")

    def add(self, swarm: Swarm) -> None:
        self.create(swarm.torrent, self.files)
        swarm.connect_to(self.peer)

    def is_complete(self) -> bool:
        return self.ask("torrent-get", fields=["percentDone"])["torrents"][0]["percentDone"] == 1

    def add_seeding(self, torrents: list[Path], folder: Path) -> None:
        for torrent in torrents:
            self.create(torrent, folder)

    def seeding(self) -> int:
        torrents = self.ask("torrent-get", fields=["status"])["torrents"]
        return sum(torrent["status"] == 6 for torrent in torrents)

    def restart(self) -> None:
        self.process.terminate()
        self.process.wait()
        self.start()


class LibtorrentDownloader(Running):
    """libtorrent, in Python: its peak memory has the interpreter in it."""

    name = "libtorrent"

    def start(self) -> None:
        self.client = Libtorrent()
        # It answers once it is up.
        self.client.ask("make", path=__file__, torrent=str(self.folder / "none.torrent"))

    def stop(self) -> None:
        # It writes behind: what it has verified is in the file once its session has ended.
        self.client.process.stdin.close()
        self.client.process.wait()

    def pids(self) -> list[int]:
        return [self.client.process.pid]

    def add(self, swarm: Swarm) -> None:
        peers = [["127.0.0.1", port] for port in swarm.ports]
        self.client.ask("add", torrent=str(swarm.torrent), directory=str(self.files), peers=peers)

    def is_complete(self) -> bool:
        return self.client.ask("state")["seeding"]


class Command(Downloader):
    """A program that ends when it has everything. It takes peers from the tracker."""

    def __init__(self, folder: Path, meter: Path) -> None:
        super().__init__(folder)
        self.meter = meter

    @abstractmethod
    def command(self, swarm: Swarm) -> list[str | Path]: ...

    def download(self, swarm: Swarm) -> measure.Cost:
        home = self.folder / "home"
        home.mkdir()
        return measure.run(self.meter, [], self.command(swarm), home)


class SvcGet(Command):
    """A download without the service."""

    name = "svc get"

    def __init__(self, program: Path, folder: Path, meter: Path) -> None:
        super().__init__(folder, meter)
        self.program = program

    def command(self, swarm: Swarm) -> list[str | Path]:
        return [self.program, "get", "--quiet", "--trackers-only", "--dir", self.files, swarm.torrent]


class Aria2c(Command):
    name = "aria2c"

    def command(self, swarm: Swarm) -> list[str | Path]:
        return [
            "aria2c", "--no-conf", "--quiet", "--seed-time=0", "--enable-dht=false", "--bt-enable-lpd=false",
            "--file-allocation=none", f"--listen-port={free_port()}", "--dir", self.files, swarm.torrent,
        ]  # fmt: skip


def check(swarm: Swarm, downloader: Downloader) -> None:
    """Fails unless what was downloaded is what is seeded, and nothing else is there."""
    expected = {path.name for path in swarm.data.iterdir()}
    found = {entry.name for entry in os.scandir(downloader.files)}
    if expected != found:
        raise measure.RunFailed(f"{downloader.name} left {sorted(found)}")
    for name in expected:
        done = subprocess.run(["cmp", "-s", swarm.data / name, downloader.files / name], check=False)
        if done.returncode != 0:
            raise measure.RunFailed(f"{downloader.name}: {name} is not what is seeded")


def cleared(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
