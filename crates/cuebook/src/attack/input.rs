//! The inputs of a prompt, and values of their shapes.
//!
//! What is driven is every text in a value: a list or an object keeps its shape. The shape is that of what is there already (a
//! value of the caller's, a default), or else what the declaration and the paths that templates read say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use crate::prepared::Prepared;
use crate::prompt::{Rich, Type};
use crate::variables::{Context, Layer, SYSTEM, Variables};

/// What a value is that wants nothing.
pub(super) const HARMLESS: &str = "harmless";

/// An input.
#[derive(Debug, Clone)]
pub(super) struct Input {
    pub(super) name: String,
    /// What it is, in a word.
    pub(super) kind: &'static str,
    pub(super) strict: bool,
    /// Whether a condition or a loop of a template reads it, so that its value may well choose between things that authors
    /// wrote.
    pub(super) steers: bool,
    /// Whether somebody supplies a value if nobody drives it.
    pub(super) has_value: bool,
    shape: Shape,
}

/// Where the texts in a value are.
#[derive(Debug, Clone)]
enum Shape {
    /// The value is a text, or takes a text's place.
    Text { harmless: Json },
    /// Every text in it.
    Texts(Json),
    /// A conversation: what its messages say.
    Thread,
}

impl Input {
    /// All inputs of a prompt, by name. What the system and providers supply is none.
    pub(super) fn all(prepared: &Prepared, variables: &Variables, context: &Arc<Context>) -> Vec<Input> {
        let prompt = prepared.prompt();
        let scope = prepared.scope(variables, context);
        let (reads, outline) = (prepared.reads(), prepared.outline());
        let shown: BTreeSet<&String> = outline.names().iter().flat_map(|names| names.paths()).collect();
        let mut names: Vec<String> = prompt.variables.iter().map(|variable| variable.name.clone()).collect();
        for (read, _) in &reads {
            if !names.contains(&read.root) {
                names.push(read.root.clone());
            }
        }
        names.retain(|name| {
            let from_system = prompt.variable(name).is_some_and(|variable| variable.from_system);
            let given = variables.get(name).is_some();
            name != SYSTEM
                && !prepared.is_session(name)
                && !prepared.provides(name)
                && (given || !from_system)
        });
        let input = |name: String| {
            let declared = prompt.variable(&name);
            let given = scope.get(&name).filter(|(layer, _)| *layer != Layer::System).map(|(_, value)| value);
            let paths =
                reads.iter().filter(|(read, _)| read.root == name).map(|(read, _)| read.path.as_str());
            // What a loop or a `set` reads further is a path of the variable as well, unless all of it shows somewhere.
            let is_whole =
                outline.names().iter().flat_map(|names| &names.emissions).flatten().any(|path| *path == name);
            let further = shown
                .iter()
                .filter(|_| !is_whole)
                .map(|path| path.as_str())
                .filter(|path| path.split(['.', '[']).next() == Some(&name));
            let paths = paths.chain(further);
            let places = reads.iter().filter(|(read, _)| read.root == name).map(|(_, place)| place);
            let rich = declared.and_then(|variable| variable.rich);
            let declared_kind = declared.map_or(Type::Any, |variable| variable.kind);
            Input {
                kind: declared.map_or("undeclared", |variable| variable.type_name()),
                strict: declared.is_some_and(|variable| variable.strict),
                steers: places.clone().any(|place| is_steering(place.source().text(), place.range().start)),
                has_value: given.as_ref().is_some_and(|value| !value.is_null()),
                shape: Shape::of(rich, declared_kind, given, paths),
                name,
            }
        };
        names.into_iter().map(input).collect()
    }

    /// A value of its shape that wants nothing.
    pub(super) fn harmless(&self) -> Json {
        match &self.shape {
            Shape::Text { harmless } => harmless.clone(),
            _ => self.value(HARMLESS),
        }
    }

    /// A value of its shape, all of whose texts are this one.
    pub(super) fn value(&self, text: &str) -> Json {
        match &self.shape {
            Shape::Text { .. } => Json::from(text),
            Shape::Texts(shape) => filled(shape, text),
            Shape::Thread => json!([
                {"role": "user", "content": text},
                {"role": "assistant", "content": [{"kind": "text", "value": text}]},
            ]),
        }
    }

    /// The same input, driven as a text.
    pub(super) fn as_text(&self) -> Input {
        Input { shape: Shape::Text { harmless: Json::from(HARMLESS) }, ..self.clone() }
    }
}

impl Shape {
    fn of<'p>(
        rich: Option<Rich>,
        declared: Type,
        given: Option<Json>,
        paths: impl Iterator<Item = &'p str>,
    ) -> Shape {
        let text = |harmless: Json| Shape::Text { harmless };
        match (rich, declared) {
            (Some(Rich::Thread), _) => return Shape::Thread,
            (Some(_), _) => {
                return text(
                    given.filter(|value| !value.is_null()).unwrap_or(json!("https://example.com/a.png")),
                );
            }
            (None, Type::String) => return text(json!(HARMLESS)),
            (None, Type::Integer | Type::Number) => return text(given.unwrap_or(json!(7))),
            (None, Type::Boolean) => return text(given.unwrap_or(json!(true))),
            (None, Type::List | Type::Object | Type::Any) => {}
        }
        if let Some(given) = given.filter(|value| (value.is_array() || value.is_object()) && has_text(value))
        {
            return Shape::Texts(given);
        }
        let mut tree = Tree::default();
        paths.for_each(|path| tree.add(path));
        match (declared, tree.to_json()) {
            (Type::List, Json::Array(items)) => Shape::Texts(Json::Array(items)),
            (Type::List, item) => Shape::Texts(json!([item, item])),
            (Type::Object, object @ Json::Object(_)) => Shape::Texts(object),
            (Type::Object, _) => Shape::Texts(json!({"title": "", "note": ""})),
            (_, Json::String(_)) => text(json!(HARMLESS)),
            (_, value) => Shape::Texts(value),
        }
    }
}

fn has_text(value: &Json) -> bool {
    match value {
        Json::String(_) => true,
        Json::Array(items) => items.iter().any(has_text),
        Json::Object(object) => object.values().any(has_text),
        _ => false,
    }
}

fn filled(shape: &Json, text: &str) -> Json {
    match shape {
        Json::String(_) => Json::from(text),
        Json::Array(items) => items.iter().map(|item| filled(item, text)).collect(),
        Json::Object(object) => {
            Json::Object(object.iter().map(|(name, value)| (name.clone(), filled(value, text))).collect())
        }
        other => other.clone(),
    }
}

/// What paths such as `tools[].name` say of a value.
#[derive(Default)]
struct Tree {
    fields: BTreeMap<String, Tree>,
    items: Option<Box<Tree>>,
}

impl Tree {
    fn add(&mut self, path: &str) {
        let mut at = self;
        // The first step is the variable itself.
        for step in path.split_inclusive(['.', '[']).skip(1) {
            let step = step.trim_end_matches(['.', '[']);
            at = match step.strip_suffix(']') {
                Some(_) => at.items.get_or_insert_default(),
                // Behind `[]` comes nothing before the next dot.
                None if step.is_empty() => at,
                None => at.fields.entry(step.to_owned()).or_default(),
            };
        }
    }

    fn to_json(&self) -> Json {
        match &self.items {
            Some(items) => {
                let item = items.to_json();
                json!([item, item])
            }
            None if self.fields.is_empty() => json!(""),
            None => {
                let fields = self.fields.iter().map(|(name, field)| (name.clone(), field.to_json()));
                Json::Object(fields.collect::<Map<String, Json>>())
            }
        }
    }
}

/// Whether a name that stands at an offset of a template stands where it can choose between things that authors wrote: in a
/// statement, in a section of Mustache, or in the condition of a section.
fn is_steering(template: &str, at: usize) -> bool {
    let Some(before) = template.get(..at) else { return true };
    let line = before.rsplit('\n').next().unwrap_or_default().trim_start();
    if line.starts_with("enabled:") || line.starts_with("visibility:") {
        return true;
    }
    match before.rfind("{{").max(before.rfind("{%")) {
        Some(open) => {
            let tag = &template[open..at];
            tag.starts_with("{%") || tag.starts_with("{{#") || tag.starts_with("{{^")
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(declared: Type, paths: &[&str]) -> Json {
        let shape = Shape::of(None, declared, None, paths.iter().copied());
        Input { name: "x".into(), kind: "", strict: false, steers: false, has_value: false, shape }.value("T")
    }

    #[test]
    fn values_have_the_shape_that_templates_read() {
        assert_eq!(shape(Type::Any, &["x"]), json!("T"));
        assert_eq!(shape(Type::Any, &["x.title", "x"]), json!({"title": "T"}));
        assert_eq!(shape(Type::Any, &["x[].name", "x[].args[]"]), {
            json!([{"name": "T", "args": ["T", "T"]}, {"name": "T", "args": ["T", "T"]}])
        });
        assert_eq!(shape(Type::List, &["x"]), json!(["T", "T"]));
        assert_eq!(shape(Type::Object, &["x"]), json!({"title": "T", "note": "T"}));
        assert_eq!(shape(Type::String, &["x.upper"]), json!("T"));
    }

    #[test]
    fn a_condition_steers_and_a_tag_that_shows_does_not() {
        let steers = |template: &str| is_steering(template, template.find("name").unwrap());
        assert!(steers("{% if name %}"));
        assert!(steers("{% for letter in name %}"));
        assert!(steers("{{#name}}"));
        assert!(steers("enabled: name == 'x'"));
        assert!(!steers("{% if x %}{{ name }}"));
        assert!(!steers("Hello $name"));
        assert!(!steers("{{{name}}}"));
    }
}
