"""`cuebook.prompty` has the executors and the processors of Prompty, and its modules."""

from __future__ import annotations

import asyncio
import importlib
import pickle
import sys
import types
from typing import Any

import pytest

from cuebook import prompty
from cuebook.prompty.core.types import AsyncPromptyStream, AudioPart, FilePart, ImagePart, Message, PromptyStream, TextPart
from cuebook.prompty.providers.anthropic.executor import AnthropicExecutor
from cuebook.prompty.providers.anthropic.processor import AnthropicProcessor
from cuebook.prompty.providers.foundry.executor import FoundryExecutor
from cuebook.prompty.providers.openai.executor import OpenAIExecutor
from cuebook.prompty.providers.openai.processor import OpenAIProcessor, ToolCall

from conftest import Project

ASKED = [Message("system", [TextPart(value="Be kind.")]), Message(role="user", parts=[TextPart(value="Why?")])]


class Client:
    """A client of any provider that returns what it was asked."""

    def __init__(self, **given: Any) -> None:
        self.given = given

    def __getattr__(self, name: str) -> Client:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, **body: Any) -> Any:
        return [body] if body.get("stream") else body


class AsyncClient(Client):
    async def __call__(self, **body: Any) -> Any:
        async def events() -> Any:
            yield body

        return events() if body.get("stream") else body


@pytest.fixture(autouse=True)
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = dict.fromkeys(("OpenAI", "AzureOpenAI", "Anthropic"), Client)
    kinds.update(dict.fromkeys(("AsyncOpenAI", "AsyncAzureOpenAI", "AsyncAnthropic"), AsyncClient))
    for name in ("openai", "anthropic"):
        monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(**kinds))


def _agent(provider: str = "openai", api_type: str = "chat", **more: Any) -> prompty.Prompty:
    connection = {"kind": "key", "apiKey": "k", "endpoint": "https://one.example/"}
    model = {"id": "m", "provider": provider, "apiType": api_type, "connection": connection, "options": {"temperature": 0.5}}
    return prompty.Prompty.load({"name": "p", "model": model, **more})


def test_executors_send_the_body_that_the_engine_makes() -> None:
    chat = OpenAIExecutor().execute(_agent(), ASKED)
    assert chat["model"] == "m" and chat["temperature"] == 0.5
    assert chat["messages"] == [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Why?"}]
    assert OpenAIExecutor().execute(_agent(api_type="responses"), ASKED)["instructions"] == "Be kind."
    claude = AnthropicExecutor().execute(_agent("anthropic"), ASKED)
    assert claude["system"] == "Be kind." and len(claude["messages"]) == 1
    assert asyncio.run(OpenAIExecutor().execute_async(_agent(), ASKED)) == chat
    assert asyncio.run(AnthropicExecutor().execute_async(_agent("anthropic"), ASKED)) == claude


def test_executors_take_texts_for_embeddings_and_images() -> None:
    for texts in ("one", ["one", "two"]):
        assert OpenAIExecutor().execute(_agent(api_type="embedding"), texts)["input"] == texts
    assert OpenAIExecutor().execute(_agent(api_type="image"), "a cat")["prompt"] == "a cat"


def test_a_change_of_the_model_changes_what_executors_send() -> None:
    agent = _agent()
    agent.model.options.max_output_tokens = 7
    agent.model.id = "other"
    body = OpenAIExecutor().execute(agent, ASKED)
    assert (body["model"], body["max_completion_tokens"]) == ("other", 7)
    agent.model.options = None
    assert "temperature" not in OpenAIExecutor().execute(agent, ASKED)
    agent.model.options = {"temperature": "hot"}
    with pytest.raises(prompty.CuebookError, match="`temperature` of the model"):
        OpenAIExecutor().execute(agent, ASKED)


def test_streams_are_given_on_and_remember_what_was_read() -> None:
    agent = _agent()
    agent.model.options.additional_properties = {"stream": True}
    stream = OpenAIExecutor().execute(agent, ASKED)
    assert isinstance(stream, PromptyStream) and [event["model"] for event in stream] == ["m"] == [event["model"] for event in stream.items]

    async def read() -> AsyncPromptyStream:
        events = await AnthropicExecutor().execute_async(agent, ASKED)
        assert [event["stream"] async for event in events] == [True]
        return events  # type: ignore[no-any-return]

    assert len(asyncio.run(read()).items) == 1


def test_connections_choose_the_client() -> None:
    assert OpenAIExecutor()._resolve_client(_agent()).given == {"api_key": "k", "base_url": "https://one.example/"}
    assert AnthropicExecutor()._resolve_client(_agent("anthropic"), is_async=True).given["api_key"] == "k"
    assert FoundryExecutor()._resolve_client(_agent("foundry")).given["azure_endpoint"] == "https://one.example/"
    agent = prompty.Prompty.load({"name": "p", "model": {"id": "m", "connection": {"kind": "reference", "name": "mine"}}})
    with pytest.raises(prompty.InvokerError, match="`mine`"):
        OpenAIExecutor()._resolve_client(agent)
    client = Client()
    prompty.register_connection("mine", client=client)
    try:
        assert OpenAIExecutor()._resolve_client(agent) is client is prompty.get_connection("mine")
    finally:
        prompty.clear_connections()
    agent = prompty.Prompty.load({"name": "p", "model": {"id": "m", "connection": {"kind": "key", "endpoint": "https://one.example/"}}})
    with pytest.raises(ValueError, match="no apiKey"):
        FoundryExecutor()._resolve_client(agent)


def test_an_unknown_kind_of_request_is_refused() -> None:
    for executor, kind in ((OpenAIExecutor(), "song"), (AnthropicExecutor(), "embedding")):
        agent = _agent()
        agent.model.api_type = kind
        with pytest.raises(ValueError, match="Unsupported apiType"):
            executor.execute(agent, ASKED)


def test_keys_of_a_file_reach_the_client_and_no_definition(project: Project) -> None:
    text = "---\nname: p\ndescription: Not a ${file:} reference.\nmodel: {id: m, connection: '${file:c.json}'}\n---\nHi\n"
    path = project({"p.prompty": text, "c.json": '{"kind": "key", "apiKey": "k"}'}) / "p.prompty"
    agent = prompty.load(path)
    assert OpenAIExecutor()._client_kwargs(agent) == {"api_key": "k"}
    path.write_text(text.replace("'${file:c.json}'", "{kind: key, apiKey: k}"))
    agent = prompty.load(path)
    assert OpenAIExecutor()._client_kwargs(agent) == {"api_key": "k"} and "'k'" not in str(agent.definition)


def test_metadata_has_the_version(project: Project) -> None:
    path = project({"p.prompty": "---\nname: p\nmetadata: {version: '2.0', tags: [a]}\n---\nHi\n"}) / "p.prompty"
    assert prompty.load(path).metadata == {"version": "2.0", "tags": ["a"]}


def test_wrong_messages_are_named() -> None:
    with pytest.raises(prompty.CuebookError, match="message 2 cannot be read: it has no role"):
        OpenAIExecutor().execute(_agent(), [ASKED[0], {"content": "x"}])


@pytest.mark.parametrize("given, said", [("Hi", "a list, not str"), (ASKED[0], "a list, not Message"), (["Hi"], "message 1 cannot be read")])
def test_what_is_no_list_of_messages_is_named(given: Any, said: str) -> None:
    with pytest.raises(prompty.CuebookError, match=said):
        OpenAIExecutor().execute(_agent(), given)


def test_strings_are_texts_of_a_message() -> None:
    assert Message("user", "Hi") == Message("user", ["Hi"]) == Message("user", [TextPart(value="Hi")])


def test_messages_and_agents_survive_pickle() -> None:
    message = Message("user", [ImagePart(source="https://one.example/a.png")], {"name": "Ada"})
    copy = pickle.loads(pickle.dumps(message))
    assert copy == message and isinstance(copy.parts[0], ImagePart) and copy.metadata == {"name": "Ada"}
    agent = pickle.loads(pickle.dumps(_agent()))
    assert OpenAIExecutor()._client_kwargs(agent)["api_key"] == "k"


def test_media_parts_reach_the_body() -> None:
    parts = [
        ImagePart(source="https://one.example/a.png", detail="high"),
        AudioPart(source="AAAA", media_type="audio/wav"),
        FilePart(source="data:application/pdf;base64,AAAA"),
    ]
    [message] = OpenAIExecutor().execute(_agent(), [Message("user", parts)])["messages"]
    assert [part["type"] for part in message["content"]] == ["image_url", "input_audio", "file"]
    assert message["content"][0]["image_url"]["detail"] == "high"


def test_processors_read_responses() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    answer = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    assert OpenAIProcessor().process(_agent(), answer) == [ToolCall("c", "f", "{}")]
    response = types.SimpleNamespace(object="response", error=None, output=[], output_text='{"a": 1}')
    outputs = [{"name": "a", "kind": "integer"}]
    assert OpenAIProcessor().process(_agent(outputs=outputs), response) == {"a": 1}
    blocks = [types.SimpleNamespace(type="text", text="Hello")]
    assert AnthropicProcessor().process(_agent("anthropic"), types.SimpleNamespace(content=blocks)) == "Hello"
    failed = types.SimpleNamespace(object="response", error=types.SimpleNamespace(message="too many"), output=[])
    with pytest.raises(ValueError, match="too many"):
        OpenAIProcessor().process(_agent(), failed)


@pytest.mark.parametrize("name", ["model", "parsers", "renderers", "core.types", "core.connections", "providers.azure.executor"])
def test_modules_have_the_names_of_prompty(name: str) -> None:
    module = importlib.import_module(f"cuebook.prompty.{name}")
    assert module.__all__ and all(hasattr(module, one) for one in module.__all__)
