"""The peer's side of the benchmark of sections: one JSON request per line in, one JSON answer per line out.

`{"load": [section, ...]}` makes the prompt and answers with its text and its tools. `{"time": "bind_and_render"}` and
`{"time": "render"}` answer with the nanoseconds of one call, measured here, so that the pipe costs nothing. The garbage collector
rests while a turn is measured: `timeit` sees to that.
"""

import json
import sys
import timeit
from dataclasses import dataclass

from weakincentives.prompt import MarkdownSection, Prompt, PromptTemplate, Tool

TURN = 0.001


@dataclass(slots=True, frozen=True)
class Task:
    goal: str
    audience: str
    words: int


@dataclass(slots=True, frozen=True)
class Project:
    name: str
    language: str
    version: str


@dataclass(slots=True, frozen=True)
class Search:
    query: str
    limit: int


TYPES = {"Task": Task, "Project": Project}


def section(part):
    kind = MarkdownSection[TYPES[part["params"]]] if part["params"] else MarkdownSection
    return kind(
        key=part["key"],
        title=part["title"],
        template=part["template"],
        tools=[
            Tool[Search, None](name=name, description=description, handler=None)
            for name, description in part["tools"]
        ],
        children=[section(child) for child in part["children"]],
    )


def values():
    return (
        Task(goal="Explain the outage", audience="the people on call", words=250),
        Project(name="harbour", language="Rust", version="1.4.2"),
    )


class Loaded:
    def __init__(self, parts):
        template = PromptTemplate(ns="bench", key="sections", sections=[section(part) for part in parts])
        self.prompt = Prompt(template)
        timers = {"bind_and_render": self.bind_and_render, "render": self.prompt.render}
        self.answer = self.bind_and_render()
        self.turns = {name: self.turn(timeit.Timer(call)) for name, call in timers.items()}

    def bind_and_render(self):
        return self.prompt.bind(*values()).render()

    def turn(self, timer):
        calls = 1
        while timer.timeit(calls) < TURN:
            calls *= 2
        return lambda: timer.timeit(calls) / calls * 1e9


for line in sys.stdin:
    request = json.loads(line)
    if "load" in request:
        loaded = Loaded(request["load"])
        answer = {"text": loaded.answer.text, "tools": [tool.name for tool in loaded.answer.tools]}
    else:
        answer = loaded.turns[request["time"]]()
    print(json.dumps(answer), flush=True)
