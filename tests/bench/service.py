#!/usr/bin/env python3
"""Measures the running service (`svc serve`, agent and daemon) against aria2c's RPC. See README.md."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import tools
from downloads import build_svc, say, temporary_folder
from hosts import Aria2, Connection, Host, Interface, Service, cpu_seconds, written_bytes
from listeners import Listeners

# Sizes and times; `--quick` divides them.
SINGLE_CREATES = 3000
BATCH = 1000
TASKS = 10_000
MANY_TASKS = 100_000
READS = 3000
PAGES = 300
WHOLE_LISTS = 5
LOAD_SECONDS = 4
# Svc returns memory that it does not use every five seconds; what it needed to start is gone then.
SETTLED_SECONDS = 8
IDLE_SECONDS = 60
LOAD_CONNECTIONS = 8
LISTENERS = 1000
ROUNDS = 20
DOWNLOADS_A_ROUND = 16
# Both ends of every listener's socket, of two hosts.
OPEN_FILES = 4 * LISTENERS + 256


@dataclass
class Table:
    """What was measured: rows of a title, our figure, theirs, and which of both is better when it is larger."""

    rows: list[tuple[str, str, str, str]] = field(default_factory=list)

    def add(self, title: str, ours: float, theirs: float | None, unit: str) -> None:
        ratio = f"{ours / theirs:.2f}" if theirs else ""
        self.rows.append((title, amount(ours, unit), "" if theirs is None else amount(theirs, unit), ratio))
        say(f"  {title}: svc {amount(ours, unit)}, aria2c {'–' if theirs is None else amount(theirs, unit)} {ratio}")

    def markdown(self) -> str:
        lines = ["| Measured | svc | aria2c | svc ÷ aria2c |", "|---|--:|--:|--:|"]
        return "\n".join(lines + [f"| {' | '.join(row)} |" for row in self.rows])


def amount(value: float, unit: str) -> str:
    if unit == "/s" and value >= 1000:
        return f"{value / 1000:.1f} k/s"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f} {unit}".replace(" /s", "/s")


@dataclass(frozen=True)
class Bench:
    """What all measurements share."""

    table: Table
    svc: Path
    data: Path
    divisor: int
    runs: int

    def service(self, name: str) -> Service:
        return Service(self.svc, self.data / name)

    def aria2(self, name: str) -> Aria2:
        return Aria2(self.data / name)

    def count(self, full: int) -> int:
        return max(full // self.divisor, BATCH if full >= BATCH else 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--svc", type=Path, help="the program to measure (default: build it in release)")
    parser.add_argument("--data", type=Path, help="where both keep their state (default: temporary files)")
    parser.add_argument("--runs", type=int, default=3, help="rounds of every rate; the median counts")
    parser.add_argument("--only", help="some of: " + ",".join(MEASUREMENTS))
    parser.add_argument("--quick", action="store_true", help="a tenth of everything, one round: does it work?")
    arguments = parser.parse_args()
    missing = [program for program in ("aria2c", "wrk") if shutil.which(program) is None]
    if missing:
        say("missing; to get them: apt-get install aria2 wrk")
        return 2
    chosen = arguments.only.split(",") if arguments.only else list(MEASUREMENTS)
    svc = arguments.svc.resolve() if arguments.svc else build_svc()
    runs = 1 if arguments.quick else arguments.runs
    with contextlib.ExitStack() as stack:
        data = temporary_folder(stack, arguments.data)
        bench = Bench(Table(), svc, data, 10 if arguments.quick else 1, runs)
        for name in chosen:
            say(f"{name}:")
            MEASUREMENTS[name](bench)
        print(bench.table.markdown())
        print("\n" + "\n".join(f"- {line}" for line in tools.versions(svc)))
        print(f"- state on {file_system(data)}; load average {os.getloadavg()[0]:.1f}; medians of {runs} rounds")
    return 0


def file_system(path: Path) -> str:
    told = subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True, check=False)
    return told.stdout.strip() or "?"


@contextlib.contextmanager
def pair(bench: Bench, name: str) -> Iterator[tuple[Service, Aria2]]:
    """Both hosts, empty and running."""
    with bench.service(f"{name}-svc") as service, bench.aria2(f"{name}-aria2") as aria2:
        yield service, aria2


def memory(bench: Bench, service: Service, aria2: Aria2, what: str) -> None:
    """What both keep once they are left alone. Agent and daemon are one executable: the plain sum counts its pages twice."""
    time.sleep(SETTLED_SECONDS)
    bench.table.add(f"memory, {what} (agent + daemon)", service.rss(), aria2.rss(), "MiB")
    bench.table.add("… shared pages counted once", service.share(), aria2.share(), "MiB")


def processor(host: Host) -> float:
    return sum(map(cpu_seconds, host.pids()))


def rate(count: int, work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return count / (time.perf_counter() - began)


def alternately(bench: Bench, one: Callable[[], float], other: Callable[[], float]) -> tuple[float, float]:
    """The medians of both, measured in turns."""
    return medians([(one(), other()) for _ in range(bench.runs)])


def medians(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median(ours for ours, _ in pairs), statistics.median(theirs for _, theirs in pairs)


def empty(bench: Bench) -> None:
    """Memory, processor and disk of hosts that have nothing to do."""
    with pair(bench, "empty") as (service, aria2):
        memory(bench, service, aria2, "empty")
        idle(bench, service, aria2, "empty")


def idle(bench: Bench, service: Service, aria2: Aria2, what: str) -> None:
    seconds = IDLE_SECONDS // bench.divisor
    hosts: tuple[Host, ...] = (service, aria2)
    time.sleep(2)
    before = [(processor(host), sum(map(written_bytes, host.pids()))) for host in hosts]
    time.sleep(seconds)
    after = [(processor(host), sum(map(written_bytes, host.pids()))) for host in hosts]
    ours, theirs = ((late[0] - early[0]) / seconds * 100 for early, late in zip(before, after, strict=True))
    bench.table.add(f"processor while idle, {what}", ours, theirs, "%")
    ours, theirs = ((late[1] - early[1]) / 1024 for early, late in zip(before, after, strict=True))
    bench.table.add(f"written while idle for {seconds} s, {what}", ours, theirs, "KiB")


def create(bench: Bench) -> None:
    """Tasks a second; ours are on the disk when they are acknowledged."""
    count = bench.count(SINGLE_CREATES)
    pairs = []
    for number in range(bench.runs):
        # Of empty hosts: aria2c's addUri takes longer the more downloads it has.
        with pair(bench, f"single-{number}") as (service, aria2):
            pairs.append((one_by_one(service.json_rpc, count), one_by_one(aria2.json_rpc, count)))
    bench.table.add("creates, one at a time, empty hosts (addUri of both)", *medians(pairs), "/s")
    with pair(bench, "create") as (service, aria2):
        theirs = aria2.json_rpc
        ways = ((service.json_rpc, "addUri of both"), (service.rest, "POST /api/v1/tasks; addUri"))
        for ours, title in ways:
            rates = alternately(bench, lambda ours=ours: one_by_one(ours, count), lambda: one_by_one(theirs, count))
            bench.table.add(f"creates, one at a time ({title})", *rates, "/s")
        rates = alternately(bench, lambda: saved(service, count // 10), lambda: saved(aria2, count // 10))
        bench.table.add("creates, one at a time, durable in both (addUri and saveSession of both)", *rates, "/s")
        costs = [cost_of_create(host, count) for host in (service, aria2)]
        bench.table.add("processor time of a create (addUri of both)", *costs, "µs")
        bench.table.add("a write and fdatasync in the same directory (limit of one at a time)", syncs(bench.data), None, "/s")
        service.rest.load_create(LOAD_SECONDS // 2, LOAD_CONNECTIONS)
        for ours, title in ways:
            rates = alternately(
                bench,
                lambda ours=ours: ours.load_create(LOAD_SECONDS, LOAD_CONNECTIONS),
                lambda: theirs.load_create(LOAD_SECONDS, LOAD_CONNECTIONS),
            )
            bench.table.add(f"creates, {LOAD_CONNECTIONS} connections ({title})", *rates, "/s")
    with pair(bench, "batch") as (service, aria2):
        count, ours, theirs = bench.count(TASKS), service.json_rpc, aria2.json_rpc
        for title, ours, send, counterpart in (
            ("addUri of both in a batch", ours, ours.create_batch, theirs.create_batch),
            ("addUri of both in a system.multicall", ours, ours.create_multicall, theirs.create_multicall),
            ("daemon.task.createMany of /rpc; a batch of addUri", service.rest, service.rest.create_batch, theirs.create_batch),
        ):
            rates = alternately(
                bench,
                lambda ours=ours, send=send: batches(ours, send, count),
                lambda send=counterpart: batches(theirs, send, count),
            )
            bench.table.add(f"creates, {BATCH} a call ({title})", *rates, "/s")


def one_by_one(interface: Interface, count: int) -> float:
    with interface.connect() as connection:
        return rate(count, lambda: [interface.create(connection, index) for index in range(count)])


def saved(host: Host, count: int) -> float:
    rpc = host.json_rpc
    with rpc.connect() as connection:
        return rate(count, lambda: [rpc.create_saved(connection, index) for index in range(count)])


def cost_of_create(host: Host, count: int) -> float:
    """Microseconds of all its processes."""
    before = processor(host)
    one_by_one(host.json_rpc, count)
    return (processor(host) - before) / count * 1e6


def batches(interface: Interface, send: Callable[[Connection, int], None], count: int) -> float:
    with interface.connect_batch() as connection:
        return rate(count, lambda: [send(connection, BATCH) for _ in range(count // BATCH)])


def fill(host: Host, count: int) -> float:
    return batches(host.json_rpc, host.json_rpc.create_batch, count)


def syncs(folder: Path) -> float:
    """How often a second something can be made durable at all."""
    descriptor = os.open(folder / "sync", os.O_WRONLY | os.O_CREAT, 0o600)
    block = b"x" * 4096
    os.pwrite(descriptor, block * 256, 0)
    os.fsync(descriptor)

    def work() -> None:
        for index in range(256):
            os.pwrite(descriptor, block, index * 4096)
            os.fdatasync(descriptor)

    result = rate(256, work)
    os.close(descriptor)
    return result


def tasks(bench: Bench) -> None:
    """Memory and reads with ten thousand tasks."""
    count = bench.count(TASKS)
    with pair(bench, "tasks") as (service, aria2):
        fill(service, count)
        fill(aria2, count)
        memory(bench, service, aria2, f"{count:,} waiting tasks")
        reads = bench.count(READS)
        theirs = aria2.json_rpc
        kinds = (
            ("one", "reads of one task", "tellStatus", reads),
            ("page", "reads of a page of 100", "tellWaiting", bench.count(PAGES)),
            ("all", f"reads of all {count:,}", "tellWaiting", WHOLE_LISTS),
            ("smallest", "the smallest read", "getVersion", reads),
        )
        for kind, title, method, number in kinds:
            for ours, way in ((service.json_rpc, f"{method} of both"), (service.rest, f"REST; {method}")):
                rates = alternately(
                    bench,
                    lambda ours=ours, kind=kind, number=number: reading(ours, kind, number),
                    lambda kind=kind, number=number: reading(theirs, kind, number),
                )
                bench.table.add(f"{title}, one connection ({way})", *rates, "/s")
                if kind == "all":
                    continue
                rates = alternately(
                    bench,
                    lambda ours=ours, kind=kind: ours.load(kind, LOAD_SECONDS, LOAD_CONNECTIONS),
                    lambda kind=kind: theirs.load(kind, LOAD_SECONDS, LOAD_CONNECTIONS),
                )
                bench.table.add(f"{title}, {LOAD_CONNECTIONS} connections ({way})", *rates, "/s")
        idle(bench, service, aria2, f"{count:,} tasks")


def reading(interface: Interface, kind: str, number: int) -> float:
    with interface.connect() as connection:
        return rate(number, lambda: [interface.read(connection, kind) for _ in range(number)])


def many(bench: Bench) -> None:
    """Memory and start with a hundred thousand tasks."""
    count = bench.count(MANY_TASKS)
    with pair(bench, "many") as (service, aria2):
        ours, theirs = fill(service, count), fill(aria2, count)
        bench.table.add(f"creates up to {count:,}, {BATCH} a call (addUri of both in a batch)", ours, theirs, "/s")
        memory(bench, service, aria2, f"{count:,} waiting tasks")
        starts = alternately(bench, service.restart, aria2.restart)
        bench.table.add(f"start with {count:,} tasks to the first answer of a read", *starts, "s")
        memory(bench, service, aria2, f"{count:,} waiting tasks, after a start")


def listeners(bench: Bench) -> None:
    """Many WebSockets of aria2's dialect that are told of every download."""
    count, rounds = bench.count(LISTENERS), bench.count(ROUNDS)
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limit[0], OPEN_FILES), max(limit[1], OPEN_FILES)))
    with (
        pair(bench, "listeners") as (service, aria2),
        Listeners(service, count) as ours,
        Listeners(aria2, count) as theirs,
    ):
        delays = alternately(bench, lambda: ours.delay(rounds), lambda: theirs.delay(rounds))
        bench.table.add(f"a download's start and end known to {count:,} WebSockets", *delays, "ms")
        rates = alternately(
            bench, lambda: ours.rate(rounds, DOWNLOADS_A_ROUND), lambda: theirs.rate(rounds, DOWNLOADS_A_ROUND)
        )
        bench.table.add(f"notices to {count:,} WebSockets", *rates, "/s")
        memory(bench, service, aria2, f"{count:,} WebSockets")


MEASUREMENTS: dict[str, Callable[[Bench], None]] = {
    "empty": empty,
    "create": create,
    "tasks": tasks,
    "many": many,
    "listeners": listeners,
}

if __name__ == "__main__":
    sys.exit(main())
