"""Kills services with SIGKILL at every step of a pairing, and replays a request after a restart: `link_crashes.py SVC`."""

import http.client
import json
import os
import random
import subprocess
import sys
import threading
import time

from link_peer import LINK, Device, exchange, unauthorized
from link_service import KEY, Running


def replay_after_restart(program):
    service = Running(program, "restarted")
    device = Device()
    pair = device.pair(service.api)
    task = {"url": "http://192.0.2.1/f", "saveDir": "", "fileName": "", "id": "once"}
    headers, body, _ = pair.sealed_request(LINK + "/tasks", task)
    status, _, _ = service.api.send("POST", LINK + "/tasks", body, headers)
    assert status == 200, status
    for also_daemon in [False, True]:
        service.kill(also_daemon)
        service.start()
        status, _, answer = service.api.send("POST", LINK + "/tasks", body, headers)
        assert (status, json.loads(answer)["reason"]) == (401, "unauthorized"), (also_daemon, status, answer)
        # The same download with a new nonce is still the same download.
        exchange(service.api, pair, LINK + "/tasks", task)
        assert len(service.api.manage("GET", "/api/v1/tasks")) == 1
    unauthorized(service.api, pair, "clockSkew", stamp=str(int(time.time()) - 500))
    service.end()


def flood(program):
    """10,000 first messages leave no more memory behind than a hundred."""
    service = Running(program, "flooded")
    device, code = Device(), service.api.code()
    wrong = "%06d" % ((int(code) + 1) % 1_000_000)
    message = json.dumps(device.hello(wrong)[0]).encode()
    connection = http.client.HTTPConnection("127.0.0.1", service.port)

    def send(count):
        statuses = set()
        for _ in range(count):
            connection.request("POST", LINK + "/pair/hello", message)
            response = connection.getresponse()
            response.read()
            statuses.add(response.status)
        return statuses

    def resident():
        with open(f"/proc/{service.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    assert send(100) == {400, 429}
    before = resident()
    assert send(10_000) == {429}
    grown = resident() - before
    assert grown < 4096, f"{grown} KiB"
    assert service.api.manage("GET", LINK + "/pair/requests") == {"requests": []}
    connection.close()
    service.end()
    print(f"10,000 first messages: {grown} KiB more")


def commands(program):
    """Two devices by the commands of their owners."""
    one, two = Running(program, "one"), Running(program, "two")

    def svc(service, *arguments, fails=False):
        ran = subprocess.run(
            [program, *arguments, "--url", "http://" + service.address], capture_output=True, text=True,
            env={"PATH": os.environ["PATH"], "HOME": service.root, "SVC_TOKEN": KEY},
        )
        assert (ran.returncode != 0) == fails, (arguments, ran)
        return ran.stderr if fails else ran.stdout

    made = json.loads(svc(two, "link", "code", "--json"))
    assert made["deviceName"] == "two" and len(made["code"]) == 6, made
    assert "██" in svc(two, "link", "code", "--no-wait")
    code = json.loads(svc(two, "link", "code", "--json"))["code"]
    paired = []
    pairing = threading.Thread(target=lambda: paired.append(
        svc(one, "link", "pair", two.address, code, "--accept", "--json")))
    pairing.start()
    for _ in range(200):
        requests = json.loads(svc(two, "link", "approve", "--json"))
        if requests:
            break
        time.sleep(0.05)
    svc(two, "link", "approve", requests[0]["sessionId"])
    pairing.join()
    assert json.loads(paired[0])["sas"] == requests[0]["sas"], (paired, requests)
    assert "two" in svc(one, "link", "devices") and "online" in svc(one, "link", "devices")
    sent = json.loads(svc(one, "link", "send", "two", "http://192.0.2.1/a", "--json"))
    added = svc(one, "add", "--on", "two", "http://192.0.2.1/b")
    assert sent[0]["taskId"] and "two" in added, (sent, added)
    assert len(two.api.manage("GET", "/api/v1/tasks")) == 2
    # More than its owner takes in a day: it waits, and the reason is shown.
    svc(two, "link", "set", "one", "--daily-tasks", "2")
    assert "waits" in svc(one, "link", "send", "two", "http://192.0.2.1/third")
    assert "24 hours" in svc(one, "link", "outbox")
    svc(two, "link", "set", "one", "--daily-tasks", "3")
    for _ in range(200):
        svc(one, "link", "devices")
        if not json.loads(svc(one, "link", "outbox", "--json")):
            break
        time.sleep(0.05)
    assert len(two.api.manage("GET", "/api/v1/tasks")) == 3
    assert "nobody" in svc(one, "link", "send", "nobody", "http://192.0.2.1/a", fails=True)
    two.end()
    waits = svc(one, "link", "send", "two", "http://192.0.2.1/c")
    assert "waits" in waits, waits
    (entry,) = json.loads(svc(one, "link", "outbox", "--json"))
    assert two.address in entry["lastError"] and entry["lastError"] in svc(one, "link", "outbox"), entry
    svc(one, "link", "outbox", "--remove", entry["id"])
    svc(one, "link", "set", "two", "--accept-tasks", "false")
    svc(one, "link", "unpair", "two")
    assert one.devices() == {}
    one.end()
    print("paired, sent and ended by commands")


class Attempt:
    """A pairing of two services, of which one may die meanwhile."""

    def __init__(self, initiator, responder):
        self.initiator, self.responder = initiator, responder
        self.outcome = None

    def quiet(self, call):
        try:
            return call()
        except (AssertionError, OSError, KeyError, ValueError, IndexError):
            return None
        except Exception as error:  # http.client has errors of its own for connections that end
            if type(error).__module__ == "http.client":
                return None
            raise

    def run(self):
        """Gives whether the initiator says that it is paired."""
        one, two = self.initiator.api, self.responder.api
        code = self.quiet(two.code)
        target = {"host": "127.0.0.1", "port": self.responder.port, "code": code}
        begun = code and self.quiet(lambda: one.manage("POST", LINK + "/pair/begin", target))
        if not begun:
            return False
        finished = []
        accept = {"token": begun["token"], "accept": True}
        waiting = threading.Thread(
            target=lambda: finished.append(self.quiet(lambda: one.manage("POST", LINK + "/pair/finish", accept)))
        )
        waiting.start()
        requests = self.quiet(lambda: two.manage("GET", LINK + "/pair/requests")["requests"]) or []
        for request in requests:
            if request["sas"] == begun["sas"]:
                approve = {"sessionId": request["sessionId"], "accept": True}
                self.quiet(lambda: two.manage("POST", LINK + "/pair/approve", approve))
        waiting.join()
        return bool(finished[0] and finished[0]["paired"])


def kills(program, rounds):
    services = [Running(program, "initiator"), Running(program, "responder")]
    initiator, responder = services
    names = [service.fingerprint() for service in services]
    random.seed(7)
    # How long a whole pairing takes, so that the kills fall into all of it.
    began = time.monotonic()
    assert Attempt(initiator, responder).run()
    took = time.monotonic() - began
    outcomes = {"both": 0, "neither": 0, "retried": 0}
    for number in range(rounds):
        for service, other in [(initiator, names[1]), (responder, names[0])]:
            if other in service.devices():
                service.api.manage("DELETE", LINK + "/devices/" + other)
        victim = services[number % 2]
        also_daemon = number % 4 >= 2
        pairing = threading.Thread(target=Attempt(initiator, responder).run)
        pairing.start()
        time.sleep(1.5 * took * number / rounds)
        victim.kill(also_daemon)
        pairing.join()
        victim.start()
        for service in services:
            service.wait_until_ready()
        assert [service.fingerprint() for service in services] == names, "a device keeps its key"
        knows = [names[1] in initiator.devices(), names[0] in responder.devices()]
        if knows[0] != knows[1]:
            outcomes["retried"] += 1
            assert Attempt(initiator, responder).run(), (number, knows)
            knows = [names[1] in initiator.devices(), names[0] in responder.devices()]
        assert knows[0] == knows[1], (number, knows)
        outcomes["both" if knows[0] else "neither"] += 1
        if knows[0]:
            task = {"url": "http://192.0.2.1/f"}
            sent = initiator.api.manage("POST", LINK + f"/devices/{names[1]}/tasks", task)
            assert "taskId" in sent, sent
    for service in services:
        service.end()
    print(f"{rounds} kills: {outcomes}")


def main():
    commands(sys.argv[1])
    flood(sys.argv[1])
    replay_after_restart(sys.argv[1])
    kills(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 24)


if __name__ == "__main__":
    main()
