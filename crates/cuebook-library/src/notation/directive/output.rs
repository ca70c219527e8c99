//! What a directive is to give.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::element::DirectiveReader;
use super::input::type_named;
use super::written::Written;
use super::xml::Node;
use crate::prompt::{Tools, Type};

/// What a directive is to give.
#[derive(Debug, Clone)]
pub struct Output {
    /// Its name; empty if it has none, and then a model does not get it.
    pub name: Written,
    /// The name of its type; `string` if none was written.
    pub type_name: String,
    /// Whether it says that it must be given.
    pub required: bool,
    /// Whether it says that it need not be given: `required="false"`. One that says neither must be given, as all outputs.
    pub optional: bool,
    /// What it is.
    pub description: Option<Written>,
    /// Where its description is only the value of a name in a table, and whether there is anything in it.
    pub(super) entry: Option<bool>,
}

/// Says which tools a thread offers to the model of a directive.
pub trait ToolOffer: fmt::Debug + Send + Sync {
    /// The tools for these permissions and outputs.
    fn tools(&self, permissions: &[String], outputs: &[Output]) -> Arc<Tools>;
}

impl Output {
    pub(super) fn read(reader: &mut DirectiveReader<'_>, node: Node<'_, '_>) -> Output {
        reader.know_attributes(node, &["name", "type", "required"]);
        let name = reader.xml.attribute(node, "name").unwrap_or_else(|| {
            reader.unknown_element(node, &[], "the output has no name, so the model never sees it");
            let start = reader.xml.start + node.range().start;
            Written::verbatim(reader.xml.source, start..start)
        });
        let says =
            |what: &str| node.attribute("required").is_some_and(|said| said.eq_ignore_ascii_case(what));
        Output {
            name,
            type_name: node.attribute("type").unwrap_or("string").to_owned(),
            required: says("true"),
            optional: says("false"),
            description: reader.xml.stripped(node),
            entry: None,
        }
    }

    /// What its values look like; anything if the name of its type is unknown.
    pub fn kind(&self) -> Type {
        type_named(&self.type_name).unwrap_or_default()
    }

    /// The declaration as scripts see it.
    pub fn to_json(&self) -> Json {
        let mut object = Map::new();
        object.insert("name".into(), json!(self.name.as_str()));
        object.insert("type".into(), json!(self.type_name));
        // As it is written: others who read directives tell it like that.
        object.insert("required".into(), json!(self.required));
        if let Some(description) = &self.description {
            object.insert("description".into(), json!(description.as_str()));
        }
        Json::Object(object)
    }
}
