#!/usr/bin/env python3
"""Measures the market in the running service: news of a large source, and what installing costs besides compiling. See
README.md."""

from __future__ import annotations

import argparse
import base64
import contextlib
import http.server
import json
import os
import statistics
import subprocess
import sys
import threading
import urllib.parse
import zipfile
from collections.abc import Iterator
from pathlib import Path

import tools
from downloads import WORKSPACE, build_svc, say, temporary_folder
from hosts import cpu_seconds
from origin import MIB
from plugins import PluginService, milliseconds, timed

# The package has this size; what it does fits into a few lines.
PACKAGE_BYTES = 200 * 1024
SCRIPT = "export async function resolve(call, out) { out.title('NAME'); out.add('one', 'one.bin'); }\n"
FIXTURE = {
    "name": "one file",
    "call": "resolve",
    "input": {"url": "https://one.test/x"},
    "expect": {"entries": [{"name": "one.bin"}]},
}


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
        for measure in (news, installs):
            say(f"{measure.__name__}:")
            for title, value in measure(svc, data, runs):
                say(f"  {title}: {value}")
                rows.append((title, value))
    print("\n".join(["| Measured | |", "|---|--:|", *(f"| {title} | {value} |" for title, value in rows)]))
    print("\n" + "\n".join(f"- {line}" for line in tools.versions(svc)))
    print(f"- load average {os.getloadavg()[0]:.1f}; medians of {runs} rounds")
    return 0


class Site(http.server.ThreadingHTTPServer):
    """A folder on a web server that counts what it gives."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        self.folder, self.given = folder, 0
        super().__init__(("127.0.0.1", 0), Files)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def link(self, key: str) -> str:
        query = urllib.parse.urlencode({"url": f"http://127.0.0.1:{self.server_port}/", "key": key})
        return f"svc://market?{query}"


class Files(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body go out together, and wait for nothing.
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        path = self.server.folder / self.path.lstrip("/")
        body = path.read_bytes() if path.is_file() else b""
        self.send_response(200 if path.is_file() else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.server.given += len(body)

    def log_message(self, *_: object) -> None:
        pass


def adopt(service: PluginService, link: str) -> None:
    """Adds a source, as somebody does who believes the fingerprint that is shown."""
    shown = service.ask("POST", "/market/sources", {"link": link})
    service.ask("POST", "/market/sources", {"link": link, "fingerprint": shown["fingerprint"]})


def news(svc: Path, data: Path, runs: int) -> Iterator[tuple[str, str]]:
    """Refreshes of a source of 1,000 plugins with 10 versions each."""
    source = data / "source"
    example = ["cargo", "run", "--quiet", "--release", "--example", "refresh_cost", "-p", "market", "--", source]
    key = subprocess.run(example, check=True, cwd=WORKSPACE, stdout=subprocess.PIPE, text=True).stdout.strip()
    seconds: dict[str, list[float]] = {}
    computing: dict[str, list[float]] = {}
    given: dict[str, int] = {}
    memory: dict[str, list[float]] = {}
    for number in range(runs):
        with Site(source / "old") as site, PluginService(svc, data / f"news-{number}") as service:
            link = site.link(key)
            steps = {
                "the first refresh of 10,000 entries": lambda: adopt(service, link),
                "a refresh without news": lambda: service.ask("POST", "/market/refresh", {}),
                "a refresh with ten new versions": lambda: service.ask("POST", "/market/refresh", {}),
            }
            for title, step in steps.items():
                site.folder, site.given = source / ("new" if "new versions" in title else "old"), 0
                daemon = service.pids()[1]
                peak, before = Peak(daemon), cpu_seconds(daemon)
                seconds.setdefault(title, []).append(timed(step))
                computing.setdefault(title, []).append(cpu_seconds(daemon) - before)
                memory.setdefault(title, []).append(peak.mib())
                given[title] = site.given
            fresh = [one["status"] for one in service.ask("GET", "/market/sources")]
            if fresh != ["fresh", "fresh"]:
                raise RuntimeError(f"the sources are {fresh}")
            site.shutdown()
    for title, times in seconds.items():
        peak = statistics.median(memory[title])
        read = f"{given[title] / 1000:,.1f} kB"
        yield title, f"{milliseconds(times)} ({milliseconds(computing[title])} computing), {read}, {peak:.1f} MiB more"


class Peak:
    """The most memory that a process has from now on, besides what it has now."""

    def __init__(self, pid: int) -> None:
        self.folder = Path("/proc") / str(pid)
        (self.folder / "clear_refs").write_text("5", encoding="ascii")
        self.before = self.kib("VmRSS")

    def kib(self, name: str) -> int:
        lines = (self.folder / "status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))

    def mib(self) -> float:
        return (self.kib("VmHWM") - self.before) * 1024 / MIB


def installs(svc: Path, data: Path, runs: int) -> Iterator[tuple[str, str]]:
    """An installation: downloaded, checked, played, written and in service. The engine of scripts was compiled before."""
    site, keys, home = data / "site", data / "keys", data / "author"
    home.mkdir()

    def run(*words: object) -> str:
        environment = {**os.environ, "HOME": str(home)}
        command = [svc, *words]
        return subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout

    run("market", "init", site, "--id", "bench", "--name", "Bench", "--keys", keys, "--unprotected")
    run("market", "key", keys / "author.key", "--unprotected")
    for name in ("first", "second"):
        package = pack(data, name, public_key(keys / "author.key"))
        run("plugin", "sign", package, "--key", keys / "author.key")
        run("market", "add", site, package, "--key", keys / "index.key")
    run("market", "publish", site, "--key", keys / "timestamp.key")
    with Site(site) as served, PluginService(svc, data / "installs") as service:
        adopt(service, served.link(public_key(keys / "root-1.key")))
        service.ask("POST", "/market/install", {"pluginId": "first@bench"})
        times = []
        for _ in range(runs):
            times.append(timed(lambda: service.ask("POST", "/market/install", {"pluginId": "second@bench"})))
            service.wait_until_loaded(2)
            service.ask("DELETE", "/plugins/second@bench")
        served.shutdown()
    size = (data / "second.zip").stat().st_size
    yield f"a package of {size // 1024} KiB, from the request until it is in service", milliseconds(times)


def public_key(secret: Path) -> str:
    return Path(f"{secret}.pub").read_text(encoding="ascii").splitlines()[1]


def pack(folder: Path, name: str, key: str) -> Path:
    """A package of a script, and of a page that does not get smaller."""
    manifest = {
        "manifestVersion": 1, "identity": f"{name}@bench", "name": name, "version": "1.0.0", "license": "MIT",
        "runtime": "js", "entry": "plugin.js", "abi": "0.1", "author": {"name": "Bench", "key": key},
        "capabilities": {"resolver": {"match": [f"https://{name}.test/*"], "multi": True}},
    }  # fmt: skip
    fixture = {**FIXTURE, "input": {"url": f"https://{name}.test/x"}}
    path = folder / f"{name}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("plugin.json", json.dumps(manifest))
        archive.writestr("plugin.js", SCRIPT.replace("NAME", name))
        archive.writestr("fixtures/one.json", json.dumps(fixture))
        archive.writestr("README.md", base64.b64encode(os.urandom(PACKAGE_BYTES)))
    return path


if __name__ == "__main__":
    sys.exit(main())
