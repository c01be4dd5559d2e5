#!/usr/bin/env python3
"""Measures plugins in the running service: what many cost at its start, previews, a file joined of segments. See README.md."""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import functools
import http.server
import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import tools
from downloads import WORKSPACE, build_svc, say, temporary_folder
from hosts import KEY, PATIENCE_SECONDS, Service
from origin import MIB, Origin, Payload, is_same

PLUGINS = 50
ENTRIES = 10_000
CROWD = 50
# A site is asked 20 times at once and then 5 times a second; waiting for that is not of a preview's five seconds.
SAME_SITE = 50
SITE_TAKES_SECONDS = 0.1
SEGMENTS = Payload("segments", 256, 2 * MIB)
# Of what is not there yet; the figures are milliseconds.
LOOK_EVERY_SECONDS = 0.002


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--svc", type=Path, help="the program to measure (default: build it in release)")
    parser.add_argument("--data", type=Path, default=Path("/dev/shm"), help="where everything is kept meanwhile")
    parser.add_argument("--runs", type=int, default=5, help="rounds of everything; the median counts")
    parser.add_argument("--quick", action="store_true", help="one round: does it work?")
    arguments = parser.parse_args()
    runs = 1 if arguments.quick else arguments.runs
    svc = arguments.svc.resolve() if arguments.svc else build_svc()
    rows: list[tuple[str, str]] = []
    with contextlib.ExitStack() as stack:
        data = temporary_folder(stack, arguments.data)
        for measure in (start, preview, crowd, joined):
            say(f"{measure.__name__}:")
            for title, value in measure(svc, data, runs):
                say(f"  {title}: {value}")
                rows.append((title, value))
    print("\n".join(["| Measured | |", "|---|--:|", *(f"| {title} | {value} |" for title, value in rows)]))
    print("\n" + "\n".join(f"- {line}" for line in tools.versions(svc)))
    print(f"- load average {os.getloadavg()[0]:.1f}; medians of {runs} rounds")
    return 0


class PluginService(Service):
    """The service with its interface as far as plugins need it."""

    def ask(self, method: str, path: str, body: bytes | dict | None = None) -> object:
        kind = "application/zip" if isinstance(body, bytes) else "application/json"
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": kind}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/api/v1{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            return json.loads(answer.read() or b"null")

    def install(self, archive: bytes) -> None:
        """Installs a plugin and agrees to what it asks for."""
        installed = self.ask("POST", "/plugins/install", archive)
        agreed = {"enabled": True, "consent": installed["pendingConsent"]}
        self.ask("PUT", f"/plugins/{installed['identity']}/enabled", agreed)

    def wait_until_loaded(self, count: int) -> None:
        self.wait(lambda: sum(one["loadStatus"] == "Loaded" for one in self.ask("GET", "/plugins")) == count)

    def wait(self, is_so: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            if time.monotonic() > until:
                raise TimeoutError
            time.sleep(LOOK_EVERY_SECONDS)


@functools.cache
def packed(svc: Path, name: str) -> tuple[dict, bytes]:
    """The manifest and the component of a plugin of ours."""
    archive = WORKSPACE / "target" / f"bench-{name}.zip"
    archive.parent.mkdir(exist_ok=True)
    command = [svc, "plugin", "pack", "--no-test", "-o", archive, WORKSPACE / "plugins" / name]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with zipfile.ZipFile(archive) as read:
        manifest = json.loads(read.read("plugin.json"))
        return manifest, read.read(manifest["entry"])


def archive_of(svc: Path, name: str, author: str) -> bytes:
    """The same plugin by another author, to install it more than once."""
    manifest, component = packed(svc, name)
    manifest = {key: value for key, value in manifest.items() if key != "tests"}
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("plugin.json", json.dumps({**manifest, "identity": f"{name}@{author}"}))
        archive.writestr(manifest["entry"], component)
    return made.getvalue()


def milliseconds(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1000:.0f} ms"


def start(svc: Path, data: Path, runs: int) -> Iterator[tuple[str, str]]:
    """The start of the service with and without plugins, to its first answer and until all are loaded."""
    with PluginService(svc, data / "none") as none, PluginService(svc, data / "many") as many:
        for number in range(PLUGINS):
            many.install(archive_of(svc, "open-directory", f"author-{number}"))
        without, with_plugins, loaded = [], [], []
        for _ in range(runs):
            without.append(none.restart())
            with_plugins.append(many.restart())
            began = time.perf_counter()
            many.wait_until_loaded(PLUGINS)
            loaded.append(with_plugins[-1] + time.perf_counter() - began)
        yield "start to the first answer, no plugins", milliseconds(without)
        yield f"start to the first answer, {PLUGINS} plugins", milliseconds(with_plugins)
        yield f"start until {PLUGINS} plugins are loaded", milliseconds(loaded)
        # What runs plugins is there for the first one.
        none.install(archive_of(svc, "open-directory", "author"))
        none.restart()
        none.wait_until_loaded(1)
        with_one, with_many = (memory_kib(service.pids()[1]) for service in (none, many))
        resident, own = ((after - before) / (PLUGINS - 1) for before, after in zip(with_one, with_many, strict=True))
        title = f"memory of the daemon for each of {PLUGINS} idle plugins; that cannot be evicted"
        yield title, f"{resident:.0f}; {own:.0f} KiB"


def memory_kib(pid: int) -> tuple[int, int]:
    """What a process has in memory, and what of it is nowhere else, so that it has to stay."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    fields = {name: value for name, _, value in (line.partition(":") for line in text.splitlines())}
    return int(fields["Rss"].split()[0]), int(fields["Private_Dirty"].split()[0])


class Directory(http.server.BaseHTTPRequestHandler):
    """A directory as nginx shows it."""

    protocol_version = "HTTP/1.1"
    page = "<title>Index of /pub/</title><pre><a href=\"../\">../</a>\n" + "".join(
        f'<a href="file-{number}.zip">file-{number}.zip</a>   21-Nov-2026 06:34   {number}\n' for number in range(ENTRIES)
    )

    def do_GET(self) -> None:
        body = self.page.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def preview(svc: Path, data: Path, runs: int) -> Iterator[tuple[str, str]]:
    """A preview of a large directory through the service."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Directory) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with PluginService(svc, data / "preview") as service:
            service.install(archive_of(svc, "open-directory", "svc"))
            service.wait_until_loaded(1)
            times = []
            for _ in range(runs):
                began = time.perf_counter()
                url = f"http://127.0.0.1:{server.server_port}/pub/"
                answer = service.ask("POST", "/resolve/preview", {"url": url})
                times.append(time.perf_counter() - began)
                if len(answer["items"]) != ENTRIES:
                    raise RuntimeError(f"{len(answer['items'])} entries; {answer.get('error')}")
            yield f"preview of a directory of {ENTRIES:,} entries", milliseconds(times)
        server.shutdown()


class SlowDirectory(Directory):
    """A small one, on a site that takes its time."""

    page = "<title>Index of /pub/</title><pre><a href=\"a.zip\">a.zip</a>   21-Nov-2026 06:34   1\n"

    def do_GET(self) -> None:
        time.sleep(SITE_TAKES_SECONDS)
        super().do_GET()


class SlowSites(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = CROWD


def crowd(svc: Path, data: Path, runs: int) -> Iterator[tuple[str, str]]:
    """Previews at once: of one site, which the service asks at a polite rate, and of as many sites."""
    with SlowSites(("0.0.0.0", 0), SlowDirectory) as server, concurrent.futures.ThreadPoolExecutor(CROWD) as threads:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with PluginService(svc, data / "crowd") as service:
            service.install(archive_of(svc, "open-directory", "svc"))
            service.wait_until_loaded(1)

            def ask(host: int, folder: int) -> None:
                url = f"http://127.0.0.{host}:{server.server_port}/pub/{folder}/"
                answer = service.ask("POST", "/resolve/preview", {"url": url})
                if len(answer["items"]) != 1:
                    raise RuntimeError(f"{url} gives {answer}")

            def together(hosts: list[int]) -> float:
                began = time.perf_counter()
                list(threads.map(ask, hosts, range(len(hosts))))
                return time.perf_counter() - began

            # Connections are made in the first round only.
            times = [together(list(range(1, CROWD + 1))) for _ in range(2 * runs)][runs:]
            takes = f"that take{{}} {SITE_TAKES_SECONDS * 1000:.0f} ms"
            yield f"{CROWD} previews at once of {CROWD} sites {takes.format('')}", milliseconds(times)
            # A site of its own: what it may be asked at once has not been used up.
            once = together([CROWD + 1] * SAME_SITE)
            yield f"{SAME_SITE} previews at once of one site {takes.format('s')}, at the polite rate", milliseconds([once])
        server.shutdown()


def joined(svc: Path, data: Path, runs: int) -> Iterator[tuple[str, str]]:
    """A file of segments beside the same bytes in one piece, and beside curl, which fetches the segments one by one."""
    served, target = data / "served", data / "target"
    SEGMENTS.make(served)
    whole = served / "whole.bin"
    with whole.open("wb") as out:
        for name in SEGMENTS.names:
            out.write((served / SEGMENTS.folder / name).read_bytes())
    lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:4", *(f"#EXTINF:4,\n{SEGMENTS.folder}/{name}" for name in SEGMENTS.names)]
    (served / "film.m3u8").write_text("\n".join([*lines, "#EXT-X-ENDLIST", ""]), encoding="ascii")
    with Origin(data, served) as origin, PluginService(svc, data / "joined") as service:
        base = f"http://127.0.0.1:{origin.port}"
        service.install(archive_of(svc, "hls", "svc"))
        service.wait_until_loaded(1)
        curl = [*tools.CURL, *(f"{base}/{SEGMENTS.folder}/{name}" for name in SEGMENTS.names)]
        ours, piece, curls = [], [], []
        for _ in range(runs):
            made: list[Path] = []
            ours.append(timed(lambda: made.append(join(service, f"{base}/film.m3u8"))))
            if not is_same(made[0], whole):
                raise RuntimeError("the file is not what the segments make")
            made[0].unlink()
            target.mkdir()
            get = [svc, "get", "-d", target, f"{base}/whole.bin"]
            piece.append(timed(lambda: subprocess.run(get, check=True, capture_output=True)))
            with (target / "curl.bin").open("wb") as out:
                curls.append(timed(lambda: subprocess.run(curl, check=True, stdout=out)))
            shutil.rmtree(target)
    size = SEGMENTS.total_bytes // MIB
    yield f"{size} MiB joined of {SEGMENTS.count} segments, from the task to its end", milliseconds(ours)
    yield "… ÷ `svc get` of the same in one piece", ratio(ours, piece)
    yield "… ÷ curl, segment after segment", ratio(ours, curls)


def join(service: PluginService, url: str) -> Path:
    """Downloads what a playlist describes."""
    task = service.ask("POST", "/tasks", {"url": url})["taskId"]
    seen = {}

    def is_over() -> bool:
        seen.update(service.ask("GET", f"/tasks/{task}"))
        return seen["status"] in (3, 4)

    service.wait(is_over)
    if seen["status"] != 3:
        raise RuntimeError(f"it fails: {seen}")
    return Path(seen["saveDir"]) / seen["fileName"]


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def ratio(ours: list[float], theirs: list[float]) -> str:
    return f"{statistics.median(a / b for a, b in zip(ours, theirs, strict=True)):.2f}"


if __name__ == "__main__":
    sys.exit(main())
