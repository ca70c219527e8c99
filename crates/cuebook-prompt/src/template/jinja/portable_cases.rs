//! What the portable style means, as cases with their texts.
//!
//! A case is written as those of [`super::differential`] are, under `tests/cases/portable`, and says itself what it renders
//! to (a `text` block) or which error it gives (an `error` block, with words of the message or of the place).

use std::sync::Arc;

use serde_json::json;

use super::differential::{read_cases, render_ours};
use super::{Loader, Settings, Style, Template};
use crate::source::Source;
use crate::template::sink::Writer;

#[test]
fn templates_render_in_the_portable_style_as_their_cases_say() {
    let settings = Settings { fuel: 1_000_000, ..Settings::default() }.portable();
    assert_eq!((settings.style, settings.keep_trailing_newline), (Style::Portable, true));
    let mut failures = Vec::new();
    let cases = read_cases("portable");
    for case in &cases {
        let ours = render_ours(case, &settings);
        let expected = case.expected.as_ref().unwrap_or_else(|| panic!("{} expects nothing", case.name));
        let agrees = match (&ours, expected) {
            (Ok(ours), Ok(expected)) => ours == expected,
            (Err(ours), Err(words)) => words.lines().all(|line| ours.contains(line)),
            _ => false,
        };
        if !agrees {
            failures.push(format!("{}\n  ours     {ours:?}\n  expected {expected:?}", case.name));
        }
    }
    assert!(cases.len() >= 50, "only {} cases", cases.len());
    assert!(failures.is_empty(), "{} of {} cases:\n\n{}", failures.len(), cases.len(), failures.join("\n\n"));
}

struct Nothing;

impl Loader for Nothing {
    fn load(&self, _name: &str, _parent: &str) -> crate::error::Result<Option<Arc<Source>>> {
        Ok(None)
    }
}

fn compile(template: &str) -> Template {
    Template::compile(Source::new("t", template), Arc::new(Nothing), &Settings::default().portable()).unwrap()
}

#[test]
fn every_tag_that_is_reached_leaves_a_piece() {
    let context = json!({"a": "", "xs": ["x", ""], "n": null});
    let plain = "{{ a }}L{{ n }}{{ gone.b }}{% for x in xs %}{{ x }}{% endfor %}{% if a %}{{ a }}{% endif %}{{ n|upper }}";
    for template in [plain.to_owned(), format!("{plain}{{% set y = 1 %}}")] {
        let output = compile(&template).render(context.as_object().unwrap(), 1000).unwrap();
        assert_eq!(output.text, "Lx");
        let shown: Vec<(u32, Option<&str>)> = output
            .pieces
            .iter()
            .map(|piece| match piece.writer {
                Writer::Value { unit, offset } => {
                    let emission = output.units[unit as usize].emission(offset).unwrap();
                    (piece.start, emission.accessor.as_deref())
                }
                _ => (piece.start, Some("literal")),
            })
            .collect();
        let wanted = [
            (0, Some("a")),
            (0, Some("literal")),
            (1, Some("n")),
            (1, Some("gone")),
            (1, Some("x")),
            (2, Some("x")),
            (2, None),
        ];
        assert_eq!(shown, wanted, "{template}");
    }
}

#[test]
fn null_is_a_literal_and_no_variable() {
    let template = compile("{{ null }}{% if x == null %}{{ null|default(y) }}{% endif %}");
    let program = template.program();
    let names = &program.names()[0];
    let reads: Vec<&str> = names.reads.iter().map(|read| read.path.as_str()).collect();
    assert_eq!(reads, ["x", "y"]);
    assert_eq!(names.accessors, [None, None]);
    assert_eq!(names.emissions, [vec![], vec!["y".to_owned()]]);
    let context = json!({"null": "not me", "y": "z"});
    assert_eq!(template.render(context.as_object().unwrap(), 1000).unwrap().text, "z");
}

#[test]
fn a_strict_render_still_refuses_what_is_missing() {
    let settings = Settings { strict: true, ..Settings::default() }.portable();
    for template in ["{{ gone }}", "{{ gone.a }}", "{% for x in gone %}{% endfor %}", "{{ gone == 1 }}"] {
        let template = Template::compile(Source::new("t", template), Arc::new(Nothing), &settings).unwrap();
        assert!(template.render(&serde_json::Map::new(), 1000).is_err());
    }
}

#[test]
fn unportable_features_are_noted_with_their_place() {
    let notes = compile("{{ a }}\n{{ a ~ b }}").program().not_portable();
    assert_eq!(notes.len(), 1);
    let note = notes[0].to_string();
    assert!(note.contains("CB321") && note.contains("not every Prompty runtime supports `~`"), "{note}");
}
