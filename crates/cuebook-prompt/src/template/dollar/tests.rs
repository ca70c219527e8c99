//! Helpers for the tests of the engine.

mod attribution;
mod cpython;
mod engine;
mod errors;
mod hostile;
mod property;
mod reference;
mod values;

use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::{Fault, Missing, StandaloneTemplate, Template};
use crate::source::Source;
use crate::template::engine::Output;
use crate::template::sink::Writer;

fn template(text: &str) -> Template {
    Template::compile(Source::verbatim("body.md", text))
}

fn object(values: Json) -> Map<String, Json> {
    match values {
        Json::Object(values) => values,
        other => panic!("{other}"),
    }
}

fn run(text: &str, values: Json, missing: Missing) -> Result<Output, Fault> {
    run_source(Source::verbatim("body.md", text), values, missing)
}

fn run_source(source: Arc<Source>, values: Json, missing: Missing) -> Result<Output, Fault> {
    let values = object(values);
    let alone = StandaloneTemplate::new(Template::compile(source), missing);
    let output = alone.render(usize::MAX, |name| values.get(name).cloned())?;
    assert_covered(&output);
    Ok(output)
}

fn text(template: &str, values: Json) -> String {
    run(template, values, Missing::Error).unwrap().text
}

/// Every piece in a line: literals by their offset in the source, values by their placeholder.
fn pieces(output: &Output) -> String {
    let mut shown = String::new();
    for (index, piece) in output.pieces.iter().enumerate() {
        let end = output.pieces.get(index + 1).map_or(output.text.len(), |next| next.start as usize);
        let text = &output.text[piece.start as usize..end];
        let line = match piece.writer {
            Writer::Literal { unit, offset } => {
                let range =
                    output.units[unit as usize].source_range(offset as usize..offset as usize + text.len());
                format!("{range:?} {text:?}\n")
            }
            Writer::Value { unit, offset } => {
                let unit = &output.units[unit as usize];
                let emission = unit.emission(offset).unwrap();
                let tag = &unit.source().text()[emission.range.clone()];
                format!("{tag} {text:?} of {}\n", emission.paths.join(", "))
            }
            other => panic!("{other:?}"),
        };
        shown.push_str(&line);
    }
    shown
}

/// The pieces cover the text without gaps; each byte of a literal is a byte of the author's; a value has its placeholder.
fn assert_covered(output: &Output) {
    let mut at = 0;
    for (index, piece) in output.pieces.iter().enumerate() {
        let start = piece.start as usize;
        let end = output.pieces.get(index + 1).map_or(output.text.len(), |next| next.start as usize);
        assert_eq!(start, at, "a gap or an overlap at piece {index}");
        match piece.writer {
            Writer::Literal { unit, offset } => {
                assert!(start < end, "a literal without text");
                let unit = &output.units[unit as usize];
                for (index, byte) in output.text.as_bytes()[start..end].iter().enumerate() {
                    let range = unit.source_range(offset as usize + index..offset as usize + index + 1);
                    assert_eq!(unit.source().text().as_bytes()[range], [*byte]);
                }
            }
            Writer::Value { unit, offset } => {
                let unit = &output.units[unit as usize];
                let emission = unit.emission(offset).unwrap();
                let tag = &unit.source().text()[emission.range.clone()];
                let name = emission.accessor.as_deref().unwrap();
                assert!(tag == format!("${name}") || tag == format!("${{{name}}}"), "{tag}");
                assert_eq!(emission.paths, [name]);
            }
            other => panic!("{other:?}"),
        }
        at = end;
    }
    assert_eq!(at, output.text.len());
}

#[test]
fn a_body_is_dedented_stripped_and_filled_in() {
    let body = "\n    Dear $name,\n\n      you owe $$${sum}_00.\n    \t\n    Bye\n  ";
    assert_eq!(
        text(body, serde_json::json!({"name": "Ada", "sum": 5})),
        "Dear Ada,\n\n  you owe $5_00.\n\nBye"
    );
}

#[test]
fn placeholders_are_named_once_in_the_order_of_the_text() {
    let template = template("$b ${a} $b $$c ${d $1 $ä $e_1é $A $a");
    assert_eq!(template.placeholders(), ["b", "a", "e_1", "A"]);
    let mut asked = Vec::new();
    let mut sink = crate::template::sink::Sink::new(100, 0, 0);
    let written = template.write(3, &mut sink, Missing::Keep, &mut |index, name| {
        asked.push((index, name.to_owned()));
        Some(Json::from("x"))
    });
    written.unwrap();
    let asked: Vec<(usize, &str)> = asked.iter().map(|(index, name)| (*index, name.as_str())).collect();
    assert_eq!(asked, [(0, "b"), (1, "a"), (0, "b"), (2, "e_1"), (3, "A"), (1, "a")]);
    assert_eq!(sink.finish().0, "x x x $c ${d $1 $ä xé x x");
}

#[test]
fn names_are_reported_with_their_places_in_the_source() {
    let template = template("\n  Hi $name,\n  ${what}!");
    let source = template.source().text();
    let reads: Vec<(&str, &str)> =
        template.names().reads.iter().map(|read| (read.root.as_str(), &source[read.range.clone()])).collect();
    assert_eq!(reads, [("name", "name"), ("what", "what")]);
    assert_eq!(template.names().emissions, [["name"], ["what"]]);
    let unit = template.unit();
    let tags: Vec<&str> = unit.emissions().iter().map(|emission| &source[emission.range.clone()]).collect();
    assert_eq!(tags, ["$name", "${what}"]);
}

#[test]
fn a_text_without_placeholders_is_known_beforehand() {
    for (body, wanted) in [
        ("", Some("")),
        (" \n\t", Some("")),
        ("  a\n  b ", Some("a\nb")),
        ("$$", Some("$")),
        (" 5 $$ or $$$$x", Some("5 $ or $$x")),
        ("$a", None),
        ("a $ b", None),
        ("$${a}", Some("${a}")),
    ] {
        assert_eq!(template(body).is_static(), wanted, "{body:?}");
    }
}

#[test]
fn missing_and_invalid_placeholders_can_be_kept() {
    let output = run("  $a ${b} $1 $$ ${ $", serde_json::json!({"a": "x"}), Missing::Keep).unwrap();
    assert_eq!(output.text, "x ${b} $1 $ ${ $");
}
