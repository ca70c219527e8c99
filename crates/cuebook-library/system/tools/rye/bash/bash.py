# rye:signed:2026-11-17T04:37:23Z:ec12e113e85426773e0f1d0d1dcdd1708cc24300f111254295ad18283c849493:1ByBMQENr1mQfzZmKZEYk8-7VXpfnz_mr_d5XQc1gDvtZXbJnEuoWh1DEFgSXlReyCUyeBW_OmTY09B1VW-zBg==:c6c547bee16d153f|cuebook@tool/rye/bash/bash.py
"""Runs a command in a shell."""

import fcntl
import os
import subprocess
import tempfile

from _cuebook import Refused, inside, run, text

__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python/script"
__category__ = "rye/bash"
__tool_description__ = (
    "Run a command in bash. When a model calls this tool, the command runs in a sandbox: it can read the system and the project,"
    " change files of the project except .ai, .git, .venv, .env, user_data and cuebook.toml, and cannot see other processes, the home"
    " directory or the network. Without the sandbox (a user runs the tool, or turned the sandbox off), the command can do what the"
    " user can: read, change and delete any file, start programs and use the network. It starts in the project's folder, has no"
    " standard input, and is stopped after 300 seconds."
)

CONFIG_SCHEMA = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "description": "the command, as in a terminal"},
        "working_dir": {"type": "string", "description": "the folder to start in, relative to the project"},
    },
    "required": ["command"],
    "additionalProperties": False,
}

MOST = 1 << 20
LARGEST = 32 << 20


class Said:
    """What a command says on one of its streams: a file and not a pipe, so that what goes on in the background can keep it
    as long as it likes. The beginning is kept, and a file that grows too large is emptied."""

    def __init__(self):
        self.file = tempfile.TemporaryFile()
        self.beginning = None
        # Whoever writes goes on at the end, also after the file was emptied.
        fcntl.fcntl(self.file, fcntl.F_SETFL, fcntl.fcntl(self.file, fcntl.F_GETFL) | os.O_APPEND)

    def tidy(self):
        if os.fstat(self.file.fileno()).st_size > LARGEST:
            if self.beginning is None:
                self.beginning = os.pread(self.file.fileno(), MOST, 0)
            os.ftruncate(self.file.fileno(), 0)

    def text(self):
        """The beginning of it, and whether there was more."""
        data = os.pread(self.file.fileno(), MOST + 1, 0) if self.beginning is None else self.beginning
        return data[:MOST].decode("utf-8", "replace"), self.beginning is not None or len(data) > MOST


def bash(params, project):
    command = text(params, "command")
    if not command.strip() or "\0" in command:
        raise Refused("`command` must be a command")
    folder = inside(project, text(params, "working_dir", "."))
    out, err = Said(), Said()
    process = subprocess.Popen(
        ["bash", "-c", command], cwd=folder, stdin=subprocess.DEVNULL, stdout=out.file, stderr=err.file
    )
    code = None
    while code is None:
        try:
            code = process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            out.tidy()
            err.tidy()
    (stdout, more_out), (stderr, more_err) = out.text(), err.text()
    return {
        "success": code == 0,
        "output": stdout + stderr,
        "stdout": stdout,
        "stderr": stderr,
        "exit_code": code,
        "truncated": more_out or more_err,
    }


if __name__ == "__main__":
    run(bash)
