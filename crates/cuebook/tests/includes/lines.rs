//! Mustache includes that stand on a line of their own: white space goes before each line of what is included.

use cuebook::Origin;
use serde_json::{Value as Json, json};

use crate::project::{Project, assert_covered};

fn host(body: &str) -> Project {
    let file = format!(
        "---\nname: host\ntemplate: {{format: {{kind: mustache, options: {{escape: false}}}}}}\n---\n{body}"
    );
    Project::new().with("prompts/host.prompty", &file)
}

/// Includes a text in a list, once as a partial and once as a prompt of its own notation.
fn both(text: &str, variables: Json) -> (String, String) {
    let body = "- a\n    {{> IT}}\n- b\n";
    let project = host(&body.replace("IT", "parts/it.md")).with("prompts/parts/it.md", text);
    let partial = project.text("host", variables.clone());
    let options = "{format: {kind: mustache, options: {escape: false}}}";
    let project = host(&body.replace("IT", "prompt:it"))
        .with("prompts/it.prompty", &format!("---\nname: it\ntemplate: {options}\n---\n{text}"));
    let rendered = project.render("host", variables).unwrap();
    assert_covered(&rendered);
    (partial, rendered.into_text())
}

#[test]
fn a_prompt_is_indented_line_by_line_as_a_partial_is() {
    let value = "one\n\ntwo";
    for (text, said) in [
        ("x\ny\n", "- a\n    x\n    y\n- b\n"),
        ("x\n\n\ny {{v}}\nz\n", "- a\n    x\n\n\n    y one\n\ntwo\n    z\n- b\n"),
        ("{{v}}\n{{v}}{{v}}\n", "- a\n    one\n\ntwo\n    one\n\ntwoone\n\ntwo\n- b\n"),
        ("{{#l}}\n{{.}},\n{{/l}}\nend\n", "- a\n    1,\n    2,\n    end\n- b\n"),
        ("{{none}}\n{{none}}\nx\n", "- a\n    \n    \n    x\n- b\n"),
        ("x\r\n\r\ny\r\n", "- a\n    x\n\n    y\n- b\n"),
    ] {
        let (partial, prompt) = both(text, json!({"v": value, "l": [1, 2], "none": ""}));
        assert_eq!(partial, said, "{text:?}");
        assert_eq!(prompt, said, "{text:?}");
    }
    // What shows nothing has no line.
    let (partial, prompt) = both("{{#none}}\nx\n{{/none}}\n", json!({"none": false}));
    assert_eq!((partial.as_str(), prompt.as_str()), ("- a\n- b\n", "- a\n- b\n"));
}

#[test]
fn indentation_follows_author_lines_not_values() {
    let who = "Ann\nand Bo";
    for (address, text, said) in [
        ("prompt:note", "", "  Dear Ann\nand Bo, be calm.\n"),
        ("prompt:guide#task", "", "  # Task\n\n  Help Ann\nand Bo.\n"),
        (
            "prompt:guide",
            "",
            "  # Task\n\n  Help Ann\nand Bo.\n\n  # Manner\n\n  Stay calm.\n\n  # Close\n\n  Bye, calm.\n",
        ),
        ("directive:demo/greet", "", "  Greet Ann\nand Bo in a calm way.\n"),
        (
            "prompt:more",
            "{% for x in [1, 2] %}\n{{ x }}: {{ who }}\n{% endfor %}\n.\n",
            "\n  1: Ann\nand Bo\n\n  2: Ann\nand Bo\n\n  .\n",
        ),
        // A prompt that includes others is written line by line as well.
        (
            "prompt:more",
            "a\n{% include 'prompt:note' %}\n{% include 'prompt:guide#task' %}",
            "  a\n  Dear Ann\nand Bo, be calm.\n  # Task\n\n  Help Ann\nand Bo.\n",
        ),
    ] {
        let project = host(&format!("  {{{{> {address} }}}}\n")).with("prompts/more/template.md", text);
        let rendered = project.render("host", json!({"who": who})).unwrap();
        assert_eq!(rendered.text(), said, "{address} {text:?}");
        assert_covered(&rendered);
        // White space before a line is that of the tag's.
        for (at, _) in rendered.text().match_indices("  ") {
            let span = rendered.span_at(at).unwrap();
            assert_eq!(span.origin.place().unwrap().to_string(), "prompts/host.prompty:5:1");
        }
    }
}

#[test]
fn indentation_of_partials_adds_up_at_line_starts() {
    let project = host(" {{> parts/a.md}}\nend")
        .with("prompts/parts/a.md", "a\n  {{> prompt:two}}\nb {{> prompt:two}} c\n");
    project.write("prompts/two/template.md", "1\n2");
    let rendered = project.render("host", json!({})).unwrap();
    assert_eq!(rendered.text(), " a\n   1\n   2\n b 1\n2 c\nend");
    assert_covered(&rendered);
    let files: Vec<String> = rendered
        .spans()
        .filter(|span| matches!(span.origin, Origin::Literal { .. }))
        .map(|span| span.origin.place().unwrap().file().to_owned())
        .collect();
    assert!(files.contains(&"prompts/two/template.md".to_owned()), "{files:?}");
}

#[test]
fn indenting_a_long_text_is_linear() {
    let project = host("  {{> prompt:long}}\n");
    project.write("prompts/long/template.md", "{% for x in range(40000) %}{{ x }}\n{% endfor %}");
    let start = std::time::Instant::now();
    let text = project.text("host", json!({}));
    assert_eq!(text.lines().count(), 40_000);
    assert!(text.lines().all(|line| line.starts_with("  ")));
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}
