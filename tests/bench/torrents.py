#!/usr/bin/env python3
"""Measures torrents: the running service beside libtorrent, aria2c and transmission-daemon. See README.md."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import measure
from downloads import HERE, TMPFS, build_svc, say, temporary_folder
from hosts import cpu_seconds, rss_mib, share_mib
from origin import MIB, Payload
from swarm import (
    CLIENTS, Aria2c, Downloader, Libtorrent, LibtorrentDownloader, Opentracker, Svc, SvcGet, Swarm, Transmission, check, cleared, wait_until,
)  # fmt: skip

GIB = 1024 * MIB
PIECE_BYTES = MIB
SEEDERS = (1, 4)
IDLE_TORRENTS = 500
IDLE_BYTES = 256 * 1024
IDLE_SECONDS = 60
SETTLE_SECONDS = 15
PACKAGES = {"aria2c": "aria2", "transmission-daemon": "transmission-daemon", "opentracker": "opentracker", "openssl": "openssl"}


@dataclass
class Bench:
    svc: Path
    runs: int
    is_quick: bool
    data: Path
    target: Path
    scratch: Path
    meter: Path
    rows: list[tuple[str, str]] = field(default_factory=list)

    def add(self, title: str, value: str) -> None:
        self.rows.append((title, value))
        say(f"  {title}: {value}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--svc", type=Path, help="the program to measure (default: build it in release)")
    parser.add_argument("--runs", type=int, default=3, help="rounds of every download; the median counts")
    parser.add_argument("--only", help="some of: download,idle")
    parser.add_argument("--quick", action="store_true", help="small sizes, one round: does it work?")
    arguments = parser.parse_args()
    missing = [program for program in PACKAGES if shutil.which(program) is None]
    if missing:
        say(f"missing; to get them: apt-get install {' '.join(PACKAGES[program] for program in missing)}")
        return 2
    svc = arguments.svc.resolve() if arguments.svc else build_svc()
    chosen = arguments.only.split(",") if arguments.only else ["download", "idle"]
    with contextlib.ExitStack() as stack:
        data, target, scratch = (temporary_folder(stack, TMPFS) for _ in range(3))
        meter = measure.compile_c(HERE / "meter.c", scratch / "meter")
        runs = 1 if arguments.quick else arguments.runs
        bench = Bench(svc, runs, arguments.quick, data, target, scratch, meter)
        if "download" in chosen:
            for seeders in SEEDERS:
                download(bench, seeders)
        if "idle" in chosen:
            idle(bench)
    print("\n".join(["| Measured | |", "|---|--:|", *(f"| {title} | {value} |" for title, value in bench.rows)]))
    print("\n" + "\n".join(f"- {line}" for line in versions()))
    print(f"- to and from memory; load average {os.getloadavg()[0]:.1f}; medians of {runs} rounds, interleaved.")
    return 0


def versions() -> list[str]:
    library = [CLIENTS / "python", "-c", "import libtorrent; print('libtorrent', libtorrent.version)"]
    lines = []
    for command in (library, ["aria2c", "--version"], ["transmission-daemon", "--version"]):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        lines.append(done.stdout.splitlines()[0])
    return lines


def download(bench: Bench, count: int) -> None:
    """One file from so many seeders, by each program in turn."""
    payload = Payload("one", 1, (64 * MIB) if bench.is_quick else GIB)
    payload.make(bench.data)
    data = bench.data / payload.folder
    size = f"{payload.size_bytes // MIB:,} MiB" if bench.is_quick else "1 GiB"
    with contextlib.ExitStack() as stack:
        seeders = [stack.enter_context(Libtorrent()) for _ in range(count)]
        torrent = bench.scratch / "one.torrent"
        # Its hash does not depend on its trackers, and the tracker must know it first.
        seeders[0].make(data / payload.names[0], torrent, PIECE_BYTES, [])
        folder = bench.scratch / f"tracker-{count}"
        tracker = stack.enter_context(Opentracker(folder, info_hash(torrent)))
        seeders[0].make(data / payload.names[0], torrent, PIECE_BYTES, [tracker.url])
        ports = [seeder.seed(torrent, data, [tracker.url]) for seeder in seeders]
        swarm = Swarm(data, torrent, seeders, ports)
        makers: dict[str, Callable[[], Downloader]] = {
            "svc": lambda: Svc(bench.svc, cleared(bench.target / "work")),
            "svc get": lambda: SvcGet(bench.svc, cleared(bench.target / "work"), bench.meter),
            "libtorrent": lambda: LibtorrentDownloader(cleared(bench.target / "work")),
            "aria2c": lambda: Aria2c(cleared(bench.target / "work"), bench.meter),
            "transmission": lambda: Transmission(cleared(bench.target / "work")),
        }
        costs: dict[str, list[measure.Cost]] = {name: [] for name in makers}
        for round_number in range(bench.runs + 1):
            for name, make in makers.items():
                # The first round warms up; transmission is slow, and never faster for it.
                if round_number == 0 and name == "transmission":
                    continue
                downloader = make()
                cost = downloader.download(swarm)
                check(swarm, downloader)
                shutil.rmtree(bench.target / "work")
                say(f"  {count} × {name}, round {round_number}: {shown(cost)}")
                if round_number:
                    costs[name].append(cost)
    title = f"{size} from {count} seeder{'s' if count > 1 else ''}"
    for name, each in costs.items():
        bench.add(f"{title}, {name}: wall; processor; peak memory", shown(median(each)))
    ratios = [ours.wall_seconds / theirs.wall_seconds for ours, theirs in zip(costs["svc"], costs["libtorrent"], strict=True)]
    bench.add(f"{title}, svc ÷ libtorrent, wall", f"{statistics.median(ratios):.2f}")


def median(costs: list[measure.Cost]) -> measure.Cost:
    return measure.Cost(
        statistics.median(cost.wall_seconds for cost in costs),
        statistics.median(cost.cpu_seconds for cost in costs),
        round(statistics.median(cost.peak_rss_bytes for cost in costs)),
    )


def shown(cost: measure.Cost) -> str:
    return f"{cost.wall_seconds:.2f} s; {cost.cpu_seconds:.2f} s; {cost.peak_rss_bytes / MIB:.0f} MiB"


def info_hash(torrent: Path) -> str:
    """The hash of the info dictionary, which ends with the torrent here."""
    content = torrent.read_bytes()
    begin = content.index(b"4:info") + 6
    return hashlib.sha1(content[begin:-1]).hexdigest()


def idle(bench: Bench) -> None:
    """Torrents that are seeded and that nobody wants."""
    count = 50 if bench.is_quick else IDLE_TORRENTS
    seconds = 5 if bench.is_quick else IDLE_SECONDS
    payload = Payload("idle", count, IDLE_BYTES)
    payload.make(bench.data)
    data = bench.data / payload.folder
    torrents = []
    with Libtorrent() as maker:
        for name in payload.names:
            torrents.append(bench.scratch / f"{name}.torrent")
            maker.make(data / name, torrents[-1], 64 * 1024, [])
    for make in (lambda folder: Svc(bench.svc, folder), Transmission):
        host = make(cleared(bench.target / "work"))
        host.start()
        try:
            host.add_seeding(torrents, data)
            for when in ("", ", after a restart"):
                if when:
                    host.restart()
                wait_until(lambda host=host: host.seeding() == count, f"{host.name} seeds {count} torrents", 0.2)
                time.sleep(1 if bench.is_quick else SETTLE_SECONDS)
                pids = host.pids()
                before = sum(map(cpu_seconds, pids))
                time.sleep(seconds)
                cpu = sum(map(cpu_seconds, pids)) - before
                memory = f"{sum(map(rss_mib, pids)):.1f} MiB ({sum(map(share_mib, pids)):.1f} with shared pages counted once)"
                title = f"{count} idle torrents{when}, {host.name}: memory; processor of {seconds} s"
                bench.add(title, f"{memory}; {cpu:.2f} s")
        finally:
            host.close()
            shutil.rmtree(bench.target / "work")


if __name__ == "__main__":
    sys.exit(main())
