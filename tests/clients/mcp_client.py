"""Calls every tool of /mcp with the official SDK, in every way in which it opens a conversation.

    mcp_client.py ADDRESS        the key is in SVC_TOKEN

Results are held against the schemas that the service gives for them, here and by the SDK itself.
"""

import asyncio
import json
import os
import sys

import httpx2
from jsonschema import Draft202012Validator
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

# What is downloaded is nothing: nobody listens there.
SOURCE = "http://127.0.0.1:9/file"


class Service:
    """A conversation, and which tools were called in it."""

    def __init__(self, client, tools):
        self.client, self.tools, self.called = client, tools, set()

    async def call(self, tool, **arguments):
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, (tool, result)
        found = result.structured_content
        assert json.loads(result.content[0].text) == found, (tool, result)
        Draft202012Validator(self.tools[tool].input_schema).validate(arguments)
        Draft202012Validator(self.tools[tool].output_schema).validate(found)
        self.called.add(tool)
        return found

    async def fails(self, tool, **arguments):
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error and not result.structured_content, (tool, result)
        return result.content[0].text


async def every_tool(service):
    task = (await service.call("download_add", url=SOURCE, fileName="by-mcp", queueId="main"))["taskId"]
    listed = await service.call("download_list", status="all")
    assert listed["count"] == len(listed["tasks"]) == 1, listed
    shown = (await service.call("download_get", taskId=task))["task"]
    assert shown["taskId"] == task and shown["fileName"] == "by-mcp", shown
    assert await service.call("download_pause", taskId=task) == {"paused": task}
    assert (await service.call("download_list", status="paused"))["count"] == 1
    assert await service.call("download_resume", taskId=task) == {"resumed": task}
    assert await service.call("download_pause_all") == {"pausedAll": True}
    assert await service.call("download_resume_all") == {"resumedAll": True}
    assert await service.call("download_remove", taskId=task, deleteFiles=True) == {"removed": task, "deletedFiles": True}
    queues = (await service.call("queue_list"))["queues"]
    assert {queue["queueId"] for queue in queues} >= {"main", "later"}, queues
    await service.call("plugin_list")
    assert (await service.call("resolve_preview", url=SOURCE))["items"] == []
    source = (await service.call("rss_add", url=SOURCE, name="shows", includePattern="1080p"))["sourceId"]
    (listed,) = (await service.call("rss_list"))["sources"]
    assert (listed["sourceId"], listed["name"]) == (source, "shows"), listed
    assert await service.call("rss_remove", sourceId=source) == {"removed": source}
    assert "includePattern" in await service.fails("rss_add", url=SOURCE, includePattern="x" * 100_000)
    assert "task not found" in await service.fails("download_get", taskId=task)
    assert "url is required" in await service.fails("download_add", url=" ")
    assert service.called == set(service.tools), set(service.tools) - service.called


async def progress(client):
    heard = []

    async def hear(done, total, message):
        heard.append(done)

    result = await client.call_tool("resolve_preview", {"url": SOURCE}, progress_callback=hear)
    assert not result.is_error and heard and heard == sorted(heard), (result, heard)


async def converse(address, mode):
    headers = {"Authorization": f"Bearer {os.environ['SVC_TOKEN']}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(f"http://{address}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            for tool in tools.values():
                Draft202012Validator.check_schema(tool.input_schema)
                Draft202012Validator.check_schema(tool.output_schema)
            await every_tool(Service(client, tools))
            await progress(client)
            print(f"{mode}: {len(tools)} tools, revision {client.protocol_version}")
            return client.protocol_version


async def main(address):
    assert await converse(address, "legacy") == "2025-11-25"
    assert await converse(address, "auto") == "2026-07-28"
    assert await converse(address, "2026-07-28") == "2026-07-28"


asyncio.run(main(sys.argv[1]))
