//! What must be true of a value beyond its shape.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::{Map, Value as Json};

use super::value::Value;

#[cfg(feature = "chat")]
mod pattern {
    use regex::{Regex, RegexBuilder};

    /// The largest program that a pattern may become.
    const SIZE: usize = 1 << 20;

    pub(super) struct Pattern(Regex);

    impl Pattern {
        pub(super) fn new(pattern: &str) -> Result<Option<Pattern>, String> {
            Ok(RegexBuilder::new(pattern).size_limit(SIZE).build().ok().map(Pattern))
        }

        pub(super) fn matches(&self, text: &str) -> bool {
            self.0.is_match(text)
        }
    }
}

/// A program without the feature `chat` has no regular expressions.
#[cfg(not(feature = "chat"))]
mod pattern {
    pub(super) enum Pattern {}

    impl Pattern {
        pub(super) fn new(_pattern: &str) -> Result<Option<Pattern>, String> {
            Err("cannot be checked: this program was built without the feature `chat`, which checks patterns"
                .to_owned())
        }

        pub(super) fn matches(&self, _text: &str) -> bool {
            match *self {}
        }
    }
}

use pattern::Pattern;

/// Checks constraints, and remembers the patterns that it has compiled: a list has a record a thousand times.
#[derive(Default)]
pub(super) struct Constraints<'s> {
    /// `None` for a pattern that Rust's notation of regular expressions does not have, such as one that looks ahead. Such
    /// a pattern is sent to the model and not checked.
    patterns: HashMap<&'s str, Option<Pattern>>,
}

impl<'s> Constraints<'s> {
    /// Says what is not true of a value.
    pub fn check(&mut self, constraints: &'s Map<String, Json>, value: &Value) -> Result<(), String> {
        if constraints.is_empty() {
            return Ok(());
        }
        bounds(constraints, value)?;
        length(constraints, value)?;
        if let (Some(Json::String(pattern)), Value::Text(text)) = (constraints.get("pattern"), value) {
            let compiled = match self.patterns.entry(pattern) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(Pattern::new(pattern)?),
            };
            if compiled.as_ref().is_some_and(|compiled| !compiled.matches(text)) {
                return Err(format!("does not match pattern {pattern}"));
            }
        }
        if let Some(Json::Array(values)) = constraints.get("enum")
            && !values.iter().any(|allowed| value.is(&Value::from(allowed)))
        {
            return Err(format!("must be one of {}", listed(values)));
        }
        if let Some(Json::Array(values)) = constraints.get("not").and_then(|not| not.get("enum"))
            && values.iter().any(|forbidden| value.is(&Value::from(forbidden)))
        {
            return Err(format!("may not be one of {}", listed(values)));
        }
        Ok(())
    }
}

fn listed(values: &[Json]) -> String {
    Value::List(values.iter().map(Value::from).collect()).to_repr()
}

fn bounds(constraints: &Map<String, Json>, value: &Value) -> Result<(), String> {
    let Some(number) = value.number() else { return Ok(()) };
    let bound = |keyword: &str| {
        let bound = constraints.get(keyword).filter(|bound| bound.is_number()).map(Value::from)?;
        Some((bound.number()?, bound.to_str()))
    };
    let fails = [
        ("minimum", ">=", (|number, bound| number >= bound) as fn(f64, f64) -> bool),
        ("exclusiveMinimum", ">", |number, bound| number > bound),
        ("maximum", "<=", |number, bound| number <= bound),
        ("exclusiveMaximum", "<", |number, bound| number < bound),
    ];
    for (keyword, sign, holds) in fails {
        if let Some((bound, shown)) = bound(keyword)
            && !holds(number, bound)
        {
            return Err(format!("must be {sign} {shown}"));
        }
    }
    match bound("multipleOf") {
        Some((step, shown)) if step > 0.0 => {
            // Tenths are not exact: 0.3 is a multiple of 0.1 all the same.
            let times = number / step;
            let off = (times - times.round()).abs();
            if off <= 1e-9 * times.abs().max(1.0) {
                Ok(())
            } else {
                Err(format!("must be a multiple of {shown}"))
            }
        }
        _ => Ok(()),
    }
}

fn length(constraints: &Map<String, Json>, value: &Value) -> Result<(), String> {
    let (length, own) = match value {
        Value::Text(text) => (text.chars().count(), ["minLength", "maxLength"]),
        Value::List(items) => (items.len(), ["minItems", "maxItems"]),
        Value::Map(map) => (map.len(), ["minProperties", "maxProperties"]),
        _ => return Ok(()),
    };
    let length = length as u64;
    let bound =
        |general: &str, own: &str| constraints.get(own).or_else(|| constraints.get(general))?.as_u64();
    match (bound("minLength", own[0]), bound("maxLength", own[1])) {
        (Some(least), _) if length < least => Err(format!("length must be >= {least}")),
        (_, Some(most)) if length > most => Err(format!("length must be <= {most}")),
        _ => Ok(()),
    }
}
