//! What a directive is to give.

use roxmltree::Node;
use serde_json::{Map, Value as Json, json};

use super::element::Reader;
use super::written::Written;

/// What a directive is to give.
#[derive(Debug, Clone)]
pub struct Output {
    /// Its name; empty if it has none, and then a model is not told of it.
    pub name: Written,
    /// The name of its type; `string` if none was written.
    pub type_name: String,
    /// Whether it must be given.
    pub required: bool,
    /// What it is.
    pub description: Option<Written>,
    /// Where its description is only the value of a name in a table, and whether there is anything in it.
    pub(super) entry: Option<bool>,
}

impl Output {
    pub(super) fn read(reader: &mut Reader<'_>, node: Node<'_, '_>) -> Output {
        reader.know_attributes(node, &["name", "type", "required"]);
        let name = reader.xml.attribute(node, "name").unwrap_or_else(|| {
            reader.unknown_element(node, &[], "it has no name, so a model is not told of it");
            let start = reader.xml.start + node.range().start;
            Written::verbatim(reader.xml.source, start..start)
        });
        Output {
            name,
            type_name: node.attribute("type").unwrap_or("string").to_owned(),
            required: node
                .attribute("required")
                .is_some_and(|required| required.eq_ignore_ascii_case("true")),
            description: reader.xml.stripped(node),
            entry: None,
        }
    }

    /// The declaration as scripts see it.
    pub fn to_json(&self) -> Json {
        let mut object = Map::new();
        object.insert("name".into(), json!(self.name.as_str()));
        object.insert("type".into(), json!(self.type_name));
        object.insert("required".into(), json!(self.required));
        if let Some(description) = &self.description {
            object.insert("description".into(), json!(description.as_str()));
        }
        Json::Object(object)
    }
}
