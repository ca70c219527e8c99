//! What a model may call.

use std::any::Any;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};

use super::Property;
use crate::source::Place;

/// Interfaces that a list of tools remembers its words for.
pub(crate) const MAX_INTERFACES: usize = 8;

/// How a list of tools was said, by the number of the interface. Each interface knows the type of what it keeps.
#[derive(Debug, Clone, Default)]
pub(crate) struct CachedForms([OnceLock<Arc<dyn Any + Send + Sync>>; MAX_INTERFACES]);

impl CachedForms {
    /// What this interface keeps.
    pub(crate) fn at(&self, interface: usize) -> &OnceLock<Arc<dyn Any + Send + Sync>> {
        &self.0[interface]
    }
}

/// What a model may call: a list of tools, which remembers how they are said. It cannot be changed, only made anew.
#[derive(Debug, Clone, Default)]
pub struct Tools {
    list: Vec<Tool>,
    written: CachedForms,
}

impl Tools {
    pub(crate) fn written(&self) -> &CachedForms {
        &self.written
    }
}

impl From<Vec<Tool>> for Tools {
    fn from(list: Vec<Tool>) -> Tools {
        Tools { list, written: CachedForms::default() }
    }
}

impl FromIterator<Tool> for Tools {
    fn from_iter<I: IntoIterator<Item = Tool>>(tools: I) -> Tools {
        Tools::from(Vec::from_iter(tools))
    }
}

impl<'t> IntoIterator for &'t Tools {
    type Item = &'t Tool;
    type IntoIter = std::slice::Iter<'t, Tool>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl Deref for Tools {
    type Target = [Tool];

    fn deref(&self) -> &[Tool] {
        &self.list
    }
}

/// Something that a model may call.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// What kind of tool it is, with what only that kind has.
    pub kind: ToolKind,
    /// Parameters that the model does not see, because an input of the prompt fills them: parameter, then input.
    pub bindings: IndexMap<String, String>,
    /// Keys that mean nothing to Cuebook, as they were written.
    pub extra: Map<String, Json>,
    /// Where it is declared.
    pub place: Option<Place>,
}

/// The kinds of tools.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ToolKind {
    /// A function of the host.
    Function {
        /// What it takes.
        parameters: Vec<Property>,
        /// Whether the model must keep to the schema exactly; `None` if that is not said.
        strict: Option<bool>,
    },
    /// A function of the host whose parameters are known as a JSON Schema.
    Schema {
        /// The schema of an object.
        parameters: Json,
    },
    /// The tools of an MCP server; its fields as they were written.
    Mcp(Map<String, Json>),
    /// The operations of an OpenAPI document; its fields as they were written.
    OpenApi(Map<String, Json>),
    /// A kind that only the author and the host know.
    Custom {
        /// Its name.
        kind: String,
        /// Its fields as they were written.
        fields: Map<String, Json>,
    },
}

impl ToolKind {
    /// Its name.
    pub fn as_str(&self) -> &str {
        match self {
            ToolKind::Function { .. } | ToolKind::Schema { .. } => "function",
            ToolKind::Mcp(_) => "mcp",
            ToolKind::OpenApi(_) => "openapi",
            ToolKind::Custom { kind, .. } => kind,
        }
    }
}

impl Tool {
    /// The tool in the words of a `.prompty` file.
    pub fn to_json(&self) -> Json {
        let mut object = Map::new();
        object.insert("name".into(), json!(self.name));
        object.insert("kind".into(), json!(self.kind.as_str()));
        if let Some(description) = &self.description {
            object.insert("description".into(), json!(description));
        }
        match &self.kind {
            ToolKind::Function { parameters, strict } => {
                if let Some(strict) = strict {
                    object.insert("strict".into(), json!(strict));
                }
                object.insert("parameters".into(), parameters.iter().map(Property::to_json).collect());
            }
            ToolKind::Schema { parameters } => drop(object.insert("parameters".into(), parameters.clone())),
            ToolKind::Mcp(fields) | ToolKind::OpenApi(fields) | ToolKind::Custom { fields, .. } => {
                object.extend(fields.clone());
            }
        }
        if !self.bindings.is_empty() {
            let bindings: Map<String, Json> = self
                .bindings
                .iter()
                .map(|(parameter, input)| (parameter.clone(), json!({"input": input})))
                .collect();
            object.insert("bindings".into(), Json::Object(bindings));
        }
        object.extend(self.extra.clone());
        Json::Object(object)
    }
}
