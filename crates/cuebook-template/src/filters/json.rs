//! `tojson`.

use crate::error::Result;
use crate::operators::compare;
use crate::python::float_repr;
use crate::render::{Call, Render, check_depth};
use crate::text::Text;
use crate::value::{Val, Value, type_error, type_name};

/// `tojson`: a value as JSON that is safe inside HTML, as Jinja2 writes it.
pub(super) fn tojson<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let indent = match call.some(0) {
        None => None,
        Some(value) => Some(match value.value.as_str() {
            Some(with) => with.to_owned(),
            None => {
                let width = usize::try_from(call.integer(0, 0)?).unwrap_or(0);
                call.render.spend_text(width)?;
                " ".repeat(width)
            }
        }),
    };
    let mut writer = Writer { render: call.render, out: String::new(), paid: 0, indent };
    writer.write(&call.value, 0)?;
    Ok(Val::text(Text::from(writer.out).safe(true), call.origin()))
}

/// JSON as Python's `json.dumps` writes it with sorted keys, and with nothing in it that HTML would understand.
struct Writer<'a, 'r> {
    render: &'a Render<'r>,
    out: String,
    paid: usize,
    indent: Option<String>,
}

impl<'r> Writer<'_, 'r> {
    fn write(&mut self, value: &Val<'r>, depth: usize) -> Result<()> {
        check_depth(depth)?;
        self.render.spend(1)?;
        self.render.spend_growth(&mut self.paid, self.out.len())?;
        match &value.value {
            Value::None => self.out.push_str("null"),
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::Int(_) | Value::Big(_) | Value::Float(_) => self.out.push_str(&number(&value.value)),
            Value::Text(text) => self.string(text.as_str()),
            other if other.is_mapping() => {
                let mut members = self.render.pairs(value)?.unwrap_or_default();
                let mut failure = None;
                members.sort_by(|(left, _), (right, _)| match compare(self.render, left, right) {
                    Ok(order) => order.unwrap_or(std::cmp::Ordering::Equal),
                    Err(error) => {
                        failure = Some(error);
                        std::cmp::Ordering::Equal
                    }
                });
                if let Some(error) = failure {
                    return Err(error);
                }
                self.container(('{', '}'), depth, members, |writer, (key, item)| {
                    writer.string(&key_of(&key.value)?);
                    writer.out.push_str(": ");
                    writer.write(item, depth + 1)
                })?;
            }
            Value::List(_) | Value::Tuple(_) | Value::Array(_) => {
                let items = self.render.item_list(value)?;
                self.container(('[', ']'), depth, items, |writer, item| writer.write(item, depth + 1))?;
            }
            Value::Undefined(missing) => return Err(missing.error()),
            other => return Err(type_error(format!("{} cannot be written as JSON", type_name(other)))),
        }
        Ok(())
    }

    fn container<T>(
        &mut self,
        (open, close): (char, char),
        depth: usize,
        parts: Vec<T>,
        write: impl Fn(&mut Self, &T) -> Result<()>,
    ) -> Result<()> {
        self.out.push(open);
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                self.out.push_str(if self.indent.is_some() { "," } else { ", " });
            }
            self.line(depth + 1);
            write(self, part)?;
        }
        if !parts.is_empty() {
            self.line(depth);
        }
        self.out.push(close);
        Ok(())
    }

    fn line(&mut self, depth: usize) {
        if let Some(indent) = &self.indent {
            self.out.push('\n');
            for _ in 0..depth {
                self.out.push_str(indent);
            }
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for character in text.chars() {
            match character {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\x08' => self.out.push_str("\\b"),
                '\x0c' => self.out.push_str("\\f"),
                ' '..='~' if !matches!(character, '<' | '>' | '&' | '\'') => self.out.push(character),
                _ => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        self.out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
            }
        }
        self.out.push('"');
    }
}

fn number(value: &Value<'_>) -> String {
    match value {
        Value::Float(number) if number.is_nan() => "NaN".to_owned(),
        Value::Float(f64::INFINITY) => "Infinity".to_owned(),
        Value::Float(f64::NEG_INFINITY) => "-Infinity".to_owned(),
        Value::Float(number) => float_repr(*number),
        other => other.as_integer().unwrap_or_default().to_string(),
    }
}

fn key_of(key: &Value<'_>) -> Result<String> {
    match key {
        Value::Text(text) => Ok(text.as_str().to_owned()),
        Value::None => Ok("null".to_owned()),
        Value::Bool(value) => Ok(if *value { "true" } else { "false" }.to_owned()),
        Value::Int(_) | Value::Big(_) | Value::Float(_) => Ok(number(key)),
        other => Err(type_error(format!("{} cannot be a key in JSON", type_name(other)))),
    }
}
