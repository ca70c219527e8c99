"""Execute, search, load, sign and verify items."""

from __future__ import annotations

import asyncio

import pytest

from conftest import Project
from cuebook import Book, IntegrityError, ItemNotFoundError, UsageError

TOOL = """\
version: 1.0.0
category: team
tool_type: shell
executor_id: rye/core/primitives/subprocess
description: Says how warm it is
config: {command: echo, args: ["11.5"]}
"""


@pytest.fixture
def team(project: Project) -> Book:
    book = Book(project({".ai/tools/team/thermometer.yaml": TOOL}))
    book.generate_key(owner="ann")
    return book


def test_an_unsigned_tool_is_refused(team: Book) -> None:
    answer = team.execute("tool", "team/thermometer")
    assert answer["status"] == "error"
    with pytest.raises(IntegrityError):
        team.verify("tool", "team/thermometer")


def test_a_signed_tool_is_verified_and_runs(team: Book) -> None:
    assert team.sign("tool", "team/thermometer")["status"] == "signed"
    assert team.verify("tool", "team/thermometer")["status"] == "verified"
    answer = team.execute("tool", "team/thermometer")
    assert (answer["status"], answer["type"], answer["item_id"]) == ("success", "tool", "team/thermometer")
    assert "11.5" in str(answer["data"])
    assert asyncio.run(team.execute_async("tool", "team/thermometer"))["data"] == answer["data"]
    assert answer["chain"][-1] == "rye/core/primitives/subprocess"


def test_a_changed_tool_fails_verification(team: Book) -> None:
    team.sign("tool", "team/thermometer")
    path = team.root / ".ai/tools/team/thermometer.yaml"
    path.write_text(path.read_text().replace("11.5", "99"))
    with pytest.raises(IntegrityError) as raised:
        team.verify("tool", "team/thermometer")
    assert raised.value.file is not None and raised.value.code == "CB221"


def test_search_and_load_find_items(team: Book) -> None:
    assert team.load("tool", "team/thermometer")["status"] == "error"
    team.sign("tool", "team/thermometer")
    found = team.search("thermometer", scope="tool")
    assert found["results"][0]["id"] == "team/thermometer"
    assert "11.5" in team.load("tool", "team/thermometer")["content"]


def test_wrong_names_are_refused(team: Book) -> None:
    with pytest.raises(UsageError) as raised:
        team.verify("tol", "team/thermometer")
    assert raised.value.hint == "did you mean `tool`?"
    with pytest.raises(ItemNotFoundError):
        team.verify("tool", "team/thermometr")
    assert team.execute("tool", "team/none")["status"] == "error"
