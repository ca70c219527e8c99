"""The peer's side of the benchmark of threads: one JSON request per line in, one JSON answer per line out.

`{"load": {"user": folder, "project": folder, "server": address, "text": directive}}` signs the directive and a provider at that
address, runs it once and gives the answer. `{"time": "thread"}` gives the nanoseconds of one run.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path


class Loaded:
    def __init__(self, user, project, server, text):
        # Its modules look at the user's space when they are loaded, and its tools run with the Python that is found first.
        here = os.path.dirname(sys.executable)
        os.environ.update(USER_SPACE=user, ANTHROPIC_API_KEY="nobody-knows", RYE_PYTHON=sys.executable)
        os.environ["PATH"] = here + os.pathsep + os.environ["PATH"]
        import ryeos_std
        from rye.actions.execute import ExecuteTool
        from rye.primitives.signing import ensure_keypair
        from rye.utils.execution_context import ExecutionContext
        from rye.utils.metadata_manager import MetadataManager
        from rye.utils.trust_store import TrustStore

        self.project = project
        root = Path(project)
        _, public = ensure_keypair(Path(user) / ".ai/config/keys/signing")
        TrustStore(ExecutionContext.from_env(project_path=root)).add_key(public, version="1.0.0")

        def write(kind, path, content):
            file = root / ".ai" / path
            file.parent.mkdir(parents=True)
            file.write_text(MetadataManager.sign_content(kind, content, file_path=file, project_path=root))

        provider = "tools/rye/agent/providers/anthropic/anthropic.yaml"
        shipped = (Path(list(ryeos_std.__path__)[0]) / ".ai" / provider).read_text()
        # Without its signature, which is in the first line.
        write("tool", provider, shipped.split("\n", 1)[1].replace("https://api.anthropic.com", server))
        write("directive", "directives/bench/greet.md", text)
        self.tool = ExecuteTool(user)
        self.loop = asyncio.new_event_loop()

    def answer(self):
        call = self.tool.handle(
            item_id="directive:bench/greet", thread="fork", project_path=self.project, parameters={"who": "Ann"}
        )
        return self.loop.run_until_complete(call)

    def thread(self):
        started = time.perf_counter()
        answer = self.answer()
        took = time.perf_counter() - started
        assert answer["data"]["outputs"] == {"greeting": "Hello"}, answer
        return took * 1e9


for line in sys.stdin:
    request = json.loads(line)
    if "load" in request:
        loaded = Loaded(**request["load"])
        answer = loaded.answer()
    else:
        answer = getattr(loaded, request["time"])()
    print(json.dumps(answer, default=str), flush=True)
