"""Many WebSockets of aria2's dialect at once, on a host that is told to start downloads: does everybody hear of every one?"""

from __future__ import annotations

import select
import statistics
import time

from hosts import Aria2Socket, Connection, Host

# Nobody listens there: a download that may try once starts and fails at once.
NOWHERE = "http://127.0.0.1:9/"
# What is told of each such download: that it started, and that it failed.
TOLD_OF_EACH = 2
# How long a round may take.
PATIENCE_SECONDS = 30


class Listeners:
    """WebSockets that only listen. What they hear in a round must be the same for all of them, to the byte."""

    def __init__(self, host: Host, count: int) -> None:
        self.host = host
        self.sockets = [Aria2Socket(host.json_rpc).socket for _ in range(count)]
        self.poll = select.epoll()
        self.heard = {socket.fileno(): bytearray() for socket in self.sockets}
        self.by_number = {socket.fileno(): socket for socket in self.sockets}
        for number in self.heard:
            self.poll.register(number, select.EPOLLIN)

    def __enter__(self) -> Listeners:
        return self

    def __exit__(self, *_: object) -> None:
        self.poll.close()
        for socket in self.sockets:
            socket.close()

    def delay(self, rounds: int) -> float:
        """Milliseconds from a call until everybody knows that its download started and failed; the median."""
        with self.host.connect() as connection:
            return statistics.median(self.round(connection, 1) for _ in range(rounds)) * 1000

    def rate(self, rounds: int, downloads: int) -> float:
        """Notices a second that reach somebody, with several downloads a round."""
        with self.host.connect() as connection:
            seconds = sum(self.round(connection, downloads) for _ in range(rounds))
        return rounds * downloads * TOLD_OF_EACH * len(self.sockets) / seconds

    def round(self, connection: Connection, downloads: int) -> float:
        """Starts downloads and waits until everybody knows what became of them; the seconds that it took."""
        rpc = self.host.json_rpc
        calls = [rpc.call("addUri", [NOWHERE], {"max-tries": "1"}) for _ in range(downloads)]
        began = time.perf_counter()
        rpc.ask(connection, calls)
        waiting = set(self.heard)
        while waiting:
            ready = self.poll.poll(PATIENCE_SECONDS)
            if not ready:
                raise RuntimeError(f"{len(waiting)} of {len(self.sockets)} were not told everything")
            for number, _ in ready:
                heard = self.heard[number]
                received = self.by_number[number].recv(1 << 16)
                if not received:
                    name = self.host.command()[0]
                    raise RuntimeError(f"{name} closed a WebSocket after {bytes(heard[-100:])!r}")
                heard += received
                if heard.count(b"aria2.onDownload") == TOLD_OF_EACH * downloads and heard.endswith(b"}"):
                    waiting.discard(number)
        took = time.perf_counter() - began
        self.compare()
        return took

    def compare(self) -> None:
        first = next(iter(self.heard.values()))
        if any(heard != first for heard in self.heard.values()):
            raise RuntimeError("not everybody was told the same in the same order")
        for heard in self.heard.values():
            heard.clear()
