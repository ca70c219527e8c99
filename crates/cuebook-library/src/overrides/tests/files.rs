//! The file format: what is written, what is read, what is refused and where.

use std::sync::Arc;

use super::*;
use crate::error::{Code, ErrorKind, Result};
use crate::json::shown;
use crate::overrides::names::Names;
use crate::overrides::{Overrides, file};
use crate::source::Source;

fn names() -> Names {
    Names::new("support", "triage", "latest").unwrap()
}

fn source(text: &str) -> Arc<Source> {
    Source::new("latest.json", text)
}

/// Reads a file whose `sections`, `tools` and `task_example_overrides` are given.
fn read(sections: &str, tools: &str, tasks: &str) -> Result<Overrides> {
    let text = format!(
        "{{\"version\": 2, \"ns\": \"support\", \"prompt_key\": \"triage\", \"tag\": \"latest\",\n\"sections\": {sections},\n\"tools\": {tools},\n\"task_example_overrides\": {tasks}}}"
    );
    file::read(&source(&text), &names())
}

/// What is wrong, without the hints.
fn wrong(found: Result<Overrides>) -> Vec<String> {
    let error = found.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Overrides, Code::BadOverride));
    error.diagnostics().iter().map(|finding| finding.message.clone()).collect()
}

fn hash() -> String {
    text_hash("x")
}

/// A file with everything that a file can have.
fn full() -> String {
    let hash = hash();
    let text = format!(
        r#"{{
  "ns": "support",
  "prompt_key": "triage",
  "sections": {{
    "intro": {{
      "body": "caf\u00e9 \ud83d\ude80",
      "expected_hash": "{hash}",
      "path": [
        "intro"
      ]
    }},
    "intro/tone": {{
      "expected_hash": "{hash}",
      "path": [
        "intro",
        "tone"
      ],
      "summary": "Short.",
      "visibility": "summary"
    }}
  }},
  "tag": "latest",
  "task_example_overrides": [
    {{
      "action": "modify",
      "expected_hash": "{hash}",
      "index": 1,
      "objective": "o",
      "outcome": "p",
      "path": [
        "examples",
        "two"
      ],
      "step_overrides": [
        {{
          "description": "d",
          "index": 0
        }}
      ],
      "steps_to_append": [
        {{
          "description": "d",
          "index": 0,
          "output_json": "[ 1.50 ]",
          "tool_name": "t"
        }}
      ],
      "steps_to_remove": [
        2
      ]
    }},
    {{
      "action": "remove",
      "expected_hash": "{hash}",
      "index": 0,
      "path": [
        "examples",
        "one"
      ]
    }},
    {{
      "action": "append",
      "expected_hash": null,
      "index": -1,
      "objective": "o",
      "outcome": "p",
      "path": [
        "examples"
      ],
      "steps_to_append": [
        {{
          "description": "d",
          "index": 0,
          "tool_name": "t"
        }}
      ]
    }}
  ],
  "tools": {{
    "search": {{
      "description": null,
      "example_overrides": [
        {{
          "action": "modify",
          "expected_hash": "{hash}",
          "index": 0,
          "input_json": "{{\"a\":  1e5}}"
        }},
        {{
          "action": "remove",
          "expected_hash": "{hash}",
          "index": 1
        }},
        {{
          "action": "append",
          "description": "new",
          "expected_hash": null,
          "index": -1,
          "output_json": "null"
        }}
      ],
      "expected_contract_hash": "{hash}",
      "param_descriptions": {{
        "b": "2",
        "c": "1"
      }}
    }}
  }},
  "version": 2
}}
"#
    );
    text
}

#[test]
fn a_file_with_everything_is_read_and_written_as_the_same_bytes() {
    let overrides = file::read(&source(&full()), &names()).unwrap();
    assert_eq!((overrides.sections.len(), overrides.tools.len(), overrides.task_examples.len()), (2, 1, 3));
    assert_eq!(overrides.sections[0].body.as_deref(), Some("café 🚀"));
    assert_eq!(overrides.sections[1].body, None);
    assert_eq!(overrides.sections[1].place.as_ref().unwrap().to_string(), "latest.json:12:5");
    assert_eq!(overrides.tools[0].examples.len(), 3);
    assert_eq!(file::write(&overrides), full());
}

#[test]
fn the_order_of_a_file_and_its_spelling_do_not_matter() {
    let text = format!(
        "\u{feff}{{\"tools\": null, \"version\": 2, \"tag\": \"latest\",\r\n \"ns\": \"support\", \"prompt_key\": \"triage\", \"sections\": {{\"a\": {{\"body\": \"\", \"summary\": null, \"expected_hash\": \"{}\"}}}}}}",
        hash()
    );
    let overrides = file::read(&source(&text), &names()).unwrap();
    assert_eq!((overrides.sections[0].body.as_deref(), &overrides.sections[0].summary), (Some(""), &None));
    assert!(overrides.tools.is_empty() && overrides.task_examples.is_empty());
}

#[test]
fn everything_that_is_wrong_with_a_section_is_underlined() {
    let found = read(
        "{\"a\": 1,\n \"b\": {\"body\": 3, \"expected_hash\": \"zz\"},\n \"c\": {\"visiblity\": \"full\", \"expected_hash\": 4},\n \"d\": {\"path\": [\"e\"], \"visibility\": \"half\", \"summary\": []}}",
        "{}",
        "[]",
    );
    assert_eq!(
        shown(found.unwrap_err().diagnostics()),
        "\
error latest.json:2:19: the override of the section `a` must be an object [CB210]
  at 1 -- this is a number
  help: write {…} with its fields
error latest.json:3:36: `expected_hash` is not a SHA-256 hash [CB210]
  at \"zz\" -- (no label)
  help: a hash has 64 digits: 0 to 9 and a to f
error latest.json:3:16: `body` must be a string [CB210]
  at 3 -- this is a number
  help: write a string here, or remove it
error latest.json:4:8: unknown key `visiblity` in the override of the section `c` [CB210]
  at \"visiblity\" -- (no label)
  help: did you mean `visibility`?
error latest.json:4:46: `expected_hash` must be a string [CB210]
  at 4 -- this is a number
  help: a hash has 64 digits: 0 to 9 and a to f
error latest.json:4:2: the override of the section `c` changes nothing [CB210]
  at \"c\" -- (no label)
  help: add a `body`, a `summary` or a `visibility`, or remove the entry
error latest.json:5:16: `path` differs from the key of its entry [CB210]
  at [ -- (no label)
  help: write the keys of `d`, one by one
error latest.json:5:2: the override of the section `d` has no `expected_hash`, the hash of the original text [CB210]
  at \"d\" -- (no label)
  help: a hash has 64 digits: 0 to 9 and a to f
error latest.json:5:56: `summary` must be a string [CB210]
  at [ -- this is an array
  help: write a string here, or remove it
error latest.json:5:37: `visibility` must be \"full\" or \"summary\" [CB210]
  at \"half\" -- (no label)
  help: use one of them; without a `visibility`, the author's choice applies
"
    );
}

#[test]
fn parameter_descriptions_accept_the_seed_name() {
    let hash = hash();
    let tools = format!(
        r#"{{"t": {{"expected_contract_hash": "{hash}",
            "field_descriptions": {{"a": "the field", "b": "b"}}, "param_descriptions": {{"a": "the parameter"}}}}}}"#
    );
    let tool = &read("{}", &tools, "[]").unwrap().tools[0];
    assert_eq!(tool.param_descriptions["a"], "the parameter");
    assert_eq!(tool.param_descriptions["b"], "b");
}

#[test]
fn hashes_in_capitals_or_of_another_length_are_refused() {
    for hash in [hash().to_uppercase(), hash()[1..].to_owned(), format!("{}0", hash()), "é".repeat(32)] {
        let section = format!("{{\"a\": {{\"body\": \"\", \"expected_hash\": \"{hash}\"}}}}");
        assert_eq!(wrong(read(&section, "{}", "[]")), ["`expected_hash` is not a SHA-256 hash"]);
    }
}

#[test]
fn all_problems_of_a_tool_are_reported() {
    let hash = hash();
    let tools = format!(
        r#"{{"a": [], "b": {{"expected_contract_hash": "{hash}", "description": 1, "param_descriptions": {{"q": 2}}, "name": "b"}},
            "c": {{"param_descriptions": [], "example_overrides": {{}}}}}}"#
    );
    assert_eq!(
        wrong(read("{}", &tools, "[]")),
        [
            "the override of the tool `a` must be an object",
            "unknown key `name` in the override of the tool `b`",
            "`description` must be a string",
            "the description of `q` must be a string",
            "the override of the tool `c` has no `expected_contract_hash`, the hash of the original text",
            "`param_descriptions` must be an object",
            "`example_overrides` must be an array",
        ]
    );
    assert_eq!(
        wrong(read("[]", "3", "{}")),
        [
            "`sections` must be an object",
            "`tools` must be an object",
            "`task_example_overrides` must be an array",
        ]
    );
}

#[test]
fn an_example_whose_override_contradicts_itself_is_refused() {
    let hash = hash();
    let about = |fields: &str| {
        let tools = format!(
            "{{\"a\": {{\"expected_contract_hash\": \"{hash}\", \"example_overrides\": [{fields}]}}}}"
        );
        wrong(read("{}", &tools, "[]"))
    };
    let known = format!("\"index\": 0, \"expected_hash\": \"{hash}\"");
    for (fields, message) in [
        ("{}".to_owned(), "the override of an example has no `action`"),
        ("{\"action\": \"insert\"}".to_owned(), "`action` must be \"modify\", \"remove\" or \"append\""),
        (format!("{{\"action\": \"modify\", {known}}}"), "the override of an example changes nothing"),
        (
            format!("{{\"action\": \"remove\", {known}, \"description\": \"x\"}}"),
            "`description` has no effect with this `action`",
        ),
        (
            format!("{{\"action\": \"remove\", \"expected_hash\": \"{hash}\"}}"),
            "the override of an example has no `index`",
        ),
        (
            "{\"action\": \"remove\", \"index\": 0, \"expected_hash\": null}".to_owned(),
            "`expected_hash` must be a string",
        ),
        (
            format!("{{\"action\": \"remove\", \"index\": -1, \"expected_hash\": \"{hash}\"}}"),
            "`index` must be the number of an element",
        ),
        (
            "{\"action\": \"append\", \"index\": 2, \"description\": \"x\"}".to_owned(),
            "an added element has no number",
        ),
        (
            format!("{{\"action\": \"append\", \"expected_hash\": \"{hash}\", \"description\": \"x\"}}"),
            "an added element has no original",
        ),
        (
            "{\"action\": \"append\", \"input_json\": \"1\"}".to_owned(),
            "the override of an example is added, but has no `description`",
        ),
        (
            "{\"action\": \"append\", \"description\": \"x\", \"input_json\": \"{\"}".to_owned(),
            "`input_json`: the text is not valid JSON: EOF while parsing an object at line 1 column 1",
        ),
        (
            format!("{{\"action\": \"remove\", {known}}}, {{\"action\": \"remove\", {known}}}"),
            "two entries override the same example",
        ),
    ] {
        assert_eq!(about(&fields), [message], "{fields}");
    }
}

#[test]
fn a_task_whose_override_contradicts_itself_is_refused() {
    let hash = hash();
    let about = |fields: &str| wrong(read("{}", "{}", &format!("[{fields}]")));
    let known = format!("\"path\": [\"e\", \"one\"], \"index\": 0, \"expected_hash\": \"{hash}\"");
    for (fields, messages) in [
        ("1".to_owned(), vec!["the override of a task example must be an object"]),
        ("{\"action\": \"append\"}".to_owned(), vec!["`path` is missing"]),
        (
            "{\"action\": \"append\", \"path\": [\"e\"]}".to_owned(),
            vec![
                "the override of a task example is added, but has no `objective`",
                "the override of a task example is added, but has no `outcome`",
                "a task example must have steps",
            ],
        ),
        (
            format!(
                "{{\"action\": \"modify\", {known}, \"step_overrides\": [{{\"index\": 0}}, {{\"description\": \"\"}}]}}"
            ),
            vec!["the override of a step changes nothing", "the override of a step has no `index`"],
        ),
        (
            format!("{{\"action\": \"modify\", {known}, \"steps_to_remove\": [1, 1, \"2\"]}}"),
            vec![
                "two entries override the same step",
                "the number of a step must be the number of an element",
            ],
        ),
        (
            format!("{{\"action\": \"modify\", {known}, \"steps_to_append\": [{{\"index\": 0}}]}}"),
            vec![
                "a new step is added, but has no `tool_name`",
                "a new step is added, but has no `description`",
            ],
        ),
        (
            format!(
                "{{\"action\": \"modify\", {known}, \"outcome\": \"x\"}}, {{\"action\": \"remove\", {known}}}"
            ),
            vec!["two entries override the same example"],
        ),
        ("{\"action\": \"append\", \"path\": []}".to_owned(), vec!["`path` is empty"]),
    ] {
        assert_eq!(about(&fields), messages, "{fields}");
    }
}

#[test]
fn a_file_of_another_version_or_prompt_is_refused() {
    let file = |text: &str| wrong(file::read(&source(text), &names()));
    assert_eq!(file("{\"version\": 1, \"rubbish\": 3}"), ["unknown version 1 of an override file"]);
    assert_eq!(file("{\"version\": \"2\"}"), ["unknown version a string of an override file"]);
    assert_eq!(file("{}"), ["the file has no `version`"]);
    assert_eq!(
        file("{\"version\": 2, \"ns\": \"other\", \"prompt_key\": 3}"),
        [
            "the path says that the file overrides the namespace `support`",
            "the path says that the file overrides the key `triage`",
            "the file has no `tag`",
        ]
    );
    assert_eq!(file("[]"), ["expected a JSON object"]);
    assert_eq!(file(""), ["not valid JSON: the file is empty"]);
    assert_eq!(file("{\"version\": 2, \"version\": 2}"), ["duplicate key `version` in an object"]);
}
