"""The Python package of minijinja as a peer: one JSON request per line in, one JSON answer per line out.

`{"load": {"template": text, "values": {...}}}` answers with the text. `{"time": "render"}` answers with the nanoseconds of one call,
measured here; the garbage collector rests meanwhile: `timeit` sees to that.
"""

import json
import sys
import timeit

from minijinja import Environment

TURN = 0.001
environment = Environment(keep_trailing_newline=True)


class Loaded:
    def __init__(self, template, values, **_):
        environment.add_template("case", template)
        self.values = values
        self.timer = timeit.Timer(self.render)
        self.calls = 1
        while self.timer.timeit(self.calls) < TURN:
            self.calls *= 2

    def render(self):
        return environment.render_template("case", **self.values)

    def time(self):
        return self.timer.timeit(self.calls) / self.calls * 1e9


for line in sys.stdin:
    try:
        request = json.loads(line)
        if "load" in request:
            loaded = Loaded(**request["load"])
            answer = {"text": loaded.render()}
        else:
            answer = loaded.time()
    except Exception as error:
        answer = {"failed": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
