//! Values as JSON, as Python's `json.dumps` writes it.

use crate::error::Result;
use crate::operators::compare;
use crate::python::float_repr;
use crate::render::{Render, check_depth};
use crate::value::{Val, Value, type_error, type_name};

/// How JSON is written.
pub(crate) struct Form {
    /// Whether only characters of ASCII are written.
    pub ascii: bool,
    /// Whether nothing is written that HTML would understand.
    pub html: bool,
    /// Whether the keys of dicts are in order.
    pub sorted: bool,
    pub indent: Option<String>,
    /// What is between items, and behind a key.
    pub separators: Option<(String, String)>,
}

/// A value as JSON.
pub(crate) fn written<'r>(render: &Render<'r>, value: &Val<'r>, form: Form) -> Result<String> {
    let separators = form
        .separators
        .unwrap_or_else(|| (if form.indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned()));
    let Form { ascii, html, sorted, indent, .. } = form;
    let mut writer = Writer { render, out: String::new(), paid: 0, ascii, html, sorted, indent, separators };
    writer.write(value, 0)?;
    render.spend_growth(&mut writer.paid, writer.out.len())?;
    Ok(writer.out)
}

struct Writer<'a, 'r> {
    render: &'a Render<'r>,
    out: String,
    paid: usize,
    ascii: bool,
    html: bool,
    sorted: bool,
    indent: Option<String>,
    separators: (String, String),
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
                let members = self.members(value)?;
                self.container(('{', '}'), depth, members, |writer, (key, item)| {
                    writer.string(&key_of(&key.value)?);
                    writer.out.push_str(&writer.separators.1);
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

    fn members(&self, value: &Val<'r>) -> Result<Vec<(Val<'r>, Val<'r>)>> {
        let mut members = self.render.pairs(value)?.unwrap_or_default();
        let mut failure = None;
        if self.sorted {
            members.sort_by(|(left, _), (right, _)| match compare(self.render, left, right) {
                Ok(order) => order.unwrap_or(std::cmp::Ordering::Equal),
                Err(error) => {
                    failure = Some(error);
                    std::cmp::Ordering::Equal
                }
            });
        }
        failure.map_or(Ok(members), Err)
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
                self.out.push_str(&self.separators.0);
            }
            self.line(depth + 1)?;
            write(self, part)?;
        }
        if !parts.is_empty() {
            self.line(depth)?;
        }
        self.out.push(close);
        Ok(())
    }

    fn line(&mut self, depth: usize) -> Result<()> {
        if let Some(indent) = &self.indent {
            self.render.spend_growth(&mut self.paid, self.out.len() + indent.len() * depth)?;
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(indent.as_str(), depth));
        }
        Ok(())
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
                '<' | '>' | '&' | '\'' if self.html => self.escape(character),
                ' '..='~' => self.out.push(character),
                '\x00'..='\x1f' => self.escape(character),
                _ if self.ascii => self.escape(character),
                _ => self.out.push(character),
            }
        }
        self.out.push('"');
    }

    fn escape(&mut self, character: char) {
        for unit in character.encode_utf16(&mut [0; 2]) {
            self.out.push_str(&format!("\\u{unit:04x}"));
        }
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
