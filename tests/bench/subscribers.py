#!/usr/bin/env python3
"""Many subscribers of /rpc at once: does everybody get every event, how soon, and what does it cost?

    SVC_TOKEN=… ../clients/python subscribers.py [--subscribers 1000] [--changes 5000] [--data-dir DIR] 127.0.0.1:17800

Every subscriber takes a snapshot and applies every event after it; a gap ends the script with an error. One more
subscriber does not read and must be closed with 4009. Events per second are those delivered to all subscribers together;
the latency of an event is the time from the call that causes it to its arrival, measured at every subscriber. The
readers are Python on the same cores, so the figures are a bound from below. With the data directory the resident memory
of agent and daemon is told, before and after.
"""

import argparse
import asyncio
import json
import os
import pathlib
import re
import socket
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "clients"))
from svc_rpc import open_agent  # noqa: E402

# Calls in flight at once.
AT_ONCE = 16

# Parsing every event at every subscriber would measure Python; what is needed is looked for.
PLACE = re.compile(r'"epoch":"([^"]+)","sequence":(\d+)')
NAME = re.compile(r'(?<="fileName":")event-\d+(?=")')


def resident_mib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def processes(data_dir):
    """Agent and daemon, by the files that say so."""
    if not data_dir:
        return {}
    data = pathlib.Path(data_dir)
    daemon = json.loads((data / "daemon.json").read_text())["pid"]
    agent = int((data / "agent" / "agent.lock").read_text().split()[0])
    return {"agent": agent, "daemon": daemon}


class Subscriber:
    """Sees that the sequence has no gap, and when the tasks of this run were first told."""

    def __init__(self, begun, latencies):
        self.begun, self.latencies = begun, latencies
        self.next = self.epoch = None
        self.events = self.seen = 0

    def take(self, text):
        if '"service.event"' not in text:
            return
        epoch, sequence = PLACE.search(text).groups()
        if int(sequence) != self.next or epoch != self.epoch:
            raise AssertionError(f"{sequence} instead of {self.next}")
        self.next += 1
        self.events += 1
        name = NAME.search(text)
        if name:
            self.seen += 1
            self.latencies.append(time.perf_counter() - self.begun[name[0]])

    async def follow(self, rpc, total):
        snapshot = await rpc.call("system.snapshot")
        self.epoch, self.next = snapshot["epoch"], snapshot["sequence"] + 1
        rpc.reader.cancel()
        await asyncio.gather(rpc.reader, return_exceptions=True)

        async def read():
            async for text in rpc.socket:
                self.take(text)
                if self.seen == total:
                    return
            raise AssertionError(f"closed: {rpc.close_code} {rpc.close_reason}")

        return asyncio.create_task(read())


async def cause(rpc, begun, changes):
    """Changes tasks one by one: each creation is one event with a name that nobody else has."""
    turns = asyncio.Semaphore(AT_ONCE)
    ids = []

    async def one(number):
        async with turns:
            name = f"event-{number}"
            begun[name] = time.perf_counter()
            request = {"url": "http://127.0.0.1:9/", "fileName": name, "startPaused": True}
            ids.append((await rpc.call("daemon.task.create", {"request": request}))["taskId"])

    await asyncio.gather(*(one(number) for number in range(changes)))
    return ids


async def slow_subscriber(address, key):
    """One that does not read after its snapshot."""
    narrow = socket.create_connection(tuple(address.rsplit(":", 1)))
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 128 * 1024)
    rpc = await open_agent(address, key, sock=narrow, max_queue=1)
    await rpc.subscribe()
    rpc.reader.cancel()
    return rpc


async def overtake(rpc):
    """More events than are kept for who does not read, in a few large ones."""
    fat = "http://127.0.0.1:9/" + "x" * 30_000
    ids = []
    for _ in range(30):
        requests = [{"url": fat, "startPaused": True}] * 30
        ids += (await rpc.call("daemon.task.createMany", {"requests": requests}))["taskIds"]
    return ids


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("--subscribers", type=int, default=1000)
    parser.add_argument("--changes", type=int, default=5000)
    parser.add_argument("--data-dir")
    options = parser.parse_args()
    key = os.environ["SVC_TOKEN"]
    pids = processes(options.data_dir)
    before = {name: resident_mib(pid) for name, pid in pids.items()}
    begun, latencies = {}, []
    readers, subscribers = [], []
    # A ping of the library's own would find busy readers silent.
    quiet = {"ping_interval": None, "max_queue": 64}
    for _ in range(options.subscribers):
        subscriber = Subscriber(begun, latencies)
        rpc = await open_agent(options.address, key, **quiet)
        readers.append((rpc, await subscriber.follow(rpc, options.changes)))
        subscribers.append(subscriber)
    connected = {name: resident_mib(pid) for name, pid in pids.items()}
    writer = await open_agent(options.address, key, **quiet)
    began = time.perf_counter()
    ids = await cause(writer, begun, options.changes)
    written = time.perf_counter() - began
    await asyncio.gather(*(task for _, task in readers))
    took = time.perf_counter() - began
    after = {name: resident_mib(pid) for name, pid in pids.items()}
    events = sum(subscriber.events for subscriber in subscribers)
    latencies.sort()
    print(f"{options.subscribers} subscribers, {options.changes} changes in {written:.2f} s, no gap")
    print(f"{events} events delivered in {took:.2f} s: {events / took:,.0f} per second")
    at = [latencies[int(len(latencies) * part) - 1] * 1000 for part in (0.5, 0.99, 1)]
    print("latency: median {:.1f} ms, 99 % {:.1f} ms, longest {:.1f} ms".format(*at))
    await asyncio.gather(*(rpc.socket.close() for rpc, _ in readers))

    slow = await slow_subscriber(options.address, key)
    ids += await overtake(writer)
    slow.reader = asyncio.create_task(slow.read())
    end = await slow.closed()
    assert end == (4009, "event-gap"), end
    print(f"one that does not read is closed: {end[0]:d} {end[1]}")
    stalled = {name: resident_mib(pid) for name, pid in pids.items()}
    await writer.call("daemon.task.deleteMany", {"taskIds": ids})
    await writer.close()
    for name in pids:
        steps = [before[name], connected[name], after[name], stalled[name]]
        told = ", ".join("{} {:.0f} MiB".format(*step) for step in zip(["before", "connected", "after", "overtaken"], steps))
        print(f"resident, {name}: {told}")


if __name__ == "__main__":
    asyncio.run(main())
