"""The exceptions. Each one carries the code, the place, an excerpt and a hint, and prints as the command line prints it."""

from __future__ import annotations

# `typing` takes most of the time that `import cuebook` may take, and only checkers need it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence

__all__ = [
    "ConfigError",
    "CuebookError",
    "Diagnostic",
    "ExecuteError",
    "IntegrityError",
    "InvokerError",
    "IoError",
    "ItemNotFoundError",
    "LimitError",
    "OutputParseError",
    "PackError",
    "PromptApprovalRequired",
    "PromptConflictError",
    "PromptHookError",
    "PromptNotFoundError",
    "PromptOverridesError",
    "PromptReadError",
    "PromptRenderError",
    "PromptValidationError",
    "ReplyError",
    "StrictViolation",
    "UsageError",
    "VisibilityExpansionRequired",
    "WireError",
]


class Diagnostic:
    """One finding: of an exception, of `Book.check`, or a note."""

    __slots__ = (
        "advice",
        "code",
        "column",
        "commands",
        "excerpt",
        "file",
        "hint",
        "label",
        "line",
        "message",
        "raw",
        "rule",
        "severity",
    )

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw: dict[str, Any] = dict(raw)
        self.code: str = raw.get("code", "")
        self.rule: str = raw.get("rule", "")
        self.severity: str = raw.get("severity", "error")
        self.message: str = raw.get("message", "")
        self.file: str | None = raw.get("file")
        self.line: int | None = raw.get("line")
        self.column: int | None = raw.get("column")
        self.excerpt: str | None = raw.get("excerpt")
        self.label: str | None = raw.get("label")
        self.hint: str | None = raw.get("hint")
        #: The hint without the spelling of the command line, and the commands that it names.
        self.advice: str | None = raw.get("advice", self.hint)
        self.commands: list[str] = list(raw.get("commands", []))

    def __reduce__(self) -> tuple[type[Diagnostic], tuple[dict[str, Any]]]:
        return (Diagnostic, (self.raw,))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Diagnostic) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash((self.code, self.message, self.file, self.line, self.column))

    def __str__(self) -> str:
        place = "".join(f"{part}:" for part in (self.file, self.line, self.column) if part is not None)
        return f"{place}{' ' if place else ''}{self.message} [{self.code}]"

    def __repr__(self) -> str:
        return f"<Diagnostic {self}>"


class CuebookError(Exception):
    """What every exception of Cuebook is."""

    #: The fields of the error as `cuebook --json` prints them.
    details: dict[str, Any]

    def __init__(self, message: str = "", **details: Any) -> None:
        super().__init__(message)
        self.details = {"message": message, **details}
        self._report: str | None = None

    @property
    def message(self) -> str:
        """What is wrong, in one sentence."""
        return str(self.details.get("message", ""))

    @property
    def code(self) -> str | None:
        """The stable code, such as `CB101`; `cuebook help CB101` explains it."""
        return self.details.get("code")

    @property
    def file(self) -> str | None:
        """The file that it is about."""
        return self.details.get("file")

    @property
    def line(self) -> int | None:
        """The line in the file, from 1."""
        return self.details.get("line")

    @property
    def column(self) -> int | None:
        """The column in characters, from 1."""
        return self.details.get("column")

    @property
    def excerpt(self) -> str | None:
        """The line of the file that it is about."""
        return self.details.get("excerpt")

    @property
    def hint(self) -> str | None:
        """What to do about it, as the command line prints it."""
        return self.details.get("hint")

    @property
    def advice(self) -> str | None:
        """The same for a program: without commands and options of the command line."""
        return self.details.get("advice", self.hint)

    @property
    def commands(self) -> list[str]:
        """The commands of `cuebook` that do it."""
        return list(self.details.get("commands", []))

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Everything that is wrong; the attributes are those of the first."""
        return [Diagnostic(one) for one in self.details.get("diagnostics") or [self.details]]

    def __str__(self) -> str:
        if self._report is not None:
            return self._report
        said = f"error[{self.code}]: {self.message}" if self.code else self.message
        return f"{said}\nhelp: {self.hint}" if self.code and self.hint else said

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (type(self), self.details, self._report, self.args))


class PromptNotFoundError(CuebookError):
    """No place offers this id."""

    @property
    def prompt_id(self) -> str | None:
        """The id that was asked for."""
        return self.details.get("prompt_id")

    @property
    def nearest(self) -> list[str]:
        """The nearest ids, best first."""
        return list(self.details.get("nearest") or [])


class PromptConflictError(CuebookError):
    """Several places offer this id, and no choice is recorded."""

    def __init__(self, prompt_id: str = "", candidates: Sequence[Any] = (), **details: Any) -> None:
        details.setdefault("message", f"several prompts have the id `{prompt_id}`")
        super().__init__(prompt_id=prompt_id, candidates=list(candidates), **details)

    @property
    def prompt_id(self) -> str | None:
        """The id that was asked for."""
        return self.details.get("prompt_id")

    @property
    def candidates(self) -> list[dict[str, Any]]:
        """The places, for `Book.resolve`."""
        return list(self.details.get("candidates") or [])


# As in Prompty, what is wrong with a prompt or its inputs is a `ValueError`.


class PromptReadError(CuebookError, ValueError):
    """A prompt's files are invalid."""


class PromptValidationError(CuebookError, ValueError):
    """Variables are missing, unknown or of the wrong type."""

    @property
    def problems(self) -> list[dict[str, Any]]:
        """Every variable that is wrong: name, expected type, found type."""
        return list(self.details.get("variables") or self.details.get("problems") or [])


class PromptRenderError(CuebookError, ValueError):
    """The template failed while it ran."""


class PromptHookError(CuebookError):
    """A hook or a variable provider failed, or cannot run here."""


class PromptApprovalRequired(CuebookError):
    """Code of a pack has not been approved, or has changed since."""


class StrictViolation(CuebookError, ValueError):
    """The value of a strict input looks like a role marker."""


class InvokerError(CuebookError, ValueError):
    """The engine, parser or provider that a prompt names is unknown."""


class WireError(CuebookError, ValueError):
    """A provider does not accept what a prompt says."""


class ReplyError(CuebookError, ValueError):
    """A provider's reply is malformed, or reports an error."""


class PromptOverridesError(CuebookError):
    """Overrides are invalid, or do not fit their prompt."""


class OutputParseError(CuebookError):
    """A reply does not match the prompt's outputs."""


class VisibilityExpansionRequired(CuebookError):
    """A model asks to see more of the prompt."""

    @property
    def requested_overrides(self) -> dict[tuple[str, ...], Any]:
        """What to open: the visibility by path."""
        return dict(self.details.get("requested_overrides") or {})

    @property
    def section_keys(self) -> tuple[str, ...]:
        """The sections that the model named."""
        return tuple(self.details.get("section_keys") or ())

    @property
    def reason(self) -> str:
        """Why the model wants to see them."""
        return str(self.details.get("reason") or "")


class ItemNotFoundError(CuebookError):
    """No space has this item."""


class IntegrityError(CuebookError):
    """An item differs from what was signed, or its signer is not trusted."""


class ExecuteError(CuebookError):
    """An item cannot run, or failed."""


class PackError(CuebookError):
    """A pack's manifest, archive or folder is invalid."""


class ConfigError(CuebookError):
    """One of Cuebook's own files is invalid."""


class LimitError(CuebookError):
    """A limit was reached."""


class IoError(CuebookError, OSError):
    """A file cannot be read or written."""


class UsageError(CuebookError):
    """A call is not well formed."""


_CLASSES: dict[str, type[CuebookError]] = {
    kind.__name__: kind for kind in list(globals().values()) if isinstance(kind, type) and issubclass(kind, CuebookError)
}


def _from_report(details: dict[str, Any], report: str) -> CuebookError:
    return _restore(_CLASSES.get(details.get("type", ""), CuebookError), details, report.rstrip("\n"))


def _restore(
    kind: type[CuebookError], details: dict[str, Any], report: str | None, args: tuple[Any, ...] | None = None
) -> CuebookError:
    error = kind.__new__(kind)
    error.args = (details.get("message", ""),) if args is None else args
    error.details = details
    error._report = report
    return error
