//! Prompty's own check of inputs: who is there, and nothing else.

use serde_json::{Map, Value as Json};

use super::Definition;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};

/// The inputs with the defaults of those that were not given. Presence is all that counts: `null` is a value, types are
/// not looked at, examples are never used, and undeclared inputs are passed on.
pub fn validate_inputs(definition: &Definition, inputs: &Map<String, Json>) -> Result<Map<String, Json>> {
    let mut filled = inputs.clone();
    let mut missing = Vec::new();
    for input in definition.inputs.iter().filter(|input| !inputs.contains_key(&input.name)) {
        match &input.default {
            Some(default) => {
                filled.insert(input.name.clone(), default.clone());
            }
            None if input.required => missing.push(input),
            None => {}
        }
    }
    let Some(first) = missing.first() else { return Ok(filled) };
    let field = first.name.clone();
    let names: Vec<&str> = missing.iter().map(|input| input.name.as_str()).collect();
    let diagnostics = missing
        .iter()
        .map(|input| {
            let message = format!("Missing required input: {}", input.name);
            let diagnostic = Diagnostic::new(Code::InvalidVariables, message)
                .hint(format!("pass `{}`, or give it a `default`", input.name));
            match &input.place {
                Some(place) => diagnostic.at(place.clone()).label("declared here"),
                None => diagnostic,
            }
        })
        .collect();
    Err(Error::all(ErrorKind::PromptValidation, diagnostics)
        .with("kind", "missing_required_input")
        .with("field", field)
        .with("missing", names))
}
