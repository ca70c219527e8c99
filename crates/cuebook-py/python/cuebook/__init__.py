"""Cuebook: a prompt engine in which every rendered character knows where it came from.

>>> from cuebook import Book
>>> book = Book(".")
>>> rendered = book.render("general_system", agent_name="Rumi")
>>> "Rumi" in rendered.text
True
>>> rendered.find("Rumi")[0].pieces[0].label
'agent_name (caller)'
"""

from ._book import Book
from ._native import RenderedTable, __version__
from ._rendered import Found, Piece, Rendered, Reply, Segment, Span, Tokens, Wire
from ._runs import Event, Run, RunOptions, RunResult
from .errors import (
    ConfigError,
    CuebookError,
    Diagnostic,
    ExecuteError,
    IntegrityError,
    InvokerError,
    IoError,
    ItemNotFoundError,
    LimitError,
    OutputParseError,
    PackError,
    PromptApprovalRequired,
    PromptConflictError,
    PromptHookError,
    PromptNotFoundError,
    PromptOverridesError,
    PromptReadError,
    PromptRenderError,
    PromptValidationError,
    ReplyError,
    StrictViolation,
    UsageError,
    VisibilityExpansionRequired,
    WireError,
)

__all__ = [
    "Book",
    "ConfigError",
    "CuebookError",
    "Diagnostic",
    "Event",
    "ExecuteError",
    "Found",
    "IntegrityError",
    "InvokerError",
    "IoError",
    "ItemNotFoundError",
    "LimitError",
    "OutputParseError",
    "PackError",
    "Piece",
    "PromptApprovalRequired",
    "PromptConflictError",
    "PromptHookError",
    "PromptNotFoundError",
    "PromptOverridesError",
    "PromptReadError",
    "PromptRenderError",
    "PromptValidationError",
    "Rendered",
    "RenderedTable",
    "Reply",
    "ReplyError",
    "Run",
    "RunOptions",
    "RunResult",
    "Segment",
    "Span",
    "StrictViolation",
    "Tokens",
    "UsageError",
    "VisibilityExpansionRequired",
    "Wire",
    "WireError",
    "__version__",
]
