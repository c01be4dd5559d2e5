"""Holds /rpc against its description, from outside.

    rpc_client.py daemon DATA_DIR        the daemon's own port, as another agent would use it
    rpc_client.py agent ADDRESS          the agent, as browsers and tools use it; the key is in SVC_TOKEN

Every function that begins with daemon_ or agent_ is a check. The first that fails ends the script with its trace.
"""

import asyncio
import contextlib
import inspect
import json
import os
import pathlib
import socket
import sys
import urllib.request

from websockets.exceptions import ConnectionClosed, InvalidStatus

import svc_rpc
from svc_rpc import Refused, key_protocol, open_agent, open_daemon, prove, to_agent, to_daemon

# The gap in a sequence is looked for over this many changes.
CHANGES = 10_000

# Calls in flight at once.
AT_ONCE = 500

UNAUTHORIZED = (1008, "unauthorized")
EVENT_GAP = (4009, "event-gap")


class Daemon:
    def __init__(self, data_dir):
        data = pathlib.Path(data_dir)
        self.port = json.loads((data / "daemon.json").read_text())["port"]
        self.token = (data / "daemon.token").read_text().strip()

    async def open(self, **options):
        return await open_daemon(self.port, self.token, **options)


class Agent:
    def __init__(self, address):
        self.address, self.key = address, os.environ["SVC_TOKEN"]

    async def open(self, **options):
        return await open_agent(self.address, self.key, **options)


def paused(number, url="http://127.0.0.1:9/"):
    return {"url": f"{url}{number}", "fileName": f"file-{number}", "startPaused": True}


async def refused(call, code, reason=None):
    """Asserts that a call is refused like this."""
    try:
        result = await call
    except Refused as error:
        assert (error.code, error.reason) == (code, reason), error
        return error
    raise AssertionError(f"was not refused but answered {result}")


async def create(rpc, requests):
    """Creates tasks one by one, many calls in flight. Gives their ids."""
    ids = []
    for start in range(0, len(requests), AT_ONCE):
        begun = [await rpc.begin("daemon.task.create", {"request": each}) for each in requests[start:start + AT_ONCE]]
        ids += [reply["taskId"] for reply in await asyncio.gather(*begun)]
    return ids


async def same_as_new(state, rpc):
    """What events made of an old snapshot is what a new snapshot says."""
    fresh = svc_rpc.Tasks(await rpc.call("system.snapshot"))
    assert state.tasks == fresh.tasks, "the events lead elsewhere than the snapshot"


# The proof.


async def daemon_takes_a_proof_and_nothing_else(daemon):
    rpc = await daemon.open()
    assert await rpc.call("system.ping") == {"ok": True}
    conflict = rpc.call("system.auth.challenge", {"clientNonce": "a" * 32})
    await refused(conflict, -32000, "conflict")
    await refused(rpc.hello("daemon"), -32000, "conflict")
    assert await rpc.call("system.ping") == {"ok": True}, "a conflict does not close"
    await rpc.close()


async def daemon_refuses_wrong_and_replayed_proofs(daemon):
    first = await to_daemon(daemon.port)
    used = await prove(first, daemon.token)
    for proof in ["0" * 64, "", used, used.upper()]:
        rpc = await to_daemon(daemon.port)
        await rpc.call("system.auth.challenge", {"clientNonce": "a" * 64})
        await refused(rpc.call("system.auth.prove", {"clientProof": proof}), -32000, "unauthorized")
        assert await rpc.closed() == UNAUTHORIZED
    await first.close()


async def daemon_wants_the_proof_first(daemon):
    calls = [
        ("system.auth.prove", {"clientProof": "0" * 64}),
        ("system.hello", {"clientName": "x"}),
        ("system.shutdown", {}),
        ("system.snapshot", None),
        ("system.auth.challenge", {"clientNonce": "short"}),
        ("system.auth.challenge", {"clientNonce": "g" * 64}),
    ]
    for method, params in calls:
        rpc = await to_daemon(daemon.port)
        await refused(rpc.call(method, params), -32000, "unauthorized")
        assert await rpc.closed() == UNAUTHORIZED, method
    rpc = await to_daemon(daemon.port)
    await refused(rpc.call("system.auth.challenge", {"clientNonce": "a" * 64, "more": 1}), -32602)
    assert await rpc.closed() == UNAUTHORIZED
    rpc = await to_daemon(daemon.port)
    assert (await rpc.raw("{")).code == -32700
    assert await rpc.closed() == UNAUTHORIZED


async def daemon_forgets_a_credential_with_its_connection(daemon):
    rpc = await to_daemon(daemon.port)
    nonce = "c" * 64
    server = (await rpc.call("system.auth.challenge", {"clientNonce": nonce}))["serverNonce"]
    proof = svc_rpc.mac(daemon.token, "agent-proof", nonce, server)
    await rpc.call("system.auth.prove", {"clientProof": proof})
    credential = svc_rpc.mac(daemon.token, "http-credential", nonce, server)

    def upload(bearer):
        request = urllib.request.Request(f"http://127.0.0.1:{daemon.port}/blobs/torrents", data=b"x", method="POST",
                                         headers={"Authorization": f"Bearer {bearer}"})
        try:
            return urllib.request.urlopen(request).status
        except urllib.error.HTTPError as error:
            return error.code

    assert await asyncio.to_thread(upload, credential) == 200
    assert await asyncio.to_thread(upload, proof) == 401
    await rpc.close()
    for _ in range(100):
        if await asyncio.to_thread(upload, credential) == 401:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the credential outlives its connection")


# The envelope, which agent and daemon share.


async def envelope(rpc):
    bad = [
        ("[]", -32600),
        ('[{"jsonrpc":"2.0","id":1,"method":"system.ping"}]', -32600),
        ('{"jsonrpc":"2.0","id":1,"method":"system.ping","extra":1}', -32600),
        ('{"jsonrpc":"1.0","id":1,"method":"system.ping"}', -32600),
        ('{"jsonrpc":"2.0","id":1.5,"method":"system.ping"}', -32600),
        ('{"jsonrpc":"2.0","id":9223372036854775808,"method":"system.ping"}', -32600),
        ('{"jsonrpc":"2.0","id":null,"method":"system.ping"}', -32600),
        ('{"jsonrpc":"2.0","id":true,"method":"system.ping"}', -32600),
        ('{"jsonrpc":"2.0","id":1,"method":"system.ping","params":7}', -32600),
        ('{"jsonrpc":"2.0","id":1,"method":"system.ping","result":7}', -32600),
        ('{"jsonrpc":"2.0","id":1}', -32600),
        ("{", -32700),
        ("", -32700),
    ]
    for text, code in bad:
        answer = await rpc.raw(text)
        assert isinstance(answer, Refused) and answer.code == code, f"{text}: {answer}"
        assert "data" not in answer.error, "only application errors say more"
    await refused(rpc.call("daemon.task.fly"), -32601)
    await refused(rpc.call("daemon.task.get", {"taskId": 7}), -32602)
    for call in [-9223372036854775808, 9223372036854775807, "a text"]:
        reply = asyncio.get_running_loop().create_future()
        rpc.pending[call] = reply
        await rpc.socket.send(json.dumps({"jsonrpc": "2.0", "id": call, "method": "system.ping"}))
        assert await reply == {"ok": True}


async def too_large_and_binary(open_one):
    large = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x" * (1024 * 1024)})
    for frame, code in [(large, 1009), (b"{}", 1003)]:
        rpc = await open_one()
        # It may be told why before it is closed.
        told = rpc.pending[None] = asyncio.get_running_loop().create_future()
        # What is too large may be refused before all of it was sent.
        with contextlib.suppress(ConnectionClosed):
            await rpc.socket.send(frame)
        assert (await rpc.closed())[0] == code
        await asyncio.gather(told, return_exceptions=True)


async def daemon_reads_the_envelope_strictly(daemon):
    rpc = await daemon.open()
    await envelope(rpc)
    await rpc.close()
    await too_large_and_binary(daemon.open)


async def agent_reads_the_envelope_strictly(agent):
    rpc = await agent.open()
    await envelope(rpc)
    await refused(rpc.hello("agent"), -32000, "conflict")
    await rpc.close()
    await too_large_and_binary(agent.open)


# Events.


async def without_a_gap(open_one):
    watcher, writer = await open_one(), await open_one()
    state = await watcher.subscribe()
    ids = await create(writer, [paused(number) for number in range(CHANGES)])
    # The watcher's own write is answered after its events, and those of everybody before it.
    await watcher.call("daemon.task.pauseMany", {"taskIds": ids[:1]})
    assert state.events >= CHANGES, f"{state.events} events of {CHANGES} changes"
    assert set(ids) <= state.tasks.keys()
    await same_as_new(state, writer)
    await watcher.call("daemon.task.deleteMany", {"taskIds": ids})
    assert not set(ids) & state.tasks.keys()
    await watcher.close()
    await writer.close()


async def with_a_gap(open_one, port):
    narrow = socket.create_connection(("127.0.0.1", port))
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 128 * 1024)
    # Nothing is read beyond the first messages: neither by us nor ahead by the library.
    slow = await open_one(sock=narrow, max_queue=1)
    state = await slow.subscribe()
    slow.reader.cancel()
    writer = await open_one()
    # More than both services keep for readers that are behind, soon enough that the silence alone is no offence.
    fat = "http://127.0.0.1:9/" + "x" * 30_000 + "/"
    ids = []
    for _ in range(30):
        requests = [paused(number, fat) for number in range(30)]
        ids += (await writer.call("daemon.task.createMany", {"requests": requests}))["taskIds"]
    # It reads again, finds events without a gap up to the end, and is told why they end.
    slow.reader = asyncio.create_task(slow.read())
    end = await slow.closed()
    assert end == EVENT_GAP, f"{end} after {state.events} events"
    assert not set(ids) <= state.tasks.keys()
    again = await open_one()
    fresh = await again.subscribe()
    assert set(ids) <= fresh.tasks.keys()
    await again.call("daemon.task.deleteMany", {"taskIds": ids})
    assert not set(ids) & fresh.tasks.keys()
    await same_as_new(fresh, writer)
    await again.close()
    await writer.close()


async def daemon_events_have_no_gap(daemon):
    await without_a_gap(daemon.open)


async def daemon_closes_who_does_not_read(daemon):
    await with_a_gap(daemon.open, daemon.port)


async def agent_events_have_no_gap(agent):
    await without_a_gap(agent.open)


async def agent_closes_who_does_not_read(agent):
    await with_a_gap(agent.open, int(agent.address.rsplit(":", 1)[1]))


async def many_at_once(open_one):
    watcher, writer = await open_one(), await open_one()
    # A server that never answers, so that nothing but the calls changes tasks.
    silent = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
    requests = [paused(number, url) for number in range(5)]
    made = (await writer.call("daemon.task.createMany", {"requests": requests}))["taskIds"]
    state = await watcher.subscribe()
    unknown = "00000000-0000-4000-8000-000000000000"

    async def caused(method, params):
        state.kinds.clear()
        assert await watcher.call(method, params) == {"ok": True}
        # A run that was paused may tell its own end later.
        return [kind for kind in state.kinds if kind in ("tasksSnapshot", "taskDeleted")]

    some = [made[0], made[1], made[0], unknown, "no id at all", made[1]]
    for method, status in [("resumeMany", 5), ("pauseMany", 2)]:
        assert await caused(f"daemon.task.{method}", {"taskIds": some}) == ["tasksSnapshot"], state.kinds
        found = [state.tasks[task]["status"] for task in made[:3]]
        assert found == [status, status, 2], f"{method}: {found}"
        assert await caused(f"daemon.task.{method}", {"taskIds": []}) == []
        assert await caused(f"daemon.task.{method}", {"taskIds": [unknown, "no id at all"]}) == []
    assert await caused("daemon.task.deleteMany", {"taskIds": some}) == ["tasksSnapshot"], state.kinds
    assert set(made) & state.tasks.keys() == set(made[2:])
    assert await caused("daemon.task.deleteMany", {"taskIds": some, "deleteFiles": True}) == []
    assert await caused("daemon.task.deleteMany", {"taskIds": [], "deleteFiles": True}) == []
    await refused(watcher.call("daemon.task.deleteMany", {"deleteFiles": True}), -32602)
    await refused(watcher.call("daemon.task.delete", {"taskId": made[0]}), -32000, "notFound")
    await same_as_new(state, writer)
    await watcher.call("daemon.task.deleteMany", {"taskIds": made})
    silent.close()
    await watcher.close()
    await writer.close()


async def daemon_tells_once_what_one_call_did(daemon):
    await many_at_once(daemon.open)


async def agent_tells_once_what_one_call_did(agent):
    await many_at_once(agent.open)


# The agent's door, and its reads.


async def upgrade_refused(agent, status, **options):
    try:
        await to_agent(agent.address, **options)
    except InvalidStatus as refusal:
        assert refusal.response.status_code == status, refusal
        return
    raise AssertionError(f"a connection with {options.keys()} was let in")


async def agent_takes_the_key_in_two_forms(agent):
    rpc = await agent.open()
    await rpc.close()
    protocols = ["svc.rpc.v1", key_protocol(agent.key)]
    rpc = await to_agent(agent.address, protocols=protocols)
    assert rpc.socket.subprotocol == "svc.rpc.v1"
    greeted = await rpc.hello("agent")
    assert greeted["role"] == "agent" and greeted["protocolVersion"] == 1
    await rpc.close()
    await upgrade_refused(agent, 401)
    await upgrade_refused(agent, 401, key="wrong-key-1")
    await upgrade_refused(agent, 401, protocols=["svc.rpc.v1"])
    await upgrade_refused(agent, 401, protocols=[key_protocol(agent.key)])
    await upgrade_refused(agent, 401, protocols=["svc.rpc.v1", key_protocol("wrong-key-1")])


async def agent_refuses_foreign_origins(agent):
    await upgrade_refused(agent, 403, key=agent.key, origin="https://example.com")
    await upgrade_refused(agent, 403, key=agent.key, origin="null")
    rpc = await to_agent(agent.address, agent.key, origin=f"http://{agent.address}")
    await rpc.hello("agent")
    await rpc.close()


async def agent_wants_hello_first(agent):
    rpc = await to_agent(agent.address, agent.key)
    await refused(rpc.call("daemon.task.list"), -32000, "conflict")
    await refused(rpc.hello("daemon"), -32000, "protocolIncompatible")
    await refused(rpc.hello("agent", minProtocolVersion=2, maxProtocolVersion=9), -32000, "protocolIncompatible")
    await rpc.hello("agent")
    await refused(rpc.call("system.shutdown"), -32000, "unsupported")
    await rpc.close()


async def agent_reads_what_was_written(agent):
    """A write is visible to everybody, over every door, once it is answered."""
    writer, reader = await agent.open(), await agent.open()

    def over_http(path):
        request = urllib.request.Request(f"http://{agent.address}/api/v1{path}",
                                         headers={"Authorization": f"Bearer {agent.key}"})
        try:
            return json.load(urllib.request.urlopen(request))
        except urllib.error.HTTPError as error:
            return error.code

    for number in range(50):
        task = (await writer.call("daemon.task.create", {"request": paused(number)}))["taskId"]
        seen = await reader.call("daemon.task.get", {"taskId": task})
        assert seen["fileName"] == f"file-{number}" and seen["status"] == 2
        assert await asyncio.to_thread(over_http, f"/tasks/{task}") == seen
        await writer.call("daemon.task.rename", {"taskId": task, "fileName": f"renamed-{number}"})
        assert (await reader.call("daemon.task.get", {"taskId": task}))["fileName"] == f"renamed-{number}"
        assert task in {each["taskId"] for each in await reader.call("daemon.task.list")}
        await writer.call("daemon.task.delete", {"taskId": task})
        await refused(reader.call("daemon.task.get", {"taskId": task}), -32000, "notFound")
        assert await asyncio.to_thread(over_http, f"/tasks/{task}") == 404
    assert await reader.call("daemon.queue.list") == await asyncio.to_thread(over_http, "/queues")
    assert (await reader.call("agent.gateway.get"))["userTokenConfigured"] is True
    await writer.close()
    await reader.close()


async def main():
    kind, place = sys.argv[1], sys.argv[2]
    peer = {"daemon": Daemon, "agent": Agent}[kind](place)
    only = os.environ.get("SVC_CASE", "")
    checks = [value for name, value in globals().items() if name.startswith(f"{kind}_") and only in name and inspect.iscoroutinefunction(value)]
    for check in checks:
        print(check.__name__, flush=True)
        await asyncio.wait_for(check(peer), 240)


if __name__ == "__main__":
    asyncio.run(main())
