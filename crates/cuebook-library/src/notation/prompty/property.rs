//! Properties, as a file writes them: inputs, outputs, parameters, and what is inside of those.

use std::collections::HashMap;

use super::reader::FrontMatterReader;
use crate::error::{Code, Diagnostic, did_you_mean, nearest};
use crate::json::quoted;
use crate::node::{Data, Key, Node};
use crate::prompt::{Kind, Property, Rich, UnionStyle};
use crate::source::Place;

const KEYS: [&str; 9] =
    ["name", "kind", "description", "required", "nullable", "default", "example", "enumValues", "strict"];
/// Words that name a kind, and are unlikely as a default.
const KINDS: [&str; 12] = [
    "string", "integer", "float", "number", "boolean", "array", "object", "union", "image", "file", "audio",
    "thread",
];
/// The kind of the elements of a list of which nothing can be said.
const ANY: &str = "any";

impl FrontMatterReader {
    /// Properties: a list whose entries have names, or a map from name to property or to a value that stands for one.
    #[doc(hidden)]
    pub fn properties(&mut self, node: &Node, at: &str) -> Vec<Property> {
        let mut properties = Vec::new();
        match &node.data {
            Data::Null => {}
            Data::List(items) => {
                self.each_named(items, at, |reader, name, place, item, at| {
                    properties.extend(reader.property(name, place, item, at));
                });
            }
            Data::Map(entries) if is_schema(entries) => {
                let hint = "write each as `name: {kind: string}`; Cuebook builds the JSON schema";
                self.mismatch(
                    node,
                    &format!("`{at}`"),
                    "properties, but this looks like a JSON schema",
                    hint,
                );
            }
            Data::Map(entries) => {
                for (key, entry) in entries {
                    properties.extend(self.named_property(key, entry, &format!("{at}.{}", key.name)));
                }
            }
            _ => {
                let hint = "write `- name: …` and `kind: …` for each, or `name: value`";
                self.mismatch(node, &format!("`{at}`"), "a list, or a map from names", hint);
            }
        }
        properties
    }

    /// Reads each entry of a list by the name that it has itself: the name, where it stands, the entry, and the way to it.
    pub(super) fn each_named(
        &mut self,
        items: &[Node],
        at: &str,
        mut read: impl FnMut(&mut FrontMatterReader, String, Place, &Node, &str),
    ) {
        let mut seen: HashMap<String, Place> = HashMap::new();
        for (index, item) in items.iter().enumerate() {
            let at = format!("{at}[{index}]");
            let Some((name, place)) = self.name_of(item, &at) else { continue };
            if let Some(first) = seen.get(&name) {
                self.twice(&name, &place, first);
                continue;
            }
            seen.insert(name.clone(), place.clone());
            read(self, name, place, item, &at);
        }
    }

    /// The name of an entry of a list, and where it stands.
    #[doc(hidden)]
    pub fn name_of(&mut self, item: &Node, at: &str) -> Option<(String, Place)> {
        let Data::Map(_) = &item.data else {
            let hint = "write `- name: …` and, below it, `kind: …`";
            self.mismatch(item, &format!("`{at}`"), "a map with a `name`", hint);
            return None;
        };
        let Some(node) = item.get("name").filter(|name| !name.is_null()) else {
            self.wrong(&item.opening(), format!("`{at}` has no name"), "write `name: …`");
            return None;
        };
        let name = self.text(node, &format!("`{at}.name`"))?;
        if name.trim().is_empty() {
            self.wrong(&node.place, format!("`{at}` has an empty name"), "write `name: …`");
            return None;
        }
        Some((name, node.place.clone()))
    }

    /// Notes that two entries of a list have one name.
    #[doc(hidden)]
    pub fn twice(&mut self, name: &str, place: &Place, first: &Place) {
        let diagnostic = Diagnostic::new(self.code(), format!("duplicate name {}", quoted(name)))
            .at(place.clone())
            .label("second one here")
            .related(first.clone(), "first one here")
            .hint("rename one of them");
        self.fault(diagnostic, "invalid_definition");
    }

    /// An entry of a map: a property, or a value that stands for one.
    fn named_property(&mut self, key: &Key, node: &Node, at: &str) -> Option<Property> {
        if let Data::Map(_) = &node.data {
            if let Some(name) = node.get("name")
                && name.text() != Some(&key.name)
            {
                let message = format!("the name of `{at}` differs from its key");
                self.wrong(&name.place, message, format!("remove `name`: the key is {}", quoted(&key.name)));
            }
            return self.property(key.name.clone(), key.place.clone(), node, at);
        }
        let Some(kind) = value_kind(node) else {
            if !node.from_environment {
                let hint = "write its default value, or `{kind: string}` if it has none";
                self.wrong(&key.place, format!("`{at}` has no kind"), hint);
            }
            return None;
        };
        self.note_kind_as_default(key, node, at);
        let mut property = Property::new(key.name.clone(), kind);
        property.default = Some(node.to_json());
        property.is_secret = node.from_environment;
        property.place = Some(key.place.clone());
        Some(property)
    }

    /// `q: string` gives `q` the default text "string". Most people who write it mean the kind.
    fn note_kind_as_default(&mut self, key: &Key, node: &Node, at: &str) {
        let Some(kind) = node.text().filter(|text| KINDS.contains(text) && !node.from_environment) else {
            return;
        };
        let message = format!("`{at}` has the default text \"{kind}\"");
        let hint = format!("to declare the kind, write `{}: {{kind: {kind}}}`", key.name);
        self.note(Diagnostic::new(Code::KindAsDefault, message).at(node.place.clone()).hint(hint));
    }

    /// A property that is written out. Its name is empty for the items of a list and the branches of a union.
    fn property(&mut self, name: String, place: Place, node: &Node, at: &str) -> Option<Property> {
        let Data::Map(entries) = &node.data else {
            let hint =
                format!("write `{{kind: {}}}`", value_kind(node).as_ref().map_or("string", Kind::as_str));
            self.mismatch(node, &format!("`{at}`"), "a map with a `kind`", hint);
            return None;
        };
        let kind = self.kind(node, &place, at);
        let mut property = Property::new(name, Kind::String);
        let takes = match kind.as_deref() {
            Some("array") => &["items"][..],
            Some("object") => &["properties"],
            Some("union") => &["oneOf", "anyOf"],
            Some("thread") => &["roles"],
            _ => &[],
        };
        for (key, node) in entries {
            let what = format!("`{at}.{}`", key.name);
            match key.name.as_str() {
                "name" | "kind" => {}
                "description" => property.description = self.text(node, &what),
                "required" => property.required = self.flag(node, &what).unwrap_or_default(),
                "nullable" => property.nullable = self.flag(node, &what).unwrap_or_default(),
                "strict" => property.strict = self.flag(node, &what),
                "default" => {
                    property.default = Some(node.to_json()).filter(|default| !default.is_null());
                    property.is_secret = node.from_environment;
                }
                "example" => property.example = Some(node.to_json()).filter(|example| !example.is_null()),
                "enumValues" => {
                    property.enum_values = self.items(node, &what).iter().map(Node::to_json).collect();
                }
                "roles" if takes.contains(&"roles") => property.roles = self.roles(node, &what),
                name if takes.contains(&name) => {}
                _ => {
                    // Without a kind there is one remark, and it says so.
                    if kind.is_some() {
                        let known: Vec<&str> = KEYS.iter().chain(takes).copied().collect();
                        self.extra(&format!("`{at}`"), key, &known);
                    }
                    property.extra.insert(key.name.clone(), node.to_json());
                }
            }
        }
        property.kind = self.inside(node, &place, &kind?, at)?;
        property.place = Some(place);
        Some(property)
    }

    /// The roles that a conversation may have besides those of every conversation.
    fn roles(&mut self, node: &Node, what: &str) -> Vec<String> {
        let items = self.items(node, what);
        items.iter().filter_map(|item| self.text(item, what)).filter(|role| !role.trim().is_empty()).collect()
    }

    /// The name of its kind. Nothing else has to be said about it twice.
    fn kind(&mut self, node: &Node, place: &Place, at: &str) -> Option<String> {
        let written = node.get("kind").filter(|kind| !kind.is_null());
        let Some(written) = written else {
            if node.get("kind").is_some_and(|kind| kind.from_environment) {
                return None;
            }
            let hint = format!("write `kind: string`, or one of {}", Kind::NAMES[1..].join(", "));
            self.wrong(place, format!("`{at}` has no kind"), hint);
            return None;
        };
        let kind = self.text(written, &format!("`{at}.kind`"))?;
        if kind.trim().is_empty() {
            self.wrong(
                &written.place,
                format!("the kind of `{at}` is blank"),
                "write `kind: string` or another",
            );
            return None;
        }
        if !Kind::NAMES.contains(&kind.as_str()) && kind != ANY {
            let message = format!("unknown kind {} of `{at}`", quoted(&kind));
            let meant = did_you_mean(&nearest(&kind, Kind::NAMES));
            let hint = meant.unwrap_or_else(|| {
                format!("the input accepts any value; known kinds: {}", Kind::NAMES.join(", "))
            });
            self.strange(&written.place, message, hint);
        }
        Some(kind)
    }

    /// The kind with what only that kind has.
    fn inside(&mut self, node: &Node, place: &Place, kind: &str, at: &str) -> Option<Kind> {
        let has = |key: &str| node.get(key).filter(|node| !node.is_null());
        Some(match kind {
            "string" => Kind::String,
            "integer" => Kind::Integer,
            "float" => Kind::Float,
            "number" => Kind::Number,
            "boolean" => Kind::Boolean,
            "array" => {
                let Some(items) = has("items") else {
                    let hint = "describe its elements, as in `items: {kind: string}`";
                    self.wrong(place, format!("`{at}.items`: missing required field"), hint);
                    return None;
                };
                let items = self.property(String::new(), items.opening(), items, &format!("{at}.items"))?;
                Kind::Array { items: Box::new(items) }
            }
            "object" => Kind::Object {
                properties: has("properties")
                    .map(|properties| self.properties(properties, &format!("{at}.properties")))
                    .unwrap_or_default(),
            },
            "union" => {
                let (style, branches) = match (has("oneOf"), has("anyOf")) {
                    (Some(one), None) => (UnionStyle::OneOf, one),
                    (None, Some(any)) => (UnionStyle::AnyOf, any),
                    (Some(_), Some(any)) => {
                        let message = format!("`{at}` has both `oneOf` and `anyOf`");
                        self.wrong(&any.opening(), message, "remove one of them");
                        return None;
                    }
                    (None, None) => {
                        let message = format!("`{at}` is a union without members");
                        self.wrong(place, message, "write `oneOf:` or `anyOf:` and a list of `kind: …`");
                        return None;
                    }
                };
                let what = format!("{at}.{}", style.as_str());
                let items = self.items(branches, &format!("`{what}`"));
                if items.is_empty() {
                    if matches!(branches.data, Data::List(_)) {
                        let hint = "add at least one kind, as in `- kind: string`";
                        self.wrong(&branches.opening(), format!("`{what}` is empty"), hint);
                    }
                    return None;
                }
                let branch = |(index, item): (usize, &Node)| {
                    let name = item.get("name").and_then(Node::text).unwrap_or_default();
                    self.property(name.to_owned(), item.opening(), item, &format!("{what}[{index}]"))
                };
                Kind::Union { style, of: items.iter().enumerate().filter_map(branch).collect() }
            }
            rich => match Rich::ALL.into_iter().find(|known| known.as_str() == rich) {
                Some(rich) => Kind::Rich(rich),
                None => Kind::Custom(rich.to_owned()),
            },
        })
    }
}

/// The kind of a value that stands for a property; `None` for null and for maps, which say their kind themselves.
pub(super) fn value_kind(node: &Node) -> Option<Kind> {
    Some(match &node.data {
        Data::Text(_) => Kind::String,
        Data::Number(number) if number.is_f64() => Kind::Float,
        Data::Number(_) => Kind::Integer,
        Data::Bool(_) => Kind::Boolean,
        Data::List(items) => {
            let mut kinds = items.iter().map(value_kind);
            let first = kinds.next().flatten();
            let same =
                |kind: &Option<Kind>| kind.as_ref().map(Kind::as_str) == first.as_ref().map(Kind::as_str);
            let alike = kinds.all(|kind| same(&kind));
            let items = first.filter(|_| alike).unwrap_or_else(|| Kind::Custom(ANY.to_owned()));
            Kind::Array { items: Box::new(Property::new("", items)) }
        }
        Data::Null | Data::Map(_) => return None,
    })
}

/// Whether a map is a JSON schema of an object rather than names and properties.
fn is_schema(entries: &[(Key, Node)]) -> bool {
    let find = |name: &str| entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node);
    find("type").and_then(Node::text) == Some("object")
        && find("properties").is_some_and(|properties| matches!(&properties.data, Data::Map(inner) if !inner.iter().any(|(key, _)| key.name == "kind")))
}
