"""The Python package as a contestant: one JSON request per line in, one JSON answer per line out.

`{"load": {"file": path, "values": {...}, "rows": n}}` answers with the text, and checks that each row of a table gives the same.
`{"time": "render"}` answers with the nanoseconds of one call, `"table"` and `"table on two cores"` with those of one row.
"""

import json
import sys
import time
import timeit
from pathlib import Path

import pyarrow

from cuebook import Book

TURN = 0.001


class Loaded:
    def __init__(self, file, values, rows=0, **_):
        self.book = Book(Path(file).parents[1])
        self.values = values
        self.rows = rows
        text = self.book.render("case", variables=values).text
        if rows:
            self.table = pyarrow.table({name: [value] * rows for name, value in values.items()})
            assert set(self.book.render_batch("case", self.table).texts) == {text}
        self.text = text
        self.timer = timeit.Timer(self.render)
        self.calls = 1
        while self.timer.timeit(self.calls) < TURN:
            self.calls *= 2

    def render(self):
        return self.book.render("case", variables=self.values).text

    def time(self, what):
        if what == "render":
            return self.timer.timeit(self.calls) / self.calls * 1e9
        threads = 2 if what == "table on two cores" else 1
        started = time.perf_counter_ns()
        done = self.book.render_batch("case", self.table, threads=threads)
        taken = time.perf_counter_ns() - started
        assert len(done) == self.rows
        return taken / self.rows


for line in sys.stdin:
    try:
        request = json.loads(line)
        if "load" in request:
            loaded = Loaded(**request["load"])
            answer = {"text": loaded.text}
        else:
            answer = loaded.time(request["time"])
    except Exception as error:
        answer = {"failed": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
