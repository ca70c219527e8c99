//! No value changes the tree of its sections: which there are, what is shown of them, which tools come along, and what the
//! author and the engine wrote around the value.

use std::sync::OnceLock;

use cuebook::{Book, Context, Origin, Rendered, Variables};
use cuebook_lab::attack::{FORGERIES, ForgedKind, Forgery};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, json};

use crate::driver;

const CASES: u32 = 20_000;

const PROMPT: &str = "---
inputs:
  question: {kind: string}
  name: {kind: string}
---
# Task for $name
Answer $name: ${question}. It costs $$5.

## Detail
```yaml section
engine: jinja2
tools: [{name: look, description: Looks.}]
```
{{ question }}
{% if name %}({{ name }}){% endif %}

# Closed
```yaml section
summary: About $question
visibility: summary
tools: [{name: hidden, description: Stays hidden.}]
```
$question

# Last
```yaml section
engine: mustache
```
{{{name}}} {{{question}}}
";

fn value(bytes: &[u8]) -> String {
    // Attacks on sections half of the time.
    let sections: Vec<&Forgery> =
        FORGERIES.iter().filter(|forgery| forgery.aim == ForgedKind::Sections).collect();
    let one = |byte: &u8| match sections.get(usize::from(*byte) % 32) {
        Some(forgery) => forgery.text.to_owned(),
        None => driver::text(&[*byte]),
    };
    format!("v{}v", bytes.iter().map(one).collect::<String>())
}

/// Everything but the values: who wrote what in which section, what became of each section, and the tools.
fn structure(rendered: &Rendered) -> (String, Vec<&'static str>, Vec<String>) {
    let mut text = String::new();
    for span in rendered.spans() {
        let section = span.section.as_deref().unwrap_or_default();
        match &span.origin {
            Origin::Value { .. } => text.push_str(&format!("[{section}: a value]")),
            _ => text.push_str(&format!("[{section}: {}]", &rendered.text()[span.range.clone()])),
        }
    }
    let sections = rendered.sections().expect("a tree");
    let states = sections.sections.iter().map(|section| section.state.as_str()).collect();
    (text, states, sections.tools.iter().map(|tool| tool.name.clone()).collect())
}

fn render(question: &str, name: &str) -> Rendered {
    static BOOK: OnceLock<(tempfile::TempDir, Book)> = OnceLock::new();
    let (_, book) = BOOK.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("prompts")).expect("a folder");
        std::fs::write(folder.path().join("prompts/tree.sections.md"), PROMPT).expect("a file");
        let book = Book::open(folder.path());
        (folder, book)
    });
    let object = json!({"question": question, "name": name});
    let variables = Variables::from_json(object.as_object().unwrap_or(&Map::new()));
    book.render("tree", &variables, &Context::default()).expect("every value can be rendered")
}

#[test]
fn no_value_changes_the_tree_of_its_sections() {
    let harmless = structure(&render("v.v", "v,v"));
    assert_eq!(harmless.1, ["full", "full", "summary", "full"]);
    assert_eq!(harmless.2, ["look", "open_sections"]);
    let cases =
        (proptest::collection::vec(any::<u8>(), 0..24), proptest::collection::vec(any::<u8>(), 0..24));
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    runner
        .run(&cases, |(one, other)| {
            let (question, name) = (value(&one), value(&other));
            let rendered = render(&question, &name);
            assert_eq!(structure(&rendered), harmless);
            // The values are there, whole, as often as the author shows them.
            let shown = |value: &str| {
                let spans = rendered.spans().filter(|span| !span.origin.is_literal());
                spans.filter(|span| &rendered.text()[span.range.clone()] == value).count()
            };
            // A title is no template, so there are four questions and three names.
            let (questions, names) = if question == name { (7, 7) } else { (4, 3) };
            assert_eq!((shown(&question), shown(&name)), (questions, names));
            let messages = rendered.messages().expect("messages");
            assert_eq!(messages.len(), 1);
            assert_eq!(messages[0].role.as_str(), "system");
            Ok(())
        })
        .unwrap();
}
