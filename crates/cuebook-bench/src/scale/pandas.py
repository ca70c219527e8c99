"""Renders the rows of a CSV file with pandas and Jinja2: DATA OUTPUT PROCESSES TEMPLATE."""

import sys
from concurrent.futures import ProcessPoolExecutor

import pandas
from jinja2 import Environment


def render(frame):
    template = Environment().from_string(open(sys.argv[4]).read())
    frame = frame.copy()
    frame["text"] = [template.render(row) for row in frame.to_dict("records")]
    return frame


def main():
    data, output, processes = sys.argv[1], sys.argv[2], int(sys.argv[3])
    frame = pandas.read_csv(data, dtype=str, keep_default_na=False)
    if processes == 1:
        frame = render(frame)
    else:
        size = -(-len(frame) // processes)
        parts = [frame[start : start + size] for start in range(0, len(frame), size)]
        with ProcessPoolExecutor(processes) as pool:
            frame = pandas.concat(pool.map(render, parts))
    frame.to_json(output, orient="records", lines=True, force_ascii=False)


main()
