"""Drives a server with the official client: drive.py MODE PROJECT (stdio PROGRAM | http URL TOKEN)."""

import asyncio
import base64
import sys
import time
from pathlib import Path

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import PromptReference, ResourceTemplateReference

mode, project, kind, target = sys.argv[1:5]
project = Path(project)
MODERN = mode in ("2026-07-28", "auto")
heard: list[str] = []
http_client = None


async def hear(message):
    method = getattr(message, "method", None)
    if method is not None:
        heard.append(method)


def server():
    global http_client
    if kind == "stdio":
        return StdioServerParameters(command=target, args=[str(project)])
    http_client = httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {sys.argv[5]}"}, timeout=30, follow_redirects=True
    )
    return streamable_http_client(target, http_client=http_client)


async def refused(call, code):
    try:
        answer = await call
    except MCPError as error:
        assert error.code == code, (error.code, error.message)
        return error
    raise AssertionError(f"this should have been refused: {answer}")


def same(found, wanted):
    assert found == wanted, f"\nfound  {found!r}\nwanted {wanted!r}"


async def prompts(client):
    listed = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
    assert {"greet", "look", "plain", "broken", "general_system"} <= set(listed), sorted(listed)
    greet = listed["greet"]
    same((greet.title, greet.description), ("Greeting", "Greets somebody."))
    arguments = {argument.name: argument for argument in greet.arguments}
    same(list(arguments), ["name", "times", "loud", "tags"])
    same([argument.required for argument in greet.arguments], [True, False, False, False])
    same(arguments["name"].description, "Who it is")
    same(arguments["times"].description, "integer; default: 2")
    same(arguments["tags"].description, "list as JSON; default: []")
    same([a.name for a in listed["plain"].arguments], ["topic"])
    assert "cannot be used" in listed["broken"].description, listed["broken"]

    answer = await client.get_prompt("greet", {"name": "Zoë", "times": "3", "loud": "True", "tags": '["a", "b"]'})
    same(len(answer.messages), 1)
    same(answer.messages[0].role, "user")
    same(answer.messages[0].content.text, "Hi Zoë! 3 times, loud, a+b")
    same(answer.messages[0].content.meta, {"cuebook/role": "system"})
    same(answer.description, "Greets somebody.")

    picture = base64.b64encode(b"\x89PNG picture").decode()
    answer = await client.get_prompt("look", {"photo": "data:image/png;base64," + picture, "style": "brief"})
    found = [(message.role, message.content.type) for message in answer.messages]
    same(found, [("user", "text"), ("user", "text"), ("user", "image"), ("user", "text"), ("assistant", "text")])
    same(answer.messages[0].content.meta, {"cuebook/role": "system"})
    same(answer.messages[0].content.text, "Be brief.")
    image = answer.messages[2].content
    same((image.mime_type, image.data), ("image/png", picture))
    same(answer.messages[4].content.text, "I see")

    error = await refused(client.get_prompt("greet", {}), -32602)
    same(error.data["code"], "CB401")
    assert "name" in error.data["hint"] and "--var" not in error.data["hint"], error.data
    error = await refused(client.get_prompt("greet", {"name": "A", "times": "many"}), -32602)
    same(error.data["code"], "CB401")
    error = await refused(client.get_prompt("greet", {"name": "A", "tmes": "1"}), -32602)
    same((error.data["code"], error.data["nearest"]), ("CB404", ["times"]))
    error = await refused(client.get_prompt("gret", {}), -32602)
    same((error.data["code"], error.data["nearest"][0]), ("CB101", "greet"))
    error = await refused(client.get_prompt("broken", {}), -32603)
    assert error.data["file"] and error.data["line"], error.data
    for path in ["/etc/passwd", "./prompts/greet", "../x", str(project / "outside.prompty"), ""]:
        await refused(client.get_prompt(path, {}), -32602)


async def completions(client):
    async def complete(prompt, name, value, context=None):
        answer = await client.complete(PromptReference(name=prompt), {"name": name, "value": value}, context)
        return answer.completion.values

    same(await complete("look", "style", ""), ["brief", "florid", "plain"])
    same(await complete("look", "style", "F"), ["florid", "brief"])
    same(await complete("greet", "loud", ""), ["true", "false"])
    same(await complete("greet", "times", ""), ["2"])
    same(await complete("greet", "name", "x"), [])
    assert "greet" in await complete("choose", "prompt_id", "gr")
    same(await complete("choose", "item_id", "team/", {"item_type": "knowledge"}), ["team/style", "team/words"])
    answer = await client.complete(
        ResourceTemplateReference(uri="cuebook://knowledge/{+id}"), {"name": "id", "value": "team/w"}
    )
    same(answer.completion.values, ["team/words"])
    await refused(client.complete(PromptReference(name="greet"), {"name": "nothing", "value": ""}), -32602)
    await refused(client.complete(PromptReference(name="nothing"), {"name": "x", "value": ""}), -32602)


async def resources(client):
    listed = (await client.list_resources()).resources
    found = {resource.uri: resource for resource in listed}
    assert {"cuebook://knowledge/team/style", "cuebook://knowledge/team/words"} <= set(found), sorted(found)
    style = found["cuebook://knowledge/team/style"]
    same((style.name, style.mime_type), ("team/style", "text/markdown"))
    templates = (await client.list_resource_templates()).resource_templates
    same([template.uri_template for template in templates], ["cuebook://knowledge/{+id}", "skill://{+path}"])
    contents = (await client.read_resource("cuebook://knowledge/team/style")).contents
    same(len(contents), 1)
    same((contents[0].mime_type, contents[0].text), ("text/markdown", "Be kind.\n"))
    missing = -32602 if MODERN else -32002
    error = await refused(client.read_resource("cuebook://knowledge/team/stile"), missing)
    assert "team/style" in error.data["hint"], error.data
    await refused(client.read_resource("file:///etc/passwd"), missing)
    await refused(client.read_resource("cuebook://knowledge/../../../etc/passwd"), -32602)
    await refused(client.read_resource("cuebook://knowledge/..%2f..%2fprompts"), -32602)


async def tools(client):
    listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    same(sorted(listed), ["rye_execute", "rye_load", "rye_search", "rye_sign"])
    for tool in listed.values():
        same((tool.input_schema["type"], tool.output_schema["type"]), ("object", "object"))
    same(listed["rye_search"].annotations.read_only_hint, True)
    same(listed["rye_execute"].annotations.destructive_hint, True)
    same(listed["rye_execute"].input_schema["required"], ["item_type", "item_id", "project_path"])

    ask = {"item_type": "tool", "item_id": "echo", "parameters": {"text": "Zoë \u2028 \U0001f600"}}
    answer = await client.call_tool("rye_execute", ask)
    assert not answer.is_error
    same(answer.structured_content["data"], {**ask, "project_path": str(project)})
    import json

    same(json.loads(answer.content[0].text), answer.structured_content)
    answer = await client.call_tool("rye_execute", {"item_type": "tool", "item_id": "missing"})
    same((answer.is_error, answer.structured_content["error"]), (True, "Tool not found: missing"))
    answer = await client.call_tool("rye_execute", {"item_type": "banana", "item_id": "x"})
    same(answer.is_error, True)
    wanted = "Input validation error: 'banana' is not one of ['directive', 'tool', 'knowledge']"
    same(answer.content[0].text, wanted)
    answer = await client.call_tool("rye_search", {"scope": "tool", "query": "x", "limit": 5})
    same(answer.structured_content["total"], 0)
    answer = await client.call_tool("rye_search", {"scope": "what", "query": ""})
    same(answer.is_error, True)
    answer = await client.call_tool("rye_load", {"item_type": "tool", "item_id": "x", "source": "system"})
    same(answer.structured_content["content"], "a file")
    answer = await client.call_tool("rye_sign", {"item_type": "tool", "item_id": "*"})
    same(answer.structured_content["status"], "signed")
    await refused(client.call_tool("rye_exec", {}), -32602)
    await refused(client.call_tool("rye_execute", {"item_type": "tool", "item_id": "panic"}), -32603)

    steps = []

    async def progress(done, total, message):
        steps.append((done, total, message))

    count = {"item_type": "tool", "item_id": "count", "parameters": {"steps": 5}}
    answer = await client.call_tool("rye_execute", count, progress_callback=progress)
    same(answer.structured_content["data"]["steps"], 5)
    same(steps[-1], (5, 5, "step 5"))
    assert len(steps) >= 3 and steps == sorted(steps), steps


async def cancellation(client):
    slow = {"item_type": "tool", "item_id": "count", "parameters": {"steps": 2000}}
    call = asyncio.create_task(client.call_tool("rye_execute", slow))
    await asyncio.sleep(0.3)
    # A long call does not keep others waiting.
    began = time.monotonic()
    answer = await client.call_tool("rye_execute", {"item_type": "tool", "item_id": "given_up"})
    assert time.monotonic() - began < 2, "a call had to wait for another"
    before = answer.structured_content["data"]
    call.cancel()
    try:
        await call
    except (asyncio.CancelledError, MCPError):
        pass
    for _ in range(100):
        answer = await client.call_tool("rye_execute", {"item_type": "tool", "item_id": "given_up"})
        if answer.structured_content["data"] > before:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the work was not told that nobody waits for it")


async def changes(client):
    def change(number):
        folder = project / f"prompts/new_{kind}_{mode}_{number}"
        folder.mkdir(parents=True)
        (folder / "template.md").write_text("Hello {{ you }}\n")
        (folder / "prompt.py").write_text("METADATA = {'name': 'New'}\n")
        return folder.name

    if MODERN:
        async with client.listen(prompts_list_changed=True, resources_list_changed=True) as events:
            got = []

            async def collect():
                async for event in events:
                    got.append(type(event).__name__)

            task = asyncio.create_task(collect())
            name = change(1)
            await asyncio.sleep(2)
            same(got, ["PromptsListChanged"])
            (project / ".ai/knowledge/team/style.md").write_text("Be kind.\n")
            await asyncio.sleep(2)
            same(got, ["PromptsListChanged", "ResourcesListChanged"])
            task.cancel()
    else:
        heard.clear()
        name = change(1)
        await asyncio.sleep(2)
        same(heard, ["notifications/prompts/list_changed"])
        (project / ".ai/knowledge/team/style.md").write_text("Be kind.\n")
        await asyncio.sleep(2)
        same(heard, ["notifications/prompts/list_changed", "notifications/resources/list_changed"])
    names = [prompt.name for prompt in (await client.list_prompts(cache_mode="bypass")).prompts]
    assert name in names, names


async def main():
    async with Client(server(), mode=mode, message_handler=hear, read_timeout_seconds=30) as client:
        same(client.protocol_version, "2026-07-28" if MODERN else "2025-11-25")
        if mode != "2026-07-28":
            same(client.server_info.name, "cuebook")
            assert client.server_capabilities.prompts.list_changed
            assert client.server_capabilities.resources.list_changed
            assert client.server_capabilities.completions is not None
            assert "rye_execute" in client.instructions
        for part in [prompts, completions, resources, tools, cancellation]:
            await part(client)
            print(f"{part.__name__}: ok", flush=True)
        if mode != "auto":
            await changes(client)
            print("changes: ok", flush=True)


asyncio.run(main())
