"""The types of a loaded prompt, as in `prompty.model`."""

from . import Agent, Prompty
from ._parts import (
    ApiKeyConnection,
    AudioPart,
    Connection,
    ContentPart,
    CustomTool,
    FilePart,
    FoundryConnection,
    FunctionTool,
    ImagePart,
    McpTool,
    Message,
    OpenApiTool,
    Property,
    ReferenceConnection,
    TextPart,
    Tool,
)

__all__ = [
    "Agent",
    "ApiKeyConnection",
    "AudioPart",
    "Connection",
    "ContentPart",
    "CustomTool",
    "FilePart",
    "FoundryConnection",
    "FunctionTool",
    "ImagePart",
    "McpTool",
    "Message",
    "OpenApiTool",
    "Prompty",
    "Property",
    "ReferenceConnection",
    "TextPart",
    "Tool",
]
