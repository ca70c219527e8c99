"""Messages, their parts and streams, as in `prompty.core.types`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from .._parts import AudioPart, ContentPart, FilePart, ImagePart, Message, TextPart

__all__ = ["AsyncPromptyStream", "AudioPart", "ContentPart", "FilePart", "ImagePart", "Message", "PromptyStream", "TextPart"]


class PromptyStream(Iterator[Any]):
    """The events of a response, as the client returns them. `items` has those that were read."""

    def __init__(self, name: str, iterator: Iterator[Any]) -> None:
        self.name, self.iterator = name, iterator
        self.items: list[Any] = []

    def __next__(self) -> Any:
        item = next(self.iterator)
        self.items.append(item)
        return item


class AsyncPromptyStream(AsyncIterator[Any]):
    """Like `PromptyStream`, for an asynchronous client."""

    def __init__(self, name: str, iterator: AsyncIterator[Any]) -> None:
        self.name, self.iterator = name, iterator
        self.items: list[Any] = []

    async def __anext__(self) -> Any:
        item = await self.iterator.__anext__()
        self.items.append(item)
        return item
