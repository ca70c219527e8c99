//! Tools that live in sections.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Value as Json, json};

use super::params::Params;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::overrides::hash;
use crate::overrides::{ToolExample, ToolOverride};
use crate::prompt::{Described, Extras, Record};
use crate::source::Place;
use crate::template::python::is_space;

/// What runs a tool: arguments in, an answer out.
pub type Handler = Arc<dyn Fn(&Json) -> Result<Json> + Send + Sync>;

/// What a tool answers with.
#[derive(Debug, Clone)]
pub enum ToolResult {
    /// Nothing.
    Nothing,
    /// A record.
    One(Arc<Record>),
    /// Records.
    Many(Arc<Record>),
}

/// A tool that lives in a section.
#[derive(Clone)]
pub struct SectionTool {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What it takes; `None` if it takes nothing.
    pub params: Option<Arc<Record>>,
    /// What it answers with.
    pub result: ToolResult,
    /// Examples of its use.
    pub examples: Vec<ToolExample>,
    /// How the output of each example reads, where that is not its JSON.
    pub shown_outputs: Vec<Option<String>>,
    /// Whether overrides may change it.
    pub accepts_overrides: bool,
    /// What runs it, if the host gave that along.
    pub handler: Option<Handler>,
    /// Where it is declared.
    pub place: Option<Place>,
}

impl std::fmt::Debug for SectionTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SectionTool").field("name", &self.name).finish_non_exhaustive()
    }
}

const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 200;

fn refuse(placeholder: &str, message: impl Into<String>, hint: &str) -> Error {
    let diagnostic = Diagnostic::new(Code::BadSection, message).hint(hint);
    Error::new(ErrorKind::PromptValidation, diagnostic).with("placeholder", placeholder)
}

/// A description as it is kept: without white space around it, short, and ASCII.
fn check_description(what: &str, text: &str) -> Result<String> {
    let text = text.trim_matches(is_space);
    let hint = "write one sentence in ASCII; put details into the section's text";
    if text.is_empty() || text.chars().count() > MAX_DESCRIPTION {
        let message = format!("{what} must be 1-{MAX_DESCRIPTION} ASCII characters.");
        return Err(refuse("description", message, hint));
    }
    if !text.is_ascii() {
        return Err(refuse("description", format!("{what} must be ASCII."), hint));
    }
    Ok(text.to_owned())
}

/// Whether this can be the name of a tool.
pub(super) fn check_tool_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(fits)
}

/// The name that an error gives to a type.
fn name_of(params: Option<&Arc<Record>>) -> &str {
    params.map_or("NoneType", |record| &record.name)
}

impl SectionTool {
    /// A tool that takes and answers nothing yet.
    pub fn new(name: impl Into<String>, description: &str) -> Result<SectionTool> {
        SectionTool::taking(name, description, None)
    }

    /// A tool that takes a record, or nothing.
    pub fn taking(
        name: impl Into<String>,
        description: &str,
        params: Option<Arc<Record>>,
    ) -> Result<SectionTool> {
        let name = name.into();
        let of_tool = |error: Error| error.with("dataclass_type", name_of(params.as_ref()));
        let stripped = name.trim_matches(is_space);
        if stripped != name {
            let message = "Tool name must not contain surrounding whitespace.";
            return Err(of_tool(refuse(stripped, message, "remove the whitespace")));
        }
        if !check_tool_name(&name) {
            let wanted = match name.is_empty() {
                true => "1-64 lowercase ASCII letters, digits, underscores, or hyphens",
                false => "pattern: ^[a-z0-9_-]{1,64}$",
            };
            let message = format!("Tool name must match the OpenAI function name constraints ({wanted}).");
            let hint = "use lowercase letters, digits, `_` and `-`";
            return Err(of_tool(refuse(&name, message, hint)));
        }
        let description = check_description("Tool description", description).map_err(of_tool)?;
        Ok(SectionTool {
            name,
            description,
            params,
            result: ToolResult::Nothing,
            examples: Vec::new(),
            shown_outputs: Vec::new(),
            accepts_overrides: true,
            handler: None,
            place: None,
        })
    }

    /// The same tool, which takes a Rust type.
    pub fn takes<P: Params>(mut self) -> Result<SectionTool> {
        self.params = Some(Record::of::<P>()?);
        Ok(self)
    }

    /// The same tool with an example of its use.
    pub fn example(mut self, description: &str, input: Json, output: Json) -> Result<SectionTool> {
        let checked = check_description("Tool example description", description);
        checked.map_err(|error| error.with("dataclass_type", self.params_name()))?;
        self.examples.push(ToolExample { description: description.to_owned(), input, output });
        self.shown_outputs.push(None);
        Ok(self)
    }

    /// The same tool, which answers with a Rust type.
    pub fn answers<R: Described>(mut self) -> Result<SectionTool> {
        self.result = ToolResult::One(Record::of::<R>()?);
        Ok(self)
    }

    /// The same tool, which answers with a list of a Rust type.
    pub fn answers_many<R: Described>(mut self) -> Result<SectionTool> {
        self.result = ToolResult::Many(Record::of::<R>()?);
        Ok(self)
    }

    /// The same tool with what runs it.
    pub fn handled(mut self, handler: impl Fn(&Json) -> Result<Json> + Send + Sync + 'static) -> SectionTool {
        self.handler = Some(Arc::new(handler));
        self
    }

    /// The JSON Schema of what it takes, with the descriptions of its fields and what overrides say of them.
    pub fn schema(&self, descriptions: &IndexMap<String, String>) -> Json {
        match &self.params {
            Some(record) => record.described_schema(Extras::Forbidden, descriptions),
            None => json!({"type": "object", "properties": {}, "additionalProperties": false}),
        }
    }

    /// The name of what it takes.
    pub(super) fn params_name(&self) -> &str {
        name_of(self.params.as_ref())
    }

    pub(super) fn contract_hash(&self) -> String {
        let params = match &self.params {
            Some(record) => record.schema(Extras::Forbidden),
            None => {
                json!({"title": "NoneType", "type": "object", "properties": {}, "additionalProperties": false})
            }
        };
        let result = match &self.result {
            ToolResult::Nothing => json!({"title": "NoneType", "type": "null"}),
            ToolResult::One(record) => record.schema(Extras::Allowed),
            ToolResult::Many(record) => {
                let title = format!("{}List", record.name);
                json!({"title": title, "type": "array", "items": record.schema(Extras::Allowed)})
            }
        };
        hash::contract_hash(&self.description, &params, &result)
    }

    /// The tool as an override describes it. The error is that of a description which no tool may have.
    pub(super) fn overridden(self: &Arc<Self>, by: &ToolOverride) -> Result<Arc<SectionTool>> {
        match &by.description {
            Some(description) if *description != self.description => {
                let checked = check_description("Tool description", description);
                let of_tool = |error: Error| {
                    let error = error.with("tool", &self.name).with("dataclass_type", self.params_name());
                    let mut diagnostic = error.diagnostic().clone();
                    diagnostic.place.clone_from(&by.place);
                    error.replaced(diagnostic)
                };
                let description = checked.map_err(of_tool)?;
                Ok(Arc::new(SectionTool { description, ..(**self).clone() }))
            }
            _ => Ok(self.clone()),
        }
    }

    /// The tool as scripts see it.
    pub fn to_json(&self, descriptions: &IndexMap<String, String>) -> Json {
        json!({"name": self.name, "description": self.description, "parameters": self.schema(descriptions)})
    }
}
