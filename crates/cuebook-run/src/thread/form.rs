//! The form that a prompt asks answers to have, and whether one has it.
//!
//! Every declared output is looked at, by name and by type, whether the answer came as JSON or as words around it. What is wrong is
//! said in words for the model.

use std::sync::Arc;

use cuebook::chat::output::OutputSpec;
use cuebook::chat::reply::Reply;
use cuebook::prompt::{Field, Record, Shape};
use cuebook::{Prepared, Result};
use serde_json::Value as Json;

/// The form of the answers to a prompt; `None` if it asks for none.
pub(super) fn of(prepared: &Prepared) -> Option<OutputSpec> {
    let outputs = &prepared.prompt().outputs;
    let spec = match prepared.tree().and_then(|tree| tree.output.as_ref()) {
        Some(output) => output.clone(),
        None if outputs.is_empty() => return None,
        None => OutputSpec::object(Arc::new(Record::from_properties("Output", outputs))),
    };
    Some(OutputSpec { record: Arc::new(with_gaps(&spec.record)), ..spec })
}

/// Reads an answer: its values, in the types that were declared, or what is wrong with it.
pub(super) fn read(spec: &OutputSpec, said: &Reply) -> Result<Json, String> {
    let read = match said {
        Reply::Structured { value, .. } => spec.accept(value),
        Reply::Text(text) => spec.parse(text),
        other => spec.accept(&other.to_json()),
    };
    read.map_err(|error| {
        let found = error.diagnostic();
        let message = found.message.trim_end_matches('.');
        // The hint about one value is for the model as well. All others are for developers.
        match found.hint.as_ref().filter(|_| error.field("path").is_some()) {
            Some(hint) => format!("{message} ({hint})"),
            None => message.to_owned(),
        }
    })
}

/// What a model is told whose answer does not have the form.
pub(super) fn reminder(why: &str) -> String {
    format!("Your answer does not have the requested form: {why}. Answer again in that form only.")
}

/// What need not be given may be `null`: schemas that some providers want have no other way to leave it out.
fn with_gaps(record: &Record) -> Record {
    let field = |field: &Field| {
        let shape = gaps_within(&field.shape);
        let shape = if field.default.is_some() { shape.optional() } else { shape };
        Field { shape, ..field.clone() }
    };
    Record { fields: record.fields.iter().map(field).collect(), ..record.clone() }
}

fn gaps_within(shape: &Shape) -> Shape {
    match shape {
        Shape::Record(record) => Shape::Record(Arc::new(with_gaps(record))),
        Shape::List(of) => Shape::List(Box::new(gaps_within(of))),
        Shape::Set(of) => Shape::Set(Box::new(gaps_within(of))),
        Shape::Map(of) => Shape::Map(Box::new(gaps_within(of))),
        Shape::Tuple(of) => Shape::Tuple(of.iter().map(gaps_within).collect()),
        Shape::Union(of) => Shape::Union(of.iter().map(gaps_within).collect()),
        other => other.clone(),
    }
}
