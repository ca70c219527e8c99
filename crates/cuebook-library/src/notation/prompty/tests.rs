mod old;
mod reading;
mod references;

use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::error::report;
use crate::json::shown;

/// Options whose environment holds these variables and no others.
fn options(env: &[(&str, &str)]) -> LoadOptions {
    let env: Vec<(String, String)> = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let get = move |name: &str| env.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    LoadOptions { environment: Arc::new(get), ..LoadOptions::default() }
}

fn read(text: &str) -> Result<Definition> {
    Definition::read(&Source::new("p.prompty", text), None, &options(&[]))
}

/// The definition of front matter with no template below.
fn front(yaml: &str) -> Definition {
    read(&format!("---\n{yaml}\n---\n"))
        .unwrap_or_else(|error| panic!("{yaml}\n{}", shown(error.diagnostics())))
}

/// What is wrong with front matter; its first line is line 2.
fn wrong(yaml: &str) -> Vec<String> {
    let error = read(&format!("---\n{yaml}\n---\n")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PromptRead);
    assert!(error.diagnostics().iter().all(|diagnostic| diagnostic.hint.is_some()), "{yaml}");
    error.diagnostics().iter().map(ToString::to_string).collect()
}

/// The notes of front matter, with their hints.
fn notes(yaml: &str) -> Vec<String> {
    let note = |note: &Diagnostic| format!("{note}: {}", note.hint.clone().unwrap_or_default());
    front(yaml).notes.iter().map(note).collect()
}

fn body(text: &str) -> String {
    read(text).unwrap().body.unwrap().text().to_owned()
}

#[test]
fn front_matter_lines_are_found_as_in_prompty() {
    for (text, name, wanted) in [
        ("---\nname: test\n---\nHello world", Some("test"), "Hello world"),
        ("---\n---\nBody only", None, "Body only"),
        ("  ---\nname: test\n---\nBody", Some("test"), "Body"),
        ("\n\n+++\nname: test\n  ---  \nBody\n", Some("test"), "Body\n"),
        ("---\nname: a---b\n+++\nx\n---\ny\n", Some("a---b"), "x\n---\ny\n"),
        ("---\r\nname: test\r\n---\r\nA\r\nB\r\n", Some("test"), "A\nB\n"),
        ("\u{feff}---\nname: test\n---\nA", Some("test"), "A"),
        ("---\nname: test\n---", Some("test"), ""),
        ("---\nname: test\n---\n\nA\n", Some("test"), "\nA\n"),
        ("---\n# only a comment\n---\nA", None, "A"),
    ] {
        let read = read(text).unwrap();
        assert_eq!(read.name.as_deref(), name, "{text:?}");
        assert_eq!(read.body.unwrap().text(), wanted, "{text:?}");
    }
    for text in [
        "",
        "\n",
        "Hello",
        "  key: value\n",
        "--- x\nname: a\n---\n",
        "----\na\n----\n",
        "Hi\n---\nname: a\n---\n",
    ] {
        assert_eq!(body(text), text, "without front matter the whole file is the template");
    }
}

#[test]
fn dashes_in_a_block_scalar_do_not_end_the_front_matter() {
    for holder in ["description: |\n", "description: >-  # a rule\n", "description: !!str &d |2+\n"] {
        let text = format!("---\n{holder}  above\n  ---\n\n  below\nname: test\n---\nBody");
        let read = read(&text).unwrap();
        assert_eq!((read.name.as_deref(), read.body.unwrap().text()), (Some("test"), "Body"), "{text:?}");
        let description = read.description.unwrap_or_default();
        assert!(description.contains("---") && description.contains("below"), "{description:?}");
    }
    let text = "---\nmetadata:\n  notes:\n  - - |\n     ---\n  - a: |\n      x\n      ---\n    b: 1\nname: test\n---\nBody";
    let inside = read(text).unwrap();
    assert_eq!((inside.name.as_deref(), inside.body.unwrap().text()), (Some("test"), "Body"));
    // The scalar has ended, or there is none.
    for text in
        ["---\nname: test\ndescription: |\n  x\n---\nBody", "---\ndescription: a |\nname: test\n  ---\nBody"]
    {
        assert_eq!(body(text), "Body", "{text:?}");
    }
}

#[test]
fn places_in_the_template_are_places_of_the_file() {
    let file = Source::new("p.prompty", "---\r\nname: x\r\n---\r\nA\r\nhi {{ é }} y\r\n");
    let body = Definition::read(&file, None, &options(&[])).unwrap().body.unwrap();
    let at = body.text().find('y').unwrap();
    assert_eq!(body.place(at..at + 1).to_string(), "p.prompty:5:12");
    assert_eq!(body.text(), "A\nhi {{ é }} y\n");
}

#[test]
fn front_matter_that_cannot_be_read_is_invalid_front_matter() {
    for (text, wanted) in [
        ("\n  ---\nname: x\nHello\n", "2:3: the front matter is not closed [CB318]"),
        ("+++", "1:1: the front matter is not closed [CB318]"),
        ("---\n- a\n- b\n---\n", "2:1: the front matter must be a map [CB318]"),
        ("---\njust text\n---\n", "2:1: the front matter must be a map [CB318]"),
        ("---\nname: [\n---\n", "2:7: invalid YAML: `[` is not closed [CB318]"),
        ("---\nname: a: b\n---\n", "2:8: invalid YAML: unexpected colon [CB318]"),
        ("---\nname: a\nname: b\n---\n", "3:1: duplicate key `name` in a map [CB318]"),
        ("---\nname: !x a\n---\n", "2:7: unknown tag `!x` [CB318]"),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!(error.diagnostic().to_string(), format!("p.prompty:{wanted}"), "{text:?}");
        assert_eq!(error.field("kind"), Some(&json!("invalid_frontmatter")), "{text:?}");
        assert!(error.diagnostic().hint.is_some());
    }
}

#[test]
fn a_bomb_in_the_front_matter_is_refused() {
    let mut yaml = String::from("a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n");
    for level in 1..20 {
        let copies = vec![format!("*a{}", level - 1); 9].join(", ");
        yaml.push_str(&format!("a{level}: &a{level} [{copies}]\n"));
    }
    assert!(wrong(&yaml)[0].contains("too many values"));
    assert!(wrong(&format!("metadata: {}1{}", "[".repeat(100), "]".repeat(100)))[0].contains("too deeply"));
}

#[test]
fn a_loaded_file_is_given_back_in_the_shape_that_prompty_knows() {
    let definition = front("kind: prompt\nname: n\ndisplayName: N\nmodel: gpt-4o\ninputs: {a: x}\nmine: 1");
    assert_eq!(
        definition.to_json(),
        json!({
            "kind": "prompt", "name": "n", "displayName": "N", "model": {"id": "gpt-4o"},
            "inputs": [{"name": "a", "kind": "string", "default": "x"}], "instructions": "", "mine": 1,
        })
    );
    assert_eq!(front("").to_json(), json!({"kind": "prompt", "instructions": ""}));
    let stolen = front("instructions: not from here");
    assert_eq!(stolen.to_json()["instructions"], json!(""), "the template stands below the front matter");
    assert_eq!(
        notes("kind: agent"),
        ["p.prompty:2:7: the kind of a .prompty file must be `prompt` [CB319]: remove `kind`"]
    );
}

#[test]
fn inputs_are_checked_for_presence_and_nothing_else() {
    let yaml = "inputs:\n  - {name: a, kind: string, required: true}\n  - {name: b, kind: integer, default: 5}\n  - {name: c, kind: string, example: e}\n  - {name: d, kind: string, required: true, default: null}";
    let definition = front(yaml);
    let check = |inputs: Json| validate_inputs(&definition, inputs.as_object().unwrap());
    assert_eq!(
        Json::Object(check(json!({"a": null, "d": 1, "more": [1]})).unwrap()),
        json!({"a": null, "d": 1, "more": [1], "b": 5})
    );
    assert_eq!(check(json!({"a": 1, "b": null, "d": 1})).unwrap()["b"], Json::Null, "null is a value");
    let error = check(json!({})).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::PromptValidation, Code::InvalidVariables));
    assert_eq!(error.diagnostic().message, "Missing required input: a");
    assert_eq!(error.diagnostic().place.as_ref().unwrap().to_string(), "p.prompty:3:12");
    assert_eq!(error.diagnostics()[1].message, "Missing required input: d");
    assert_eq!(error.field("kind"), Some(&json!("missing_required_input")));
    assert_eq!(error.field("field"), Some(&json!("a")));
    assert_eq!(error.field("missing"), Some(&json!(["a", "d"])));
}

#[test]
fn a_missing_file_is_reported_as_missing() {
    let folder = tempfile::tempdir().unwrap();
    let error = load(&folder.path().join("none.prompty"), &options(&[])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(error.field("kind"), Some(&json!("file_not_found")));
    std::fs::write(folder.path().join("large.prompty"), "x".repeat(100)).unwrap();
    let small = LoadOptions { file_size: 99, ..options(&[]) };
    assert_eq!(load(&folder.path().join("large.prompty"), &small).unwrap_err().kind(), ErrorKind::Limit);
}

fn yaml_like() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "name",
        "model",
        "inputs",
        "outputs",
        "tools",
        "template",
        "kind",
        "items",
        "oneOf",
        "anyOf",
        "properties",
        "parameters",
        "bindings",
        "connection",
        "options",
        "endpoint",
        "format",
        "default",
        "metadata",
        "type",
        "extra",
    ]);
    let leaf = prop::sample::select(vec![
        "x",
        "1",
        "1.5",
        "true",
        "null",
        "''",
        "string",
        "array",
        "object",
        "union",
        "function",
        "mcp",
        "${env:A}",
        "${env:A:b:c}",
        "${file:x.json}",
        "${file:../x}",
        "${",
        "${:}",
        "${env:}",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(5, 40, 5, move |inner| {
        let pair = (key.clone(), inner.clone()).prop_map(|(key, value)| format!("\"{key}\": {value}"));
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec(pair, 0..6).prop_map(|pairs| format!("{{{}}}", pairs.join(", "))),
        ]
    })
}

fn never_panics(text: &str, folder: &Path) {
    for (set, loads) in [(&[][..], true), (&[("A", "v")][..], true), (&[][..], false)] {
        let source = Source::new("p.prompty", text);
        let read = Definition::from(&source, Some(folder), &options(set), loads);
        match read {
            Ok(definition) => {
                definition.to_json();
                report(&definition.notes, false);
                definition.unresolved(Some(folder), &options(&[]));
                // What needs a value says so; it does not fail in another way.
                let _ = validate_inputs(&definition, &Map::new());
            }
            Err(error) => {
                report(error.diagnostics(), false);
            }
        }
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in prop_oneof![
        ".{0,80}",
        "[-+\\[\\]{}\"':,a1 |>&*!#?$\t\r\n]{0,80}".prop_map(|middle| format!("---\n{middle}\n---\nbody")),
        yaml_like().prop_map(|yaml| format!("---\n{yaml}\n---\nbody")),
    ]) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.json"), "{\"kind\": \"array\", \"items\": \"${file:x.json}\"}").unwrap();
        never_panics(&text, folder.path());
    }
}
