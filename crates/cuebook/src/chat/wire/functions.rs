//! Tools as functions that a model may call.
//!
//! Only functions of the host go on the wire. The tools of a server or of an OpenAPI document are known to whoever can
//! reach them, and what is written about the way there may hold references to secrets, which are not resolved here.

use serde_json::{Map, Value as Json, json};

use super::draft::Draft;
use super::schema::Variant;
use crate::error::Result;
use crate::prompt::{Property, ToolKind};

/// A function that a model may call, without the parameters that the prompt's inputs fill.
pub(super) struct Function<'r> {
    pub name: &'r str,
    pub description: Option<&'r str>,
    pub parameters: Vec<&'r Property>,
    pub strict: bool,
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
        object.insert(key.into(), draft.schema(&self.parameters, variant, &self.path())?);
        Ok(object)
    }
}

impl<'r> Draft<'r> {
    /// The functions among the tools, and a note on each of the others.
    pub fn functions(&mut self) -> Vec<Function<'r>> {
        let mut functions = Vec::new();
        for tool in self.request.tools {
            let ToolKind::Function { parameters, strict } = &tool.kind else {
                self.warn(
                    format!("the tool `{}` is not sent: its kind is `{}`", tool.name, tool.kind.as_str()),
                    "only functions are; declare what it offers as tools of the kind `function`",
                );
                continue;
            };
            functions.push(Function {
                name: &tool.name,
                description: tool.description.as_deref(),
                parameters: parameters.iter().filter(|p| !tool.bindings.contains_key(&p.name)).collect(),
                strict: strict.unwrap_or(false),
            });
        }
        functions
    }
}
