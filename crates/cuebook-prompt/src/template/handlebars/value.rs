//! Values as a render looks at them, each with the variables that it came from.

use std::borrow::Cow;
use std::rc::Rc;

use cuebook_template::Given;
use serde_json::{Map, Number, Value as Json};

use crate::json::write_string;
use crate::variables::Scope;

/// Values nest no deeper than this where they print as JSON: deeper ones would use up the stack.
const DEPTH: usize = 128;

/// A value, and the paths of the variables that can show in it.
#[derive(Debug, Clone)]
pub(super) struct Value<'v> {
    pub(super) item: Item<'v>,
    pub(super) paths: Rc<[String]>,
}

/// What a name stands for.
#[derive(Debug, Clone)]
pub(super) enum Item<'v> {
    /// There is no value.
    Undefined,
    /// All values of the render.
    Scope(&'v Scope),
    Json(Cow<'v, Json>),
    /// A rich input without a value: it prints its nonce, and a block finds nothing.
    Placeholder(&'v str),
    /// A value, and above it the arguments of a partial.
    Merged(Rc<(Value<'v>, Arguments<'v>)>),
}

/// The arguments of a partial, by their names.
pub(super) type Arguments<'v> = Vec<(Box<str>, Value<'v>)>;

impl<'v> Value<'v> {
    pub(super) fn undefined() -> Value<'v> {
        Value { item: Item::Undefined, paths: Rc::from([]) }
    }

    /// A value that comes from no variable.
    pub(super) fn own(json: Json) -> Value<'v> {
        Value { item: Item::Json(Cow::Owned(json)), paths: Rc::from([]) }
    }

    /// All values of a render.
    pub(super) fn scope(scope: &'v Scope) -> Value<'v> {
        Value { item: Item::Scope(scope), paths: Rc::from([".".to_owned()]) }
    }

    /// All values of a render, as one object.
    pub(super) fn object(values: &'v Json) -> Value<'v> {
        Value { item: Item::Json(Cow::Borrowed(values)), paths: Rc::from([".".to_owned()]) }
    }

    /// What was computed from this value.
    pub(super) fn made(&self, json: Json) -> Value<'v> {
        Value { item: Item::Json(Cow::Owned(json)), paths: self.paths.clone() }
    }

    pub(super) fn is_undefined(&self) -> bool {
        matches!(self.item, Item::Undefined)
    }

    /// A variable of the render.
    pub(super) fn variable(scope: &'v Scope, name: &str) -> Value<'v> {
        let item = match scope.given_to_template(name) {
            Some(Given::Borrowed(value)) => Item::Json(Cow::Borrowed(value)),
            Some(Given::Owned(value)) => Item::Json(Cow::Owned(value)),
            Some(Given::Placeholder(nonce)) => Item::Placeholder(nonce),
            _ => Item::Undefined,
        };
        Value { item, paths: Rc::from([name.to_owned()]) }
    }

    /// A part of a value by its name, or by its number in a list.
    pub(super) fn part(&self, key: &str) -> Value<'v> {
        let item = match &self.item {
            Item::Scope(scope) => return Value::variable(scope, key),
            Item::Merged(merged) => {
                let (base, arguments) = &**merged;
                return match arguments.iter().rev().find(|(name, _)| &**name == key) {
                    Some((_, value)) => value.clone(),
                    None => base.part(key),
                };
            }
            Item::Json(Cow::Borrowed(value)) => {
                inside(value, key).map_or(Item::Undefined, |part| Item::Json(Cow::Borrowed(part)))
            }
            Item::Json(Cow::Owned(value)) => inside(value, key)
                .map_or_else(|| length(value, key), |part| Item::Json(Cow::Owned(part.clone()))),
            Item::Undefined | Item::Placeholder(_) => Item::Undefined,
        };
        let item = match (item, &self.item) {
            (Item::Undefined, Item::Json(value)) => length(value, key),
            (item, _) => item,
        };
        let is_number = matches!(&self.item, Item::Json(value) if value.is_array());
        Value { item, paths: self.further(key, is_number) }
    }

    /// The paths of a part.
    fn further(&self, key: &str, is_number: bool) -> Rc<[String]> {
        let longer = |path: &String| match (path.as_str(), is_number) {
            (".", _) => key.to_owned(),
            (path, true) => format!("{path}[{key}]"),
            (path, false) => format!("{path}.{key}"),
        };
        self.paths.iter().map(longer).collect()
    }

    /// The parts that a loop goes over, with their names; nothing for anything else but a list or an object.
    pub(super) fn entries(&self) -> Vec<(Json, Value<'v>)> {
        let entry = |key: Json, name: &str, item: Item<'v>, is_number: bool| {
            (key, Value { item, paths: self.further(name, is_number) })
        };
        match &self.item {
            Item::Json(Cow::Borrowed(Json::Array(items))) => items
                .iter()
                .enumerate()
                .map(|(at, item)| entry(at.into(), &at.to_string(), Item::Json(Cow::Borrowed(item)), true))
                .collect(),
            Item::Json(Cow::Borrowed(Json::Object(entries))) => entries
                .iter()
                .map(|(key, item)| entry(key.as_str().into(), key, Item::Json(Cow::Borrowed(item)), false))
                .collect(),
            Item::Json(Cow::Owned(Json::Array(items))) => items
                .iter()
                .enumerate()
                .map(|(at, item)| {
                    entry(at.into(), &at.to_string(), Item::Json(Cow::Owned(item.clone())), true)
                })
                .collect(),
            Item::Json(Cow::Owned(Json::Object(entries))) => entries
                .iter()
                .map(|(key, item)| {
                    entry(key.as_str().into(), key, Item::Json(Cow::Owned(item.clone())), false)
                })
                .collect(),
            Item::Scope(_) | Item::Merged(_) => match self.json() {
                Some(Json::Object(entries)) => {
                    entries.keys().map(|key| (Json::from(key.as_str()), self.part(key))).collect()
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// Whether a condition is false for it, as in Handlebars: zero counts only where `zero` says so.
    pub(super) fn is_empty(&self, zero: bool) -> bool {
        match &self.item {
            Item::Undefined | Item::Placeholder(_) => true,
            Item::Scope(_) | Item::Merged(_) => false,
            Item::Json(value) => match value.as_ref() {
                Json::Null => true,
                Json::Bool(truth) => !truth,
                Json::Number(number) => zero && number.as_f64() == Some(0.0),
                Json::String(text) => text.is_empty(),
                Json::Array(items) => items.is_empty(),
                Json::Object(_) => false,
            },
        }
    }

    /// Whether two values are the same, as `===` has it: lists and objects only if they are one.
    pub(super) fn is_same(&self, other: &Value<'_>) -> bool {
        match (&self.item, &other.item) {
            (Item::Undefined, Item::Undefined) => true,
            (Item::Json(one), Item::Json(two)) => match (one.as_ref(), two.as_ref()) {
                (Json::Number(one), Json::Number(two)) => {
                    one == two || (one.is_f64() || two.is_f64()) && one.as_f64() == two.as_f64()
                }
                (Json::Array(_) | Json::Object(_), _) => one == two && self.paths == other.paths,
                (one, two) => one == two,
            },
            (Item::Placeholder(one), Item::Placeholder(two)) => one == two,
            (Item::Scope(_), Item::Scope(_)) => true,
            _ => false,
        }
    }

    /// The value as JSON; `None` if it is missing. Values whose names begin with `@` are none of the context.
    pub(super) fn json(&self) -> Option<Json> {
        match &self.item {
            Item::Undefined => None,
            Item::Scope(scope) => {
                let names = scope.names().into_iter().filter(|name| !name.starts_with('@'));
                let entries = names.filter_map(|name| scope.shown(&name).map(|value| (name, value)));
                Some(Json::Object(entries.collect()))
            }
            Item::Json(value) => Some(value.as_ref().clone()),
            Item::Placeholder(nonce) => Some(Json::from(*nonce)),
            Item::Merged(merged) => {
                let (base, arguments) = &**merged;
                let mut entries = match base.json() {
                    Some(Json::Object(entries)) => entries,
                    _ => Map::new(),
                };
                let given = arguments.iter();
                entries.extend(given.filter_map(|(name, value)| Some((name.to_string(), value.json()?))));
                Some(Json::Object(entries))
            }
        }
    }

    /// The names of its parts, for hints.
    pub(super) fn keys(&self) -> Vec<String> {
        match &self.item {
            Item::Scope(scope) => scope.names(),
            _ => match self.json() {
                Some(Json::Object(entries)) => entries.keys().cloned().collect(),
                _ => Vec::new(),
            },
        }
    }
}

fn inside<'j>(value: &'j Json, key: &str) -> Option<&'j Json> {
    match value {
        Json::Object(entries) => entries.get(key),
        Json::Array(items) if key.starts_with(|first: char| first.is_ascii_digit()) => {
            items.get(key.parse::<usize>().ok()?)
        }
        _ => None,
    }
}

/// Lists and texts have a length.
fn length<'v>(value: &Json, key: &str) -> Item<'v> {
    let length = match value {
        Json::Array(items) => items.len(),
        Json::String(text) => text.encode_utf16().count(),
        _ => return Item::Undefined,
    };
    match key {
        "length" => Item::Json(Cow::Owned(length.into())),
        _ => Item::Undefined,
    }
}

/// Why a value does not print: it is longer than so many bytes, or nests deeper than so many levels.
#[derive(Debug)]
pub(super) struct TooLarge(pub(super) &'static str, pub(super) usize);

/// A value as text: a text as it is, nothing for null, numbers without `.0`, and a list or an object as compact JSON.
pub(super) fn print(value: &Json, longest: usize) -> Result<Cow<'_, str>, TooLarge> {
    Ok(match value {
        Json::Null => "".into(),
        Json::Bool(truth) => if *truth { "true" } else { "false" }.into(),
        Json::Number(value) => number(value).into(),
        Json::String(text) => text.into(),
        Json::Array(_) | Json::Object(_) => to_json(value, "", longest)?.into(),
    })
}

/// Integers whole, whatever their size; other numbers with the fewest digits that read back as the same number.
fn number(value: &Number) -> String {
    match value.as_f64().filter(|_| value.is_f64()) {
        Some(number) => number.to_string(),
        None => value.to_string(),
    }
}

/// JSON, in lines if there is an indentation.
pub(super) fn to_json(value: &Json, indent: &str, longest: usize) -> Result<String, TooLarge> {
    let mut writer = JsonWriter { text: String::new(), indent, longest };
    writer.value(value, 0)?;
    Ok(writer.text)
}

struct JsonWriter<'i> {
    text: String,
    indent: &'i str,
    longest: usize,
}

impl JsonWriter<'_> {
    fn value(&mut self, value: &Json, depth: usize) -> Result<(), TooLarge> {
        if depth > DEPTH {
            return Err(TooLarge("levels of nesting", DEPTH));
        }
        match value {
            Json::Null => self.push("null"),
            Json::Bool(truth) => self.push(if *truth { "true" } else { "false" }),
            Json::Number(value) => self.push(&number(value)),
            Json::String(text) => self.string(text),
            Json::Array(items) => {
                self.push("[")?;
                for (index, item) in items.iter().enumerate() {
                    self.item(index, depth + 1)?;
                    self.value(item, depth + 1)?;
                }
                self.end(items.is_empty(), depth, "]")
            }
            Json::Object(entries) => {
                self.push("{")?;
                for (index, (key, item)) in entries.iter().enumerate() {
                    self.item(index, depth + 1)?;
                    self.string(key)?;
                    self.push(if self.indent.is_empty() { ":" } else { ": " })?;
                    self.value(item, depth + 1)?;
                }
                self.end(entries.is_empty(), depth, "}")
            }
        }
    }

    fn item(&mut self, index: usize, depth: usize) -> Result<(), TooLarge> {
        if index > 0 {
            self.push(",")?;
        }
        self.line(depth)
    }

    fn end(&mut self, is_empty: bool, depth: usize, bracket: &str) -> Result<(), TooLarge> {
        if !is_empty {
            self.line(depth)?;
        }
        self.push(bracket)
    }

    fn line(&mut self, depth: usize) -> Result<(), TooLarge> {
        if self.indent.is_empty() {
            return Ok(());
        }
        self.push("\n")?;
        (0..depth).try_for_each(|_| self.push(self.indent))
    }

    fn string(&mut self, text: &str) -> Result<(), TooLarge> {
        write_string(text, |piece| self.push(piece))
    }

    fn push(&mut self, text: &str) -> Result<(), TooLarge> {
        if self.text.len() + text.len() > self.longest {
            return Err(TooLarge("bytes of a string", self.longest));
        }
        self.text.push_str(text);
        Ok(())
    }
}
