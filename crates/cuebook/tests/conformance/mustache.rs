//! The official Mustache specification.

use std::path::Path;
use std::sync::Arc;

use cuebook::source::Source;
use cuebook::template::jinja::{Loader, Output};
use cuebook::template::mustache::{MissingPartials, Settings, Template};
use cuebook::template::sink::Writer;
use serde_json::Value as Json;

use crate::board::{Board, read};

/// Runs every case of every file, one table per file.
pub fn run(folder: &Path) -> Board {
    let mut board = Board::new("mustache", &[]);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    assert!(!files.is_empty(), "{} holds no cases", folder.display());
    for path in files {
        let table = path.file_stem().unwrap().to_str().unwrap();
        let file = read(&path);
        for case in crate::board::table(&file, "tests") {
            if has_lambda(&case["data"]) {
                board.later(
                    table,
                    "a value is inert here, and the result of a lambda is parsed as a template",
                );
                continue;
            }
            board.note(table, case["name"].as_str().unwrap(), check(case));
        }
    }
    board
}

/// The specification writes a lambda as an object that holds its code in several languages.
fn has_lambda(data: &Json) -> bool {
    match data {
        Json::Object(object) => {
            object.get("__tag__").is_some_and(|tag| tag == "code") || object.values().any(has_lambda)
        }
        Json::Array(items) => items.iter().any(has_lambda),
        _ => false,
    }
}

fn check(case: &Json) -> Result<(), String> {
    let main = Source::verbatim("the template", case["template"].as_str().unwrap());
    let partials = Arc::new(Partials(case["partials"].clone()));
    let settings = Settings { missing_partials: MissingPartials::Empty, ..Settings::default() };
    let template = Template::compile(main, partials, &settings).map_err(|error| error.to_string())?;
    let scope = &case["data"];
    let output = template.render(scope, 100_000).map_err(|error| error.to_string())?;
    let (text, expected) = (&output.text, case["expected"].as_str().unwrap());
    if text != expected {
        return Err(format!("expected {expected:?}, got {text:?}"));
    }
    is_attributed(&output)
}

/// The pieces cover the text, and every literal is what its author wrote.
fn is_attributed(output: &Output) -> Result<(), String> {
    let ends = output.pieces.iter().skip(1).map(|piece| piece.start as usize).chain([output.text.len()]);
    let mut at = 0;
    for (piece, end) in output.pieces.iter().zip(ends) {
        let start = piece.start as usize;
        let text = &output.text[start..end];
        let right = match piece.writer {
            Writer::Literal { unit, offset } => {
                output.units[unit as usize].source().text()[offset as usize..].starts_with(text)
            }
            Writer::Value { unit, offset } => output.units[unit as usize].emission(offset).is_some(),
            Writer::Changed { .. } | Writer::Hook { .. } | Writer::Frame { .. } => false,
        };
        if start != at || !right {
            return Err(format!("{text:?} is not by {:?}", piece.writer));
        }
        at = end;
    }
    if at == output.text.len() { Ok(()) } else { Err("the text has no author".to_owned()) }
}

struct Partials(Json);

impl Loader for Partials {
    fn load(&self, name: &str, _: &str) -> cuebook::Result<Option<Arc<Source>>> {
        Ok(self.0[name].as_str().map(|text| Source::verbatim(format!("partial {name}"), text)))
    }
}
