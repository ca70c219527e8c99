"""A server of the protocol's own package for Python: over its standard input, or over HTTP at a port that it prints."""

import os
import socket
import sys

from mcp.server.mcpserver import Image, MCPServer

server = MCPServer("other", log_level="ERROR")


@server.tool()
def add(a: int, b: int) -> int:
    return a + b


@server.tool()
def look() -> Image:
    return Image(data=b"\x89PNG-and-so-on", format="png")


@server.tool()
def fail() -> str:
    raise ValueError("there is no light")


@server.tool()
def peek() -> str:
    """What a tool can see of the user."""
    secret = os.path.join(sys.argv[2], "secret")
    return f"{os.environ.get('HOME')} {os.path.exists(secret)}"


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    print(port, flush=True)
    server.run("streamable-http", host="127.0.0.1", port=port)
