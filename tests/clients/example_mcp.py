"""Connects to /mcp with the configuration of examples/mcp, as an MCP client reads it, and calls a tool.

    example_mcp.py CONFIGURATION ADDRESS        the access key is in SVC_TOKEN, as the configuration wants it
"""

import asyncio
import json
import os
import pathlib
import sys

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client


async def main(configuration, address):
    text = os.path.expandvars(pathlib.Path(configuration).read_text())
    server = json.loads(text)["mcpServers"]["svc"]
    assert server["type"] == "http", server
    assert server["url"] == "http://127.0.0.1:17800/mcp", server
    url = server["url"].replace("127.0.0.1:17800", address)
    async with httpx2.AsyncClient(headers=server["headers"]) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            assert "download_add" in tools, tools
            result = await client.call_tool("download_list", {})
            assert not result.is_error and result.structured_content["count"] == 0, result
            print(f"{len(tools)} tools, {result.structured_content}")


asyncio.run(main(*sys.argv[1:]))
