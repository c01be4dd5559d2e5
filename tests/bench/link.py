"""A slow, lossy link between two private network namespaces. Nothing reaches the network of the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROUND_TRIP_SECONDS = 0.05
MBIT_PER_S = 300
# A router's buffer of one bandwidth-delay product.
QUEUE_BYTES = int(MBIT_PER_S * 1e6 / 8 * ROUND_TRIP_SECONDS)

SERVER_ADDRESS = "10.99.0.1"
CLIENT_ADDRESS = "10.99.0.2"

# Most servers' choice; machines with another default would measure something else.
CONGESTION_CONTROL = "cubic"


def best_case_seconds(total_bytes: int) -> float:
    """The payload at the link's rate and two round trips, to connect and to ask."""
    return total_bytes * 8 / (MBIT_PER_S * 1e6) + 2 * ROUND_TRIP_SECONDS


def obstacle() -> str | None:
    """Why there can be no link here."""
    if os.geteuid() != 0:
        return "needs root"
    if not os.path.exists("/dev/net/tun"):
        return "needs /dev/net/tun"
    if not shutil.which("ip"):
        return "needs ip (apt-get install iproute2)"
    return None


class LinkFailed(Exception):
    """This machine cannot make the link."""


class Link:
    """The two namespaces and the relay between them, for as long as the `with` lasts."""

    def __init__(self, relay: Path, loss_ppm: int):
        self.relay = relay
        self.loss_ppm = loss_ppm
        self.server = f"bench-{os.getpid()}-server"
        self.client = f"bench-{os.getpid()}-client"
        self.made: list[str] = []
        self.process: subprocess.Popen | None = None

    def __enter__(self) -> Link:
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self) -> None:
        for name in (self.server, self.client):
            ip("netns", "add", name)
            self.made.append(name)
        delay_us = int(ROUND_TRIP_SECONDS / 2 * 1e6)
        settings = [str(value) for value in (delay_us, MBIT_PER_S, self.loss_ppm, QUEUE_BYTES)]
        self.process = subprocess.Popen(
            [self.relay, f"/run/netns/{self.server}", f"/run/netns/{self.client}", *settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        if self.process.stdout.readline() != "ready\n":
            raise LinkFailed("the relay did not start")
        for name, own, peer in (
            (self.server, SERVER_ADDRESS, CLIENT_ADDRESS),
            (self.client, CLIENT_ADDRESS, SERVER_ADDRESS),
        ):
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "addr", "add", own, "peer", peer, "dev", "link0")
            # The only queue that drops is the relay's.
            ip("-n", name, "link", "set", "link0", "up", "mtu", "1500", "txqueuelen", "10000")
        # By the route, because a namespace may not choose among all algorithms of the machine as its default.
        route = [CLIENT_ADDRESS, "dev", "link0", "src", SERVER_ADDRESS, "congctl", CONGESTION_CONTROL]
        ip("-n", self.server, "route", "replace", *route)
        # Otherwise what one tool's connections learnt of the link is a start for the next one's.
        forget = ["sh", "-c", "echo 1 > /proc/sys/net/ipv4/tcp_no_metrics_save"]
        subprocess.run([*self.in_namespace(self.server), *forget], check=True)

    @staticmethod
    def in_namespace(name: str) -> list[str]:
        """What to put before a command so that it runs in a namespace."""
        return ["ip", "netns", "exec", name]

    def __exit__(self, *_: object) -> None:
        if self.process:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
        for name in self.made:
            ip("netns", "del", name)


def ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LinkFailed(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
