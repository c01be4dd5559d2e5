"""Clients of /rpc written from its description alone, with a WebSocket library that is not ours."""

import asyncio
import base64
import hashlib
import hmac
import json
import secrets

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

LABEL = "svc-daemon-auth/v1"

# Snapshots are one message of any size.
MAX_MESSAGE_BYTES = 512 * 1024 * 1024


class Refused(Exception):
    """A call was answered with an error."""

    def __init__(self, error):
        super().__init__(json.dumps(error))
        self.error = error
        self.code = error["code"]
        self.reason = error.get("data", {}).get("code")


def mac(token, role, client_nonce, server_nonce):
    message = "\n".join([LABEL, role, client_nonce, server_nonce])
    return hmac.new(token.encode(), message.encode(), hashlib.sha256).hexdigest()


class Tasks:
    """The state that a client keeps: a snapshot, and every event after it, none missing."""

    def __init__(self, snapshot):
        self.epoch, self.sequence = snapshot["epoch"], snapshot["sequence"]
        body = snapshot["body"]["snapshot"]
        daemon = body["daemon"] if snapshot["body"]["role"] == "agent" else body
        self.tasks = {task["taskId"]: task for task in daemon["tasks"]}
        self.events = 0
        self.kinds = []

    def apply(self, params):
        assert params["epoch"] == self.epoch, f"another epoch: {params}"
        assert params["sequence"] == self.sequence + 1, f"{params['sequence']} after {self.sequence}"
        self.sequence += 1
        self.events += 1
        event = params["event"]["event"]
        if event["type"] == "daemon":
            event = event["data"]
        kind, data = event["type"], event.get("data")
        self.kinds.append(kind)
        if kind == "taskChanged":
            self.tasks[data["taskId"]] = data
        elif kind == "taskDeleted":
            self.tasks.pop(data["taskId"], None)
        elif kind == "tasksSnapshot":
            self.tasks.update({task["taskId"]: task for task in data["tasks"]})
            for task in data["deletedTaskIds"]:
                self.tasks.pop(task, None)


class Rpc:
    """One connection. Calls may be in flight side by side; events are applied in the order in which they come."""

    def __init__(self, socket):
        self.socket = socket
        self.calls = 0
        self.pending = {}
        self.state = None
        self.subscribing = None
        self.on_event = None
        self.failure = None
        self.reader = asyncio.create_task(self.read())

    async def read(self):
        try:
            async for text in self.socket:
                self.take(json.loads(text))
        except ConnectionClosed:
            pass
        except Exception as failure:  # told to whoever waits for the reader
            self.failure = failure
            raise
        finally:
            for reply in self.pending.values():
                if not reply.done():
                    reply.set_exception(ConnectionError(f"closed: {self.close_code} {self.close_reason}"))

    def take(self, frame):
        assert frame["jsonrpc"] == "2.0", frame
        if frame.get("method") == "service.event":
            if self.state is not None:
                self.state.apply(frame["params"])
            if self.on_event:
                self.on_event(frame["params"])
            return
        reply = self.pending.pop(frame["id"])
        # The state begins with the frame that holds it: the very next one may be an event.
        if frame["id"] == self.subscribing and "result" in frame:
            self.state = Tasks(frame["result"])
        if "error" in frame:
            assert "result" not in frame, frame
            if not reply.done():
                reply.set_exception(Refused(frame["error"]))
        elif not reply.done():
            reply.set_result(frame["result"])

    async def begin(self, method, params=None):
        """Sends a call; the future that is returned is its result."""
        self.calls += 1
        reply = asyncio.get_running_loop().create_future()
        self.pending[self.calls] = reply
        if method == "system.snapshot":
            self.subscribing = self.calls
        frame = {"jsonrpc": "2.0", "id": self.calls, "method": method}
        if params is not None:
            frame["params"] = params
        await self.socket.send(json.dumps(frame))
        return reply

    async def call(self, method, params=None):
        return await (await self.begin(method, params))

    async def raw(self, text):
        """Sends a frame as it is and gives the answer to it, which names no call."""
        reply = asyncio.get_running_loop().create_future()
        self.pending[None] = reply
        await self.socket.send(text)
        try:
            return await reply
        except Refused as refused:
            return refused

    async def subscribe(self):
        await self.call("system.snapshot")
        return self.state

    async def hello(self, role, **more):
        params = {"clientName": "foreign", "clientVersion": "1", "minProtocolVersion": 1, "maxProtocolVersion": 1,
                  "requestedRole": role, **more}
        return await self.call("system.hello", params)

    @property
    def close_code(self):
        return self.socket.close_code

    @property
    def close_reason(self):
        return self.socket.close_reason

    async def closed(self):
        """Waits for the end and gives code and reason."""
        await asyncio.wait_for(asyncio.wait([self.reader]), 90)
        if self.failure:
            raise self.failure
        return self.close_code, self.close_reason

    async def close(self):
        await self.socket.close()
        await asyncio.wait([self.reader])
        if self.failure:
            raise self.failure


async def to_daemon(port, **options):
    """A connection to the daemon's own port, before any proof."""
    return Rpc(await connect(f"ws://127.0.0.1:{port}/rpc", max_size=MAX_MESSAGE_BYTES, compression=None, **options))


async def prove(rpc, token):
    """Proves to the daemon who we are, after it proved who it is."""
    client_nonce = secrets.token_hex(32)
    answer = await rpc.call("system.auth.challenge", {"clientNonce": client_nonce})
    server_nonce = answer["serverNonce"]
    assert answer["serverProof"] == mac(token, "daemon-proof", client_nonce, server_nonce), "not the daemon we know"
    proof = mac(token, "agent-proof", client_nonce, server_nonce)
    assert await rpc.call("system.auth.prove", {"clientProof": proof}) == {"authenticated": True}
    return proof


async def open_daemon(port, token, **options):
    rpc = await to_daemon(port, **options)
    await prove(rpc, token)
    await rpc.hello("daemon")
    return rpc


async def to_agent(address, key=None, protocols=None, **options):
    """A connection to the agent, with the key as Bearer or with these sub-protocols."""
    headers = {"Authorization": f"Bearer {key}"} if key is not None else {}
    headers.update(options.pop("headers", {}))
    socket = await connect(f"ws://{address}/rpc", additional_headers=headers, subprotocols=protocols,
                           max_size=MAX_MESSAGE_BYTES, compression=None, **options)
    return Rpc(socket)


async def open_agent(address, key, **options):
    rpc = await to_agent(address, key, **options)
    await rpc.hello("agent")
    return rpc


def key_protocol(key):
    return "svc.token." + base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")
