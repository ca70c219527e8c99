//! Tests of reading and filling directives.

use serde_json::json;

use super::*;
use crate::error::Severity;

fn file(xml: &str) -> String {
    format!("# T\n\nIntro.\n\n```xml\n{xml}\n```\n\nBODY\n")
}

fn directive(xml: &str) -> Directive {
    read(&Source::new("d.md", file(xml))).unwrap()
}

fn notes(xml: &str) -> Vec<String> {
    directive(xml).notes.iter().map(|note| format!("{} {note}", note.severity.as_str())).collect()
}

fn error(text: &str) -> String {
    read(&Source::new("d.md", text)).unwrap_err().diagnostic().to_string()
}

#[test]
fn hooks_that_no_thread_understands_are_errors_with_a_place() {
    let found = notes(
        r#"<directive name="d"><metadata><hooks>
<hook event="after_steps"><action primary="exec" item_id="a"/></hook>
<hook event="limit"><condition path="a" op="eqq"/><action><execute item_id="rye/agent/threads/internal/control"><param name="action" value="suspnd"/></execute></action></hook>
<hook event="limit"><action primary="execute" item_id="rye/agent/threads/internal/control"><param name="action">${inputs.what}</param></action></hook>
<hook/>
</hooks></metadata></directive>"#,
    );
    for (line, words) in [
        (7, "unknown event \"after_steps\""),
        (7, "unknown `primary` \"exec\" of an action"),
        (8, "unknown operator \"eqq\""),
        (8, "unknown decision \"suspnd\""),
        (10, "the hook has no `event`"),
        (10, "the hook has no `action`"),
    ] {
        let reported =
            found.iter().find(|note| note.contains(words)).unwrap_or_else(|| panic!("{words}: {found:#?}"));
        assert!(reported.starts_with("error") && reported.contains(&format!("d.md:{line}:")), "{reported}");
    }
    assert_eq!(found.len(), 6, "{found:#?}");
}

#[test]
fn impossible_conditions_and_bad_controls_are_errors() {
    let found = notes(
        r#"<directive name="d"><metadata><hooks>
<hook event="limit"><condition path="cost.spnd" op="gte" value="1"/><action primary="execute" item_id="a"/></hook>
<hook event="limit"><condition path="cost.spend" op="gte" value="a lot"/><action primary="execute" item_id="a"/></hook>
<hook event="limit"><condition path="error" op="regex" value="(a"/><action primary="execute" item_id="a"/></hook>
<hook event="limit"><action><execute item_id="rye/agent/threads/internal/control"><param name="action">abort</param><param name="bogus">1</param></execute></action></hook>
<hook event="limit"><condition path="cost.spend" op="gte" value="1.5"/><action primary="execute" item_id="a"/></hook>
</hooks></metadata></directive>"#,
    );
    for (line, words) in [
        (7, "a thread has no `cost.spnd`"),
        (8, "this condition is never true: `cost.spend` is a number, but the value is a string"),
        (9, "invalid pattern of `regex`: unclosed group"),
        (10, "`rye/agent/threads/internal/control` has no parameter `bogus`"),
    ] {
        let reported =
            found.iter().find(|note| note.contains(words)).unwrap_or_else(|| panic!("{words}: {found:#?}"));
        assert!(reported.starts_with("error") && reported.contains(&format!("d.md:{line}:")), "{reported}");
    }
    assert_eq!(found.len(), 4, "{found:#?}");
}

#[test]
fn every_element_is_read() {
    let read = directive(
        r#"<directive name="deploy" version="1.2.0" extends="base/agent">
  <metadata>
    <description> Deploys &amp; checks </description>
    <category>ops</category>
    <author>ann</author>
    <model tier="fast" id="m"/>
    <limits turns="007" spend="0.5" tokens="many" depth="-1"/>
    <permissions><execute><tool>rye.bash.*</tool></execute><search>*</search><acknowledge risk="shell">why</acknowledge></permissions>
    <context><system>a/b</system><before>c</before><suppress>d</suppress></context>
    <hooks><hook id="h" event="limit"><condition path="cost" op="gt" value="1.5"/><action><load item_id="k"/></action></hook></hooks>
  </metadata>
  <inputs><input name="app" type="string" required="true">Which</input><input name="n" type="integer" default="3"/></inputs>
  <outputs><output name="url" type="string" required="true">Where it runs</output></outputs>
  <process><execute item_id="rye/bash/bash"><param name="command" value="run {input:app}"/></execute></process>
  <template>a < b</template>
</directive>"#,
    );
    let mut json = read.to_json();
    for key in ["raw", "content"] {
        json.as_object_mut().unwrap().remove(key);
    }
    assert_eq!(
        json,
        json!({
            "name": "deploy", "version": "1.2.0", "extends": "base/agent",
            "description": "Deploys & checks", "category": "ops", "author": "ann",
            "model": {"tier": "fast", "id": "m"},
            "limits": {"turns": 7, "spend": 0.5, "tokens": "many", "depth": -1},
            "permissions": [
                {"tag": "cap", "content": "rye.execute.tool.rye.bash.*"},
                {"tag": "cap", "content": "rye.search.*"},
            ],
            "acknowledged_risks": [{"risk": "shell", "reason": "why"}],
            "context": {"system": ["a/b"], "before": ["c"], "after": [], "suppress": ["d"]},
            "hooks": [{"id": "h", "event": "limit", "condition": {"path": "cost", "op": "gt", "value": 1.5},
                       "actions": [{"item_id": "k", "primary": "load"}]}],
            "inputs": [
                {"name": "app", "type": "string", "required": true, "description": "Which"},
                {"name": "n", "type": "integer", "required": false, "default": "3"},
            ],
            "outputs": [{"name": "url", "type": "string", "required": true, "description": "Where it runs"}],
            "actions": [{"primary": "execute", "item_id": "rye/bash/bash", "params": {"command": "run {input:app}"}}],
            "templates": {"__opaque_template_0__": "a < b"},
            "preamble": "# T\n\nIntro.", "body": "BODY",
        })
    );
    // They are read unchanged, and reported.
    let reported: Vec<&str> = read.notes.iter().map(|note| note.message.as_str()).collect();
    assert_eq!(
        reported,
        [
            "the limit `tokens` must be a whole number that is not negative, but is \"many\"",
            "the limit `depth` must be a whole number that is not negative, but is \"-1\"",
        ]
    );
    let place = read.outputs[0].name.place();
    assert_eq!((place.line(), place.column(), place.text()), (18, 26, "url"));
}

#[test]
fn directives_are_read_as_xml_and_not_by_patterns() {
    let read =
        directive("<!-- c --><directive filename=\"zzz\" name='real' note=\"x>y\" version = \"1.0.0\"/>");
    assert_eq!((read.name.as_deref(), read.version.as_deref()), (Some("real"), Some("1.0.0")));
    let read = directive(
        "<directive name=\"a\"><metadata><permissions>* <acknowledge risk=\"r\">w</acknowledge></permissions></metadata></directive>",
    );
    assert_eq!(read.permissions.unwrap().capabilities, ["rye.*"]);
}

#[test]
fn an_element_that_counts_once_is_refused_twice() {
    let once = |inside: &str| file(&format!("<directive name=\"d\">{inside}</directive>"));
    let metadata = |inside: &str| once(&format!("<metadata>{inside}</metadata>"));
    for (text, what) in [
        (once("<metadata/><metadata/>"), "duplicate <metadata>"),
        (once("<inputs/><inputs/>"), "duplicate <inputs>"),
        (once("<outputs/><outputs/>"), "duplicate <outputs>"),
        (metadata("<permissions/><permissions>*</permissions>"), "duplicate <permissions>"),
        (metadata("<limits turns=\"1\"/><limits turns=\"99\"/>"), "duplicate <limits>"),
        (metadata("<hooks/><hooks/>"), "duplicate <hooks>"),
        (metadata("<context/><context/>"), "duplicate <context>"),
        (metadata("<category>a</category><category>b</category>"), "duplicate <category>"),
        (
            metadata("<model tier=\"a\"/><model_class tier=\"b\"/>"),
            "both <model> and <model_class> choose a model",
        ),
    ] {
        let error = read(&Source::new("d.md", text)).unwrap_err();
        assert_eq!(error.diagnostic().message, what);
        assert_eq!(error.diagnostic().related.len(), 1, "{what}: both places are shown");
    }
    for text in [
        file("<x:directive xmlns:x=\"u\" name=\"d\"/>"),
        file("<directive xmlns=\"u\" name=\"d\"/>"),
        once("<x:metadata xmlns:x=\"u\"/>"),
        metadata("<limits xmlns:x=\"u\" x:turns=\"99\"/>"),
    ] {
        assert!(error(&text).contains("a directive cannot have XML namespaces"), "{text}");
    }
    assert!(read(&Source::new("d.md", metadata("<name>e</name><author>a</author>"))).is_ok());
}

#[test]
fn mistakes_are_reported_with_line_and_column() {
    for (text, expected) in [
        ("", "d.md:1:1: No XML code block found [CB326]"),
        ("# T\n```xml\n<directive/>\n", "d.md:2:1: No XML code block found [CB326]"),
        (
            &file("<directive><metadata></directive>"),
            "d.md:6:24: Invalid XML: expected </metadata>, found </directive> [CB326]",
        ),
        (
            &file("<directive>\n <a>x & y</a></directive>"),
            "d.md:7:7: Invalid XML: `&` without an entity [CB326]",
        ),
        (&file("<directive>&nbsp;</directive>"), "d.md:6:12: Invalid XML: unknown entity `&nbsp;` [CB326]"),
        (
            &file("<!DOCTYPE d [<!ENTITY x 'y'>]><directive>&x;</directive>"),
            "d.md:6:1: Invalid XML: document types are not supported [CB326]",
        ),
        (&file("<directive><raw>x</directive>"), "d.md:6:13: Invalid XML: <raw> is not closed [CB326]"),
        (&file("<directive a='1' a='2'/>"), "d.md:6:18: Invalid XML: duplicate attribute `a` [CB326]"),
        (&file("<rye:directive/>"), "d.md:6:2: Invalid XML: undeclared prefix `rye:` [CB326]"),
        (&file("<directive>"), "d.md:6:11: Invalid XML: the XML ends before its elements are closed [CB326]"),
        (&file(""), "d.md:6:1: Invalid XML: there is no element [CB326]"),
        (
            &file("<directive><metadata><permissions><cap>x</cap></permissions></metadata></directive>"),
            "d.md:6:36: Unknown tag <cap> inside <permissions>. Valid tags: acknowledge, execute, load, search, sign [CB326]",
        ),
    ] {
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn unread_names_are_noted_with_the_nearest_one() {
    assert_eq!(
        notes(
            "<directive nam=\"a\"><input/><inputs><inpt/><input name=\"x\" requierd=\"true\" type=\"strng\"/></inputs><outputs><success>s</success></outputs><metadata><limits max_turns=\"3\"/></metadata></directive>"
        ),
        [
            "warning d.md:6:12: unknown attribute `nam` of <directive> [CB315]",
            "warning d.md:6:21: unknown element <input> [CB315]",
            "warning d.md:6:37: unknown element <inpt> [CB315]",
            "warning d.md:6:59: unknown attribute `requierd` of <input> [CB315]",
            "warning d.md:6:81: unknown type `strng`: the input accepts any value [CB326]",
            "note d.md:6:108: unknown element <success> [CB315]",
            "warning d.md:6:155: unknown attribute `max_turns` of <limits> [CB315]",
        ]
    );
}

#[test]
fn steps_in_the_xml_block_are_noted_because_no_model_sees_them() {
    let steps = "<directive name=\"d\">\n<process><step name=\"a\"><action>Go to {input:x}</action></step></process></directive>";
    assert_eq!(
        notes(steps),
        ["warning d.md:7:2: no model sees the text of <process> inside the XML block [CB326]"]
    );
    let actions = "<directive name=\"d\"><process><step><execute item_id=\"a\"><param name=\"p\">x</param></execute></step></process></directive>";
    assert_eq!(notes(actions), Vec::<String>::new());
}

#[test]
fn inputs_are_checked_in_the_order_of_the_seed() {
    let read = directive(
        "<directive name=\"d\"><inputs><input name=\"a\" required=\"true\"/><input name=\"b\" required=\"true\"/><input name=\"n\" type=\"integer\"/><input name=\"c\" default=\"\"/></inputs></directive>",
    );
    let fill = |parameters: Json| read.fill(parameters.as_object().unwrap()).map(|filled| filled.inputs);
    let message = |parameters: Json| fill(parameters).unwrap_err().diagnostic().message.clone();
    assert_eq!(
        message(json!({"z": 1, "y": 1, "n": "x"})),
        "Unknown parameters: z, y. Valid inputs: a, b, n, c"
    );
    assert_eq!(message(json!({"n": "x"})), "Missing required inputs: a, b");
    assert_eq!(message(json!({"a": 1, "b": null, "n": "x"})), "`n` must be of type integer, but is a string");
    assert_eq!(message(json!({"a": [1], "b": ""})), "`a` must be of type string, but is a list");
    assert_eq!(
        json!(fill(json!({"a": "", "b": 0})).unwrap()),
        json!({"a": "", "b": 0, "c": ""}),
        "an empty text and 0 are values"
    );
    let error = fill(json!({})).unwrap_err();
    assert_eq!(
        error.field("declared_inputs").unwrap()[3],
        json!({"name": "c", "type": "string", "required": false, "default": ""})
    );
    assert_eq!(error.kind(), ErrorKind::PromptValidation);
}

#[test]
fn a_directive_that_declares_nothing_takes_what_it_is_given() {
    let text = "```xml\n<directive name=\"d\"/>\n```\nHi {input:who}, {input:more}.";
    let read = read(&Source::new("d.md", text)).unwrap();
    let filled = read.fill(json!({"who": "Ann", "zzz": 1}).as_object().unwrap()).unwrap();
    assert_eq!(filled.body().unwrap().text, "Hi Ann, {input:more}.");
}

#[test]
fn body_xml_file_and_actions_are_filled_and_nothing_else() {
    let text = "# {input:a}\n```xml\n<directive name=\"d\"><metadata><description>{input:a}</description></metadata><search query=\"{input:a} {env:E}\" n=\"1\"><param name=\"p\">{input:z|d}</param></search></directive>\n```\n{input:a}{env:E}{env:F}";
    let read = read(&Source::new("d.md", text)).unwrap();
    let given = json!({"a": {"x": [1, true, null, "ü"]}});
    let environment = |name: &str| (name == "E").then(|| "{input:a}".to_owned());
    let filled = read.fill(given.as_object().unwrap()).unwrap().with_environment(environment);
    let json = filled.to_json().unwrap();
    let value = r#"{"x":[1,true,null,"ü"]}"#;
    assert_eq!(json["body"], format!("{value}{{input:a}}{{env:F}}"));
    assert_eq!(json["description"], "{input:a}");
    assert_eq!(json["preamble"], "# {input:a}");
    assert_eq!(
        json["actions"],
        json!([{"primary": "search", "query": format!("{value} {{env:E}}"), "n": "1", "params": {"p": "d"}}])
    );
    assert!(json["content"].as_str().unwrap().contains(&format!("<description>{value}</description>")));
    assert!(json["raw"].as_str().unwrap().starts_with(&format!("# {value}\n```xml")));
}

#[test]
fn hostile_files_are_refused_quickly() {
    let start = std::time::Instant::now();
    for xml in [
        "<a>".repeat(100_000),
        format!("<d>{}</d>", "<a/>".repeat(100_000)),
        format!("<d a=\"{}\"/>", "x".repeat(2_000_000)),
        format!("<d {}/>", (0..50_000).map(|n| format!("a{n}='' ")).collect::<String>()),
        "<raw>".repeat(100_000),
        "<!--".repeat(100_000),
        "<![CDATA[".repeat(100_000),
        "<d a='".repeat(100_000),
        "&#x0;&".repeat(100_000),
        "<d>".to_owned() + &"&amp;".repeat(300_000) + "</d>",
    ] {
        let read = read(&Source::new("d.md", file(&xml)));
        assert!(read.is_err(), "{}", &xml[..40]);
    }
    for text in [
        "```xml\n".repeat(100_000),
        "````\n```xml\n".repeat(50_000),
        "~~~\n".repeat(100_001) + "```xml\n<d/>",
        "<!--\n".repeat(100_000),
    ] {
        assert!(read(&Source::new("d.md", text)).is_err());
    }
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn a_duplicate_output_is_reported_with_both_places() {
    let two = |kind: &str| {
        let xml = format!(
            "<directive name=\"a\"><outputs>\n<output name=\"x\" type=\"integer\"/>\n<output name=\"x\" type=\"{kind}\"/>\n</outputs></directive>"
        );
        let note =
            directive(&xml).notes.into_iter().find(|note| note.message.contains("duplicate output")).unwrap();
        let line = note.place.as_ref().unwrap().line();
        assert_eq!(note.related[0].0.line() + 1, line);
        (note.severity, note.message)
    };
    // No value is of both types.
    assert_eq!(two("string"), (Severity::Error, "duplicate output `x` with two types".to_owned()));
    assert_eq!(two("int"), (Severity::Warning, "duplicate output `x`".to_owned()));
}

#[test]
fn an_output_must_be_given_unless_it_says_that_it_need_not() {
    let read = directive(
        r#"<directive name="d"><outputs><output name="a"/><output name="b" required="true"/><output name="c" required="False"/></outputs></directive>"#,
    );
    let optional: Vec<bool> = read.outputs.iter().map(|output| output.optional).collect();
    assert_eq!(optional, [false, false, true]);
}
