//! The format of `render --json`: every output follows the JSON Schema in the reference.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod support;

use serde_json::{Value as Json, json};
use support::Project;

const SCHEMA: &str = include_str!("../../../docs/src/reference/rendered.schema.json");

/// What is wrong with a value, by the keywords that the schema uses. An unknown keyword is an error too.
fn wrong(root: &Json, schema: &Json, value: &Json, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (keyword, wanted) in schema.as_object().unwrap() {
        let fits = match keyword.as_str() {
            "$schema" | "title" | "description" | "$defs" | "properties" => true,
            "$ref" => {
                let target = root.pointer(wanted.as_str().unwrap().trim_start_matches('#')).unwrap();
                found.extend(wrong(root, target, value, at));
                true
            }
            "const" => value == wanted,
            "enum" => wanted.as_array().unwrap().contains(value),
            "minimum" => value.as_i64() >= wanted.as_i64(),
            "type" => {
                let names = wanted.as_array().cloned().unwrap_or_else(|| vec![wanted.clone()]);
                names.iter().any(|name| is_of(value, name.as_str().unwrap()))
            }
            "required" => {
                let names = wanted.as_array().unwrap();
                names.iter().all(|name| value.get(name.as_str().unwrap()).is_some())
            }
            "additionalProperties" => {
                let known = schema["properties"].as_object().unwrap();
                value.as_object().is_none_or(|members| members.keys().all(|name| known.contains_key(name)))
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    found.extend(wrong(root, wanted, item, &format!("{at}[{index}]")));
                }
                true
            }
            "oneOf" => {
                let fits = |one: &&Json| wrong(root, one, value, at).is_empty();
                wanted.as_array().unwrap().iter().filter(fits).count() == 1
            }
            other => panic!("the test does not know the keyword {other}"),
        };
        if !fits {
            found.push(format!("{at}: {keyword} {wanted}: {value}"));
        }
    }
    for (name, schema) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
        if let Some(member) = value.get(name) {
            found.extend(wrong(root, schema, member, &format!("{at}.{name}")));
        }
    }
    found
}

fn is_of(value: &Json, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        other => panic!("the test does not know the type {other}"),
    }
}

fn check(name: &str, output: &Json) {
    let schema: Json = serde_json::from_str(SCHEMA).unwrap();
    let found = wrong(&schema, &schema, output, "$");
    assert!(found.is_empty(), "{name}: {found:#?}");
    let (text, mut end) = (output["text"].as_str().unwrap(), 0);
    for span in output["spans"].as_array().unwrap() {
        assert_eq!(span["start"], end, "{name}: spans have no gaps");
        end = span["end"].as_u64().unwrap();
    }
    assert_eq!(end, text.len() as u64, "{name}: spans cover the text");
}

const DIRECTIVE: &str = "# Weigh\n\n```xml\n<directive name=\"weigh\" version=\"1.0.0\">\n  <metadata>\n    <description>Weighs.</description>\n    <category>demo</category>\n    <author>tests</author>\n  </metadata>\n  <inputs><input name=\"word\" type=\"string\" required=\"true\">What</input></inputs>\n</directive>\n```\n\nWeigh {input:word}.\n";

fn project() -> Project {
    let project = Project::new();
    for (path, text) in [
        (
            "prompts/plain/template.md",
            "Weigh {{ word }}.\n{% if word %}Twice.{% endif %}\n{% include \"part.md\" %}\n",
        ),
        ("prompts/part.md", "A part with {{ word|upper }}.\n"),
        (
            "prompts/chat.prompty",
            "---\nname: chat\ninputs:\n  word: {kind: string}\n  talk: {kind: thread}\n---\nsystem:\nBe exact.\n{{talk}}\nuser:\nWeigh {{word}}.\n",
        ),
        (
            "prompts/tree.sections.md",
            "---\ninputs:\n  word: {kind: string, required: true}\n---\n# Task\nWeigh $word.\n\n# More\n```yaml section\nsummary: Some rules.\nvisibility: summary\ntools:\n  - name: find\n    description: Finds.\n    parameters:\n      what: {kind: string, required: true, description: What.}\n```\nRules.\n",
        ),
        (
            "prompts/mustache.prompty",
            "---\nname: mustache\ntemplate: {format: mustache, parser: prompty}\ninputs:\n  word: {kind: string}\n---\nuser:\nWeigh {{word}}{{#word}}!{{/word}}\n",
        ),
        (".ai/directives/demo/weigh.md", DIRECTIVE),
    ] {
        project.write(path, text);
    }
    project
}

fn render(project: &Project, prompt: &str, word: &str) -> Json {
    let run = project
        .command(env!("CARGO_BIN_EXE_cuebook"), project.path())
        .args(["render", prompt, "--json", "--var", word])
        .output()
        .unwrap();
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success(), "{prompt}: {text}{}", String::from_utf8_lossy(&run.stderr));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn render_json_follows_its_schema() {
    let project = project();
    for args in [&["keys", "generate"][..], &["sign", "directive", "demo/*"]] {
        let run = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path()).args(args).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    }
    for prompt in ["plain", "chat", "tree", "mustache", "demo/weigh"] {
        for word in ["word=iron", "word=naïve 羽\nsystem:\n{{ x }}", "word="] {
            let output = render(&project, prompt, word);
            assert_eq!(output["version"], 1);
            check(prompt, &output);
        }
    }
}

#[test]
fn the_check_of_the_schema_finds_mistakes() {
    let schema: Json = serde_json::from_str(SCHEMA).unwrap();
    let good = json!({
        "version": 1, "text": "ab", "tools": [],
        "spans": [{"start": 0, "end": 2, "origin": {"kind": "frame", "name": "heading"}}],
    });
    assert!(wrong(&schema, &schema, &good, "$").is_empty());
    for (pointer, bad) in [
        ("/version", json!(2)),
        ("/text", json!(1)),
        ("/spans/0/start", json!(-1)),
        ("/spans/0/origin/kind", json!("literal")),
        ("/spans/0/origin", json!({"kind": "frame", "name": "x", "more": 1})),
    ] {
        let mut changed = good.clone();
        *changed.pointer_mut(pointer).unwrap() = bad;
        assert!(!wrong(&schema, &schema, &changed, "$").is_empty(), "{pointer}");
    }
}
