//! What a directive takes.

use serde_json::{Map, Value as Json, json};

use super::element::DirectiveReader;
use super::written::Written;
use super::xml::Node;
use crate::error::{Code, Diagnostic, Severity, did_you_mean, nearest};
use crate::prompt::Type;
use crate::source::Place;

/// The names of types that are known, and what they mean.
const TYPES: [(&str, Type); 17] = [
    ("string", Type::String),
    ("str", Type::String),
    ("text", Type::String),
    ("path", Type::String),
    ("file", Type::String),
    ("url", Type::String),
    ("integer", Type::Integer),
    ("int", Type::Integer),
    ("number", Type::Number),
    ("float", Type::Number),
    ("boolean", Type::Boolean),
    ("bool", Type::Boolean),
    ("array", Type::List),
    ("list", Type::List),
    ("object", Type::Object),
    ("dict", Type::Object),
    ("any", Type::Any),
];

/// What the name of a type means, if it is known.
pub(super) fn type_named(name: &str) -> Option<Type> {
    TYPES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, kind)| *kind)
}

/// What a directive takes.
#[derive(Debug, Clone)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// The name of its type, as it was written; `string` if none was.
    pub type_name: String,
    /// What its values look like.
    pub kind: Type,
    /// Whether the caller must give it, unless it has a default.
    pub required: bool,
    /// What it is without a value: text, as everything in XML.
    pub default: Option<String>,
    /// What it is for.
    pub description: Option<Written>,
    /// Where it is declared.
    pub place: Option<Place>,
}

impl Input {
    /// How its value is passed on the command line. What is no text would be refused as one.
    pub(super) fn to_pass(&self) -> String {
        let name = &self.name;
        match self.kind {
            Type::String | Type::Any => format!("--var {name}=TEXT"),
            Type::Integer | Type::Number => format!("--var {name}:=NUMBER"),
            Type::Boolean => format!("--var {name}:=true"),
            Type::List => format!("--var {name}:='[…]'"),
            Type::Object => format!("--var {name}:='{{…}}'"),
        }
    }

    pub(super) fn read(reader: &mut DirectiveReader<'_>, node: Node<'_, '_>) -> Input {
        reader.know_attributes(node, &["name", "type", "required", "default"]);
        let name = node.attribute("name").unwrap_or_default().to_owned();
        let type_name = node.attribute("type").unwrap_or("string").to_owned();
        let value = |attribute: &str| {
            let range = node.attribute_node(attribute).map(|found| found.range_value());
            range.map(|range| reader.xml.place(range))
        };
        let mut odd = Vec::new();
        if name.is_empty() {
            let hint = "add a name: <input name=\"…\">";
            odd.push((
                "the input has no name".to_owned(),
                Some(reader.xml.name_place(node)),
                hint.to_owned(),
            ));
        }
        let kind = type_named(&type_name);
        if kind.is_none() {
            let hint = did_you_mean(&nearest(&type_name, TYPES.iter().map(|(known, _)| *known)));
            let hint = hint
                .unwrap_or_else(|| "use string, integer, number, boolean, array, object or any".to_owned());
            odd.push((
                format!("unknown type `{type_name}`: the input accepts any value"),
                value("type"),
                hint,
            ));
        }
        let required = node.attribute("required").unwrap_or("false").to_lowercase();
        if required != "true" && required != "false" {
            let message = format!("the input is optional: `required` is {required:?}, not \"true\"");
            odd.push((message, value("required"), "write required=\"true\"".to_owned()));
        }
        let input = Input {
            kind: kind.unwrap_or(Type::Any),
            required: required == "true",
            default: node.attribute("default").map(str::to_owned),
            description: reader.xml.stripped(node),
            place: value("name").or_else(|| Some(reader.xml.name_place(node))),
            name,
            type_name,
        };
        let mut odd: Vec<_> = odd.into_iter().map(|odd| (Severity::Warning, odd)).collect();
        if let Some(default) = input.default.as_deref().filter(|default| !input.kind.admits_text(default)) {
            let message = format!("the default {default:?} is not of type {}", input.type_name);
            // A caller who does not give it is refused.
            odd.push((
                Severity::Error,
                (message, value("default"), "change the default or the type".to_owned()),
            ));
        }
        for (severity, (message, place, hint)) in odd {
            let diagnostic = Diagnostic::new(Code::BadDirective, message).severity(severity).hint(hint);
            reader.notes.push(match place {
                Some(place) => diagnostic.at(place),
                None => diagnostic,
            });
        }
        input
    }

    /// Whether a value is of its type. Text takes any value that has no parts, which is then written as JSON writes it, and
    /// nothing at all (`null`) is a value of every type.
    pub fn admits(&self, value: &Json) -> bool {
        match self.kind {
            _ if value.is_null() => true,
            Type::String => !value.is_array() && !value.is_object(),
            kind => kind.admits(value),
        }
    }

    /// The declaration as scripts see it.
    pub fn to_json(&self) -> Json {
        let mut object = Map::new();
        object.insert("name".into(), json!(self.name));
        object.insert("type".into(), json!(self.type_name));
        object.insert("required".into(), json!(self.required));
        if let Some(default) = &self.default {
            object.insert("default".into(), json!(default));
        }
        if let Some(description) = &self.description {
            object.insert("description".into(), json!(description.as_str()));
        }
        Json::Object(object)
    }
}
