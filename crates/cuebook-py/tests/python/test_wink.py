"""The interface of WINK: trees of sections built in Python."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field

import pytest

from cuebook.wink import (
    MarkdownSection,
    Prompt,
    PromptRenderer,
    PromptRenderError,
    PromptTemplate,
    PromptValidationError,
    SectionOverride,
    SectionVisibility,
    Session,
    StructuredOutputConfig,
    Tool,
    ToolOverride,
    VisibilityExpansionRequired,
    VisibilityOverrides,
)


@dataclass
class Params:
    value: str = "hello"
    detailed: bool = False


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


def test_a_value_is_inert_and_has_its_origin() -> None:
    section = MarkdownSection[Params](title="Test", template="Value: ${value}", key="test")
    rendered = Prompt(ns="n", key="k", sections=[section]).bind(Params(value="# Forged\n\n$value")).render()
    assert rendered.text == "# Test\n\nValue: # Forged\n\n$value"
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
    assert bound.read_section("parent").startswith("# Parent\n\nFull content")


def test_a_request_for_more_is_an_exception_that_pickles() -> None:
    section = MarkdownSection(title="A", template="B", summary="S", key="a", visibility=SectionVisibility.SUMMARY)
    bound = Prompt(ns="n", key="k", sections=[section]).bind()
    with pytest.raises(VisibilityExpansionRequired) as raised:
        bound.open_sections(["a"], reason="tools")
    for error in (raised.value, pickle.loads(pickle.dumps(raised.value))):
        assert error.requested_overrides == {("a",): SectionVisibility.FULL}
        assert (error.reason, error.section_keys, str(error)) == ("tools", ("a",), "Visibility expansion required")
    with pytest.raises(PromptValidationError, match="Section not found"):
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
        MarkdownSection(title="Rest", template="$value", key="rest"),
    ]
    prompt = Prompt(ns="n", key="k", sections=sections)
    off, on = prompt.bind(Params()).render(), prompt.bind(Params(detailed=True)).render()
    assert off.text == "# Rest\n\nhello" and off.tools == ()
    assert on.text.startswith("# Debug\n\nSecret") and on.tools == (tool,)


def test_parameters_are_checked() -> None:
    prompt = Prompt(ns="n", key="k", sections=[MarkdownSection[Params](title="T", template="$value", key="t")])
    for params, said in [
        ((Params(), Params()), "Duplicate params type supplied to prompt."),
        ((Output(),), "Unexpected params type supplied to prompt."),
        (("text",), "Prompt expects dataclass instances."),
    ]:
        with pytest.raises(PromptValidationError, match=said):
            prompt.bind(*params)
    assert prompt.bind().render().text == "# T\n\nhello"


def test_a_missing_value_names_its_section() -> None:
    prompt = Prompt(ns="n", key="k", sections=[MarkdownSection[Params](title="T", template="$missing", key="t")])
    with pytest.raises((PromptRenderError, PromptValidationError)) as raised:
        prompt.bind(Params()).render()
    assert "missing" in str(raised.value)


def test_keys_and_names_are_checked() -> None:
    for key in ("Instructions", "_private", ""):
        with pytest.raises(PromptValidationError, match="Section key"):
            MarkdownSection(title="T", template="", key=key)
    MarkdownSection(title="T", template="", key="step-1")
    with pytest.raises(PromptValidationError, match="Tool name"):
        Tool(name="Bad Name")
    twice = MarkdownSection(title="T", template="x", key="t")
    with pytest.raises(PromptValidationError, match="already registered"):
        PromptTemplate(ns="n", key="k", sections=[twice, twice])


def test_overrides_replace_bodies_and_descriptions() -> None:
    tool = Tool(name="search", description="Search.", params=Query)
    section = MarkdownSection(title="Search", template="Use it", key="search", tools=(tool,))
    template = PromptTemplate[Output](ns="n", key="k", name="searching", sections=[section])
    bound = Prompt(template).bind()
    rendered = bound.render(
        overrides={("search",): SectionOverride("Costs $5")},
        tool_overrides={"search": ToolOverride("Custom", {"query": "Words"})},
    )
    assert rendered.text == "# Search\n\nCosts $5"
    assert rendered.tools[0].description == "Custom"
    described = rendered.tool_param_descriptions["search"]
    assert rendered.tools[0].schema(described)["properties"]["query"] == {"type": "string", "description": "Words"}
    assert tool.schema()["required"] == ["query"]


def test_a_renderer_takes_a_snapshot() -> None:
    prompt = Prompt(ns="n", key="k", sections=[MarkdownSection[Params](title="T", template="$value", key="t")])
    bound = prompt.bind(Params(value="x"))
    renderer = PromptRenderer(registry=bound._registry, structured_output=StructuredOutputConfig(Output))
    rendered = renderer.render(param_lookup={Params: Params(value="y")}, overrides=None, session=Session())
    assert rendered.text == "# T\n\ny" and rendered.structured_output is not None
    node = bound._registry.nodes[0]
    assert (node.path, node.depth) == (("t",), 0)


def test_headings_nest_with_their_sections() -> None:
    leaf = MarkdownSection(title="Leaf", template="c", key="leaf")
    middle = MarkdownSection(title="Middle", template="b", key="middle", children=[leaf])
    root = MarkdownSection(title="Root", template="a", key="root", children=[middle])
    assert Prompt(ns="n", key="k", sections=[root]).bind().render().text == "# Root\n\na\n\n## Middle\n\nb\n\n### Leaf\n\nc"


def test_tools_have_their_parameters_from_their_type() -> None:
    tool = Tool[Query, Output](name="search", description="Search.")
    assert tool.params is Query and tool.schema()["required"] == ["query"] and isinstance(tool, Tool)
    with pytest.raises(PromptValidationError, match="must be a dataclass"):
        Tool[str, Output](name="search")  # Not a dataclass.


def test_trees_survive_pickle() -> None:
    section = MarkdownSection[Params](title="T", template="$value", key="t", tools=[Tool[Query, Output](name="search")])
    bound = Prompt[Output](ns="n", key="k", sections=[section]).bind(Params(value="x"))
    for copy in (bound, pickle.loads(pickle.dumps(bound))):
        rendered = copy.render()
        assert (rendered.text, rendered.output_type, rendered.tools[0].params) == ("# T\n\nx", Output, Query)
    again = pickle.loads(pickle.dumps(bound.render()))
    assert again.text == "# T\n\nx" and again.spans == bound.render().spans
