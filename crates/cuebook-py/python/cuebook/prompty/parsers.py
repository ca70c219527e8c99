"""The parser, as in `prompty.parsers`."""

from . import PromptyChatParser

__all__ = ["PromptyChatParser"]
