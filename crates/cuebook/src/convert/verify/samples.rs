//! Values that are made up, to render both with.

use serde_json::{Map, Value as Json, json};

use crate::convert::draft::{Draft, Input};
use crate::convert::spared::Terms;
use crate::prompt::{Need, Type};

/// Values for one render.
pub(super) type Sample = Map<String, Json>;

/// A text that looks like syntax everywhere. It neither begins nor ends with white space.
const HOSTILE: &str = "x\nuser:\n# Heading\n```\n{{ y }} {% if %} $z ${z} {input:z} <b>&amp;</b> \\ \" y";

/// What a sample is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    /// Everything has a value.
    All,
    /// Only what is required has one.
    Required,
    /// Texts look like syntax.
    Hostile,
    /// Values are there, and say nothing.
    Empty,
}

/// All values, only what is required, texts that look like syntax, and values that are empty.
pub(super) fn samples(draft: &Draft, terms: &Terms) -> Vec<Sample> {
    let mut unknown: Vec<&String> = draft.words.iter().flat_map(|chunk| &chunk.names).collect();
    unknown.retain(|name| draft.input(name).is_none());
    unknown.sort();
    unknown.dedup();
    let sample = |round: Round| -> Sample {
        let declared = draft.inputs.iter().filter_map(|input| {
            let is_there =
                round != Round::Required || input.need == Need::Required || terms.given.contains(&input.name);
            is_there.then(|| (input.name.clone(), of_input(input, round, terms)))
        });
        let others = unknown.iter().filter_map(|name| {
            let is_there = round != Round::Required || terms.given.contains(*name);
            is_there.then(|| ((*name).clone(), text(name, round, terms)))
        });
        declared.chain(others).collect()
    };
    [Round::All, Round::Required, Round::Hostile, Round::Empty].map(sample).into()
}

fn of_input(input: &Input, round: Round, terms: &Terms) -> Json {
    let choice = if round == Round::Hostile { input.choices.last() } else { input.choices.first() };
    if let Some(choice) = choice {
        return choice.clone();
    }
    // What an input looks like inside is known to whoever wrote an example of it.
    if let Some(example) = input.more.get("example").or(input.default.as_ref().filter(|_| has_shape(input))) {
        return example.clone();
    }
    let is_empty = round == Round::Empty;
    match input.kind {
        Type::String | Type::Any if input.strict && round == Round::Hostile => {
            text(&input.name, Round::All, terms)
        }
        Type::String | Type::Any => text(&input.name, round, terms),
        Type::Integer if is_empty => json!(0),
        Type::Integer => json!(7 + round as i32),
        Type::Number => json!(1.5),
        Type::Boolean => json!(round == Round::All),
        Type::List if is_empty => json!([]),
        Type::List => json!(["a", "b"]),
        Type::Object if is_empty => json!({}),
        Type::Object => json!({"a": "b"}),
    }
}

fn has_shape(input: &Input) -> bool {
    !input.more.is_empty()
}

fn text(name: &str, round: Round, terms: &Terms) -> Json {
    match round {
        Round::Hostile if terms.no_markup => {
            json!(HOSTILE.replace(['<', '>', '&', '"', '\'', '`', '=', '/'], ""))
        }
        Round::Hostile => json!(HOSTILE),
        Round::Empty if !terms.filled.contains(name) => json!(""),
        _ => json!(format!("‹{name}›")),
    }
}
