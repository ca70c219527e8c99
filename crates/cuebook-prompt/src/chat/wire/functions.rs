//! Tools as functions that a model may call.
//!
//! Only functions of the host go on the wire. The tools of a server or of an OpenAPI document are known to code that can
//! reach them, and what is written about the way there may hold references to secrets, which are not resolved here.

use serde_json::{Map, Value as Json, json};

use super::draft::Draft;
use super::schema::{self, Variant};
use crate::error::Result;
use crate::prompt::{Property, ToolKind};

/// A function that a model may call, without the parameters that the prompt's inputs fill.
pub(super) struct Function<'r> {
    pub name: &'r str,
    pub description: Option<&'r str>,
    pub parameters: Parameters<'r>,
    pub strict: bool,
}

/// What a function takes.
pub(super) enum Parameters<'r> {
    /// Described values, of which a schema is made.
    Properties(Vec<&'r Property>),
    /// A JSON Schema, which goes as it is.
    Schema(&'r Json),
}

impl Function<'_> {
    /// Where its parameters are declared, for messages.
    pub fn path(&self) -> String {
        format!("tools.{}", self.name)
    }

    /// Its name, its description, and under a key of the provider's the schema of its parameters.
    pub fn described(&self, draft: &mut Draft<'_>, key: &str, variant: Variant) -> Result<Map<String, Json>> {
        let mut object = Map::new();
        object.insert("name".into(), json!(self.name));
        if let Some(description) = self.description {
            object.insert("description".into(), json!(description));
        }
        object.insert(key.into(), draft.parameters(self, variant)?);
        Ok(object)
    }

    /// Whether it takes nothing.
    pub fn takes_nothing(&self) -> bool {
        match &self.parameters {
            Parameters::Properties(properties) => properties.is_empty(),
            Parameters::Schema(schema) => schema
                .get("properties")
                .and_then(Json::as_object)
                .is_none_or(|properties| properties.is_empty()),
        }
    }

    /// What it takes in the part of OpenAPI that Gemini's own schemas are made of, if that is enough.
    pub fn gemini_schema(&self) -> Option<Json> {
        match &self.parameters {
            Parameters::Properties(properties) => schema::gemini(properties),
            Parameters::Schema(_) => None,
        }
    }
}

impl<'r> Draft<'r> {
    /// The functions among the tools, and a note on each of the others.
    pub fn functions(&mut self) -> Vec<Function<'r>> {
        let mut functions = Vec::new();
        for tool in self.request.tools {
            let (parameters, strict) = match &tool.kind {
                ToolKind::Function { parameters, strict } => {
                    let seen = parameters.iter().filter(|p| !tool.bindings.contains_key(&p.name));
                    (Parameters::Properties(seen.collect()), strict.unwrap_or(false))
                }
                ToolKind::Schema { parameters } => (Parameters::Schema(parameters), false),
                _ => {
                    self.warn(
                        format!("the tool `{}` of the kind `{}` is not sent", tool.name, tool.kind.as_str()),
                        "only tools of the kind `function` are sent; declare it as one",
                    );
                    continue;
                }
            };
            functions.push(Function {
                name: &tool.name,
                description: tool.description.as_deref(),
                parameters,
                strict,
            });
        }
        functions
    }

    /// The schema of what a function takes.
    pub fn parameters(&mut self, function: &Function<'_>, variant: Variant) -> Result<Json> {
        match &function.parameters {
            Parameters::Properties(properties) => self.schema(properties, variant, &function.path()),
            Parameters::Schema(schema) => {
                let mut schema = (*schema).clone();
                if let Some(object) = schema.as_object_mut() {
                    // The name of a type in the host's program is of no use to a model.
                    object.shift_remove("title");
                }
                Ok(schema)
            }
        }
    }
}
