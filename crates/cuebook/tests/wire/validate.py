"""Holds request bodies against the types of the providers' own packages.

Reads a list of {"name", "api", "body"} from standard input and writes {name: [what is wrong]}; an empty list means that
the body is acceptable. The packages describe requests as TypedDicts, which accept unknown keys and lazy lists when a
library checks them; so they are walked here, strictly: no unknown key, no missing one, every list to its end.
"""

import collections.abc
import json
import sys
import types
import typing
import warnings

import typing_extensions
from anthropic.types import message_create_params as anthropic_params
from google.genai import types as gemini
from openai.types import embedding_create_params, image_generate_params
from openai.types.chat import ChatCompletionToolMessageParam, completion_create_params
from openai.types.responses import response_create_params

# What a provider accepts although its package does not say so (any more).
ALSO = {
    # Until the interface version 2023-06-01 is switched off.
    anthropic_params.MessageCreateParamsNonStreaming: {"temperature": float, "top_p": float, "top_k": int},
    anthropic_params.MessageCreateParamsStreaming: {"temperature": float, "top_p": float, "top_k": int},
    # OpenAI's own examples have it.
    ChatCompletionToolMessageParam: {"name": str},
}


def is_required(hint, total):
    while typing_extensions.get_origin(hint) is typing.Annotated:
        hint = typing_extensions.get_args(hint)[0]
    origin = typing_extensions.get_origin(hint)
    if origin in (typing_extensions.Required, typing.Required):
        return True
    if origin in (typing_extensions.NotRequired, typing.NotRequired):
        return False
    return total


def check(value, hint, path):
    """Everything that keeps a value from being of a type."""
    origin, args = typing_extensions.get_origin(hint), typing_extensions.get_args(hint)
    wrappers = (typing_extensions.Required, typing.Required, typing_extensions.NotRequired, typing.NotRequired)
    if origin in wrappers or origin is typing.Annotated:
        return check(value, args[0], path)
    if hint in (object, typing.Any):
        return []
    if typing_extensions.is_typeddict(hint):
        return check_dict(value, hint, path)
    if origin in (typing.Union, types.UnionType):
        return check_union(value, args, path)
    if origin is typing.Literal or origin is typing_extensions.Literal:
        return [] if value in args else [f"{path}: {value!r} is not one of {args}"]
    if origin in (dict, collections.abc.Mapping):
        if not isinstance(value, dict):
            return [f"{path}: {value!r} is not an object"]
        return [error for key in value for error in check(value[key], args[1], f"{path}.{key}")]
    sequences = (list, collections.abc.Iterable, collections.abc.Sequence)
    if origin in sequences or getattr(origin, "__name__", "") == "SequenceNotStr":
        if not isinstance(value, list):
            return [f"{path}: {value!r} is not a list"]
        return [error for i, item in enumerate(value) for error in check(item, args[0], f"{path}[{i}]")]
    if hint is None or hint is type(None):
        return [] if value is None else [f"{path}: {value!r} is not null"]
    if hint in (str, int, bool, float):
        fits = (int, float) if hint is float else hint
        is_bool = isinstance(value, bool)
        return [] if isinstance(value, fits) and is_bool == (hint is bool) else [f"{path}: {value!r} is not {hint}"]
    # Files and the like have no place in JSON.
    return [f"{path}: {value!r} is not {hint}"]


def check_union(value, args, path):
    attempts = [check(value, arg, path) for arg in args]
    best = min(attempts, key=len)
    if best and isinstance(value, dict):
        # The branch that is meant is the one whose tags agree.
        tagged = [a for a in attempts if not any(e.startswith((f"{path}.type:", f"{path}.role:")) for e in a)]
        best = min(tagged or attempts, key=len)
    return best


def check_dict(value, hint, path):
    if not isinstance(value, dict):
        return [f"{path}: {value!r} is not an object"]
    hints = typing_extensions.get_type_hints(hint, include_extras=True)
    hints.update(ALSO.get(hint, {}))
    is_open = getattr(hint, "__pydantic_config__", {}).get("extra") == "allow"
    errors = [f"{path}: unknown key {key}" for key in value if key not in hints and not is_open]
    required = getattr(hint, "__required_keys__", ())
    for key, field in hints.items():
        if key in value:
            errors += check(value[key], field, f"{path}.{key}")
        elif key in required or (key not in ALSO.get(hint, {}) and is_required(field, False)):
            errors.append(f"{path}: no {key}")
    return errors


def check_model(value, model, path):
    """The same for Google's models, which refuse unknown keys but take two spellings of the known ones."""
    try:
        with warnings.catch_warnings():
            # A word that an enumeration does not know is only warned about.
            warnings.simplefilter("error")
            parsed = model.model_validate_json(json.dumps(value))
    except Exception as error:
        return [f"{path}: {error}"]
    back = json.loads(parsed.model_dump_json(by_alias=True, exclude_unset=True))
    return check_keys(value, back, path)


def check_keys(value, back, path):
    if isinstance(value, dict) and isinstance(back, dict):
        errors = [f"{path}: unknown key {key}" for key in value.keys() ^ back.keys()]
        return errors + [e for key in value.keys() & back.keys() for e in check_keys(value[key], back[key], f"{path}.{key}")]
    if isinstance(value, list) and isinstance(back, list):
        return [e for i, pair in enumerate(zip(value, back)) for e in check_keys(*pair, f"{path}[{i}]")]
    return []


def check_strict(schema, path, all_required):
    """What the strict modes demand of a schema beyond being one."""
    errors = []
    if "oneOf" in schema:
        errors.append(f"{path}: oneOf")
    if not {"type", "anyOf", "enum"} & schema.keys():
        errors.append(f"{path}: no type")
    if "properties" in schema or "object" in (schema.get("type") or ()):
        if schema.get("additionalProperties") is not False:
            errors.append(f"{path}: an open object")
        if all_required and set(schema.get("required", ())) != set(schema.get("properties", ())):
            errors.append(f"{path}: not everything is required")
    inner = dict(schema.get("properties", {}))
    inner.update({str(i): branch for i, branch in enumerate(schema.get("anyOf", ()))})
    if "items" in schema:
        inner["items"] = schema["items"]
    return errors + [e for key in inner for e in check_strict(inner[key], f"{path}.{key}", all_required)]


def check_turns(messages, path, alternate=True):
    """Roles alternate, and every message says something."""
    errors = []
    for before, after in zip(messages, messages[1:]):
        if before["role"] == after["role"] and alternate:
            errors.append(f"{path}: {after['role']} twice in a row")
    for message in messages:
        blocks = message.get("content", message.get("parts"))
        if not blocks or any("text" in block and not str(block["text"]).strip() for block in blocks):
            errors.append(f"{path}: an empty {message['role']} message")
        kinds = [block.get("type") == "tool_result" for block in blocks]
        if kinds != sorted(kinds, reverse=True):
            errors.append(f"{path}: the result of a tool after something else")
    return errors


def streamed(module, name, body):
    return getattr(module, f"{name}{'Streaming' if body.get('stream') else 'NonStreaming'}")


def openai_chat(body):
    errors = check(body, streamed(completion_create_params, "CompletionCreateParams", body), "body")
    schemas = [tool["function"] for tool in body.get("tools", ())]
    schemas.append(body.get("response_format", {}).get("json_schema", {}))
    for schema in schemas:
        if schema.get("strict"):
            errors += check_strict(schema.get("parameters") or schema["schema"], "schema", True)
    return errors


def openai_responses(body):
    errors = check(body, streamed(response_create_params, "ResponseCreateParams", body), "body")
    schemas = [*body.get("tools", ()), body.get("text", {}).get("format", {})]
    for schema in schemas:
        if schema.get("strict"):
            errors += check_strict(schema.get("parameters") or schema["schema"], "schema", True)
    return errors


def openai_embeddings(body):
    return check(body, embedding_create_params.EmbeddingCreateParams, "body")


def openai_images(body):
    return check(body, streamed(image_generate_params, "ImageGenerateParams", body), "body")


def anthropic(body):
    errors = check(body, streamed(anthropic_params, "MessageCreateParams", body), "body")
    for tool in body.get("tools", ()):
        if tool.get("strict"):
            errors += check_strict(tool["input_schema"], "schema", False)
    schema = body.get("output_config", {}).get("format", {}).get("schema")
    errors += check_strict(schema, "schema", False) if schema else []
    return errors + (errors or check_turns(body["messages"], "messages", alternate=False))


def gemini_content(body):
    fields = {
        "contents": [gemini.Content],
        "systemInstruction": gemini.Content,
        "tools": [gemini.Tool],
        "toolConfig": gemini.ToolConfig,
        "safetySettings": [gemini.SafetySetting],
        "generationConfig": gemini.GenerationConfig,
    }
    errors = [f"body: unknown key {key}" for key in body if key not in fields]
    errors += [] if body.get("contents") else ["body: no contents"]
    for key, model in fields.items():
        if key in body:
            values, model = (body[key], model[0]) if isinstance(model, list) else ([body[key]], model)
            errors += [e for i, value in enumerate(values) for e in check_model(value, model, f"{key}[{i}]")]
    return errors + (errors or check_turns(body["contents"], "contents"))


CHECKS = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "openai-embeddings": openai_embeddings,
    "openai-images": openai_images,
    "anthropic": anthropic,
    "gemini": gemini_content,
}


def main():
    cases = json.load(sys.stdin)
    json.dump({case["name"]: CHECKS[case["api"]](case["body"]) for case in cases}, sys.stdout)


if __name__ == "__main__":
    main()
