//! What was read from files.

use std::sync::Arc;

use cuebook::Result as Outcome;
use cuebook::dialect::{directive, knowledge};
use cuebook::source::Source;
use serde_json::Value as Json;

use crate::compare::equals;

pub fn directive(case: &Json) -> Result<(), String> {
    let source = source_of(case);
    compare(case, &source, directive::read(&source).map(|directive| directive.to_json()))
}

pub fn knowledge(case: &Json) -> Result<(), String> {
    let source = source_of(case);
    compare(case, &source, knowledge::read(&source).map(|knowledge| knowledge.to_json()))
}

fn source_of(case: &Json) -> Arc<Source> {
    Source::verbatim("case.md", case["input"]["text"].as_str().unwrap())
}

fn compare(case: &Json, source: &Source, outcome: Outcome<Json>) -> Result<(), String> {
    let mut expected = case["expect"].clone();
    if let Some(wanted) = expected["error"].as_str() {
        let Err(error) = outcome else { return Err(format!("expected the error {wanted:?}")) };
        return refused(wanted, source, &error);
    }
    let mut read = outcome.map_err(|error| error.to_string())?;
    let is_raw = read["raw"] == case["input"]["text"];
    for json in [&mut expected, &mut read] {
        let object = json.as_object_mut().unwrap();
        object.remove("raw");
        object.remove("_raw_equals_input");
    }
    if case["expect"]["_raw_equals_input"] == Json::Bool(true) && !is_raw {
        return Err("`raw` is not the file".to_owned());
    }
    equals(&expected, &read)
}

/// Words of the program itself are ours too; those of the parsers that it uses are not, and then the line must be the same.
fn refused(wanted: &str, source: &Source, error: &cuebook::Error) -> Result<(), String> {
    let said = &error.diagnostic().message;
    let line = |text: &str| text.split("line ").nth(1)?.split(',').next()?.parse::<usize>().ok();
    let Some(line) = line(wanted) else {
        return if said == wanted { Ok(()) } else { Err(format!("expected {wanted:?}, got {said:?}")) };
    };
    let place = error.diagnostic().place.as_ref().ok_or("the error has no place")?;
    let text = source.text();
    let fence = text.find("```xml\n").or_else(|| text.find("```yaml\n")).unwrap();
    // What is read begins behind the fence, and XML behind empty lines as well.
    let skipped = text[fence..].lines().skip(1).take_while(|line| line.trim().is_empty()).count();
    let first = text[..fence].matches('\n').count() + 2 + skipped;
    match place.line() + 1 == first + line || wanted.contains("no element found") {
        true => Ok(()),
        false => Err(format!("expected {wanted:?} in line {line}, got {error}")),
    }
}
