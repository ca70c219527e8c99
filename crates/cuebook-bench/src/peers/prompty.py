"""Prompty in Python as a peer: one JSON request per line in, one JSON answer per line out.

`{"load": {"file": path, "values": {...}}}` reads a file and answers with its text, its messages and the body of a request.
`{"time": "render"}`, `"messages"` and `"wire"` answer with the nanoseconds of one call, measured here. `{"library": folder, "values": {...}}`
reads and renders every file of a folder.
"""

import json
import sys
import time
import timeit
from pathlib import Path

import prompty
from prompty.providers.openai.executor import OpenAIExecutor

TURN = 0.001
executor = OpenAIExecutor()


class Loaded:
    def __init__(self, file, values, **_):
        self.agent = prompty.load(file)
        self.values = values
        self.calls = {}

    def render(self):
        return prompty.render(self.agent, self.values)

    def messages(self):
        return prompty.prepare(self.agent, self.values)

    def body(self):
        return executor._build_chat_args(self.agent, self.messages())

    def wire(self):
        return json.dumps(self.body()).encode()

    def answer(self):
        body = self.body()
        return {"text": self.render(), "messages": body["messages"], "wire": body}

    def time(self, what):
        timer = timeit.Timer(getattr(self, what))
        if what not in self.calls:
            calls = 1
            while timer.timeit(calls) < TURN:
                calls *= 2
            self.calls[what] = calls
        return timer.timeit(self.calls[what]) / self.calls[what] * 1e9


def library(folder, values):
    started = time.perf_counter_ns()
    prompts = 0
    for file in Path(folder).iterdir():
        prompty.render(prompty.load(file), values)
        prompts += 1
    return {"prompts": prompts, "nanoseconds": time.perf_counter_ns() - started}


for line in sys.stdin:
    try:
        request = json.loads(line)
        if "library" in request:
            answer = library(request["library"], request["values"])
        elif "load" in request:
            loaded = Loaded(**request["load"])
            answer = loaded.answer()
        else:
            answer = loaded.time(request["time"])
    except Exception as error:
        answer = {"failed": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
