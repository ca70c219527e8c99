"""The peer's side of the benchmark of execution: one JSON request per line in, one JSON answer per line out.

`{"load": {"user": folder, "text": directive, "arguments": {...}}}` signs the directive, makes the tool, calls it once and gives its
answer. `{"time": "execute"}` gives the nanoseconds of one call, measured here, so that the pipe costs nothing; the garbage collector rests meanwhile.
"""

import asyncio
import gc
import json
import os
import sys
import time
from pathlib import Path

TURN = 0.002


class Loaded:
    def __init__(self, user, text, arguments):
        # Its modules look at the user's space when they are loaded.
        os.environ["USER_SPACE"] = user
        from rye.tools.execute import ExecuteTool

        from rye.utils.metadata_manager import MetadataManager

        project = Path(arguments["project_path"])
        file = project / ".ai" / "directives" / f"{arguments['item_id']}.md"
        file.parent.mkdir(parents=True)
        file.write_text(MetadataManager.sign_content("directive", text, file_path=file, project_path=project))
        self.tool = ExecuteTool(user)
        self.arguments = arguments
        self.loop = asyncio.new_event_loop()

    def call(self):
        # It takes what it uses out of the parameters, so each call gets its own.
        arguments = {**self.arguments, "parameters": dict(self.arguments["parameters"])}
        return self.tool.handle(**arguments)

    def answer(self):
        return self.loop.run_until_complete(self.call())

    def execute(self):
        gc.disable()
        try:
            return self.loop.run_until_complete(self.turn())
        finally:
            gc.enable()

    async def turn(self):
        calls = 0
        started = now = time.perf_counter()
        while now - started < TURN:
            await self.call()
            calls += 1
            now = time.perf_counter()
        return (now - started) / calls * 1e9


for line in sys.stdin:
    request = json.loads(line)
    if "load" in request:
        loaded = Loaded(**request["load"])
        answer = loaded.answer()
    else:
        answer = getattr(loaded, request["time"])()
    print(json.dumps(answer), flush=True)
