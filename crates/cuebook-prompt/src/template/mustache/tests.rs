//! Helpers for the tests of the engine.

mod attribution;
mod errors;
mod hostile;
mod inheritance;
mod limits;
mod names;
mod property;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::{MissingPartials, Settings, Template};
use crate::error::{Error, Result};
use crate::source::Source;
use crate::template::jinja::{Loader, Output};
use crate::template::sink::Writer;

/// Templates by their names.
#[derive(Default, Clone)]
struct Files(BTreeMap<String, String>);

impl Loader for Files {
    fn load(&self, name: &str, _: &str) -> Result<Option<Arc<Source>>> {
        Ok(self.0.get(name).map(|text| Source::verbatim(name, text.as_str())))
    }

    fn suggestions(&self, name: &str) -> Vec<String> {
        crate::error::nearest(name, self.0.keys().map(String::as_str))
    }
}

fn files(partials: &[(&str, &str)]) -> Files {
    Files(partials.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect())
}

/// One template with its partials and settings.
struct Case {
    main: String,
    files: Files,
    settings: Settings,
    limit: usize,
}

impl Case {
    fn new(main: impl Into<String>) -> Case {
        Case { main: main.into(), files: Files::default(), settings: Settings::default(), limit: 100_000 }
    }

    fn with(mut self, partials: &[(&str, &str)]) -> Case {
        self.files = files(partials);
        self
    }

    fn set(mut self, change: impl FnOnce(&mut Settings)) -> Case {
        change(&mut self.settings);
        self
    }

    fn compile(&self) -> Result<Template> {
        let main = Source::verbatim("main.md", self.main.as_str());
        Template::compile(main, Arc::new(self.files.clone()), &self.settings)
    }

    fn run(&self, data: Json) -> Result<Output> {
        let output = self.compile()?.render(&data, self.limit)?;
        assert_covered(&output);
        Ok(output)
    }

    fn text(&self, data: Json) -> String {
        self.run(data).unwrap().text
    }

    /// Every piece: whose it is and what it says. Literals by file and offset, values by their tag and paths.
    fn pieces(&self, data: Json) -> String {
        let output = self.run(data).unwrap();
        let mut shown = String::new();
        for (index, piece) in output.pieces.iter().enumerate() {
            let end = output.pieces.get(index + 1).map_or(output.text.len(), |next| next.start as usize);
            let text = &output.text[piece.start as usize..end];
            let line = match piece.writer {
                Writer::Literal { unit, offset } => {
                    format!("{}@{offset} {text:?}", output.units[unit as usize].source().name())
                }
                Writer::Value { unit, offset } => {
                    let unit = &output.units[unit as usize];
                    let emission = unit.emission(offset).unwrap();
                    let tag = &unit.source().text()[emission.range.clone()];
                    format!("{} {tag} {text:?} of {}", unit.source().name(), emission.paths.join(", "))
                }
                other => panic!("{other:?}"),
            };
            shown.push_str(&line);
            shown.push('\n');
        }
        shown
    }

    fn error(&self, data: Json) -> Error {
        self.run(data).err().unwrap()
    }

    fn shown_error(&self, data: Json) -> String {
        crate::json::shown(self.error(data).diagnostics())
    }
}

/// The pieces cover the text without gaps, and every literal is the author's bytes. A tag that shows nothing has one too.
fn assert_covered(output: &Output) {
    let mut at = 0;
    for (index, piece) in output.pieces.iter().enumerate() {
        let start = piece.start as usize;
        let end = output.pieces.get(index + 1).map_or(output.text.len(), |next| next.start as usize);
        assert_eq!(start, at, "a gap or an overlap at piece {index}");
        let is_value = matches!(piece.writer, Writer::Value { .. });
        assert!(start < end || is_value, "a literal without text");
        match piece.writer {
            Writer::Literal { unit, offset } => {
                let source = output.units[unit as usize].source();
                let range =
                    output.units[unit as usize].source_range(offset as usize..offset as usize + end - start);
                assert_eq!(source.text().get(range), output.text.get(start..end));
            }
            Writer::Value { unit, offset } => {
                let emission = output.units[unit as usize].emission(offset).unwrap();
                assert!(!emission.paths.is_empty(), "nobody knows what can show there");
            }
            other => panic!("{other:?}"),
        }
        at = end;
    }
    assert_eq!(at, output.text.len());
}

fn empty_partials(settings: &mut Settings) {
    settings.missing_partials = MissingPartials::Empty;
}
