//! Values that are made up, to render both with.

use serde_json::{Map, Value as Json, json};

use crate::convert::draft::{Draft, Input};
use crate::convert::reported_differences::ComparisonRules;
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
pub(super) fn samples(draft: &Draft, terms: &ComparisonRules) -> Vec<Sample> {
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

fn of_input(input: &Input, round: Round, terms: &ComparisonRules) -> Json {
    let choice = if round == Round::Hostile { input.choices.last() } else { input.choices.first() };
    if let Some(choice) = choice {
        return choice.clone();
    }
    // The author of an example knows the shape of an input.
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
        Type::List => match input.more.get("items").and_then(Json::as_object) {
            Some(items) => json!([of_shape(items, "a", round, terms), of_shape(items, "b", round, terms)]),
            None => json!(["a", "b"]),
        },
        Type::Object if is_empty => json!({}),
        Type::Object if input.more.contains_key("properties") => {
            of_properties(&input.more, &input.name, round, terms)
        }
        Type::Object => json!({"a": "b"}),
    }
}

/// A value of a declared shape.
fn of_shape(shape: &Sample, name: &str, round: Round, terms: &ComparisonRules) -> Json {
    if let Some(choice) = shape.get("enumValues").and_then(Json::as_array).and_then(|choices| choices.first())
    {
        return choice.clone();
    }
    match shape.get("kind").or(shape.get("type")).and_then(Json::as_str).unwrap_or_default() {
        "integer" => json!(7 + round as i32),
        "float" | "number" => json!(1.5),
        "boolean" => json!(round == Round::All),
        "array" => match shape.get("items").and_then(Json::as_object) {
            Some(items) => json!([of_shape(items, name, round, terms)]),
            None => json!([name]),
        },
        "object" => of_properties(shape, name, round, terms),
        _ => text(name, round, terms),
    }
}

fn of_properties(shape: &Sample, name: &str, round: Round, terms: &ComparisonRules) -> Json {
    let is_there =
        |property: &Sample| round != Round::Required || property.get("required") == Some(&Json::Bool(true));
    let one = |key: &str, property: &Json| {
        let property = property.as_object().filter(|property| is_there(property))?;
        Some((key.to_owned(), of_shape(property, &format!("{name}.{key}"), round, terms)))
    };
    match shape.get("properties") {
        Some(Json::Object(properties)) => {
            Json::Object(properties.iter().filter_map(|(key, property)| one(key, property)).collect())
        }
        Some(Json::Array(properties)) => {
            let named =
                properties.iter().filter_map(|property| one(property.get("name")?.as_str()?, property));
            Json::Object(named.collect())
        }
        _ => json!({"a": "b"}),
    }
}

fn has_shape(input: &Input) -> bool {
    !input.more.is_empty()
}

fn text(name: &str, round: Round, terms: &ComparisonRules) -> Json {
    match round {
        Round::Hostile if terms.no_markup => {
            json!(HOSTILE.replace(['<', '>', '&', '"', '\'', '`', '=', '/'], ""))
        }
        Round::Hostile => json!(HOSTILE),
        Round::Empty if !terms.filled.contains(name) => json!(""),
        _ => json!(format!("‹{name}›")),
    }
}
