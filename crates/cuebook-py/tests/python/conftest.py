"""Projects for the tests, each in a temporary folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cuebook import Book

pytest_plugins = ["pytester"]

# Clusters of Ray listen on this machine only. With tokens, a cluster of one test looks for the token in the home folder of another.
# A busy machine takes its time to start one.
os.environ.update(RAY_AUTH_MODE="disabled", RAY_gcs_server_port_wait_time_s="300", RAY_raylet_start_wait_time_s="300")

Project = Callable[[dict[str, str]], Path]

GREETING = "Hello {{ name }}{% if tone %}, {{ tone }}{% endif %}!\n"
CHAT = """\
---
name: reply
model:
  id: gpt-4o
  provider: openai
inputs:
  - name: question
    kind: string
tools:
  - name: weather
    kind: function
    description: The weather in a city.
    parameters:
      - name: city
        kind: string
---
system:
You are kind.

user:
{{ question }}
"""


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of the machine takes part: keys and settings are those of an empty home."""
    folder = tmp_path_factory.mktemp("home")
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, os.fspath(folder))
    for name in [name for name in os.environ if name.startswith("CUEBOOK_") or name == "USER_SPACE"]:
        monkeypatch.delenv(name)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Writes files and returns their folder."""

    def write(files: dict[str, str]) -> Path:
        root = tmp_path / "project"
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return root

    return write


@pytest.fixture
def book(project: Project) -> Book:
    return Book(project({"prompts/greeting/template.md": GREETING, "prompts/reply.prompty": CHAT}))
