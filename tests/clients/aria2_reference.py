"""Holds aria2's dialect against aria2c itself: the same calls to both, and every difference that is not agreed is an error.

    aria2_reference.py ADDRESS           the service; its key is in SVC_TOKEN. aria2c is Debian's.

What is agreed stands in aria2_agreed.json, step by step, each with its reason; a difference that is another one than
agreed, or that no longer shows, is an error as well. UPDATE_EXPECT=1 writes what differs now, with the reasons there are.
"""

import base64
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import xmlrpc.client

from websockets.sync.client import connect

KEY = os.environ["SVC_TOKEN"]
TOKEN = "token:" + KEY

# Nothing that is waited for takes this long.
PATIENCE = 30

# Of a value under one of these keys, only the kind counts: it depends on the moment.
MOMENTARY = {"version", "enabledFeatures", "completedLength", "connections", "downloadSpeed", "sessionId", "numStoppedTotal", "bitfield"}

# Where the two differ, and why they may: for each step, its reason and what each of the two says at each place.
AGREED = pathlib.Path(__file__).with_name("aria2_agreed.json")


def program():
    """The reference, from Debian if it is not here."""
    if not shutil.which("aria2c"):
        as_root = [] if os.geteuid() == 0 else ["sudo"]
        subprocess.run([*as_root, "apt-get", "install", "-y", "-qq", "aria2"], check=True, stdout=sys.stderr)
    return "aria2c"


class Origin(http.server.BaseHTTPRequestHandler):
    """A server: /fast/ at once, /slow/ in small bites, the others refuse."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        refused = {"missing": 404, "auth": 401}.get(self.path.split("/")[1])
        if refused:
            self.send_response(refused)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        is_fast = self.path.startswith("/fast")
        size = 65536 if is_fast else 8 << 20
        start, end = 0, size
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked:
            start, end = int(asked[1]), int(asked[2]) + 1 if asked[2] else size
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        else:
            self.send_response(200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", '"1"')
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        try:
            for place in range(start, end, 16384):
                self.wfile.write(b"x" * min(16384, end - place))
                if not is_fast:
                    time.sleep(0.2)
        except OSError:
            self.close_connection = True

    do_HEAD = do_GET


def serve(handler=Origin):
    """Starts the server, for as long as this program runs; where it is."""
    origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    origin.daemon_threads = True
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{origin.server_port}"


class Peer:
    """One of the two: what it says, with what is its own taken out."""

    def __init__(self, name, address, directory, origin):
        self.name, self.address, self.directory, self.origin = name, address, directory, origin
        self.gids, self.notices = {}, []
        self.outcomes = {}
        self.socket = connect(f"ws://{address}/jsonrpc", max_size=None)
        self.reader = threading.Thread(target=self.listen, daemon=True)
        self.reader.start()

    def listen(self):
        try:
            for message in self.socket:
                told = json.loads(message)
                self.notices.append((told["method"], told["params"][0]["gid"]))
        except Exception:
            pass

    def post(self, body, path="/jsonrpc", kind="application/json"):
        request = urllib.request.Request(f"http://{self.address}{path}", body.encode(), {"Content-Type": kind})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.read().decode()

    def raw(self, method, *params, token=TOKEN):
        params = [token, *params] if token else list(params)
        return json.loads(self.post(json.dumps({"jsonrpc": "2.0", "id": "q", "method": method, "params": params})))

    def must(self, method, *params):
        answer = self.raw(method, *params)
        assert "result" in answer, (self.name, method, answer)
        return answer["result"]

    def plain(self, value, key=None):
        """A value without what is this peer's own."""
        if key in MOMENTARY:
            return type(value).__name__
        if isinstance(value, dict):
            return {name: self.plain(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.plain(inner) for inner in value]
        if isinstance(value, str):
            for gid, name in self.gids.items():
                value = value.replace(gid, f"<{name}>")
            return value.replace(self.origin, "<origin>").replace(self.directory, "<dir>")
        return value

    def add(self, name, path, options=None, position=None, mirrors=()):
        uris = [f"{self.origin}{path}", *(f"{self.origin}{mirror}" for mirror in mirrors)]
        params = [uris, options or {}] + ([] if position is None else [position])
        gid = self.must("aria2.addUri", *params)
        assert re.fullmatch(r"[0-9a-f]{16}", gid), gid
        self.gids[gid] = name
        return gid

    def gid(self, name):
        return next(gid for gid, known in self.gids.items() if known == name)

    def status(self, name):
        answer = self.raw("aria2.tellStatus", self.gid(name), ["status"])
        return answer.get("result", {}).get("status", "gone")

    def wait(self, name, *states):
        until = time.monotonic() + PATIENCE
        while self.status(name) not in states:
            assert time.monotonic() < until, (self.name, name, self.status(name), states)
            time.sleep(0.02)

    def wait_for_notice(self, kind, name):
        until = time.monotonic() + PATIENCE
        while ("aria2.onDownload" + kind, self.gid(name)) not in self.notices:
            assert time.monotonic() < until, (self.name, kind, name, self.notices)
            time.sleep(0.02)

    def told(self):
        """What was told since the last time."""
        told, self.notices = self.notices, []
        return [f"{method.removeprefix('aria2.onDownload')} {self.gids.get(gid, gid)}" for method, gid in told]

    def step(self, name, outcome):
        assert name not in self.outcomes, name
        self.outcomes[name] = self.plain(outcome)

    def call(self, name, method, *params, token=TOKEN):
        self.step(name, {key: value for key, value in self.raw(method, *params, token=token).items() if key != "id"})


def envelope(peer):
    """What a message is, and what its answer looks like."""
    ask = json.dumps
    for name, body in {
        "nothing": "", "half": "{", "number": "7", "empty": "{}", "no-method": '{"id":1}', "empty-batch": "[]",
        "no-id": ask({"method": "aria2.getVersion", "params": [TOKEN]}),
        "params-object": ask({"id": 1, "method": "aria2.getVersion", "params": {}}),
        "id-null": ask({"id": None, "method": "system.listNotifications"}),
        "batch": ask([{"id": 1, "method": "aria2.getVersion"}, 7, {"id": 2, "method": "nope", "params": [TOKEN]}]),
    }.items():
        peer.step(name, json.loads(peer.post(body)))
    peer.call("methods", "system.listMethods", token=None)
    peer.call("notifications", "system.listNotifications", token=None)
    peer.call("unknown-method", "aria2.nope")
    peer.call("unauthorized", "aria2.getVersion", token=None)
    peer.call("wrong-token", "aria2.getVersion", token="token:nope-nope-1")
    peer.call("version", "aria2.getVersion")
    peer.call("session", "aria2.getSessionInfo")
    peer.call("stat", "aria2.getGlobalStat")
    peer.call("save-session", "aria2.saveSession")
    child = {"methodName": "aria2.getSessionInfo", "params": [TOKEN]}
    peer.call("multicall", "system.multicall", [
        child, {"methodName": "aria2.getSessionInfo"}, {"methodName": "system.multicall", "params": [[]]}, {"params": []}, 7,
        {"methodName": "nope", "params": [TOKEN]}, {"methodName": "system.listNotifications"}], token=None)
    peer.call("multicall-token", "system.multicall", [child])
    peer.call("multicall-nothing", "system.multicall", token=None)
    peer.call("multicall-text", "system.multicall", "x", token=None)


def refusals(peer):
    """What is refused of what is asked for, and how."""
    uri = [f"{peer.origin}/fast/refused"]
    for name, params in {
        "add-nothing": [], "add-empty": [[]], "add-text": ["x"], "add-number": [[7]], "add-word": [["foo"]],
        "add-options": [uri, 7], "add-position": [uri, {}, -1], "add-position-text": [uri, {}, "a"],
        "split-zero": [uri, {"split": "0"}], "split-text": [uri, {"split": "x"}], "limit": [uri, {"max-download-limit": "10Q"}],
        "flag": [uri, {"continue": "yes"}], "checksum": [uri, {"checksum": "sha-1=zz"}], "checksum-kind": [uri, {"checksum": "x=00"}],
        "connections": [uri, {"max-connection-per-server": "17"}], "split-size": [uri, {"min-split-size": "1"}],
        "one-of": [uri, {"file-allocation": "x"}], "bad-gid": [uri, {"gid": "zz"}], "bad-gid-short": [uri, {"gid": "12"}],
        "magnet": [["magnet:?xt=urn:btih:zz"]],
    }.items():
        peer.call(name, "aria2.addUri", *params)
    for name, params in {"gid-empty": [""], "gid-text": ["zz"], "gid-long": ["1" * 17], "gid-unknown": ["f" * 16], "gid-number": [7],
                         "gid-nothing": []}.items():
        for method in ("tellStatus", "pause", "remove", "getOption"):
            peer.call(f"{name}-{method}", f"aria2.{method}", *params)
    for name, params in {"list-count": [0, -1], "list-half": [0], "list-text": ["a", 1]}.items():
        peer.call(name, "aria2.tellWaiting", *params)
    peer.call("torrent", "aria2.addTorrent", "eA==")
    peer.call("torrent-nothing", "aria2.addTorrent")
    peer.call("metalink-nothing", "aria2.addMetalink")
    peer.call("metalink-bad", "aria2.addMetalink", "!!!")
    peer.call("metalink-half", "aria2.addMetalink", base64.b64encode(b"<metalink").decode())
    peer.call("metalink-other", "aria2.addMetalink", base64.b64encode(b"<x/>").decode())


def finished(peer):
    """Downloads that end by themselves."""
    peer.add("done", "/fast/done?x=1", {"gid": "00000000000000a1"})
    peer.wait("done", "complete")
    peer.wait_for_notice("Complete", "done")
    peer.step("notices-done", peer.told())
    gid = peer.gid("done")
    peer.call("gid-again", "aria2.addUri", [f"{peer.origin}/fast/again"], {"gid": gid})
    peer.call("complete", "aria2.tellStatus", gid)
    peer.call("complete-keys", "aria2.tellStatus", gid, ["gid", "status", "nope"])
    peer.call("complete-upper", "aria2.tellStatus", gid.upper(), ["gid"])
    peer.call("complete-prefix", "aria2.tellStatus", gid[:15], ["gid"])
    peer.call("files-complete", "aria2.getFiles", gid)
    for method in ("getUris", "getPeers", "getServers", "pause", "unpause", "remove"):
        peer.call(f"complete-{method}", f"aria2.{method}", gid)
    peer.call("complete-changeOption", "aria2.changeOption", gid, {})
    peer.call("complete-changePosition", "aria2.changePosition", gid, 0, "POS_SET")
    peer.call("complete-changeUri", "aria2.changeUri", gid, 1, [], [])
    for name, path, options in [
        ("missing", "/missing/x", {"max-tries": "1"}), ("auth", "/auth/x", {"max-tries": "1"}),
        ("sum", "/fast/sum", {"checksum": "sha-1=" + "0" * 40}),
    ]:
        peer.add(name, path, options)
        peer.wait_for_notice("Error", name)
        peer.call(f"error-{name}", "aria2.tellStatus", peer.gid(name),
                  ["status", "errorCode", "errorMessage", "totalLength", "numPieces", "pieceLength", "gid"])
    peer.step("notices-errors", peer.told())
    for name, offset, count in [("all", 0, 10), ("some", 1, 2), ("last", -1, 2), ("before", -2, 2), ("over", -3, 9), ("none", 100, 1)]:
        peer.call(f"stopped-{name}", "aria2.tellStopped", offset, count, ["gid", "status", "errorCode"])
    peer.call("remove-result", "aria2.removeDownloadResult", peer.gid("missing"))
    peer.call("remove-result-again", "aria2.removeDownloadResult", peer.gid("missing"))
    peer.call("purge", "aria2.purgeDownloadResult")
    peer.call("purged", "aria2.tellStopped", 0, 10)


def live(peer):
    """Two that run, and others that wait."""
    peer.must("aria2.changeGlobalOption", {"max-concurrent-downloads": "2"})
    a, b = peer.add("a", "/slow/a", {"out": "a"}), peer.add("b", "/slow/b", {"out": "sub/b"}, mirrors=["/slow/b2"])
    peer.wait("a", "active")
    peer.wait("b", "active")
    c = peer.add("c", "/slow/c", {"pause": "true"})
    e = peer.add("e", "/slow/e", mirrors=["/slow/e2"])
    peer.add("f", "/slow/f", {}, 0)
    g = peer.add("g", "/slow/g", {}, 100)
    peer.wait_for_notice("Start", "b")
    peer.step("notices-start", peer.told())
    until = time.monotonic() + PATIENCE
    while {"totalLength": "0"} in peer.must("aria2.tellActive", ["totalLength"]) and time.monotonic() < until:
        time.sleep(0.05)
    peer.call("active", "aria2.tellActive", ["gid", "status", "dir", "numPieces", "pieceLength", "totalLength", "uploadSpeed"])
    peer.call("active-all", "aria2.tellStatus", a)
    peer.call("waiting", "aria2.tellWaiting", 0, 10, ["gid", "status"])
    peer.call("waiting-one", "aria2.tellWaiting", 0, 1)
    peer.call("waiting-last", "aria2.tellWaiting", -1, 2, ["gid"])
    peer.call("paused", "aria2.tellStatus", c)
    peer.call("uris-active", "aria2.getUris", b)
    peer.call("waiting-uris", "aria2.getUris", e)
    # Ours is sampled twice a second; aria2c lists a connection as soon as it receives.
    while not (files := peer.plain(peer.must("aria2.getServers", a)))[0]["servers"]:
        assert time.monotonic() < until, (peer.name, files)
        time.sleep(0.05)
    # How many connections there are by now is each one's own affair: aria2c keeps to one a server, ours opens more.
    for file in files:
        file["servers"] = [dict(server) for server in sorted({tuple(server.items()) for server in file["servers"]})]
    peer.step("servers", files)
    peer.call("servers-waiting", "aria2.getServers", e)
    peer.call("peers", "aria2.getPeers", a)
    peer.call("stat-live", "aria2.getGlobalStat")
    for number, (offset, how) in enumerate([(0, "POS_SET"), (1, "POS_CUR"), (-1, "POS_END"), (100, "POS_SET"), (-100, "POS_CUR"),
                                            (-2, "POS_END")]):
        peer.call(f"move-{number}", "aria2.changePosition", g, offset, how)
        peer.call(f"moved-{number}", "aria2.tellWaiting", 0, 10, ["gid"])
    peer.call("move-active", "aria2.changePosition", a, 0, "POS_SET")
    peer.call("move-how", "aria2.changePosition", g, 0, "X")
    peer.call("move-text", "aria2.changePosition", g, "0", "POS_SET")
    peer.call("move-half", "aria2.changePosition", g)
    peer.call("pause-waiting", "aria2.pause", e)
    peer.call("pause-again", "aria2.pause", e)
    peer.call("unpause-waiting", "aria2.unpause", e)
    peer.call("unpause-again", "aria2.unpause", e)
    peer.step("notices-waiting", peer.told())
    peer.call("pause-active", "aria2.pause", a)
    peer.wait_for_notice("Pause", "a")
    peer.wait_for_notice("Start", "f")
    peer.step("notices-pause", sorted(peer.told()))
    peer.call("paused-active", "aria2.tellStatus", a)
    peer.call("order-after-pause", "aria2.tellWaiting", 0, 10, ["gid"])
    changes(peer)


def changes(peer):
    """What is changed of those that run or wait, and how they go."""
    a, b, c, e, f, g = (peer.gid(name) for name in "abcefg")
    peer.call("change-limit", "aria2.changeOption", f, {"max-download-limit": "100K"})
    peer.call("change-bad", "aria2.changeOption", f, {"split": "a"})
    peer.call("change-ignored", "aria2.changeOption", f, {"pause": "true", "nope": "1"})
    peer.call("change-nothing", "aria2.changeOption", f)
    peer.call("change-text", "aria2.changeOption", f, "x")
    peer.call("change-paused", "aria2.changeOption", c, {"out": "cc", "header": ["A: b", "C: d"], "split": "7"})
    changed = peer.must("aria2.getOption", c)
    peer.step("changed", {name: changed.get(name) for name in ("out", "header", "split", "dir", "max-download-limit")})
    peer.call("changed-limit", "aria2.tellStatus", f, ["gid", "status"])
    peer.step("changed-live", peer.must("aria2.getOption", f)["max-download-limit"])
    base = peer.origin
    peer.call("uri-swap", "aria2.changeUri", c, 1, [f"{base}/slow/c"], [f"{base}/slow/n1", f"{base}/slow/n2"], 0)
    peer.call("uri-insert", "aria2.changeUri", c, 1, [], [f"{base}/slow/n3"], 1)
    peer.call("waiting-uris-changed", "aria2.getUris", c)
    peer.call("uri-index", "aria2.changeUri", c, 2, [], [])
    peer.call("uri-index-zero", "aria2.changeUri", c, 0, [], [])
    peer.call("uri-bad", "aria2.changeUri", c, 1, [], ["bad", 7])
    peer.call("uri-half", "aria2.changeUri", c, 1, [])
    peer.call("remove-waiting", "aria2.remove", e)
    peer.call("remove-waiting-gone", "aria2.tellStatus", e)
    peer.call("remove-paused", "aria2.remove", c)
    peer.told()
    peer.call("remove-active", "aria2.remove", b)
    peer.wait_for_notice("Stop", "b")
    peer.wait_for_notice("Start", "g")
    peer.step("notices-remove", sorted(peer.told()))
    peer.call("removed", "aria2.tellStatus", b, ["gid", "status", "errorCode", "errorMessage", "dir", "totalLength"])
    peer.call("removed-list", "aria2.tellStopped", 0, 10, ["gid", "status"])
    peer.call("removed-again", "aria2.remove", b)
    peer.call("removed-result-live", "aria2.removeDownloadResult", f)
    peer.call("removed-result", "aria2.removeDownloadResult", b)
    peer.call("pause-all", "aria2.pauseAll")
    peer.wait_for_notice("Pause", "f")
    peer.wait_for_notice("Pause", "g")
    peer.step("notices-pause-all", sorted(peer.told()))
    peer.call("pause-all-again", "aria2.pauseAll")
    peer.call("unpause-all", "aria2.unpauseAll")
    # Which two of the three run depends on who went to the front.
    peer.wait_for_count(2)
    peer.told()
    for name in "afg":
        peer.raw("aria2.forceRemove", peer.gid(name))
    peer.wait_for_count(0)
    peer.call("global-change", "aria2.changeGlobalOption", {"max-overall-download-limit": "1M", "nope": "x", "out": "y"})
    peer.call("global-bad", "aria2.changeGlobalOption", {"max-concurrent-downloads": "0"})
    peer.call("global-nothing", "aria2.changeGlobalOption")
    options = peer.must("aria2.getGlobalOption")
    peer.step("global", {name: options.get(name) for name in ("max-overall-download-limit", "max-concurrent-downloads", "out", "dir")})
    kinds = {type(value).__name__ for value in options.values()}
    peer.step("global-kinds", sorted(kinds))


def documents(peer):
    """Metalink, XML-RPC, and calls in a query."""
    files = "".join(
        f'<file name="{name}"><hash type="sha-256">{"0" * 64}</hash><url priority="2">{peer.origin}/fast/{number}b</url>'
        f'<url priority="1">{peer.origin}/fast/{number}</url></file>' for number, name in enumerate(["m1.bin", "m2/x.bin"]))
    document = f'<?xml version="1.0"?><metalink xmlns="urn:ietf:params:xml:ns:metalink">{files}</metalink>'
    gids = peer.must("aria2.addMetalink", base64.b64encode(document.encode()).decode(), {"pause": "true"})
    for number, gid in enumerate(gids):
        peer.gids[gid] = f"m{number}"
        peer.call(f"metalink-{number}", "aria2.tellStatus", gid, ["status", "dir"])
        peer.step(f"waiting-metalink-{number}", peer.must("aria2.getFiles", gid)[0]["uris"])
        peer.step(f"metalink-path-{number}", peer.must("aria2.getFiles", gid)[0]["path"])
    server = xmlrpc.client.ServerProxy(f"http://{peer.address}/rpc")
    peer.step("xml-notifications", server.system.listNotifications())
    peer.step("xml-files", server.aria2.tellStatus(TOKEN, gids[0], ["gid", "status"]))
    gid = server.aria2.addUri(TOKEN, [f"{peer.origin}/fast/xml"], {"pause": "true"})
    peer.gids[gid] = "xml"
    peer.step("xml-position", server.aria2.changePosition(TOKEN, gid, 0, "POS_SET"))
    try:
        server.aria2.tellStatus(gid)
    except xmlrpc.client.Fault as fault:
        peer.step("xml-fault", [fault.faultCode, fault.faultString])
    calls = xmlrpc.client.MultiCall(server)
    calls.aria2.getSessionInfo(TOKEN)
    peer.step("xml-multicall", [type(value).__name__ for value in calls()])
    refused = xmlrpc.client.MultiCall(server)
    refused.aria2.getVersion()
    try:
        list(refused())
    except xmlrpc.client.Fault as fault:
        peer.step("xml-multicall-fault", [fault.faultCode, fault.faultString])
    params = base64.b64encode(json.dumps([TOKEN, gid, ["gid", "status"]]).encode()).decode()
    query = urllib.parse.urlencode({"method": "aria2.tellStatus", "id": "foo", "params": params})
    with urllib.request.urlopen(f"http://{peer.address}/jsonrpc?{query}") as answer:
        peer.step("query", json.load(answer))
    with connect(f"ws://{peer.address}/jsonrpc") as socket:
        for name, message in {"socket-half": "{", "socket-batch": json.dumps([{"id": 1, "method": "system.listNotifications"}]),
                              "socket-empty": "[]"}.items():
            socket.send(message)
            peer.step(name, json.loads(socket.recv(PATIENCE)))


def wait_for_count(peer, count):
    until = time.monotonic() + PATIENCE
    while int(peer.must("aria2.getGlobalStat")["numActive"]) != count:
        assert time.monotonic() < until, (peer.name, count)
        time.sleep(0.02)


Peer.wait_for_count = wait_for_count


def leaves(value, place=""):
    """Every place in a value, and what is there."""
    if isinstance(value, dict) and value:
        return {name: leaf for key, inner in value.items() for name, leaf in leaves(inner, f"{place}.{key}").items()}
    if isinstance(value, list) and value:
        return {name: leaf for index, inner in enumerate(value) for name, leaf in leaves(inner, f"{place}[{index}]").items()}
    return {place.removeprefix("."): value}


def differences(reference, service):
    assert reference.outcomes.keys() == service.outcomes.keys()
    for step, expected in reference.outcomes.items():
        expected, got = leaves(expected), leaves(service.outcomes[step])
        for place in sorted(expected.keys() | got.keys()):
            missing = "(nothing)"
            if expected.get(place, missing) != got.get(place, missing):
                yield step, place, expected.get(place, missing), got.get(place, missing)


def start(directory):
    """aria2c, which cannot be asked to choose its port, and the port."""
    with http.server.HTTPServer(("127.0.0.1", 0), Origin) as free:
        port = free.server_port
    return port, subprocess.Popen([program(), "--no-conf", "--enable-rpc", f"--rpc-listen-port={port}", f"--rpc-secret={KEY}",
                                   f"--dir={directory}", "--quiet", "--max-concurrent-downloads=2"])


def main(address):
    base = serve()
    with tempfile.TemporaryDirectory() as directory:
        port, aria2c = start(directory)
        try:
            reference = None
            until = time.monotonic() + PATIENCE
            while reference is None:
                try:
                    reference = Peer("aria2c", f"127.0.0.1:{port}", directory, base)
                except OSError:
                    assert time.monotonic() < until
                    if aria2c.poll() is not None:
                        # Another program took the port in between.
                        port, aria2c = start(directory)
                    time.sleep(0.05)
            service = Peer("svc", address, "", base)
            service.directory = service.must("aria2.getGlobalOption")["dir"]
            for part in (envelope, refusals, finished, live, documents):
                for peer in (reference, service):
                    part(peer)
        finally:
            aria2c.terminate()
            aria2c.wait()
    agreed = json.loads(AGREED.read_text())
    found = {}
    for step, place, expected, got in differences(reference, service):
        found.setdefault(step, {})[place] = {"aria2c": expected, "svc": got}
    bad = [step for step in {**agreed, **found} if agreed.get(step, {}).get("differences") != found.get(step)]
    for step in bad:
        print(f"DIFFERS: {step}: agreed {agreed.get(step, {}).get('differences')}, found {found.get(step)}")
    print(f"{len(reference.outcomes)} steps, {len(found)} with differences, {len(bad)} of them not as agreed")
    if os.environ.get("UPDATE_EXPECT") == "1":
        why = {step: agreed.get(step, {}).get("why", "") for step in found}
        now = {step: {"why": why[step], "differences": places} for step, places in sorted(found.items())}
        AGREED.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n")
        bad = []
    assert not bad, bad
    assert all(entry["why"] for entry in agreed.values()), "each agreed difference has its reason"


if __name__ == "__main__":
    main(*sys.argv[1:])
