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
from ._rendered import Rendered, Wire
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

# See `errors`.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._parts import Found, Piece, Reply, Segment, Span, Tokens
    from ._runs import Event, Run, RunOptions, RunResult
else:
    _LATER = {
        **dict.fromkeys(("Found", "Piece", "Reply", "Segment", "Span", "Tokens"), "_parts"),
        **dict.fromkeys(("Event", "Run", "RunOptions", "RunResult"), "_runs"),
    }

    def __getattr__(name):
        """Imports what most programs do not name."""
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f".{_LATER[name]}", __name__), name)
        globals()[name] = value
        return value

    def __dir__():
        return sorted({*globals(), *_LATER})


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
