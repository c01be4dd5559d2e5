"""Two services and an observer, each in a network namespace of its own on one bridge: `link_network.py SVC`.

They find each other with multicast DNS, pair, hand a download over in both directions, end the pairing. The observer sees
announcements and nothing else. Needs root and iproute2.
"""

import ctypes
import hashlib
import http.client
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from link_peer import LINK, Service
from link_service import KEY, Running

# Python has it since 3.12 only.
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000

TAG = "svl%d" % (os.getpid() % 10000)


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


class Network:
    """A bridge in a namespace of its own, and hosts on it."""

    def __init__(self, hosts):
        self.spaces = [TAG + "sw"] + [TAG + host for host in hosts]
        for space in self.spaces:
            ip("netns", "add", space)
            ip("-n", space, "link", "set", "lo", "up")
        switch = self.spaces[0]
        ip("-n", switch, "link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        ip("-n", switch, "link", "set", "br0", "up")
        for number, host in enumerate(hosts, 1):
            space = TAG + host
            ip("-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", "p%d" % number, "netns", switch)
            ip("-n", switch, "link", "set", "p%d" % number, "master", "br0")
            ip("-n", switch, "link", "set", "p%d" % number, "up")
            ip("-n", space, "addr", "add", "192.168.77.%d/24" % number, "dev", "eth0")
            ip("-n", space, "addr", "add", "fd77::%d/64" % number, "dev", "eth0", "nodad")
            ip("-n", space, "link", "set", "eth0", "up")
            ip("-n", space, "route", "add", "224.0.0.0/4", "dev", "eth0")

    def remove(self):
        for space in reversed(self.spaces):
            ip("netns", "del", space)


def enter(host):
    """Moves the calling thread into a host."""
    with open("/run/netns/" + TAG + host) as space:
        if LIBC.setns(space.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "cannot enter " + host)


def within(host, call):
    """Calls in a host, on a thread of its own."""
    result = []

    def work():
        enter(host)
        try:
            result.append((call(), None))
        except BaseException as error:
            result.append((None, error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    value, error = result[0]
    if error:
        raise error
    return value


class Observer:
    """Everything that reaches the third host."""

    def __init__(self):
        self.frames, self.is_over = [], False
        self.thread = threading.Thread(target=self.listen)
        self.thread.start()

    def listen(self):
        enter("c")
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as tap:
            tap.settimeout(0.2)
            while not self.is_over:
                try:
                    self.frames.append(tap.recv(65536))
                except TimeoutError:
                    pass

    def end(self):
        self.is_over = True
        self.thread.join()
        return self.frames


def wait(what, ready, seconds=30):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = ready()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("never " + what)


class Host:
    """A service within a host, managed from within it."""

    def __init__(self, program, name, address, bind="[::]:17800"):
        self.name, self.address = name, address
        prefix = ["ip", "netns", "exec", TAG + name]
        self.running = Running(program, "device " + name, bind=bind, prefix=prefix)
        if not bind.startswith("[::]"):
            self.running.api = Service("http://" + bind, KEY)
        self.wait_until_ready()

    def wait_until_ready(self):
        within(self.name, self.running.wait_until_ready)

    def manage(self, *arguments, **named):
        return within(self.name, lambda: self.running.api.manage(*arguments, **named))

    def devices(self):
        return self.manage("GET", LINK + "/devices")["devices"]


def pair(one, two, host):
    code = two.manage("POST", LINK + "/code")["code"]
    begun = one.manage("POST", LINK + "/pair/begin", {"host": host, "port": 17800, "code": code})
    (request,) = two.manage("GET", LINK + "/pair/requests")["requests"]
    assert request["sas"] == begun["sas"], (request, begun)
    finished = []
    waiting = threading.Thread(target=lambda: finished.append(
        one.manage("POST", LINK + "/pair/finish", {"token": begun["token"], "accept": True})))
    waiting.start()
    two.manage("POST", LINK + "/pair/approve", {"sessionId": request["sessionId"], "accept": True})
    waiting.join()
    assert finished[0]["paired"], finished
    return begun, code


def origin(directory):
    """A web server in the first host, with one file."""
    content = os.urandom(300_000)
    with open(os.path.join(directory, "file.bin"), "wb") as file:
        file.write(content)

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, directory=directory, **named)

        def log_message(self, *_):
            pass

    server = within("a", lambda: ThreadingHTTPServer(("192.168.77.1", 8099), Handler))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, hashlib.sha256(content).hexdigest()


def main():
    network = Network(["a", "b", "c"])
    hosts, server = [], None
    try:
        observer = Observer()
        one, two = Host(sys.argv[1], "a", "192.168.77.1"), Host(sys.argv[1], "b", "192.168.77.2")
        hosts = [one, two]
        # Nobody is announced before a code is made.
        assert one.manage("POST", LINK + "/discovery", {"action": "start"}) == {"ok": True}
        two.manage("POST", LINK + "/code")
        found = wait("found", lambda: one.manage("GET", LINK + "/discovered")["peers"])
        assert [peer["name"] for peer in found] == ["device b"] and found[0]["host"] == two.address, found
        assert found[0]["source"] == "mdns" and found[0]["port"] == 17800, found
        begun, code = pair(one, two, found[0]["host"])
        assert begun["peerFingerprint"] == found[0]["fingerprint"]
        assert one.manage("GET", LINK + "/discovered")["peers"] == [], "paired devices are not listed"
        one.manage("POST", LINK + "/discovery", {"action": "stop"})
        # Each has the other, learned where it is, and sees it.
        for host, other in [(one, "device b"), (two, "device a")]:
            wait("online", lambda host=host, other=other: any(
                device["online"] and device["name"] == other and device["defaultSaveDir"] for device in host.devices()))
        # A download crosses over, and is downloaded there. Its URL is private, so the receiver's owner allows that.
        server, digest = origin(tempfile.mkdtemp())
        of_one, of_two = two.devices()[0]["fingerprint"], one.devices()[0]["fingerprint"]
        two.manage("PATCH", LINK + "/devices/" + of_one, {"allowPrivate": True})
        url = "http://192.168.77.1:8099/file.bin"
        task = {"url": url, "checksum": "sha256=" + digest}
        sent = one.manage("POST", LINK + f"/devices/{of_two}/tasks", task)
        done = wait("downloaded", lambda: (lambda shown: shown if shown["status"] in (3, 4) else None)(
            two.manage("GET", "/api/v1/tasks/" + sent["taskId"])))
        assert done["status"] == 3 and done["createdBy"] == "link:" + of_one, done
        with open(os.path.join(done["saveDir"], done["fileName"]), "rb") as file:
            assert hashlib.sha256(file.read()).hexdigest() == digest
        # And back.
        back = two.manage("POST", LINK + f"/devices/{of_one}/tasks", {"url": "http://203.0.113.1/x"})
        assert one.manage("GET", "/api/v1/tasks/" + back["taskId"])["createdBy"] == "link:" + of_two
        # A service on one address of a machine that has several is announced and reached there only.
        ip("-n", TAG + "b", "addr", "add", "192.168.77.102/24", "dev", "eth0")
        bound = Host(sys.argv[1], "b", "192.168.77.102", bind="192.168.77.102:17801")
        hosts.append(bound)
        bound.manage("POST", LINK + "/code")
        one.manage("POST", LINK + "/discovery", {"action": "start"})
        (seen,) = wait("found at its only address", lambda: [
            peer for peer in one.manage("GET", LINK + "/discovered")["peers"] if peer["port"] == 17801])
        assert seen["host"] == bound.address, seen
        one.manage("POST", LINK + "/discovery", {"action": "stop"})
        # The first host gets another address; the second learns it from its next call.
        ip("-n", TAG + "a", "addr", "add", "192.168.77.101/24", "dev", "eth0")
        ip("-n", TAG + "a", "addr", "del", "192.168.77.1/24", "dev", "eth0")
        subprocess.run(["ip", "-n", TAG + "a", "route", "add", "224.0.0.0/4", "dev", "eth0"], check=False)
        wait("online at its new address", lambda: [device for device in one.devices() if device["online"]])
        wait("found at the new address", lambda: [device for device in two.devices() if device["online"]])
        # A device that is away gets its download when it is back.
        two.running.kill()
        queued = one.manage("POST", LINK + f"/devices/{of_two}/tasks", {"url": "http://203.0.113.1/later"}, expect=202)
        assert one.manage("GET", LINK + "/outbox")["entries"][0]["id"] == queued["id"]
        two.running.start()
        two.wait_until_ready()
        # Asking for the devices finds it, and sends what waits.
        wait("delivered", lambda: one.devices() and not one.manage("GET", LINK + "/outbox")["entries"], 60)
        urls = [task["url"] for task in two.manage("GET", "/api/v1/tasks")]
        assert urls.count("http://203.0.113.1/later") == 1, urls
        # Over IPv6, after the end of the first pairing.
        one.manage("DELETE", LINK + "/devices/" + of_two)
        assert two.devices() == [], "the other side heard of it"
        one.manage("POST", LINK + f"/devices/{of_two}/tasks", {"url": url}, expect=401)
        pair(one, two, "fd77::2")
        one.manage("POST", LINK + f"/devices/{of_two}/tasks", {"url": "http://203.0.113.1/six"})
        frames = observer.end()
        heard = b"".join(frames)
        assert b"_svc" in heard and two.manage("GET", "/ping")["linkFingerprint"][:12].encode() in heard
        for secret in [code, begun["sas"], url, "file.bin", KEY, "/api/v1/link", "svclink"]:
            assert secret.encode() not in heard, secret
        print(f"found, paired, sent both ways, ended; the observer saw {len(frames)} frames and no secret")
    finally:
        for host in hosts:
            host.running.end()
        if server:
            server.shutdown()
        if "observer" in locals() and not observer.is_over:
            observer.end()
        network.remove()


if __name__ == "__main__":
    main()
