"""A device between two services, and pairings that nobody answers in time: `link_middle.py SVC`."""

import json
import sys
import threading
import time

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from link_peer import (
    LINK, Device, Responder, b64, hello_message, raw, refused, sha256, transcript, unauthorized, unb64,
)
from link_service import Running


class Middle(Responder):
    """A responder that passes on what it gets, with one thing changed."""

    def __init__(self, behind):
        super().__init__()
        self.behind, self.reveals, self.passed = behind, 0, []

    def pass_on(self, step, record):
        status, _, answer = self.behind.send("POST", f"{LINK}/pair/{step}", json.dumps(record).encode())
        self.passed.append((step, status))
        return status, json.loads(answer)

    def on_reveal(self, record):
        self.reveals += 1
        return self.revealed(record)

    def revealed(self, record):
        return super().on_reveal(record)


class OwnKeys(Middle):
    """Pairs with each of the two, with keys of its own."""

    def on_hello(self, record):
        self.code = record["code"]
        self.there = Device("one")
        self.session, self.sas_there, self.pair_there, _ = self.there.reveal(self.behind, record["code"])
        return super().on_hello(record)


class OwnIdentityForResponder(Middle):
    """Gives the responder's ephemeral key out as its own, with the responder's signature or one of its own."""

    is_signing = False

    def on_hello(self, record):
        status, answer = self.pass_on("hello", record)
        self.hello_seen, self.answer = record, answer
        return status, answer | {"responderIdPub": b64(self.public)}

    def revealed(self, record):
        status, answer = self.pass_on("reveal", record)
        if not self.is_signing:
            return status, answer
        hello, public, own = self.hello_seen, unb64(self.hello_seen["initiatorIdPub"], 32), self.answer
        message = hello_message(
            hello["code"], public, unb64(hello["initiatorCommit"], 32), hello["name"], hello["platform"],
            hello["appVersion"], hello["initiatorAddrs"],
        )
        script = transcript(
            message, [public, self.public],
            [unb64(record["initiatorEphPub"], 32), unb64(own["responderEphPub"], 32)],
            [unb64(record["initiatorNonce"], 32), unb64(own["responderNonce"], 32)],
            [own["name"], own["platform"], own["appVersion"]],
        )
        return 200, {"responderSig": b64(self.identity.sign(b"svc-link-resp-v2" + script))}


class OwnIdentityForInitiator(Middle):
    """Gives the initiator's commitment out as its own."""

    def on_hello(self, record):
        commit = unb64(record["initiatorCommit"], 32)
        message = hello_message(record["code"], self.public, commit, self.name, self.platform, self.version, [])
        own = {
            "initiatorIdPub": b64(self.public), "initiatorSig": b64(self.identity.sign(message)), "name": self.name,
            "platform": self.platform, "appVersion": self.version, "initiatorAddrs": [],
        }
        return self.pass_on("hello", record | own)

    def revealed(self, record):
        return self.pass_on("reveal", record)


def begin(one, middle, code, expect=200):
    target = {"host": "127.0.0.1", "port": middle.port, "code": code}
    return one.api.manage("POST", LINK + "/pair/begin", target, expect)


def request_at(service):
    (request,) = service.api.manage("GET", LINK + "/pair/requests")["requests"]
    return request


def reject(service, request):
    service.api.manage("POST", LINK + "/pair/approve", {"sessionId": request["sessionId"], "accept": False})


def decline(one, begun):
    finish = {"token": begun["token"], "accept": False}
    assert one.api.manage("POST", LINK + "/pair/finish", finish) == {"paired": False}


def nobody_is_paired(*services):
    for service in services:
        assert service.devices() == {}, service.devices()
        assert service.api.manage("GET", LINK + "/pair/requests") == {"requests": []}


def other_digits(one, two):
    """Keys of its own on both sides: each side is shown digits, and not the same ones."""
    middle = OwnKeys(two.api)
    try:
        begun = begin(one, middle, two.api.code())
        request = request_at(two)
        assert (begun["sas"], request["sas"]) == (middle.sas, middle.sas_there), (begun, request)
        assert begun["sas"] != request["sas"], begun
        assert begun["peerFingerprint"] != two.fingerprint() and request["peerFingerprint"] != one.fingerprint()
        # It agrees on both sides; the users do not.
        confirmed = []
        confirm = {"sessionId": middle.session, "confirm": True}
        waiting = threading.Thread(target=lambda: confirmed.append(two.api.step("confirm", confirm)))
        waiting.start()
        reject(two, request)
        waiting.join()
        assert confirmed == [{"success": True, "paired": False, "reason": "rejected"}], confirmed
        refused(two.api, "confirm", confirm, "pairingSessionExpired")
        decline(one, begun)
        nobody_is_paired(one, two)
        for service, pair in [(one, middle.pair), (two, middle.pair_there)]:
            unauthorized(service.api, pair, "notPaired")
            unauthorized(service.api, pair, "notPaired", LINK + "/info", {"v": 2})
    finally:
        middle.stop()


def known_by_its_address(one, two):
    """Another device answers at the address at which one was found: refused before anything is revealed to it."""
    middle = OwnKeys(two.api)
    try:
        one.api.manage("POST", LINK + "/probe", {"host": "127.0.0.1", "port": middle.port})
        middle.identity = Ed25519PrivateKey.generate()
        middle.public = raw(middle.identity)
        refusal = begin(one, middle, two.api.code(), 400)
        assert refusal["code"] == "pairingSignatureInvalid", refusal
        assert middle.reveals == 0, "the second message was sent"
        reject(two, request_at(two))
        nobody_is_paired(one, two)
    finally:
        middle.stop()


def unknown_key_shares(one, two):
    middle = OwnIdentityForResponder(two.api)
    try:
        refusal = begin(one, middle, two.api.code(), 400)
        assert refusal["code"] == "pairingSignatureInvalid", refusal
        assert middle.passed == [("hello", 200), ("reveal", 200)], middle.passed
        reject(two, request_at(two))
        nobody_is_paired(one, two)
        # With a signature of its own it is somebody, with other digits, and without the key.
        middle.is_signing = True
        begun = begin(one, middle, two.api.code())
        request = request_at(two)
        assert begun["peerFingerprint"] == sha256(middle.public).hex() and begun["sas"] != request["sas"], begun
        reject(two, request)
        decline(one, begun)
        nobody_is_paired(one, two)
    finally:
        middle.stop()
    middle = OwnIdentityForInitiator(two.api)
    try:
        refusal = begin(one, middle, two.api.code(), 400)
        assert refusal["code"] == "pairingSignatureInvalid", refusal
        assert middle.passed == [("hello", 200), ("reveal", 200)], middle.passed
        request = request_at(two)
        assert request["peerFingerprint"] == sha256(middle.public).hex(), request
        reject(two, request)
        nobody_is_paired(one, two)
    finally:
        middle.stop()


def too_late(program):
    """The second message after more than 30 seconds, and a user who does not answer for a minute."""
    service = Running(program, "patient")
    try:
        device, asked = Device(), {}

        def hello(name):
            record, (_, ephemeral, nonce) = device.hello(service.api.code())
            answer = service.api.step("hello", record)
            asked[name] = {
                "sessionId": answer["sessionId"], "initiatorEphPub": b64(raw(ephemeral)), "initiatorNonce": b64(nonce),
            }
            return time.monotonic()

        hello("in time")
        began = hello("late")
        session, _, pair, _ = device.reveal(service.api, service.api.code())
        revealed = time.monotonic()
        time.sleep(max(0, began + 25 - time.monotonic()))
        service.api.step("reveal", asked["in time"])
        reject(service, next(request for request in service.api.manage("GET", LINK + "/pair/requests")["requests"]
                             if request["sessionId"] == asked["in time"]["sessionId"]))
        time.sleep(max(0, began + 30.5 - time.monotonic()))
        refused(service.api, "reveal", asked["late"], "pairingSessionExpired")
        refused(service.api, "confirm", {"sessionId": asked["late"]["sessionId"], "confirm": True}, "pairingSessionExpired")
        confirmed = service.api.step("confirm", {"sessionId": session, "confirm": True})
        waited = time.monotonic() - revealed
        assert confirmed == {"success": True, "paired": False, "reason": "timeout"} and 55 < waited < 70, (confirmed, waited)
        answer = service.api.manage("POST", LINK + "/pair/approve", {"sessionId": session, "accept": True}, 400)
        assert answer["code"] == "pairingSessionExpired", answer
        nobody_is_paired(service)
        unauthorized(service.api, pair, "notPaired")
    finally:
        service.end()


def main():
    program, failed = sys.argv[1], []

    def late():
        try:
            too_late(program)
        except BaseException as error:
            failed.append(error)
            raise

    waiting = threading.Thread(target=late)
    waiting.start()
    one, two = Running(program, "one"), Running(program, "two")
    try:
        other_digits(one, two)
        known_by_its_address(one, two)
        unknown_key_shares(one, two)
    finally:
        one.end()
        two.end()
        waiting.join()
    assert not failed, failed
    print("a device in the middle is seen or refused; what is late is refused; nobody is paired")


if __name__ == "__main__":
    main()
