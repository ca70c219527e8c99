"""Stages of Ray data sets, on a cluster of several nodes of this machine. The provider is a server of this process."""

from __future__ import annotations

import collections
import importlib
import json
import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from conftest import Project
from cuebook import Book, CuebookError
from cuebook import ray as stages
from test_runs import PROMPT, Model, model

__all__ = ["model"]

OUTPUTS = "outputs:\n  - {name: word, kind: string}\n  - {name: score, kind: float}\n---\n"
JUDGE = PROMPT.replace("name: answer", "name: verdict").replace("---\nsystem:", OUTPUTS + "system:").replace("{{ question }}", "{{ prompt }}|{{ answer }}|{{ hint }}")
FILES = {
    "prompts/answer.prompty": PROMPT,
    "prompts/verdict.prompty": JUDGE.replace("- name: question", "- name: hint"),
    "prompts/greeting/template.md": "Hello {{ name }}!",
}


@pytest.fixture
def root(project: Project) -> Path:
    return project(FILES)


def _questions(journals: Path) -> list[str]:
    """The keys of the answers that are recorded."""
    lines = [json.loads(line) for file in journals.glob("*.journal") for line in file.read_text().splitlines()]
    return [line["key"] for line in lines if "answer" in line]


def test_a_block_has_the_columns_of_a_batch(root: Path) -> None:
    table = pa.table({"id": [7, 8], "name": ["Ada", None]})
    done = stages.Render("greeting", project=root)(table)
    assert done.column_names == ["row", "id", "name", "text", "render_hash", "error", "error_message"]
    assert done["text"].to_pylist() == ["Hello Ada!", "Hello None!"] and done["row"].to_pylist() == [1, 2]
    asked = pa.table({"question": ["Why?"]})
    bare = stages.Render("answer", project=root, form="wire:openai", prefix="x_", no_inputs=True)(asked)
    assert bare.column_names == ["x_row", "x_wire", "x_render_hash", "x_error", "x_error_message"]
    assert json.loads(bare["x_wire"][0].as_py())["messages"][1]["content"] == "Why?"
    mapped = stages.Render("greeting", project=root, columns={"id": "name"})(table)
    assert mapped["text"].to_pylist() == ["Hello 7!", "Hello 8!"]
    with pytest.raises(CuebookError, match="a column `text`") as raised:
        stages.Render("greeting", project=root)(table.rename_columns(["text", "name"]))
    assert raised.value.code == "CB902"


def test_a_failing_row_is_an_error_row(root: Path) -> None:
    table = pa.table({"row": [5, 6], "question": ["Why?", "When?"], "n": [1.0, float("nan")]})
    inputs = "  - {name: question, kind: string, required: true}\n  - {name: n, kind: float}\n"
    prompt = PROMPT.replace("  - name: question\n    kind: string\n", inputs)
    (root / "prompts/answer.prompty").write_text(prompt)
    done = stages.Render("answer", project=root)(table)
    assert done["row"].to_pylist() == [5, 6] and done["error"][0].as_py() is None
    assert done["error"][1].as_py() == "CB901" and "`n` is NaN" in done["error_message"][1].as_py()
    with pytest.raises(CuebookError) as raised:
        stages.Render("answer", project=root)(pa.table({"n": [1.0]}))
    assert raised.value.code == "CB902" and "`question`" in raised.value.message


def test_a_stage_survives_pickle_and_shares_answers(root: Path, model: Model, tmp_path: Path) -> None:
    table = pa.table({"question": ["Why?", "When?", "Why?"], "hint": ["a", "b", "c"]})
    journals = tmp_path / "journals"
    stage = stages.Run("answer", project=root, provider="local", journal=journals)
    done = pickle.loads(pickle.dumps(stage))(table)
    assert done["answer"].to_pylist() == ["You asked: Why?", "You asked: When?", "You asked: Why?"]
    assert done["input_tokens"].to_pylist() == [10] * 3 and done["error"].null_count == 3
    assert len(model.asked) == 2 == len(_questions(journals))
    # The journal of the first stage is in use, so this one begins another, and knows the first.
    again = stages.Run("answer", project=root, provider="local", journal=journals)(table)
    assert again.equals(done) and len(model.asked) == 2 and len(list(journals.glob("*.journal"))) == 2
    judge = stages.Judge("verdict", of="answer", project=root, provider="local", journal=journals)
    judged = judge(done)
    added = ["verdict_word", "verdict_score", "verdict_cost", "verdict_error"]
    assert judged.column_names == [*done.column_names, *added]
    assert judged["verdict_score"].to_pylist() == [0.5] * 3
    asked = [body["messages"][-1]["content"] for body in model.asked[2:]]
    assert len(asked) == 3 and any("Why?" in one and "You asked: Why?|a" in one for one in asked)
    # An answer of a later process is found too.
    more = pa.table({"question": ["Where?"]})
    stages.Run("answer", project=root, provider="local", journal=journals)(more)
    stage(more)
    assert len(model.asked) == 6 and len(set(_questions(journals))) == 6 == len(_questions(journals))


def test_what_is_wrong_is_raised_before_a_stage_begins(root: Path) -> None:
    with pytest.raises(CuebookError, match="answr"):
        stages.Run("answr", project=root, journal="j").open()
    with pytest.raises(CuebookError, match="nowhere"):
        stages.Run("answer", project=root, provider="nowhere", journal="j").open()
    with pytest.raises(CuebookError, match="`requests`"):
        stages.Run("answer", project=root, journal="j", requests=0)
    with pytest.raises(CuebookError, match="`answer` cannot begin"):
        stages.Judge("answer", of="answer", journal="j", project=root)
    with pytest.raises(CuebookError, match="no variable `title`"):
        stages.Render("greeting", project=root, columns={"id": "title"}).open()


@pytest.fixture
def cluster(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("RAY_DATA_DISABLE_PROGRESS_BARS", "RAY_DISABLE_IMPORT_WARNING"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray: Any = importlib.import_module("ray")
    cluster: Any = importlib.import_module("ray.cluster_utils").Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 100 << 20})
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
        ray.init(address=cluster.address, log_to_driver=False)
        cluster.wait_for_nodes()
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_a_lost_node_loses_no_row_and_pays_nothing_twice(cluster: Any, root: Path, model: Model, tmp_path: Path) -> None:
    ray: Any = importlib.import_module("ray")
    count, journals = 240, tmp_path / "journals"
    rows = [{"question": f"Question {number}", "hint": str(number)} for number in range(count)]
    data = ray.data.from_items(rows, override_num_blocks=24)
    asks: dict[str, Any] = {"project": Book(root), "provider": "local", "journal": journals}
    done = stages.run(data, "answer", **asks, requests=2, ray={"batch_size": 10})
    node = cluster.list_all_nodes()[-1]
    model.pause = 0.02
    at_loss: list[int] = []

    def lose() -> None:
        while len(model.asked) < 40:
            time.sleep(0.01)
        cluster.remove_node(node, allow_graceful=False)
        at_loss.append(len(model.asked))

    loss = threading.Thread(target=lose)
    loss.start()
    table = pa.concat_tables(ray.get(done.to_arrow_refs()))
    loss.join()
    assert table["question"].to_pylist() == [row["question"] for row in rows]
    assert table["answer"].to_pylist() == [f"You asked: {row['question']}" for row in rows]
    assert table["row"].to_pylist() == sorted(set(table["row"].to_pylist()))
    assert at_loss[0] < count
    # What was on its way to the lost node may be asked again; what was recorded is not.
    recorded = _questions(journals)
    assert len(recorded) == len(set(recorded)) == count
    twice = sum(times - 1 for times in collections.Counter(body["messages"][-1]["content"] for body in model.asked).values())
    assert twice <= 2

    before = len(model.asked)
    again = stages.run(data, "answer", **asks)
    judged = stages.judge(again, "verdict", of="answer", **asks, ray={"batch_size": 40})
    scores = [row["verdict_score"] for row in judged.take_all()]
    assert scores == [0.5] * count and len(model.asked) == before + count
