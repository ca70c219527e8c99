//! `{input:…}` and `{env:…}`.

use cuebook::dialect::directive::Directive;
use cuebook::template::input::{Values, expand, text_of};
use serde_json::{Map, Value as Json};

use crate::compare::equals;

/// Inputs and an environment of JSON.
struct Given<'c> {
    inputs: Option<&'c Map<String, Json>>,
    env: Option<&'c Map<String, Json>>,
}

impl Values for Given<'_> {
    fn input(&self, key: &str) -> Option<String> {
        self.inputs?.get(key).map(text_of)
    }

    fn env(&self, name: &str) -> Option<String> {
        self.env?.get(name).map(text_of)
    }
}

fn given(case: &Json) -> Given<'_> {
    Given { inputs: case["input"]["inputs"].as_object(), env: case["input"]["env"].as_object() }
}

pub fn inputs(case: &Json) -> Result<(), String> {
    let shown = expand(case["input"]["text"].as_str().unwrap(), &given(case));
    equals(&case["expect"], &Json::from(shown))
}

pub fn environment(case: &Json) -> Result<(), String> {
    inputs(case)
}

pub fn parsed(case: &Json) -> Result<(), String> {
    let said = case["input"]["parsed"].as_object().unwrap();
    let directive = Directive::from_json("case", said).map_err(|error| error.to_string())?;
    let filled =
        directive.fill(case["input"]["inputs"].as_object().unwrap()).map_err(|error| error.to_string())?;
    // The environment of these cases is the same for all of them and not among them.
    let filled = filled.with_environment(|name| match name {
        "GOLD_A" => Some("alpha".to_owned()),
        "GOLD_E" => Some(String::new()),
        "GOLD_INJ" => Some("{input:a}".to_owned()),
        _ => None,
    });
    let json = filled.to_json().map_err(|error| error.to_string())?;
    for key in ["content", "raw", "preamble", "description", "actions"] {
        // Only the body is decided against.
        equals(&case["expect"][key], &json[key]).unwrap_or_else(|why| panic!("{key}: {why}"));
    }
    equals(&case["expect"]["body"], &json["body"]).map_err(|why| format!("body: {why}"))
}
