"""A server of the protocol's own package for Python, with one prompt: the template that it gets as an argument."""

import sys

from jinja2 import Environment
from mcp.server.mcpserver import MCPServer

template = Environment().from_string(sys.argv[1])
server = MCPServer("peer", log_level="ERROR")


@server.prompt()
def welcome(guest: str, house: str) -> str:
    return template.render(guest=guest, house=house)


server.run("stdio")
