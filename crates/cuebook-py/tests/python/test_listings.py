"""The code listings of the four systems that the modules follow, as their documents print them, with one import changed."""

from __future__ import annotations

import asyncio
import string
import subprocess
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Generic

import pytest

from conftest import Project
from cuebook import Book
from cuebook.rumi import PromptConflictError, PromptManager
from cuebook.rye import DIRECTIVE_INSTRUCTION, _of, rye_execute, rye_sign
from cuebook.wink import (
    MarkdownSection,
    Prompt,
    PromptRenderer,
    PromptRenderError,
    PromptTemplate,
    PromptValidationError,
    Section,
    SectionPath,
    SectionVisibility,
    Session,
    StructuredOutputConfig,
    Tool,
    ToolOverride,
    VisibilityExpansionRequired,
    VisibilityOverrides,
)
from cuebook.wink._base import ParamsT

# WINK


@dataclass
class MyParams:
    value: str = "hello"
    debug_mode: bool = False
    detailed: bool = False


@dataclass
class ProcessParams:
    item_count: int
    source: str


@dataclass
class UserPrefs:
    show_details: bool = False


@dataclass
class OutputType:
    answer: str = ""


Output = OutputType


def my_handler(params: Any, *, context: Any) -> None:
    """Does nothing."""


def test_wink_a_template_has_a_name() -> None:
    template = PromptTemplate(
        ns="my-namespace",
        key="my-prompt",
        name="my_prompt",
    )
    assert (template.ns, template.key, template.name) == ("my-namespace", "my-prompt", "my_prompt")


def test_wink_a_prompt_is_bound_and_its_registry_rendered() -> None:
    prompt = Prompt[OutputType](
        ns="my-namespace",
        key="my-prompt",
        sections=[
            MarkdownSection(title="Instructions", template="...", key="instructions"),
            MarkdownSection[MyParams](title="Value", template="$value", key="value"),
        ],
        structured_output=StructuredOutputConfig(OutputType),
    )
    # Registry is built from prompt.bind()
    bound_prompt = prompt.bind(MyParams(value="test"))

    # RegistrySnapshot locks the registry state
    snapshot = bound_prompt._registry  # Internal access
    structured_output_config, my_params, session = StructuredOutputConfig(OutputType), MyParams(value="x"), Session()
    renderer = PromptRenderer(
        registry=snapshot,
        structured_output=structured_output_config,
    )

    rendered = renderer.render(
        param_lookup={MyParams: my_params},
        overrides=None,
        session=session,
    )
    assert rendered.text.endswith("\n\nx") and bound_prompt.render().text.endswith("\n\ntest")
    assert rendered.structured_output is structured_output_config
    assert [(node.path, node.depth) for node in snapshot.sections] == [(("instructions",), 0), (("value",), 0)]
    assert MyParams in snapshot.params_types
    section = snapshot.get_section(("value",))
    assert section is not None and section.title == "Value"


def test_wink_enabled_and_visibility_take_functions() -> None:
    section = MarkdownSection(
        title="Debug Info",
        template="...",
        key="debug",
        enabled=lambda params: params.debug_mode,
    )
    prompt = Prompt(ns="n", key="k", sections=[section])
    assert prompt.bind(MyParams(debug_mode=True)).render().text and not prompt.bind(MyParams()).render().text
    session = Session()
    session[UserPrefs].seed(UserPrefs(show_details=True))
    selectors = [
        # Static visibility
        SectionVisibility.FULL,
        # Zero-argument callable
        lambda: SectionVisibility.SUMMARY,
        # Parameter-dependent
        lambda params: (SectionVisibility.FULL if params.detailed else SectionVisibility.SUMMARY),
        # Session-aware
        lambda params, *, session: (
            SectionVisibility.FULL if session[UserPrefs].latest().show_details else SectionVisibility.SUMMARY
        ),
    ]
    shown = []
    for visibility in selectors:
        section = MarkdownSection[MyParams](title="T", template="Body", summary="Short", key="t", visibility=visibility)
        shown.append("Body" in Prompt(ns="n", key="k", sections=[section]).bind(MyParams()).render(session=session).text)
    assert shown == [True, False, False, True]
    assert [one.value for one in SectionVisibility] == ["full", "summary"] and issubclass(SectionVisibility, Enum)


def test_wink_a_section_type_takes_what_it_needs() -> None:
    class TemplateSection(Section[ParamsT], Generic[ParamsT]):
        template = "Process $item_count items from $source"

        def render_body(  # type: ignore[override]
            self,
            params: ParamsT | None,
            *,
            path: SectionPath,
        ) -> str:
            template = string.Template(self.template)
            return template.safe_substitute(vars(params))

        def render_override(  # type: ignore[override]
            self,
            override_body: str,
            params: ParamsT | None,
            *,
            path: SectionPath,
        ) -> str:
            # Override replaces the entire section body
            return override_body

    section = TemplateSection[ProcessParams](title="Process", key="process")
    bound = Prompt(ns="n", key="k", sections=[section]).bind(ProcessParams(item_count=42, source="api"))
    assert bound.render().text.endswith("\n\nProcess 42 items from api")
    assert bound.render(overrides={("process",): "Other"}).text == "Other"
    template = "Process $item_count items from $source"
    markdown = MarkdownSection[ProcessParams](title="Process", key="process", template=template)
    bound = Prompt(ns="n", key="k", sections=[markdown]).bind(ProcessParams(item_count=42, source="api"))
    assert bound.render().text.endswith("\n\nProcess 42 items from api")


def test_wink_tools_are_collected_and_described() -> None:
    @dataclass
    class Query:
        query: str

    search_tool: Tool[Any, Any] = Tool(name="search", description="Search.", params=Query)
    filter_tool: Tool[Any, Any] = Tool(name="filter", description="Filter.")
    section = MarkdownSection(
        title="Search",
        template="Use the search tool...",
        key="search",
        tools=(search_tool, filter_tool),
    )
    renderer = PromptRenderer(registry=Prompt(ns="n", key="k", sections=[section]).bind()._registry)
    param_lookup: dict[type, Any] = {}
    tool_overrides = {
        "search": ToolOverride(
            description="Custom description",
            field_descriptions={"query": "Search query string"},
        ),
    }

    rendered = renderer.render(
        param_lookup=param_lookup,
        tool_overrides=tool_overrides,
    )
    assert [one.description for one in rendered.tools] == ["Custom description", "Filter."]
    assert rendered.tool_param_descriptions == {"search": {"query": "Search query string"}}


def test_wink_an_override_of_the_session_opens_a_section() -> None:
    history = MarkdownSection(
        title="History", template="All of it", summary="Some", key="history", visibility=SectionVisibility.SUMMARY
    )
    context = MarkdownSection(title="Context", template="c", key="context", children=[history])
    bound = Prompt(ns="n", key="k", sections=[context]).bind()
    session = Session()
    # Set override
    overrides = VisibilityOverrides(
        overrides={
            ("context", "history"): SectionVisibility.FULL,
        }
    )
    session[VisibilityOverrides].seed(overrides)
    assert "All of it" in bound.render(session=session).text and "All of it" not in bound.render().text
    # Model calls: open_sections(sections=["context.history"]); read_section(section="context.history")
    with pytest.raises(VisibilityExpansionRequired) as raised:
        bound.open_sections(["context.history"], reason="tools")
    assert raised.value.requested_overrides == {("context", "history"): SectionVisibility.FULL}
    assert "All of it" in bound.read_section("context.history")


def test_wink_keys_are_checked() -> None:
    for key in ("instructions", "context.history", "step-1"):
        assert MarkdownSection(title="T", template="", key=key).key == key
    with pytest.raises(ValueError):
        MarkdownSection(title="T", template="", key="_private")


def test_wink_errors_are_made_by_programs() -> None:
    for message in (
        "Duplicate params type supplied to prompt.",
        "Unexpected params type supplied to prompt.",
        "Prompt expects dataclass instances.",
    ):
        assert str(PromptValidationError(message)) == message
    failed = PromptRenderError(
        "Failed to render section template.",
        section_path=("instructions",),
        placeholder="$missing_var",
    )
    assert (failed.section_path, failed.placeholder) == (("instructions",), "$missing_var")
    wanted = VisibilityExpansionRequired(
        "Visibility expansion required",
        requested_overrides={
            ("context", "history"): SectionVisibility.FULL,
        },
        reason="Model requested access to tools in summarized section",
        section_keys=("context.history",),
    )
    assert wanted.section_keys == ("context.history",)


def test_section_renders_with_params() -> None:
    section = MarkdownSection(
        title="Test",
        template="Value: $value",
        key="test",
    )

    rendered = section.render_body(
        MyParams(value="hello"),
        path=("test",),
    )

    assert rendered == "# Test\n\nValue: hello"


def test_summary_visibility_skips_children() -> None:
    prompt = Prompt[Output](
        ns="test",
        key="test",
        sections=[
            MarkdownSection(
                title="Parent",
                template="Full content",
                summary="Summary only",
                key="parent",
                visibility=SectionVisibility.SUMMARY,
                children=[
                    MarkdownSection(
                        title="Child",
                        template="Should not appear",
                        key="child",
                    ),
                ],
            ),
        ],
    )

    rendered = prompt.bind().render()

    assert "Summary only" in rendered.text
    assert "Should not appear" not in rendered.text


def test_tools_not_collected_from_summary_sections() -> None:
    tool: Tool[Any, Any] = Tool(name="test_tool", handler=my_handler)

    prompt = Prompt[Output](
        ns="test",
        key="test",
        sections=[
            MarkdownSection(
                title="Section",
                template="...",
                summary="Less.",
                key="section",
                visibility=SectionVisibility.SUMMARY,
                tools=(tool,),
            ),
        ],
    )

    rendered = prompt.bind().render()

    assert tool not in rendered.tools


# Rumi

CODING_SYSTEM = '''\
METADATA = {
    "prompt_id": "coding_system",
    "name": "Coding System Prompt",
    "version": "1.0.0",
    "type": "system",
    "extends": "general_system",
    "template": "template.md",
    "metadata": {
        "author": "rumi",
        "tags": ["coding", "system"],
    },
}

VARIABLES = {
    "required": [
        {"name": "agent_name", "type": "string", "description": "The agent's name"},
        {"name": "tools", "type": "list", "description": "The tools"},
    ],
    "optional": [
        {"name": "project_memory", "type": "string", "default": ""},
        {"name": "user_memory", "type": "string", "default": ""},
        {"name": "datetime", "type": "string", "source": "system"},
    ],
    "custom": [
        {"name": "code_style", "type": "string", "default": "clean and readable"},
        {"name": "max_file_length", "type": "integer", "default": 500},
    ],
}

PERMISSIONS = {
    "read_file": True,
    "http_request": False,
    "llm_call": False,
    "session_state": True,
}

LIMITS = {
    "max_execution_time": 5,
    "max_output_size": 50000,
}


async def pre_render(variables: dict, context: dict) -> dict:
    import os

    workspace = context.get("workspace_path", ".")
    tree = []
    for root, dirs, files in os.walk(workspace):
        dirs[:] = [d for d in dirs if d not in {".git", "node_modules", "__pycache__", ".rumi"}]
        level = root.replace(workspace, "").count(os.sep)
        indent = "  " * level
        tree.append(f"{indent}{os.path.basename(root)}/")
        for f in files[:20]:
            tree.append(f"{indent}  {f}")
        if len(tree) > 200:
            break

    variables["file_tree"] = "\\n".join(tree[:200])

    tech_stack = []
    if os.path.exists(os.path.join(workspace, "package.json")):
        content = await context["read_file"]("package.json")
        tech_stack.append("Node.js")
        if '"typescript"' in content:
            tech_stack.append("TypeScript")
    if os.path.exists(os.path.join(workspace, "pyproject.toml")):
        tech_stack.append("Python")

    variables["tech_stack"] = ", ".join(tech_stack) if tech_stack else "unknown"

    return variables


async def post_render(rendered_text: str, variables: dict, context: dict) -> str:
    return rendered_text
'''
CODING_TEMPLATE = """\
{{ agent_name }} writes {{ code_style }} code with {{ tools|length }} tools.
{{ project_memory }}/{{ user_memory }}/{{ tech_stack }}
{{ file_tree }}
{% if git.available %}On {{ git.branch }}.{% endif %}
"""
SIMPLE_GREETING = '''\
METADATA = {
    "prompt_id": "simple_greeting",
    "template": None,
}

TEMPLATE = """
You are {{ agent_name }}.
Be {{ greeting_style }}.
"""

VARIABLES = {
    "custom": [
        {"name": "greeting_style", "type": "string", "default": "polite"},
    ],
}
'''


@dataclass
class RumiSession:
    workspace: str


def test_rumi_modules_call_the_manager(project: Project) -> None:
    root = project({
        "user_data/shared/prompts/coding_system/prompt.py": CODING_SYSTEM,
        "user_data/shared/prompts/coding_system/template.md": CODING_TEMPLATE,
        "user_data/shared/prompts/simple_greeting/prompt.py": SIMPLE_GREETING,
        "work/package.json": '{"devDependencies": {"typescript": "5"}}',
    })
    book, session = Book(root), RumiSession(str(root / "work"))

    @book.provider("git")
    async def provide(context: dict[str, Any]) -> dict[str, Any]:
        workspace = context.get("workspace_path", ".")
        try:
            branch = subprocess.check_output(
                ["git", "rev-parse", "--abbrev-ref", "HEAD"],
                cwd=workspace, text=True, stderr=subprocess.DEVNULL,
            ).strip()
        except Exception:
            branch = None

        return {
            "branch": branch,
            "available": branch is not None,
        }

    prompt_manager = PromptManager(book)

    async def calls() -> None:
        # The built-in prompt has the same id.
        await prompt_manager.set_resolution("coding_system", "user_data/shared/prompts/coding_system")
        agent_def, formatted_tools, project_md, user_md = {"name": "Kai"}, ["grep", "sed"], "project", "user"
        system_prompt = await prompt_manager.render("coding_system", {
            "agent_name": agent_def["name"],
            "tools": formatted_tools,
            "project_memory": project_md,
            "user_memory": user_md,
        }, context={"workspace_path": session.workspace, "session": session})
        assert system_prompt.splitlines()[:4] == [
            "Kai writes clean and readable code with 2 tools.",
            "project/user/Node.js, TypeScript",
            "work/",
            "  package.json",
        ]
        old_messages = ["a", "b"]
        compression_prompt = await prompt_manager.render("history_compression", {
            "message_count": len(old_messages),
            "target_length": 500,
        })
        assert "500" in compression_prompt
        update_prompt = await prompt_manager.render("memory_update", {
            "current_memory": "likes tea",
            "session_summary": "bought a kettle",
        })
        assert "likes tea" in update_prompt and "bought a kettle" in update_prompt
        system_prompt = await prompt_manager.render("general_system", {
            "agent_name": "Rumi",
        })
        assert "Rumi" in system_prompt
        greeting = await prompt_manager.render("simple_greeting", {"agent_name": "Rumi"})
        assert greeting.strip() == "You are Rumi.\nBe polite."

    asyncio.run(calls())


def test_rumi_conflicts_are_listed_and_resolved(project: Project) -> None:
    places = ["user_data/shared/prompts/coding_system", "user_data/packs/advanced_coding_prompts/prompts/coding_system"]
    prompt_manager = PromptManager(project({f"{place}/template.md": place for place in places}))

    async def calls() -> None:
        candidates = await prompt_manager.list_candidates("coding_system")
        known = [(one["source"], one["pack_id"]) for one in candidates]
        assert known[:2] == [(places[0], None), (places[1], "advanced_coding_prompts")]
        assert [source for source, _ in known[2:]] == ["ecosystem/default/prompts/coding_system"]
        with pytest.raises(PromptConflictError):
            await prompt_manager.render("codingSystem")
        await prompt_manager.set_resolution("coding_system", "user_data/packs/advanced_coding_prompts/prompts/coding_system")
        assert await prompt_manager.render("codingSystem") == places[1]

    asyncio.run(calls())
    error = PromptConflictError("coding_system", [{"source": places[0]}])
    assert (error.prompt_id, error.candidates) == ("coding_system", [{"source": places[0]}])


# Rye


def _build_prompt(directive: dict[str, Any]) -> str:
    parts = [DIRECTIVE_INSTRUCTION]

    # Name + description (handles partial presence)
    name = directive.get("name", "")
    desc = directive.get("description", "")
    if name and desc:
        parts.append(f'<directive name="{name}">\n<description>{desc}</description>')
    elif name:
        parts.append(f'<directive name="{name}">')
    elif desc:
        parts.append(f'<directive>\n<description>{desc}</description>')

    # Preamble (cleaned)
    preamble = directive.get("preamble", "").strip()
    if preamble:
        preamble_lines = [l for l in preamble.split("\n")
                          if not l.strip().startswith(("<!-- rye:signed:", "# "))]
        preamble_clean = "\n".join(preamble_lines).strip()
        if preamble_clean:
            parts.append(preamble_clean)

    # Body (process steps)
    body = directive.get("body", "").strip()
    if body:
        parts.append(body)

    # Returns (from outputs): directive_return call instruction
    outputs = directive.get("outputs", [])
    if outputs:
        output_fields = {}
        if isinstance(outputs, list):
            for o in outputs:
                oname = o.get("name", "")
                if oname:
                    output_fields[oname] = o.get("description", "")
        elif isinstance(outputs, dict):
            output_fields = dict(outputs)

        if output_fields:
            params_obj = ", ".join(f'"{k}": "<{v or k}>"' for k, v in output_fields.items())
            parts.append(
                "When you have completed all steps, return structured results:\n"
                f'`rye_execute(item_type="tool", item_id="rye/agent/threads/directive_return", '
                f"parameters={{{params_obj}}})`"
            )

    # Close directive tag (if any opening tag was emitted)
    if name or desc:
        parts.append("</directive>")

    return "\n\n".join(parts)


CREATE_DIRECTIVE = """\
# Create Directive

Makes a file.

```xml
<directive name="create_directive" version="1.0.0">
  <metadata>
    <description>Create a directive</description>
    <category>rye/core</category>
    <author>ann</author>
    <model tier="fast" />
    <permissions><execute><tool>rye.*</tool></execute></permissions>
  </metadata>
  <inputs>
    <input name="name" type="string" required="true">Its name</input>
    <input name="category" type="string" required="true">Its folder</input>
  </inputs>
  <outputs>
    <output name="directive_path">Path to the created file</output>
    <output name="signed">Whether signing succeeded</output>
  </outputs>
</directive>
```

<process><step name="write">Write {input:name} to {input:category}.</step></process>
"""


def test_rye_calls_run_with_their_arguments(project: Project) -> None:
    root = project({".ai/directives/rye/core/create_directive.md": CREATE_DIRECTIVE})
    _of(root).generate_key(owner="ann")
    assert rye_sign("directive", "rye/core/create_directive", root)["status"] == "signed"
    # Directive with inputs (default: returns content in-thread)
    done = rye_execute(
        item_type="directive",
        item_id="rye/core/create_directive",
        project_path=str(root),
        parameters={"name": "deploy_app", "category": "workflows"}
    )
    assert (done["status"], done["type"], done["item_id"]) == ("success", "directive", "rye/core/create_directive")
    assert "Write deploy_app to workflows." in done["body"] and done["your_directions"] == DIRECTIVE_INSTRUCTION
    assert [one["name"] for one in done["outputs"]] == ["directive_path", "signed"]
    missing = rye_execute(item_type="directive", item_id="rye/core/create_directive", project_path=str(root))
    assert (missing["status"], missing["error"]) == ("error", "Missing required inputs: name, category")
    assert [one["name"] for one in missing["declared_inputs"]] == ["name", "category"]
    # Tool execution
    written = rye_execute(
        item_type="tool",
        item_id="rye/file-system/write",
        project_path=str(root),
        parameters={"path": "output.txt", "content": "hello world"}
    )
    assert written["status"] == "success", written
    assert Path(root, "output.txt").read_text(encoding="utf-8") == "hello world"
    # Dry-run tool chain validation
    dry = rye_execute(
        item_type="tool",
        item_id="rye/bash/bash",
        project_path=str(root),
        parameters={"command": "echo test"},
        dry_run=True
    )
    assert dry["status"] == "validation_passed" and dry["chain"] and "validated_pairs" in dry
    # Knowledge entry
    known = rye_execute(
        item_type="knowledge",
        item_id="rye/core/directive-metadata-reference",
        project_path=str(root)
    )
    assert known["status"] == "success" and known["data"], known
    # `async` is a keyword of Python, so the listing with `async=True` is no Python. A name in a dict is.
    refused = rye_execute(
        item_type="directive", item_id="rye/core/create_directive", project_path=str(root),
        parameters={"name": "a", "category": "b"}, limit_overrides={"turns": 30, "spend": 3.00},
        **{"async": True},
    )
    assert refused["status"] == "error"


def test_rye_a_prompt_is_the_one_that_the_engine_builds(project: Project) -> None:
    outputs = [
        {"name": "directive_path", "description": "Path to the created file"},
        {"name": "signed", "description": "Whether signing succeeded"},
    ]
    root = project({".ai/directives/rye/core/create_directive.md": CREATE_DIRECTIVE})
    book = _of(root)
    book.generate_key(owner="ann")
    assert rye_sign("directive", "rye/core/create_directive", root)["status"] == "signed"
    directive = {
        "name": "create_directive",
        "description": "Create a directive",
        "preamble": "# Create Directive\n\nMakes a file.",
        "body": '<process><step name="write">Write deploy_app to workflows.</step></process>',
        "outputs": outputs,
    }
    path = root / ".ai/directives/rye/core/create_directive.md"
    text = book.render_file(path, name="deploy_app", category="workflows").text
    assert _build_prompt(directive).split() == text.split()
    assert '{"directive_path": "<Path to the created file>", "signed": "<Whether signing succeeded>"}' in text
