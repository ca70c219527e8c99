//! Structured replies: from what a model wrote to the record that the prompt asks for.
//!
//! ```text
//! reply ──▶ extract ──▶ scan ──▶ fit ──▶ JSON, or a Rust type
//!           where        what     each value gets its shape, or the error names it: `author.name: …`
//! ```
//!
//! Models wrap JSON in code blocks and words, and are generous with types; that is forgiven where the meaning is plain. The
//! messages of errors are worded for the model that has to correct its reply. Nothing here asks it to.
//!
//! Numbers: [`OutputSpec::parse_as`] reads whole numbers with every digit; [`OutputSpec::parse`] gives JSON, in which a whole
//! number beyond 64 bits is the nearest float. `NaN` and `Infinity` are read, and refused where a number is wanted.

mod constraint;
mod date_time;
mod extract;
mod fit;
mod scan;
mod value;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use self::extract::Missing;
use self::fit::{Fault, Fit, Rules};
use self::value::Value;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, did_you_mean};
use crate::prompt::{Described, Extras, Kind, Property, Record};
use crate::source::Source;

/// The longest message that an error has. A reply can make it as long as it likes otherwise.
const LONGEST_MESSAGE: usize = 2000;

/// The longest reply of which an error keeps a copy to show where it is wrong.
const LONGEST_EXCERPT: usize = 64 * 1024;

/// What a reply is to hold.
#[derive(Debug, Clone)]
pub struct OutputSpec {
    /// What one answer looks like.
    pub record: Arc<Record>,
    /// Whether it is one or a list.
    pub container: Container,
    /// Whether undeclared keys are passed over; else they are refused.
    pub allow_extra_keys: bool,
}

/// How many records a reply holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Container {
    /// One.
    Object,
    /// A list.
    Array,
}

impl Container {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Container::Object => "object",
            Container::Array => "array",
        }
    }
}

impl OutputSpec {
    /// One record; undeclared keys are refused.
    pub fn object(record: Arc<Record>) -> OutputSpec {
        OutputSpec { record, container: Container::Object, allow_extra_keys: false }
    }

    /// A list of records; undeclared keys are refused.
    pub fn array(record: Arc<Record>) -> OutputSpec {
        OutputSpec { record, container: Container::Array, allow_extra_keys: false }
    }

    /// One record that looks like a Rust type.
    ///
    /// ```
    /// use cuebook::chat::output::OutputSpec;
    ///
    /// #[derive(schemars::JsonSchema, serde::Deserialize)]
    /// struct Summary {
    ///     title: String,
    ///     views: u64,
    /// }
    ///
    /// let spec = OutputSpec::of::<Summary>()?;
    /// let summary: Summary = spec.parse_as("Here you are:\n```json\n{\"title\": \"Ada\", \"views\": \"42\"}\n```")?;
    /// assert_eq!(summary.views, 42);
    /// let tree = cuebook::sections::Tree::builder("desk", "summary").output(spec);
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    pub fn of<T: Described>() -> Result<OutputSpec> {
        Ok(OutputSpec::object(Record::of::<T>()?))
    }

    /// The JSON Schema for the provider: with descriptions, without hidden fields, closed unless further keys are allowed.
    /// A list stands under `items`, because providers want an object.
    pub fn schema(&self) -> Json {
        let schema = self.record.reply_schema(self.extras());
        match self.container {
            Container::Object => schema,
            Container::Array => json!({
                "type": "object",
                "properties": {"items": {"type": "array", "items": schema}},
                "additionalProperties": self.allow_extra_keys,
                "required": ["items"],
            }),
        }
    }

    /// The outputs of a prompt whose answer is to hold this. Providers want an object, so a list stands in one.
    #[doc(hidden)]
    pub fn properties(&self) -> Vec<Property> {
        let properties = self.record.to_properties();
        match self.container {
            Container::Object => properties,
            Container::Array => {
                let item = Property::new("", Kind::Object { properties });
                let mut items = Property::new("items", Kind::Array { items: Box::new(item) });
                items.required = true;
                vec![items]
            }
        }
    }

    fn extras(&self) -> Extras {
        if self.allow_extra_keys { Extras::Allowed } else { Extras::Forbidden }
    }

    /// Reads a reply: its JSON is found, every value gets its declared shape, and what is not given gets its default. Fields
    /// have their names, whatever their aliases are.
    pub fn parse(&self, reply: &str) -> Result<Json> {
        self.read(reply, false).map(|value| value.to_json())
    }

    /// Reads a reply into a Rust type; into a `Vec` of it, if a list was asked for.
    pub fn parse_as<T: DeserializeOwned>(&self, reply: &str) -> Result<T> {
        let value = self.read(reply, true)?;
        serde_json::from_str(&value.to_text()).map_err(|error| {
            // Lines and columns are those of a text that no user has seen.
            let text = error.to_string();
            let why = text.rsplit_once(" at line ").map_or(text.as_str(), |(why, _)| why);
            self.error(&format!("the value does not fit the requested type: {why}"))
        })
    }

    /// Gives JSON that has been taken out of a reply already the declared shape, with the same rules.
    pub fn accept(&self, value: &Json) -> Result<Json> {
        self.fit(&Value::from(value), false).map(|value| value.to_json()).map_err(|fault| self.fault(&fault))
    }

    fn read(&self, reply: &str, typed: bool) -> Result<Value> {
        let range = extract::extract(reply).map_err(|missing| self.missing(missing, reply))?;
        let value = scan::read(&reply[range]).map_err(|scan::TooDeep| {
            self.error(&format!("the JSON in the reply is nested more than {} levels deep", scan::DEEPEST))
        })?;
        self.fit(&value, typed).map_err(|fault| self.fault(&fault))
    }

    fn fit(&self, value: &Value, typed: bool) -> Result<Value, Fault> {
        let rules = Rules { coerce: true, extras: self.extras(), hide: true, typed };
        let mut fit = Fit::new(rules);
        match (self.container, value) {
            (Container::Object, Value::Map(map)) => fit.record(&self.record, map),
            (Container::Object, _) => Err(Fault::new("Expected top-level JSON object.")),
            (Container::Array, _) => {
                let list = match value {
                    Value::Map(map) => map.get("items").unwrap_or(value),
                    other => other,
                };
                let Value::List(items) = list else {
                    return Err(Fault::new("Expected top-level JSON array."));
                };
                let records = items.iter().enumerate().map(|(index, item)| match item {
                    Value::Map(map) => fit.record(&self.record, map),
                    _ => Err(Fault::new(format!("Array item at index {index} is not an object."))),
                });
                records.collect::<Result<Vec<Value>, Fault>>().map(Value::List)
            }
        }
    }

    fn missing(&self, missing: Missing, reply: &str) -> Error {
        let line = |at: usize| reply[..at].matches('\n').count() + 1;
        match missing {
            Missing::BadBlock(at) => {
                let message = "Failed to decode JSON from fenced code block.";
                let diagnostic = Diagnostic::new(Code::OutputMismatch, message);
                let diagnostic = if reply.len() <= LONGEST_EXCERPT {
                    let length = reply[at..].chars().next().map_or(0, char::len_utf8);
                    let place = Source::verbatim("reply", reply).place(at..at + length);
                    diagnostic.at(place).label("unexpected character")
                } else {
                    diagnostic.hint(format!("see line {}", line(at)))
                };
                self.finish(diagnostic)
            }
            Missing::Nothing(cut) => {
                let message = "No JSON object or array found in assistant message.";
                let hint = match cut {
                    Some(at) => {
                        format!(
                            "the JSON that begins in line {} is never closed: was the reply cut off?",
                            line(at)
                        )
                    }
                    None => format!("ask the model to return only a JSON {}", self.container.as_str()),
                };
                self.finish(Diagnostic::new(Code::OutputMismatch, message).hint(hint))
            }
        }
    }

    fn fault(&self, fault: &Fault) -> Error {
        fault_error(&self.record, fault)
    }

    fn error(&self, message: &str) -> Error {
        self.finish(Diagnostic::new(Code::OutputMismatch, cut(message)))
    }

    fn finish(&self, diagnostic: Diagnostic) -> Error {
        Error::new(ErrorKind::OutputParse, diagnostic).with("record", &self.record.name)
    }
}

/// Checks the arguments of a tool call against what the tool takes, and fills in defaults. Nothing is converted and no key
/// that is undeclared is accepted: a tool acts, so it must not act on a guess.
pub fn read_arguments(record: &Record, arguments: &Json) -> Result<Json> {
    let rules = Rules { coerce: false, extras: Extras::Forbidden, hide: false, typed: false };
    let value = match Value::from(arguments) {
        Value::Map(map) => Fit::new(rules).record(record, &map),
        _ => Err(Fault::new(format!("expected mapping for dataclass {}", record.name))),
    };
    value.map(|value| value.to_json()).map_err(|fault| fault_error(record, &fault))
}

fn fault_error(record: &Record, fault: &Fault) -> Error {
    let diagnostic = Diagnostic::new(Code::OutputMismatch, cut(&fault.to_string()));
    Error::new(ErrorKind::OutputParse, diagnostic.hint_opt(did_you_mean(&fault.hint)))
        .with("record", &record.name)
        .with("path", cut(&fault.path()))
}

/// A message of a length that can be read.
fn cut(message: &str) -> String {
    match message.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}
