#!/usr/bin/env python3
"""Many subscriptions at once: is each site asked politely, is there a herd, and what does a round cost?

    tests/bench/sources.py [--sources 1000] [--hosts 250] [--idle 60] SVC

Feeds of 50 items are served by this script at addresses of this machine (127.1.0.x), several sources on each. Three
rounds are measured: the first, which begins when the sources are added; one that is asked for by `refresh` for all
sources at once, with an item that is new in each; and the one after a restart when all are overdue, of which the
first minute is watched. Then nothing is due, and the processor time of the daemon is read. The server counts the
requests of each host, the least time between two of them, and how many are answered side by side."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path

from hosts import Service

ITEMS = 50

# What answering takes: a fast site.
ANSWER_SECONDS = 0.02

TICKS = os.sysconf("SC_CLK_TCK")


class Sites:
    """All feeds. The path names the source; a request is noted with its host and time."""

    def __init__(self) -> None:
        self.asked: list[tuple[float, str]] = []
        self.alive = self.most = 0
        self.round = 0
        self.port = 0
        ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self.serve(ready)), daemon=True).start()
        ready.wait()

    async def serve(self, ready: threading.Event) -> None:
        server = await asyncio.start_server(self.answer, "0.0.0.0", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await server.serve_forever()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = head.split(" ")[1]
            self.asked.append((time.monotonic(), writer.get_extra_info("sockname")[0]))
            self.alive += 1
            self.most = max(self.most, self.alive)
            await asyncio.sleep(ANSWER_SECONDS)
            self.alive -= 1
            body = self.feed(path).encode()
            fields = f"Content-Type: application/rss+xml\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            writer.write(f"HTTP/1.1 200 OK\r\n{fields}".encode() + body)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def feed(self, path: str) -> str:
        newest = ITEMS + self.round
        item = "<item><guid>{0}/{1}</guid><title>Show{0} S01E{1:03}</title><link>{0}/{1}.bin</link></item>"
        items = "".join(item.format(path, number) for number in range(newest, newest - ITEMS, -1))
        return f'<rss version="2.0"><channel><title>Feed {path}</title>{items}</channel></rss>'

    def take(self) -> list[tuple[float, str]]:
        asked, self.asked, self.most = self.asked, [], 0
        return asked


def seconds_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def mib_of(pid: int, key: str = "VmRSS") -> float:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(key + ":"))
    return int(line.split()[1]) / 1024


def ask(service: Service, method: str, path: str, body: object = None) -> object:
    data = b"" if body is None else json.dumps(body).encode()
    with service.rest.connect() as connection:
        return json.loads(connection.ask(service.rest.head(f"{method} {path}"), data) or b"null")


def least_gap(asked: list[tuple[float, str]]) -> float:
    """The least time between two requests to one host."""
    by_host = defaultdict(list)
    for at, host in asked:
        by_host[host].append(at)
    gaps = [after - before for times in by_host.values() for before, after in zip(times, times[1:])]
    return min(gaps, default=float("inf"))


def round_of(service: Service, sites: Sites, count: int, begin) -> dict[str, float]:
    """Waits until every source was asked and saved its answer."""
    daemon = service.pids()[1]
    sites.take()
    before, began = seconds_of(daemon), time.monotonic()
    begin()
    while len(sites.asked) < count:
        if time.monotonic() - began > 300:
            raise RuntimeError(f"only {len(sites.asked)} of {count} sources were asked")
        time.sleep(0.1)
    time.sleep(1)
    most = sites.most
    asked = sites.take()
    first_second = sum(at < asked[0][0] + 1 for at, _ in asked)
    return {
        "wall": asked[-1][0] - began, "cpu": seconds_of(daemon) - before, "requests": len(asked),
        "first": first_second, "gap": least_gap(asked), "most": most,
        "rss": mib_of(daemon), "peak": mib_of(daemon, "VmHWM"),
    }  # fmt: skip


def line(name: str, found: dict[str, float]) -> str:
    return (
        f"| {name} | {found['requests']} | {found['wall']:.1f} s | {found['first']} | {found['gap']:.2f} s "
        f"| {found['most']} | {found['cpu']:.2f} s | {found['rss']:.0f} MiB | {found['peak']:.0f} MiB |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=int, default=1000)
    parser.add_argument("--hosts", type=int, default=250)
    parser.add_argument("--idle", type=int, default=60)
    parser.add_argument("svc", type=Path)
    args = parser.parse_args()
    sites = Sites()
    with tempfile.TemporaryDirectory() as folder, Service(args.svc.resolve(), Path(folder) / "svc") as service:
        empty = mib_of(service.pids()[1])
        ids: list[str] = []

        def add() -> None:
            for number in range(args.sources):
                url = f"http://127.1.0.{number % args.hosts + 1}:{sites.port}/{number}"
                source = {"url": url, "includePattern": "show", "startPaused": True, "intervalMinutes": 1440}
                source["allowPrivate"] = True
                ids.append(ask(service, "POST", "/api/v1/rss", source)["sourceId"])

        rows = [line("first", round_of(service, sites, args.sources, add))]
        sites.round = 1
        refresh = lambda: [ask(service, "POST", f"/api/v1/rss/{source}/refresh") for source in ids]  # noqa: E731
        rows.append(line("second: an item is new in each", round_of(service, sites, args.sources, refresh)))
        until = time.monotonic() + 60
        while len(tasks := ask(service, "GET", "/api/v1/tasks")) < args.sources and time.monotonic() < until:
            time.sleep(0.5)
        items = sum(source["unreadCount"] for source in ask(service, "GET", "/api/v1/rss"))
        daemon = service.pids()[1]
        time.sleep(10)
        before, began = seconds_of(daemon), time.monotonic()
        time.sleep(args.idle)
        idle = (seconds_of(daemon) - before) / (time.monotonic() - began) * 100
        # With the shortest interval all of them are due while the service is not there.
        def shorten() -> None:
            for source in ask(service, "GET", "/api/v1/rss"):
                path = f"/api/v1/rss/{source['sourceId']}"
                ask(service, "PUT", path, {**source, "enabled": False})
                ask(service, "PUT", path, {**source, "intervalMinutes": 1})

        round_of(service, sites, args.sources, shorten)
        service.stop()
        sites.take()
        time.sleep(75)
        began = time.monotonic()
        service.start()
        time.sleep(60)
        after = sites.take()
        starting = [at - began for at, _ in after]
        most = max(sum(second <= at < second + 1 for at in starting) for second in range(60))
    kernel = f"{os.cpu_count()} processors, Linux {platform.release()}"
    print("# Many subscriptions\n\n<!-- Written by `tests/bench/sources.py`, which says how. -->\n")
    print(f"{args.sources} sources on {args.hosts} hosts, {ITEMS} items each; {kernel}; {time.strftime('%Y-%m-%d')}.\n")
    print("| Round | Requests | Until the last | In the first second | Least gap of a host | Side by side "
          "| Processor | Resident | Peak |")  # fmt: skip
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    print("\n".join(rows))
    print(f"\nThe daemon has {empty:.0f} MiB without sources. The new items became {len(tasks)} tasks; {items} are unread.")
    print(f"With nothing due, the daemon took {idle:.2f} % of a processor over {args.idle} s.")
    if after:
        print(
            f"After a restart with all of them overdue, {len(after)} were asked in the first minute, at most {most} in a "
            f"second; the least gap of a host was {least_gap(after):.2f} s."
        )


if __name__ == "__main__":
    main()
