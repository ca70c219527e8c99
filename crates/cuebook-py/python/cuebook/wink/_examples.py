"""Examples of whole tasks, as sections."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from ._base import ParamsT, PromptValidationError, ResultT, SectionPath, SectionVisibility
from ._section import Attributed, Section, frame
from ._serde import to_json
from ._tool import ToolExample, fenced, indented

if TYPE_CHECKING:
    from typing_extensions import Self

_LONGEST_OBJECTIVE = 500
_LONGEST_TITLE = 60


@dataclass(frozen=True)
class TaskStep(Generic[ParamsT, ResultT]):
    """One call of a tool in a task."""

    tool_name: str
    example: ToolExample[Any, Any]


class _Written(Section[ParamsT]):
    """A section whose summary is shown as it is, and whose body the engine writes."""

    def _body(self) -> str:
        return ""

    def render_body(
        self,
        params: ParamsT | None,
        *,
        visibility: SectionVisibility | None = None,
        path: SectionPath = (),
        session: Any = None,
    ) -> str:
        is_summary = visibility is SectionVisibility.SUMMARY and self.summary is not None
        text = self.summary or "" if is_summary else self._body()
        return Attributed.of([frame(text, "example")] if text else [])


class TaskExample(_Written[ParamsT]):
    """A task: its objective, the calls of tools, and the outcome."""

    def __init__(
        self,
        *,
        key: str,
        objective: str,
        outcome: Any,
        steps: Sequence[TaskStep[Any, Any]],
        title: str | None = None,
        **more: Any,
    ) -> None:
        self.objective = _objective(objective)
        self.outcome = outcome
        self.steps = _steps(steps)
        self._more = more
        shown = objective if len(objective) <= _LONGEST_TITLE else objective[: _LONGEST_TITLE - 3] + "..."
        super().__init__(title=title or shown, key=key, **more)

    def _body(self) -> str:
        lines = [f"**Objective:** {self.objective}", "", "**Steps:**", ""]
        for number, step in enumerate(self.steps, 1):
            lines += [
                f"{number}. **{step.tool_name}** - {step.example.description}",
                "   - input:",
                indented(fenced("json", to_json(step.example.input)), 5),
                "   - output:",
                indented(fenced("", to_json(step.example.output)), 5),
                "",
            ]
        outcome = self.outcome if isinstance(self.outcome, str) else to_json(self.outcome)
        return "\n".join([*lines, f"**Outcome:** {outcome}"])

    def clone(self, **kwargs: Any) -> Self:
        given: dict[str, Any] = {"key": self.key, "objective": self.objective, "outcome": self.outcome}
        return type(self)(**given, steps=self.steps, title=self.title, **self._more)


def _objective(objective: str) -> str:
    if not objective.strip():
        raise PromptValidationError("Task example objective must not be empty.", placeholder="objective")
    if len(objective) > _LONGEST_OBJECTIVE:
        said = f"Task example objective must be <= {_LONGEST_OBJECTIVE} characters."
        raise PromptValidationError(said, placeholder="objective")
    if not objective.isascii():
        raise PromptValidationError("Task example objective must be ASCII.", placeholder="objective")
    return objective


def _steps(steps: Sequence[Any]) -> tuple[TaskStep[Any, Any], ...]:
    if not steps:
        raise PromptValidationError("Task example steps must not be empty.", placeholder="steps")
    for number, step in enumerate(steps):
        if not isinstance(step, TaskStep):
            raise PromptValidationError(f"Step {number} must be a TaskStep instance.", placeholder="steps")
        if not re.fullmatch(r"[a-z0-9_-]{1,64}", step.tool_name):
            raise PromptValidationError(f"Invalid tool name format: {step.tool_name!r}.", placeholder="tool_name")
    return tuple(steps)


class TaskExamplesSection(_Written[ParamsT]):
    """A heading above examples of tasks."""

    def __init__(
        self,
        *,
        examples: Sequence[TaskExample[Any]],
        key: str = "task-examples",
        title: str = "Task Examples",
        **more: Any,
    ) -> None:
        if not examples:
            raise PromptValidationError("TaskExamplesSection requires at least one example.", placeholder="examples")
        for one in examples:
            if not isinstance(one, TaskExample):
                said = f"TaskExamplesSection children must be TaskExample instances, not {type(one).__name__}."
                raise PromptValidationError(said, placeholder="examples")
        self._more = more
        super().__init__(title=title, key=key, children=examples, **more)

    def clone(self, **kwargs: Any) -> Self:
        examples = [child.clone(**kwargs) for child in self.children]
        return type(self)(examples=examples, key=self.key, title=self.title, **self._more)  # type: ignore[arg-type]
