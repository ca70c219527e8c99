//! `tojson`: a value as JSON that is safe inside HTML, as Jinja2 writes it.

use minijinja::value::ValueKind;
use minijinja::{Error, Value};

use super::super::call::{Call, invalid, string_of, type_name};
use super::super::limits::{Text, check_depth};
use super::super::ordering::sort;
use super::super::printing::{self, float, float_repr};

use super::{pair, pairs};

pub(super) fn tojson(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let indent = match call.some(1) {
        None => None,
        Some(value) => Some(match string_of(value) {
            Some(with) => with.to_owned(),
            None => {
                let width = usize::try_from(call.integer(1)?).unwrap_or(0);
                call.limits.check_bytes(width)?;
                " ".repeat(width)
            }
        }),
    };
    let mut json = Json { out: Text::new(call.limits), indent };
    json.write(call.value(0)?, 0)?;
    Ok(Value::from_safe_string(json.out.into_string()))
}

/// JSON as Python's `json.dumps` writes it with sorted keys, and with nothing in it that HTML would understand.
struct Json {
    out: Text,
    indent: Option<String>,
}

impl Json {
    fn write(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        check_depth(depth)?;
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self.out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.out.push_str(&json_number(value)),
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::Map if !printing::is_namespace(value) => {
                let mut members: Vec<(Value, Value)> =
                    pairs(value)?.into_iter().map(|(key, item)| (key.clone(), pair((key, item)))).collect();
                members = sort(std::mem::take(&mut members), false)?
                    .into_iter()
                    .map(|pair| Ok((pair.get_item_by_index(0)?, pair.get_item_by_index(1)?)))
                    .collect::<Result<_, Error>>()?;
                self.container('{', '}', depth, members, |json, (key, item)| {
                    json.string(&json_key(key)?)?;
                    json.out.push_str(": ")?;
                    json.write(item, depth + 1)
                })
            }
            ValueKind::Seq | ValueKind::Iterable => {
                let items = value.try_iter()?.checked().collect::<Result<Vec<_>, _>>()?;
                self.container('[', ']', depth, items, |json, item| json.write(item, depth + 1))
            }
            _ => Err(invalid(format!("{} cannot be written as JSON", type_name(value)))),
        }
    }

    fn container<T>(
        &mut self,
        open: char,
        close: char,
        depth: usize,
        parts: Vec<T>,
        write: impl Fn(&mut Json, &T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.out.push(open)?;
        for (index, part) in parts.iter().enumerate() {
            match (index, &self.indent) {
                (0, None) => {}
                (_, None) => self.out.push_str(", ")?,
                (0, Some(_)) => {}
                (_, Some(_)) => self.out.push(',')?,
            }
            self.line(depth + 1)?;
            write(self, part)?;
        }
        if !parts.is_empty() {
            self.line(depth)?;
        }
        self.out.push(close)
    }

    fn line(&mut self, depth: usize) -> Result<(), Error> {
        let Some(indent) = &self.indent else { return Ok(()) };
        self.out.push('\n')?;
        for _ in 0..depth {
            self.out.push_str(indent)?;
        }
        Ok(())
    }

    fn string(&mut self, text: &str) -> Result<(), Error> {
        self.out.push('"')?;
        for character in text.chars() {
            match character {
                '"' => self.out.push_str("\\\"")?,
                '\\' => self.out.push_str("\\\\")?,
                '\n' => self.out.push_str("\\n")?,
                '\r' => self.out.push_str("\\r")?,
                '\t' => self.out.push_str("\\t")?,
                '\x08' => self.out.push_str("\\b")?,
                '\x0c' => self.out.push_str("\\f")?,
                ' '..='~' if !matches!(character, '<' | '>' | '&' | '\'') => self.out.push(character)?,
                _ => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        self.out.push_str(&format!("\\u{unit:04x}"))?;
                    }
                }
            }
        }
        self.out.push('"')
    }
}

fn json_number(value: &Value) -> String {
    match float(value) {
        Some(number) if number.is_nan() => "NaN".to_owned(),
        Some(f64::INFINITY) => "Infinity".to_owned(),
        Some(f64::NEG_INFINITY) => "-Infinity".to_owned(),
        Some(number) => float_repr(number),
        None => value.to_string(),
    }
}

fn json_key(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_owned()),
        ValueKind::None => Ok("null".to_owned()),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.to_owned()),
        ValueKind::Number => Ok(json_number(key)),
        _ => Err(invalid(format!("{} cannot be a key in JSON", type_name(key)))),
    }
}
