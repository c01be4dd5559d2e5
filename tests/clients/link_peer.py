"""A device that pairs with a service and exchanges downloads with it, written from the interface's text alone.

It plays both roles, checks what it is told byte by byte, and attacks: `link_peer.py URL KEY`.
"""

import base64
import hashlib
import hmac
import http.client
import json
import os
import secrets
import socket
import struct
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

LINK = "/api/v1/link"


def b64(data):
    return base64.b64encode(data).decode()


def unb64(text, length):
    data = base64.b64decode(text, validate=True)
    assert len(data) == length and b64(data) == text, text
    return data


def frame(data):
    data = data.encode() if isinstance(data, str) else data
    return struct.pack("<I", len(data)) + data


def sha256(data):
    return hashlib.sha256(data).digest()


def hkdf(secret, salt, info, length=32):
    return HKDF(hashes.SHA256(), length, salt, info).derive(secret)


def raw(key):
    return key.public_key().public_bytes_raw()


def hello_message(code, public, commit, name, platform, version, addresses):
    return (
        b"svc-link-hello-v2" + frame(code) + public + commit + frame(name) + frame(platform) + frame(version)
        + struct.pack("<I", len(addresses)) + b"".join(frame(address) for address in addresses)
    )


def transcript(hello, identities, ephemerals, nonces, about):
    info = sha256(b"svc-link-resp-info-v2" + b"".join(frame(text) for text in about))
    return b"svc-link-session-v2" + sha256(hello) + b"".join(identities + ephemerals + nonces) + info


def derive(shared, script):
    assert any(shared)
    digest = sha256(script)
    (number,) = struct.unpack(">I", hkdf(shared, b"svc-link-sas-v2", digest, 4))
    return "%06d" % (number % 1_000_000), hkdf(shared, b"svc-link-key-salt-v2", b"svc-link-key-v2" + digest)


class Pair:
    """The keys of two devices, and what one sends to the other."""

    def __init__(self, key, own, other):
        self.key, self.own, self.other = key, own, other
        self.cipher = ChaCha20Poly1305(hkdf(key, b"svc-link-aead-salt-v2", b"svc-link-aead-v2"))

    def request_aad(self, method, path, nonce, sender, receiver):
        parts = ["request", method, path, sender, receiver, nonce]
        return b"svclink-aad-v2" + b"".join(frame(part) for part in parts)

    def response_aad(self, nonce):
        return b"svclink-aad-v2" + frame("response") + frame(nonce)

    def tag(self, method, path, stamp, nonce, sender, receiver, body):
        parts = ["svclink-v2", method, path, stamp, nonce, sender, receiver, hashlib.sha256(body).hexdigest()]
        return hmac.new(self.key, "\n".join(parts).encode(), "sha256").hexdigest()

    def seal(self, aad, plain):
        nonce = os.urandom(12)
        return nonce + self.cipher.encrypt(nonce, plain, aad)

    def open(self, aad, sealed):
        assert len(sealed) >= 28
        return self.cipher.decrypt(sealed[:12], sealed[12:], aad)

    def sealed_request(self, path, plain, **change):
        """Headers and body; `change` replaces parts to attack with."""
        nonce = change.get("nonce", secrets.token_hex(16))
        stamp = change.get("stamp", str(int(time.time())))
        sender, receiver = change.get("sender", self.own), change.get("receiver", self.other)
        aad = self.request_aad("POST", change.get("aad_path", path), nonce, sender, receiver)
        if change.get("as_response"):
            aad = self.response_aad(nonce)
        body = self.seal(aad, plain if isinstance(plain, bytes) else json.dumps(plain).encode())
        tag = self.tag("POST", change.get("tag_path", path), stamp, nonce, sender, receiver, body)
        headers = {
            "X-SvcLink-Enc": "v2",
            "X-SvcLink-Device": sender,
            "X-SvcLink-Ts": stamp,
            "X-SvcLink-Nonce": nonce,
            "X-SvcLink-Tag": tag,
            "Content-Type": "application/octet-stream",
        }
        headers.update(change.get("headers", {}))
        return {name: value for name, value in headers.items() if value is not None}, body, nonce


class Service:
    """The service under test, over HTTP."""

    def __init__(self, url, key):
        self.address, self.key = urlsplit(url), key

    def send(self, method, path, body=b"", headers=None, timeout=90):
        connection = http.client.HTTPConnection(self.address.hostname, self.address.port, timeout=timeout)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, dict((name.lower(), value) for name, value in response.getheaders()), response.read()
        finally:
            connection.close()

    def manage(self, method, path, record=None, expect=200):
        body = b"" if record is None else json.dumps(record).encode()
        status, _, answer = self.send(method, path, body, {"Authorization": "Bearer " + self.key})
        assert status == expect, (method, path, status, answer)
        return json.loads(answer)

    def step(self, name, record, expect=200):
        status, _, answer = self.send("POST", f"{LINK}/pair/{name}", json.dumps(record).encode())
        assert status == expect, (name, status, answer)
        return json.loads(answer)

    def code(self):
        made = self.manage("POST", LINK + "/code")
        assert made["ttlSeconds"] == 120 and len(made["code"]) == 6, made
        return made["code"]


class Device:
    def __init__(self, name="python", addresses=()):
        self.identity = Ed25519PrivateKey.generate()
        self.public = raw(self.identity)
        self.fingerprint = hashlib.sha256(self.public).hexdigest()
        self.name, self.platform, self.version = name, "linux", "9"
        self.addresses = list(addresses)

    def hello(self, code, **change):
        ephemeral, nonce = X25519PrivateKey.generate(), os.urandom(32)
        commit = sha256(b"svc-link-commit-v2" + raw(ephemeral) + nonce)
        message = hello_message(code, self.public, commit, self.name, self.platform, self.version, self.addresses)
        record = {
            "protocolVersion": 2,
            "code": code,
            "initiatorIdPub": b64(self.public),
            "initiatorCommit": b64(commit),
            "initiatorSig": b64(self.identity.sign(message)),
            "name": self.name,
            "platform": self.platform,
            "appVersion": self.version,
            "initiatorAddrs": self.addresses,
        }
        record.update(change)
        return {name: value for name, value in record.items() if value is not None}, (message, ephemeral, nonce)

    def reveal(self, service, code):
        """The first two messages: session, digits, key of the pair."""
        record, (message, ephemeral, nonce) = self.hello(code)
        answer = service.step("hello", record)
        assert answer["protocolVersion"] == 2 and len(answer["sessionId"]) == 32, answer
        assert "sas" not in answer
        theirs, their_nonce = unb64(answer["responderEphPub"], 32), unb64(answer["responderNonce"], 32)
        their_public = unb64(answer["responderIdPub"], 32)
        revealed = {
            "sessionId": answer["sessionId"],
            "initiatorEphPub": b64(raw(ephemeral)),
            "initiatorNonce": b64(nonce),
        }
        signature = unb64(service.step("reveal", revealed)["responderSig"], 64)
        about = [answer["name"], answer.get("platform", ""), answer.get("appVersion", "")]
        script = transcript(
            message, [self.public, their_public], [raw(ephemeral), theirs], [nonce, their_nonce], about
        )
        Ed25519PublicKey.from_public_bytes(their_public).verify(signature, b"svc-link-resp-v2" + script)
        sas, key = derive(ephemeral.exchange(X25519PublicKey.from_public_bytes(theirs)), script)
        other = hashlib.sha256(their_public).hexdigest()
        return answer["sessionId"], sas, Pair(key, self.fingerprint, other), revealed

    def pair(self, service):
        session, sas, pair, revealed = self.reveal(service, service.code())
        (request,) = service.manage("GET", LINK + "/pair/requests")["requests"]
        assert request["sas"] == sas and request["peerFingerprint"] == self.fingerprint, (request, sas)
        # A replay of the second message finds nothing, and does no harm.
        refused(service, "reveal", revealed, "pairingSessionExpired")
        confirmed = []
        waiting = threading.Thread(
            target=lambda: confirmed.append(service.step("confirm", {"sessionId": session, "confirm": True}))
        )
        waiting.start()
        service.manage("POST", LINK + "/pair/approve", {"sessionId": session, "accept": True})
        waiting.join()
        assert confirmed == [{"success": True, "paired": True, "reason": None}], confirmed
        return pair


def refused(service, step, record, code=None, message=""):
    """A step of the pairing that must be refused, with this name or these words."""
    answer = service.step(step, record, 400)
    assert answer["success"] is False and answer.get("code") == code and message in answer["message"], (step, answer)


def exchange(service, pair, path, plain, expect=200, **change):
    headers, body, nonce = pair.sealed_request(path, plain, **change)
    status, answered, answer = service.send("POST", change.get("to", path), change.get("body", body), headers)
    assert status == expect, (path, change, status, answer)
    if status == 200:
        assert answered["x-svclink-enc"] == "v2" and answered["content-type"] == "application/octet-stream"
        return json.loads(pair.open(pair.response_aad(nonce), answer))
    return json.loads(answer)


def unauthorized(service, pair, reason, path=LINK + "/tasks", plain=None, **change):
    answer = exchange(service, pair, path, plain or {"url": "http://192.0.2.1/f", "saveDir": "", "fileName": ""}, 401, **change)
    assert answer["reason"] == reason and abs(answer["serverTime"] - time.time()) < 5, (change, answer)


def as_initiator(service):
    device = Device()
    pair = device.pair(service)
    tasks, info = LINK + "/tasks", LINK + "/info"
    task = {"url": "http://192.0.2.1/from-python", "saveDir": "", "fileName": "", "id": "one", "comesNextYear": 1}
    created = exchange(service, pair, tasks, task)
    assert set(created) == {"taskId"}, created
    assert exchange(service, pair, tasks, task) == created, "the same id is the same download"
    shown = service.manage("GET", "/api/v1/tasks/" + created["taskId"])
    assert shown["createdBy"] == "link:" + device.fingerprint, shown
    theirs = exchange(service, pair, info, {
        "v": 2, "name": "python", "platform": "linux", "appVersion": "9", "addresses": [], "cloudDeviceId": "",
        "defaultSaveDir": "/home", "pathStyle": "posix",
    })
    members = {"v", "name", "platform", "appVersion", "addresses", "cloudDeviceId", "defaultSaveDir", "pathStyle"}
    assert set(theirs) == members and theirs["v"] == 2 and theirs["pathStyle"] == "posix", theirs
    # Where files may go: the save directory and below. A path of another system goes to the default directory.
    below = theirs["defaultSaveDir"] + "/from-python"
    for directory, expected in [(below, below), ("C:\\Downloads", theirs["defaultSaveDir"])]:
        placed = exchange(service, pair, tasks, {"url": "http://192.0.2.1/placed", "saveDir": directory, "fileName": ""})
        assert service.manage("GET", "/api/v1/tasks/" + placed["taskId"])["saveDir"] == expected, (directory, placed)
    # A link in the save directory leads to nowhere that the device could not name.
    outside, link = tempfile.mkdtemp(), below + "-link"
    os.symlink(outside, link)
    for directory in [link, link + "/new"]:
        exchange(service, pair, tasks, {"url": "http://192.0.2.1/placed", "saveDir": directory, "fileName": ""}, 400)
    assert os.listdir(outside) == []
    listed = service.manage("GET", LINK + "/devices")["devices"]
    (mine,) = [entry for entry in listed if entry["fingerprint"] == device.fingerprint]
    assert mine["defaultSaveDir"] == "/home" and "key" not in json.dumps(mine).lower(), mine
    attack(service, device, pair)
    private = {"url": "http://127.0.0.1:1/f", "saveDir": "", "fileName": ""}
    reached = exchange(service, pair, tasks, private)
    for _ in range(200):
        shown = service.manage("GET", "/api/v1/tasks/" + reached["taskId"])
        if shown["errorMessage"]:
            break
        time.sleep(0.05)
    assert "public address" in shown["errorMessage"], shown
    device_path = LINK + "/devices/" + device.fingerprint
    changed = service.manage("PATCH", device_path, {"acceptsTasks": False})
    assert changed["acceptsTasks"] is False, changed
    exchange(service, pair, tasks, task | {"id": "two"}, 403)
    service.manage("PATCH", device_path, {"acceptsTasks": True})
    quota(service, device, pair)
    assert exchange(service, pair, LINK + "/unpair", {"v": 2}) == {"ok": True}
    assert exchange(service, pair, LINK + "/unpair", {"v": 2}) == {"ok": True}, "can be repeated"
    unauthorized(service, pair, "notPaired")
    unauthorized(service, pair, "notPaired", info, {"v": 2})
    listed = service.manage("GET", LINK + "/devices")["devices"]
    assert device.fingerprint not in [entry["fingerprint"] for entry in listed]
    service.manage("DELETE", device_path)
    service.manage("DELETE", device_path, expect=404)
    unauthorized(service, pair, "notPaired", LINK + "/unpair", {"v": 2})
    # Pairing again makes a new record.
    pair = device.pair(service)
    exchange(service, pair, tasks, task | {"id": "three"})
    service.manage("DELETE", device_path)
    unauthorized(service, pair, "notPaired")


def quota(service, device, pair):
    """So many downloads within 24 hours; a repeated one is no other."""
    tasks, device_path = LINK + "/tasks", LINK + "/devices/" + device.fingerprint
    service.manage("PATCH", device_path, {"dailyTasks": 4097}, 400)
    taken = service.manage("PATCH", device_path, {})["tasksToday"]
    assert taken > 4, "those without an id count as well"
    shown = service.manage("PATCH", device_path, {"dailyTasks": taken + 2})
    assert (shown["dailyTasks"], shown["tasksToday"]) == (taken + 2, taken), shown
    task = {"url": "http://192.0.2.1/counted", "saveDir": "", "fileName": "", "id": "counted"}
    # At once, and no more of them than there is room for.
    statuses = []

    def send(number):
        headers, body, _ = pair.sealed_request(tasks, task | {"id": "counted-%d" % number})
        statuses.append(service.send("POST", tasks, body, headers)[0])

    threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] * 2 + [429] * 6, statuses
    refusal = exchange(service, pair, tasks, task, 429)
    assert refusal["success"] is False and "24 hours" in refusal["message"], refusal
    service.manage("PATCH", device_path, {"dailyTasks": taken + 3})
    created = exchange(service, pair, tasks, task)
    assert exchange(service, pair, tasks, task) == created
    exchange(service, pair, tasks, task | {"id": "another"}, 429)
    service.manage("PATCH", device_path, {"dailyTasks": 1000})


def attack(service, device, pair):
    tasks = LINK + "/tasks"
    for enc in [None, "v1", "V2", ""]:
        unauthorized(service, pair, "unauthorized", headers={"X-SvcLink-Enc": enc})
    for name in ["Device", "Ts", "Nonce", "Tag"]:
        unauthorized(service, pair, "unauthorized", headers={"X-SvcLink-" + name: None})
        unauthorized(service, pair, "unauthorized", headers={"X-SvcLink-" + name: "0" * 31 + "G"})
    now = int(time.time())
    unauthorized(service, pair, "clockSkew", stamp=str(now - 130))
    unauthorized(service, pair, "clockSkew", stamp=str(now + 130))
    # A wrong shape comes before the clock, and the clock before everything else.
    unauthorized(service, pair, "unauthorized", stamp=str(now - 130), headers={"X-SvcLink-Enc": "v1"})
    unauthorized(service, pair, "clockSkew", stamp=str(now - 130), headers={"X-SvcLink-Device": "0" * 64})
    unauthorized(service, pair, "notPaired", headers={"X-SvcLink-Device": "0" * 64})
    unauthorized(service, pair, "unauthorized", headers={"X-SvcLink-Tag": "0" * 64})
    unauthorized(service, pair, "unauthorized", tag_path=LINK + "/info")
    unauthorized(service, pair, "unauthorized", to=LINK + "/info")
    unauthorized(service, pair, "unauthorized", receiver=device.fingerprint)
    unauthorized(service, pair, "unauthorized", body=os.urandom(64))
    # Reflection: the service's own fingerprint is no paired device.
    unauthorized(service, pair, "notPaired", sender=pair.other, receiver=pair.own)
    # Sealed for another path or direction: the tag is right, the body does not open.
    good = {"url": "http://192.0.2.1/f", "saveDir": "", "fileName": ""}
    exchange(service, pair, tasks, good, 400, aad_path=LINK + "/info")
    exchange(service, pair, tasks, good, 400, as_response=True)
    exchange(service, pair, tasks, b"no json", 400)
    exchange(service, pair, tasks, good, 400, to=tasks + "?x=1")
    # A nonce is used once, also if the request was not understood.
    nonce = secrets.token_hex(16)
    exchange(service, pair, tasks, good, nonce=nonce)
    unauthorized(service, pair, "unauthorized", nonce=nonce)
    for wrong in [
        {"url": "file:///etc/passwd"},
        {"url": ""},
        {"url": "http://h/a b"},
        {"url": "http://h/" + "x" * 8192},
        {"url": "http://h/", "fileName": "../x"},
        {"url": "http://h/", "fileName": "a\\b"},
        {"url": "http://h/", "saveDir": "/etc"},
        {"url": "http://h/", "saveDir": None},
    ]:
        exchange(service, pair, tasks, wrong, 400)
    status, _, _ = service.send("POST", tasks, b"x" * (64 * 1024 + 1))
    assert status == 413, status
    pairing_attacks(service)


def pairing_attacks(service):
    device = Device()
    code = service.code()
    wrong = "%06d" % ((int(code) + 1) % 1_000_000)
    # Those of a page do not count.
    for _ in range(12):
        of_page = json.dumps(device.hello(wrong)[0]).encode()
        status, _, _ = service.send("POST", LINK + "/pair/hello", of_page, {"Origin": "https://evil.test"})
        assert status == 403, status
    status, _, answer = service.send("POST", LINK + "/pair/hello", json.dumps(device.hello(wrong)[0]).encode())
    assert (status, json.loads(answer)["code"]) == (400, "pairingCodeInvalid"), answer
    for version in [None, 0, 1, 3]:
        answer = service.step("hello", device.hello(code, protocolVersion=version)[0], 400)
        assert answer["code"] == "pairingVersionMismatch", answer
    assert service.step("hello", device.hello(wrong)[0], 400)["code"] == "pairingCodeInvalid"
    for change in [
        {"initiatorIdPub": b64(bytes(32))},
        {"initiatorIdPub": b64(b"\x01" + bytes(31))},
        {"initiatorIdPub": b64(b"\xff" * 32)},
        {"name": "x" * 65},
        {"initiatorAddrs": ["10.0.0.1:1"] * 5},
        {"initiatorCommit": b64(bytes(31))},
        {"initiatorCommit": b64(bytes(32)).rstrip("=")},
    ]:
        service.step("hello", device.hello(code, **change)[0], 400)
    # None of these used the code up; a wrong commitment ends its session.
    record, (_, ephemeral, nonce) = device.hello(code)
    answer = service.step("hello", record)
    assert service.step("hello", record, 400)["code"] == "pairingCodeInvalid", "the code is used"
    revealed = {"sessionId": answer["sessionId"], "initiatorEphPub": b64(raw(ephemeral)), "initiatorNonce": b64(nonce)}
    refused(service, "reveal", revealed | {"initiatorNonce": b64(bytes(32))}, message="commitment")
    refused(service, "reveal", revealed, "pairingSessionExpired")
    # An all-zero shared secret.
    zero, nonce = bytes(32), os.urandom(32)
    code = service.code()
    commit = sha256(b"svc-link-commit-v2" + zero + nonce)
    message = hello_message(code, device.public, commit, device.name, device.platform, device.version, [])
    change = {"initiatorCommit": b64(commit), "initiatorSig": b64(device.identity.sign(message))}
    answer = service.step("hello", device.hello(code, **change)[0])
    revealed = {"sessionId": answer["sessionId"], "initiatorEphPub": b64(zero), "initiatorNonce": b64(nonce)}
    service.step("reveal", revealed, 400)
    refused(service, "reveal", revealed, "pairingSessionExpired")
    # Confirmed or approved before the second message.
    answer = service.step("hello", device.hello(service.code())[0])
    accept = {"sessionId": answer["sessionId"], "accept": True}
    service.manage("POST", LINK + "/pair/approve", accept, 400)
    refused(service, "confirm", {"sessionId": answer["sessionId"], "confirm": True}, message="not revealed")
    refused(service, "confirm", {"sessionId": answer["sessionId"], "confirm": False}, "pairingSessionExpired")
    # Rejected there, withdrawn here.
    session, _, _, _ = device.reveal(service, service.code())
    service.manage("POST", LINK + "/pair/approve", {"sessionId": session, "accept": False})
    confirmed = service.step("confirm", {"sessionId": session, "confirm": True})
    assert confirmed == {"success": True, "paired": False, "reason": "rejected"}, confirmed
    session, _, _, _ = device.reveal(service, service.code())
    confirmed = service.step("confirm", {"sessionId": session, "confirm": False})
    assert confirmed == {"success": True, "paired": False, "reason": None}, confirmed
    assert service.manage("GET", LINK + "/pair/requests") == {"requests": []}


def guess(service):
    """Ends with this source throttled."""
    device, code = Device(), service.code()
    wrong = "%06d" % ((int(code) + 1) % 1_000_000)
    answers = [service.send("POST", LINK + "/pair/hello", json.dumps(device.hello(wrong)[0]).encode()) for _ in range(12)]
    answers.append(service.send("POST", LINK + "/pair/hello", json.dumps(device.hello(code)[0]).encode()))
    answers = [(status, json.loads(answer)["code"]) for status, _, answer in answers]
    assert answers[-2:] == [(429, "pairingThrottled")] * 2 and (400, "pairingCodeInvalid") in answers, answers


class Responder(Device):
    """The other role: a device that shows a code."""

    def __init__(self):
        super().__init__("python responder")
        self.code, self.sessions, self.pair, self.received, self.is_tampering = "424242", {}, None, [], False
        # What comes back instead of an answer.
        self.forgery = None
        self.sas = self.infos = None
        responder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def reply(self, status, body, headers=()):
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                assert self.path == "/ping", self.path
                pong = {"success": True, "app": "Svc", "version": "9", "message": "pong",
                        "linkFingerprint": responder.fingerprint, "linkName": responder.name}
                self.reply(200, json.dumps(pong).encode())

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                name = self.path.removeprefix(LINK + "/")
                if name.startswith("pair/"):
                    status, record = getattr(responder, "on_" + name.removeprefix("pair/"))(json.loads(body))
                    return self.reply(status, json.dumps(record).encode())
                status, answer, headers = responder.on_sealed(self.path, self.headers, body)
                self.reply(status, answer, headers)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def on_hello(self, record):
        if record.get("protocolVersion", 0) != 2 or record["code"] != self.code:
            return 400, {"success": False, "message": "the pairing code is wrong"}
        public, commit = unb64(record["initiatorIdPub"], 32), unb64(record["initiatorCommit"], 32)
        message = hello_message(record["code"], public, commit, record["name"], record["platform"],
                                record["appVersion"], record["initiatorAddrs"])
        Ed25519PublicKey.from_public_bytes(public).verify(unb64(record["initiatorSig"], 64), message)
        session, ephemeral, nonce = secrets.token_hex(16), X25519PrivateKey.generate(), os.urandom(32)
        self.sessions[session] = (message, public, commit, ephemeral, nonce)
        return 200, {
            "protocolVersion": 2, "sessionId": session, "responderEphPub": b64(raw(ephemeral)),
            "responderNonce": b64(nonce), "responderIdPub": b64(self.public), "name": self.name,
            "platform": self.platform, "appVersion": self.version,
        }

    def on_reveal(self, record):
        message, public, commit, ephemeral, nonce = self.sessions[record["sessionId"]]
        theirs, their_nonce = unb64(record["initiatorEphPub"], 32), unb64(record["initiatorNonce"], 32)
        assert sha256(b"svc-link-commit-v2" + theirs + their_nonce) == commit
        about = [self.name, self.platform, self.version]
        script = transcript(message, [public, self.public], [theirs, raw(ephemeral)], [their_nonce, nonce], about)
        self.sas, key = derive(ephemeral.exchange(X25519PublicKey.from_public_bytes(theirs)), script)
        self.pair = Pair(key, self.fingerprint, hashlib.sha256(public).hexdigest())
        signer = Ed25519PrivateKey.generate() if self.is_tampering else self.identity
        return 200, {"responderSig": b64(signer.sign(b"svc-link-resp-v2" + script))}

    def on_confirm(self, record):
        return 200, {"success": True, "paired": record["confirm"], "reason": None}

    def on_sealed(self, path, headers, body):
        pair, nonce, stamp = self.pair, headers["X-SvcLink-Nonce"], headers["X-SvcLink-Ts"]
        assert headers["X-SvcLink-Enc"] == "v2" and headers["X-SvcLink-Device"] == pair.other
        assert abs(int(stamp) - time.time()) < 120 and len(nonce) == 32
        tag = pair.tag("POST", path, stamp, nonce, pair.other, pair.own, body)
        assert hmac.compare_digest(tag, headers["X-SvcLink-Tag"])
        plain = json.loads(pair.open(pair.request_aad("POST", path, nonce, pair.other, pair.own), body))
        if path == LINK + "/tasks":
            self.received.append(plain)
            answer = {"taskId": "there-%d" % len(self.received)}
        elif path == LINK + "/info":
            self.infos = plain
            answer = {"v": 2, "name": self.name, "platform": "linux", "appVersion": "9", "addresses": [],
                      "cloudDeviceId": "", "defaultSaveDir": "", "pathStyle": "posix"}
        else:
            self.pair = None
            answer = {"ok": True}
        if self.forgery == "another clock":
            refusal = {"reason": "clockSkew", "serverTime": int(time.time()) - 500}
            return 401, json.dumps(refusal).encode(), [("Content-Type", "application/json")]
        answered = secrets.token_hex(16) if self.forgery == "another request's" else nonce
        sealed = pair.seal(pair.response_aad(answered), json.dumps(answer).encode())
        if self.is_tampering:
            return 200, sealed, []
        if self.forgery == "reflected":
            sealed = body
        return 200, sealed, [("X-SvcLink-Enc", "v2"), ("Content-Type", "application/octet-stream")]


def speak_nonsense(listener):
    connection, _ = listener.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(b"220 this is no web server\r\n")


def as_responder(service):
    device = Responder()
    try:
        target = {"host": "127.0.0.1", "port": device.port}
        probed = service.manage("POST", LINK + "/probe", target)
        assert probed["fingerprint"] == device.fingerprint and probed["source"] == "manual", probed
        wrong = service.manage("POST", LINK + "/pair/begin", target | {"code": "000000"}, 400)
        assert wrong["code"] == "pairingCodeInvalid", wrong
        with socket.create_server(("127.0.0.1", 0)) as other:
            nonsense = threading.Thread(target=speak_nonsense, args=(other,))
            nonsense.start()
            elsewhere = {"host": "127.0.0.1", "port": other.getsockname()[1], "code": device.code}
            service.manage("POST", LINK + "/pair/begin", elsewhere, 400)
            nonsense.join()
        device.is_tampering = True
        service.manage("POST", LINK + "/pair/begin", target | {"code": device.code}, 400)
        device.is_tampering = False
        begun = service.manage("POST", LINK + "/pair/begin", target | {"code": device.code})
        assert set(begun) == {"token", "sas", "peerName", "peerFingerprint"}, begun
        assert begun["sas"] == device.sas and begun["peerFingerprint"] == device.fingerprint, (begun, device.sas)
        ended = service.manage("POST", LINK + "/pair/finish", {"token": begun["token"], "accept": False})
        assert ended == {"paired": False}, ended
        begun = service.manage("POST", LINK + "/pair/begin", target | {"code": device.code})
        ended = service.manage("POST", LINK + "/pair/finish", {"token": begun["token"], "accept": True})
        assert ended["paired"] and ended["device"]["fingerprint"] == device.fingerprint, ended
        service.manage("POST", LINK + "/pair/finish", {"token": begun["token"], "accept": True}, 400)
        send = LINK + f"/devices/{device.fingerprint}/tasks"
        task = {"url": "https://example.com/file.iso", "fileName": "a.iso"}
        assert service.manage("POST", send, task) == {"taskId": "there-1"}
        sent = device.received[-1]
        assert sent["url"] == task["url"] and sent["fileName"] == "a.iso" and sent["saveDir"] == "", sent
        assert "cookies" not in sent and "headers" not in sent and sent["id"], sent
        service.manage("POST", send, task | {"cookies": "a=b"}, 400)
        service.manage("POST", send, task | {"cookies": "a=b", "shareSecrets": True})
        assert device.received[-1]["cookies"] == "a=b", device.received[-1]
        service.manage("POST", send, {"url": "file:///x"}, 400)
        service.manage("POST", LINK + f"/devices/{'0' * 64}/tasks", task, 401)
        (listed,) = service.manage("GET", LINK + "/devices")["devices"]
        assert listed["online"] and device.infos["v"] == 2, listed
        # An answer that is not sealed counts as not authenticated.
        device.is_tampering = True
        service.manage("POST", send, task, 401)
        device.is_tampering = False
        for device.forgery in ["reflected", "another request's"]:
            refusal = service.manage("POST", send, task, 401)
            assert refusal["code"] == "peerNotPaired" and "cannot have answered" in refusal["message"], refusal
        device.forgery = "another clock"
        refusal = service.manage("POST", send, task, 401)
        assert refusal["code"] == "peerClockSkew" and "set both" in refusal["message"], refusal
        device.forgery = None
    finally:
        device.stop()
    queued = service.manage("POST", send, task | {"fileName": "later.iso"}, 202)
    assert queued["queued"] is True, queued
    (entry,) = service.manage("GET", LINK + "/outbox")["entries"]
    assert entry["id"] == queued["id"] and entry["fileName"] == "later.iso", entry
    assert entry["error"] == "" and "127.0.0.1" in entry["lastError"], entry
    service.manage("DELETE", LINK + "/outbox/" + queued["id"])
    service.manage("DELETE", LINK + "/outbox/" + queued["id"], expect=404)
    service.manage("POST", LINK + "/pair/begin", target | {"code": device.code}, 503)
    service.manage("DELETE", LINK + "/devices/" + device.fingerprint)
    service.manage("POST", send, task, 401)


def main():
    service = Service(sys.argv[1], sys.argv[2])
    as_initiator(service)
    as_responder(service)
    guess(service)
    print("both roles, both ways, and every attack refused")


if __name__ == "__main__":
    main()
