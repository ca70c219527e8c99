"""The interface of WINK: trees of sections built in Python."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cuebook.wink import (
    LocalPromptOverridesStore,
    MarkdownSection,
    OutputParseError,
    Prompt,
    PromptRenderer,
    PromptRenderError,
    PromptTemplate,
    PromptValidationError,
    SectionOverride,
    SectionVisibility,
    Session,
    StructuredOutputConfig,
    TaskExample,
    TaskExamplesSection,
    TaskStep,
    Tool,
    ToolExample,
    ToolOverride,
    VisibilityExpansionRequired,
    VisibilityOverrides,
    parse_structured_output,
)


@dataclass
class Params:
    value: str = "hello"
    detailed: bool = False


@dataclass
class Rest:
    value: str = "hello"


@dataclass
class Output:
    answer: str = ""


@dataclass
class Query:
    query: str = field(metadata={"description": "What to look for"})
    limit: int = 10


def test_a_section_renders_with_parameters() -> None:
    section = MarkdownSection(title="Test", template="Value: $value", key="test")
    assert section.render_body(Params(value="there"), path=("test",)) == "# Test\n\nValue: there"
    typed = MarkdownSection[Params](title="Test", template="Value: $value", key="test")
    assert typed.render_body(Params(value="there")) == "Value: there"
    assert typed.render(Params(), 0, "1", path=("test",)) == "## 1. Test (test)\n\nValue: hello"


def test_a_value_is_inert_and_has_its_origin() -> None:
    section = MarkdownSection[Params](title="Test", template="Value: ${value}", key="test")
    rendered = Prompt(ns="n", key="k", sections=[section]).bind(Params(value="# Forged\n\n$value")).render()
    assert rendered.text == "## 1. Test (test)\n\nValue: # Forged\n\n$value"
    assert [span.text for span in rendered.spans if span.kind == "value"] == ["# Forged\n\n$value"]
    assert "".join(span.text for span in rendered.spans) == rendered.text


def test_a_summary_hides_children_and_tools() -> None:
    tool = Tool(name="look", description="Look around.", handler=print)
    child = MarkdownSection(title="Child", template="Should not appear", key="child")
    parent = MarkdownSection(
        title="Parent",
        template="Full content",
        summary="Summary only",
        key="parent",
        visibility=SectionVisibility.SUMMARY,
        children=[child],
        tools=(tool,),
    )
    bound = Prompt[Output](ns="test", key="test", sections=[parent]).bind()
    rendered = bound.render()
    assert "Summary only" in rendered.text and "Should not appear" not in rendered.text
    assert tool not in rendered.tools and [one.name for one in rendered.tools] == ["open_sections"]
    assert rendered.output_type is Output

    session = Session()
    session[VisibilityOverrides].seed(VisibilityOverrides({("parent",): SectionVisibility.FULL}))
    opened = bound.render(session=session)
    assert "Should not appear" in opened.text and opened.tools == (tool,)
    assert bound.read_section("parent").startswith("## 1. Parent (parent)\n\nFull content")


def test_a_request_for_more_is_an_exception_that_pickles() -> None:
    section = MarkdownSection(title="A", template="B", summary="S", key="a", visibility=SectionVisibility.SUMMARY)
    bound = Prompt(ns="n", key="k", sections=[section]).bind()
    with pytest.raises(VisibilityExpansionRequired) as raised:
        bound.open_sections(["a"], reason="tools")
    for error in (raised.value, pickle.loads(pickle.dumps(raised.value))):
        assert error.requested_overrides == {("a",): SectionVisibility.FULL}
        assert (error.reason, error.section_keys) == ("tools", ("a",))
        assert str(error) == "Visibility expansion required for sections: a. Reason: tools"
    with pytest.raises(PromptValidationError, match="does not exist"):
        bound.open_sections(["b"])


def test_visibility_selectors_take_parameters_and_session() -> None:
    full, summary = SectionVisibility.FULL, SectionVisibility.SUMMARY
    selectors = [
        lambda: summary,
        lambda params: full if params.detailed else summary,
        lambda params, *, session: session[Params].latest() or summary,
    ]
    for selector in selectors:
        section = MarkdownSection[Params](title="T", template="Body", summary="Short", key="t", visibility=selector)
        rendered = Prompt(ns="n", key="k", sections=[section]).bind(Params()).render(session=Session())
        assert "Short" in rendered.text and "Body" not in rendered.text
    section = MarkdownSection[Params](title="T", template="Body", summary="Short", key="t", visibility=selectors[1])
    assert "Body" in Prompt(ns="n", key="k", sections=[section]).bind(Params(detailed=True)).render().text


def test_a_disabled_section_is_left_out_with_its_tools() -> None:
    tool = Tool(name="debug", description="Debug.")
    sections = [
        MarkdownSection(title="Debug", template="Secret", key="debug", enabled=lambda params: params.detailed, tools=[tool]),
        MarkdownSection[Rest](title="Rest", template="$value", key="rest"),
    ]
    prompt = Prompt(ns="n", key="k", sections=sections)
    off, on = prompt.bind(Params()).render(), prompt.bind(Params(detailed=True)).render()
    assert off.text == "## 2. Rest (rest)\n\nhello" and off.tools == ()
    assert on.text.startswith("## 1. Debug (debug)\n\nSecret") and on.tools == (tool,)


def test_parameters_are_checked() -> None:
    prompt = Prompt(ns="n", key="k", sections=[MarkdownSection[Params](title="T", template="$value", key="t")])
    for params, said in [
        ((Params(), Params()), "Duplicate params type supplied to prompt."),
        ((Output(),), "Unexpected params type supplied to prompt."),
        (("text",), "Prompt expects dataclass instances."),
    ]:
        with pytest.raises(PromptValidationError, match=said):
            Prompt(prompt.template).bind(*params).render()
    assert prompt.bind().render().text == "## 1. T (t)\n\nhello"


def test_a_missing_value_names_its_section() -> None:
    section = MarkdownSection[Params](title="T", template="$missing", key="t")
    with pytest.raises(PromptValidationError) as invalid:
        Prompt(ns="n", key="k", sections=[section])
    assert (invalid.value.section_path, invalid.value.placeholder) == (("t",), "missing")
    summary = MarkdownSection[Params](title="T", template="", summary="$missing", key="t", visibility=SectionVisibility.SUMMARY)
    with pytest.raises(PromptRenderError) as raised:
        Prompt(ns="n", key="k", sections=[summary]).bind(Params()).render()
    for error in (raised.value, pickle.loads(pickle.dumps(raised.value))):
        assert (error.section_path, error.dataclass_type, error.placeholder) == (("t",), Params, "missing")
    broken = MarkdownSection(title="T", template="Costs $5", key="t")
    with pytest.raises(PromptRenderError, match="Section rendering failed") as failed:
        Prompt(ns="n", key="k", sections=[broken]).render()
    assert str(failed.value.__cause__) == "Invalid placeholder in string: line 1, col 7"


def test_keys_and_names_are_checked() -> None:
    for key in ("In structions", "_private", ""):
        with pytest.raises(ValueError, match="Section key"):
            MarkdownSection(title="T", template="", key=key)
    MarkdownSection(title="T", template="", key="step-1")
    with pytest.raises(PromptValidationError, match="Tool name"):
        Tool(name="Bad Name")
    for ns, wanted in (("a b", "must match"), (" ", "non-empty")):
        with pytest.raises(PromptValidationError, match=wanted):
            PromptTemplate(ns=ns, key="k")


def test_overrides_replace_bodies_and_descriptions() -> None:
    tool = Tool(name="search", description="Search.", params=Query)
    section = MarkdownSection(title="Search", template="Use it", key="search", tools=(tool,))
    template = PromptTemplate[Output](ns="n", key="k", name="searching", sections=[section])
    bound = Prompt(template).bind()
    rendered = bound.render(
        overrides={("search",): SectionOverride("Costs $$5")},
        tool_overrides={"search": ToolOverride(description="Custom", field_descriptions={"query": "Words"})},
    )
    assert rendered.text == "## 1. Search (search)\n\nCosts $5"
    assert rendered.tools[0].description == "Custom"
    described = rendered.tool_param_descriptions["search"]
    assert rendered.tools[0].schema(described)["properties"]["query"] == {"type": "string", "description": "Words"}
    assert tool.schema()["required"] == ["query"]


def test_a_renderer_takes_a_snapshot() -> None:
    prompt = Prompt(ns="n", key="k", sections=[MarkdownSection[Params](title="T", template="$value", key="t")])
    bound = prompt.bind(Params(value="x"))
    renderer = PromptRenderer(registry=bound._registry, structured_output=StructuredOutputConfig(Output))
    rendered = renderer.render(param_lookup={Params: Params(value="y")}, overrides=None, session=Session())
    assert rendered.text == "## 1. T (t)\n\ny" and rendered.structured_output is not None
    node = bound._registry.nodes[0]
    assert (node.path, node.depth) == (("t",), 0)


def test_headings_nest_with_their_sections() -> None:
    leaf = MarkdownSection(title="Leaf", template="c", key="leaf")
    middle = MarkdownSection(title="Middle", template="b", key="middle", children=[leaf])
    root = MarkdownSection(title="Root", template="a", key="root", children=[middle])
    assert Prompt(ns="n", key="k", sections=[root]).bind().render().text == (
        "## 1. Root (root)\n\na\n\n### 1.1. Middle (root.middle)\n\nb\n\n#### 1.1.1. Leaf (root.middle.leaf)\n\nc"
    )


def test_tools_have_their_parameters_from_their_type() -> None:
    tool = Tool[Query, Output](name="search", description="Search.")
    assert tool.params is Query and tool.schema()["required"] == ["query"] and isinstance(tool, Tool)
    with pytest.raises(PromptValidationError, match="must be a dataclass"):
        Tool[str, Output](name="search")  # Not a dataclass.
    assert Tool[Query, list[Output]](name="search").result_container == "array"


def test_trees_survive_pickle() -> None:
    section = MarkdownSection[Params](title="T", template="$value", key="t", tools=[Tool[Query, Output](name="search")])
    bound = Prompt[Output](ns="n", key="k", sections=[section]).bind(Params(value="x"))
    for copy in (bound, pickle.loads(pickle.dumps(bound))):
        rendered = copy.render()
        assert (rendered.text, rendered.output_type, rendered.tools[0].params) == ("## 1. T (t)\n\nx", Output, Query)
    again = pickle.loads(pickle.dumps(bound.render()))
    assert again.text == "## 1. T (t)\n\nx" and again.spans == bound.render().spans


def test_a_subclass_makes_its_own_body() -> None:
    class Shout(MarkdownSection[Params]):
        def render_body(self, params: Params | None, **more: Any) -> str:
            assert params is not None
            return params.value.upper()

    rendered = Prompt(ns="n", key="k", sections=[Shout(title="T", template="", key="t")]).bind(Params()).render()
    assert rendered.text == "## 1. T (t)\n\nHELLO"
    assert [(span.kind, span.label) for span in rendered.spans][-1] == ("hook", "Shout.render_body")
    assert "HELLO" in rendered._repr_html_()


def test_examples_of_tools_and_tasks_are_shown() -> None:
    tool = Tool[Query, Output](
        name="search",
        description="Search.",
        examples=[ToolExample("Find tea", Query("tea"), Output("three"))],
    )
    step = TaskStep("search", ToolExample("Look", Query("tea", 1), Output("one")))
    sections = [
        MarkdownSection(title="Tools", template="Use them.", key="tools", tools=[tool]),
        TaskExamplesSection(examples=[TaskExample(key="tea", objective="Find tea", outcome="Found", steps=[step])]),
    ]
    text = Prompt(ns="n", key="k", sections=sections).render().text
    assert "    - description: Find tea\n      input:\n        ```json\n        {\"query\": \"tea\", \"limit\": 10}" in text
    assert "1. **search** - Look\n   - input:\n     ```json\n     {\"query\": \"tea\", \"limit\": 1}" in text
    wrong = TaskExample(key="x", objective="o", outcome="x", steps=[TaskStep("other", step.example)])
    with pytest.raises(PromptValidationError, match='Unknown tool "other"'):
        PromptTemplate(ns="n", key="k", sections=[*sections, TaskExamplesSection(key="more", examples=[wrong])])


def test_overrides_are_kept_in_files_and_bound_to_their_originals(tmp_path: Path) -> None:
    def template(text: str) -> PromptTemplate[Any]:
        return PromptTemplate(ns="n", key="k", sections=[MarkdownSection[Params](title="T", template=text, key="t")])

    store = LocalPromptOverridesStore(root_path=tmp_path)
    store.seed(template("Old $value"))
    first = template("Old $value").descriptor.sections[0]
    store.store(template("Old $value").descriptor, SectionOverride("New $value", first.path, first.content_hash))
    assert json.loads((tmp_path / "n/k/latest.json").read_text())["sections"]["t"]["body"] == "New $value"
    for text, shown in (("Old $value", "New hello"), ("Changed $value", "Changed hello")):
        rendered = Prompt(template(text), overrides_store=store).render()
        assert rendered.text == f"## 1. T (t)\n\n{shown}"


def test_a_reply_is_read_into_the_declared_type() -> None:
    template = PromptTemplate[list[Output]](ns="n", key="k", sections=[])
    rendered = Prompt(template).render()
    assert parse_structured_output('Here: [{"answer": 7}]', rendered) == [Output("7")]
    with pytest.raises(OutputParseError, match="Extra keys"):
        parse_structured_output('[{"answer": "a", "more": 1}]', rendered)


def test_resources_are_there_inside_of_with() -> None:
    prompt = Prompt(ns="n", key="k", sections=[]).bind(resources={Output: Output("here")})
    with pytest.raises(RuntimeError, match="outside"):
        prompt.resources.get(Output)
    with prompt.resources as resources:
        assert resources.get(Output) == Output("here")
