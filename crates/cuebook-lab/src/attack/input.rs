//! The inputs of a prompt, and values of their shapes.
//!
//! What is driven is every text in a value: a list or an object keeps its shape. The shape is that of what is there already (a
//! value of the caller's, a default), or else what the declaration and the paths that templates read say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use indexmap::IndexSet;
use serde_json::{Map, Value as Json, json};

use crate::prepared::Prepared;
use crate::prompt::{Rich, Type};
use crate::source::Place;
use crate::variables::{Context, Layer, SYSTEM, Variables};

/// What a value is that wants nothing.
pub(super) const HARMLESS: &str = "harmless";
/// What a picture, a document or a sound is driven with, before the text.
const ADDRESS: &str = "https://example.com/";
/// The same where a number is wanted.
const NUMBER: i32 = 7;

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
    /// Whether a value is supplied if nothing drives it.
    pub(super) has_value: bool,
    /// The roles that a conversation may have besides the usual ones.
    pub(super) roles: Vec<String>,
    /// Values of its type, where a text is refused: it cannot carry text.
    pub(super) fits: Option<Vec<Json>>,
    shape: Shape,
}

/// Where the texts in a value are.
#[derive(Debug, Clone)]
enum Shape {
    /// The value is a text, or takes a text's place.
    Text { harmless: Json },
    /// Every text in it; and what it is if it wants nothing, where that is no text everywhere.
    Texts { shape: Json, harmless: Option<Json> },
    /// A picture, a document or a sound: the text is part of an address.
    Media { harmless: Json },
    /// A conversation: what its messages say.
    Thread,
}

impl Input {
    /// All inputs of a prompt, by name. What the system and providers supply is not an input.
    pub(super) fn all(prepared: &Prepared, variables: &Variables, context: &Arc<Context>) -> Vec<Input> {
        let prompt = prepared.prompt();
        let scope = prepared.scope(variables, context);
        let (reads, outline) = (prepared.reads(), prepared.outline());
        let shown: BTreeSet<&String> = outline.names().iter().flat_map(|names| names.paths()).collect();
        let declared = prompt.variables.iter().map(|variable| variable.name.clone());
        let mut names: IndexSet<String> = declared.collect();
        names.extend(reads.iter().map(|(read, _)| read.root.clone()));
        names.retain(|name| {
            let from_system = prompt.variable(name).is_some_and(|variable| variable.from_system);
            let given = variables.get(name).is_some();
            // A directive that declares something refuses what it does not declare.
            let taken =
                !prompt.dialect.is_item || prompt.variables.is_empty() || prompt.variable(name).is_some();
            taken
                && name != SYSTEM
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
            let has_value = given.as_ref().is_some_and(|value| !value.is_null());
            let shape = Shape::of(rich, declared_kind, given, paths);
            let lends = !has_value && places.clone().any(|place| is_lending(&name, place));
            let shape = match lends && rich.is_none() && matches!(declared_kind, Type::List | Type::Any) {
                true => shape.lending(
                    prepared.included_prompts().iter().flat_map(|included| included.requested_names()),
                ),
                false => shape,
            };
            Input {
                kind: declared.map_or("undeclared", |variable| variable.type_name()),
                strict: declared.is_some_and(|variable| variable.strict),
                steers: places.clone().any(|place| is_steering(place.source().text(), place.range().start)),
                has_value,
                roles: declared.map(|variable| variable.roles.clone()).unwrap_or_default(),
                fits: None,
                shape,
                name,
            }
        };
        names.into_iter().map(input).collect()
    }

    /// A value of its shape that wants nothing.
    pub(super) fn harmless(&self) -> Json {
        match &self.shape {
            Shape::Text { harmless }
            | Shape::Media { harmless }
            | Shape::Texts { harmless: Some(harmless), .. } => harmless.clone(),
            _ => self.value(HARMLESS, 0),
        }
    }

    /// A value of its shape, all of whose texts are this one. An input that cannot carry text takes its own values in turn.
    pub(super) fn value(&self, text: &str, turn: usize) -> Json {
        if let Some(fits) = self.fits.as_ref().filter(|fits| !fits.is_empty()) {
            return fits[turn % fits.len()].clone();
        }
        match &self.shape {
            Shape::Media { .. } => Json::from(format!("{ADDRESS}{text}")),
            Shape::Text { .. } => Json::from(text),
            Shape::Texts { shape, .. } => filled(shape, &Json::from(text)),
            Shape::Thread => json!([
                {"role": "user", "content": text},
                {"role": "assistant", "content": [{"kind": "text", "value": text}]},
            ]),
        }
    }

    /// Whether a nonce stands for it in the text.
    pub(super) fn has_nonce(&self) -> bool {
        matches!(self.shape, Shape::Thread | Shape::Media { .. })
    }

    /// Whether it is a conversation.
    pub(super) fn is_thread(&self) -> bool {
        matches!(self.shape, Shape::Thread)
    }

    /// The same input, driven with values of its type; `None` if it is one for text.
    pub(super) fn without_text(&self) -> Option<Input> {
        let fits = match &self.shape {
            Shape::Text { harmless: Json::Bool(_) } => vec![json!(true), json!(false)],
            Shape::Text { harmless: Json::Number(number) } => {
                let whole = [json!(number), json!(0), json!(1), json!(-1), json!(9_007_199_254_740_991_i64)];
                let parts = [json!(0.5), json!(-1e300)];
                let takes_parts = matches!(self.kind, "number" | "float");
                whole.into_iter().chain(parts.into_iter().filter(|_| takes_parts)).collect()
            }
            Shape::Texts { harmless: Some(harmless), .. } => vec![harmless.clone()],
            _ => return None,
        };
        Some(Input { fits: Some(fits), ..self.clone() })
    }

    /// The same input, driven as a text.
    pub(super) fn as_text(&self) -> Input {
        Input { shape: Shape::Text { harmless: Json::from(HARMLESS) }, ..self.clone() }
    }

    /// The same input; what wants nothing has numbers in it.
    pub(super) fn with_numbers(&self) -> Input {
        let shape = match &self.shape {
            Shape::Text { .. } => Shape::Text { harmless: json!(NUMBER) },
            Shape::Texts { shape, harmless: None } => {
                Shape::Texts { shape: shape.clone(), harmless: Some(filled(shape, &json!(NUMBER))) }
            }
            other => other.clone(),
        };
        Input { shape, ..self.clone() }
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
                let given = given.filter(|value| !value.is_null());
                return Shape::Media { harmless: given.unwrap_or_else(|| json!(format!("{ADDRESS}a.png"))) };
            }
            (None, Type::String) => return text(json!(HARMLESS)),
            (None, Type::Integer | Type::Number) => {
                return text(given.and_then(|given| meant(given, declared)).unwrap_or(json!(NUMBER)));
            }
            (None, Type::Boolean) => {
                return text(given.and_then(|given| meant(given, declared)).unwrap_or(json!(true)));
            }
            (None, Type::List | Type::Object | Type::Any) => {}
        }
        if let Some(given) = given.filter(|value| value.is_array() || value.is_object()) {
            if has_text(&given) {
                return Shape::Texts { shape: given, harmless: None };
            }
            // Of what has no texts, everything in it is driven, and it is what wants nothing.
            let shape = with_texts(&given);
            if has_text(&shape) {
                return Shape::Texts { shape, harmless: Some(given) };
            }
        }
        let texts = |shape: Json| Shape::Texts { shape, harmless: None };
        let mut tree = Tree::default();
        paths.for_each(|path| tree.add(path));
        match (declared, tree.to_json()) {
            (Type::List, Json::Array(items)) => texts(Json::Array(items)),
            (Type::List, item) => texts(json!([item, item])),
            (Type::Object, object @ Json::Object(_)) => texts(object),
            (Type::Object, _) => texts(json!({"title": "", "note": ""})),
            (_, Json::String(_)) => text(json!(HARMLESS)),
            (_, value) => texts(value),
        }
    }

    /// The same where what the value holds goes to prompts that ask for these names: one item has them, and one has not, so that
    /// what it takes from elsewhere shows too.
    fn lending<'n>(self, names: impl Iterator<Item = &'n str>) -> Shape {
        let lent: Map<String, Json> = names.map(|name| (name.to_owned(), json!(""))).collect();
        let own = match &self {
            Shape::Texts { shape: Json::Array(items), .. } => {
                items.first().and_then(Json::as_object).cloned()
            }
            Shape::Texts { shape: Json::Object(own), .. } => Some(own.clone()),
            Shape::Texts { .. } | Shape::Text { .. } | Shape::Media { .. } | Shape::Thread => None,
        };
        if lent.is_empty() {
            return self;
        }
        let own = own.unwrap_or_default();
        let mut both = lent;
        both.extend(own.clone());
        Shape::Texts { shape: json!([both, own]), harmless: None }
    }
}

/// A value as its type wants it: the default of a directive is text, whatever it stands for.
fn meant(value: Json, declared: Type) -> Option<Json> {
    let read = match &value {
        Json::String(text) => serde_json::from_str(text).ok(),
        _ => Some(value),
    };
    read.filter(|value| declared.admits(value))
}

fn has_text(value: &Json) -> bool {
    match value {
        Json::String(_) => true,
        Json::Array(items) => items.iter().any(has_text),
        Json::Object(object) => object.values().any(has_text),
        _ => false,
    }
}

/// A value with another one in the place of each of its texts.
fn filled(shape: &Json, leaf: &Json) -> Json {
    match shape {
        Json::String(_) => leaf.clone(),
        Json::Array(items) => items.iter().map(|item| filled(item, leaf)).collect(),
        Json::Object(object) => {
            Json::Object(object.iter().map(|(name, value)| (name.clone(), filled(value, leaf))).collect())
        }
        other => other.clone(),
    }
}

/// A value with texts in the place of everything that has no parts.
fn with_texts(value: &Json) -> Json {
    match value {
        Json::Array(items) => items.iter().map(with_texts).collect(),
        Json::Object(object) => {
            Json::Object(object.iter().map(|(name, value)| (name.clone(), with_texts(value))).collect())
        }
        _ => json!(""),
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

/// Whether a section of Mustache that stands at a place includes something, which then sees what the value of the section holds.
fn is_lending(name: &str, place: &Place) -> bool {
    let (text, range) = (place.source().text(), place.range());
    let opens = text.get(..range.start).is_some_and(|before| before.trim_end().ends_with("{{#"));
    let Some(behind) = text.get(range.end..).filter(|_| opens) else { return false };
    let end =
        behind.match_indices("{{/").find(|(at, tag)| behind[at + tag.len()..].trim_start().starts_with(name));
    behind[..end.map_or(behind.len(), |(at, _)| at)].contains("{{>")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(declared: Type, paths: &[&str]) -> Json {
        let shape = Shape::of(None, declared, None, paths.iter().copied());
        let (roles, fits) = (Vec::new(), None);
        Input {
            name: "x".into(),
            kind: "",
            strict: false,
            steers: false,
            has_value: false,
            roles,
            fits,
            shape,
        }
        .value("T", 0)
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
