//! Directives that a program makes, in the form in which [`Directive::to_json`] shows them.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

use super::written::Written;
use super::{Directive, Output};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::Source;
use crate::template::input::{Template, text_of};

/// A text that grows: what a made directive says, one thing after the other.
#[derive(Default)]
struct Texts(String);

/// An output: its name, its description, and what it is besides.
struct OutputEntry {
    name: Range<usize>,
    description: Option<Range<usize>>,
    type_name: String,
    required: bool,
    optional: bool,
    /// Whether there is anything in it, if it is an entry of a table.
    entry: Option<bool>,
}

impl Texts {
    fn add(&mut self, text: &str) -> Range<usize> {
        let start = self.0.len();
        self.0.push_str(text);
        self.0.push('\n');
        start..start + text.len()
    }
}

impl Directive {
    /// A directive of which a program says everything: `name`, `version`, `extends`, `description`, `category`, `preamble`,
    /// `body`, `content`, `raw`, `actions`, and `outputs` as a list of objects or as names with descriptions. The source of its texts
    /// is called `name`.
    ///
    /// ```
    /// use cuebook::dialect::directive::Directive;
    /// use serde_json::json;
    ///
    /// let said = json!({"name": "greet", "body": "Say hello.", "outputs": {"greeting": "What you said"}});
    /// let directive = Directive::from_json("greet", said.as_object().unwrap())?;
    /// assert_eq!(directive.outputs[0].name.as_str(), "greeting");
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    pub fn from_json(name: &str, said: &Map<String, Json>) -> Result<Directive> {
        let wrong = |key: &str, wanted: &str| {
            let diagnostic =
                Diagnostic::new(Code::BadDirective, format!("`{key}` must be {wanted}")).file(name);
            Error::new(ErrorKind::PromptRead, diagnostic)
        };
        let mut texts = Texts::default();
        let mut ranges: IndexMap<&str, Range<usize>> = IndexMap::new();
        for key in
            ["name", "version", "extends", "description", "category", "preamble", "body", "content", "raw"]
        {
            match said.get(key) {
                None => {}
                Some(Json::String(text)) => {
                    ranges.insert(key, texts.add(text));
                }
                Some(_) => return Err(wrong(key, "a string")),
            }
        }
        let mut outputs: Vec<OutputEntry> = Vec::new();
        match said.get("outputs") {
            None => {}
            Some(Json::Array(list)) => {
                for output in list {
                    let output = output.as_object().ok_or_else(|| wrong("outputs", "a list of objects"))?;
                    let mut text = |key: &str| match output.get(key) {
                        None | Some(Json::Null) => Ok(None),
                        Some(Json::String(text)) => Ok(Some(texts.add(text))),
                        Some(_) => Err(wrong("outputs", "a list of objects with strings")),
                    };
                    let (name, description) = (text("name")?, text("description")?);
                    let name = match name {
                        Some(name) => name,
                        None => texts.add(""),
                    };
                    let is = |key: &str| output.get(key) == Some(&Json::Bool(true));
                    outputs.push(OutputEntry {
                        name,
                        description: description.filter(|range| !range.is_empty()),
                        type_name: output.get("type").and_then(Json::as_str).unwrap_or("string").to_owned(),
                        required: is("required"),
                        optional: is("optional"),
                        entry: None,
                    });
                }
            }
            Some(Json::Object(table)) => {
                for (name, value) in table {
                    let (name, description) = (texts.add(name), texts.add(&text_of(value)));
                    outputs.push(OutputEntry {
                        name,
                        description: Some(description),
                        type_name: "string".to_owned(),
                        required: false,
                        optional: false,
                        entry: Some(has_something(value)),
                    });
                }
            }
            Some(_) => return Err(wrong("outputs", "a list of objects, or names with descriptions")),
        }
        let actions = match said.get("actions") {
            None => Vec::new(),
            Some(Json::Array(actions)) => {
                let actions = actions.iter().map(|action| action.as_object().cloned());
                actions.collect::<Option<_>>().ok_or_else(|| wrong("actions", "a list of objects"))?
            }
            Some(_) => return Err(wrong("actions", "a list of objects")),
        };
        let source = Source::verbatim(name, texts.0);
        let part = |key: &str| ranges.get(key).cloned().unwrap_or(0..0);
        let written = |range: Range<usize>| Written::verbatim(&source, range);
        let named = |key: &str| ranges.get(key).cloned().map(written).filter(|text| !text.is_empty());
        let outputs = outputs.into_iter().map(|said| Output {
            name: written(said.name),
            type_name: said.type_name,
            required: said.required,
            optional: said.optional,
            description: said.description.map(written),
            entry: said.entry,
        });
        Ok(Directive {
            name: named("name"),
            version: named("version"),
            extends: named("extends"),
            description: named("description"),
            category: named("category"),
            model: None,
            limits: None,
            limits_at: None,
            permissions: None,
            hooks: None,
            context: None,
            more: IndexMap::new(),
            inputs: Vec::new(),
            outputs: outputs.collect(),
            actions,
            templates: IndexMap::new(),
            notes: Vec::new(),
            preamble: part("preamble"),
            content: part("content"),
            body: part("body"),
            raw: part("raw"),
            template: Arc::new(Template::compile(source.clone(), part("body"))),
            units: OnceLock::new(),
            included: None,
            borrowed: Vec::new(),
            source: source.clone(),
        })
    }
}

/// Whether there is anything in a value, as Python sees it.
fn has_something(value: &Json) -> bool {
    match value {
        Json::Null => false,
        Json::Bool(truth) => *truth,
        Json::Number(number) => number.as_f64() != Some(0.0),
        Json::String(text) => !text.is_empty(),
        Json::Array(items) => !items.is_empty(),
        Json::Object(members) => !members.is_empty(),
    }
}
