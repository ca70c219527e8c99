//! Mustache sections as Jinja2, where the kinds of values say what a section is: a loop, a condition, or a look inside.
//!
//! Mustache finds that out while it renders, and looks names up in all values around. Here both have to be known beforehand, by
//! what the inputs are declared to be; what is not declared is refused, and never guessed.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use super::draft::Input;
use super::target_text::Jinja;
use crate::by_name::ByName;
use crate::prompt::Type;
use crate::template::jinja::parts::is_name;
use crate::template::parts::{Branch, NotPlain};

/// Names that a dictionary has of its own in Jinja2.
const METHODS: [&str; 11] =
    ["items", "keys", "values", "get", "pop", "update", "copy", "setdefault", "clear", "popitem", "fromkeys"];

/// What is known of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Text, a number, or yes and no.
    Scalar,
    List,
    Object,
    Unknown,
}

/// A value, as an expression.
#[derive(Debug, Clone)]
struct ValueExpression<'i> {
    expression: String,
    kind: Kind,
    /// What its items or properties are declared to be.
    shape: Option<&'i Map<String, Json>>,
    /// Conditions without which there is nothing to look into.
    needs: Vec<String>,
    /// Whether it is always there.
    is_certain: bool,
}

/// Writes a template.
pub(super) struct Writer<'i> {
    pub(super) inputs: &'i ByName<Input>,
    pub(super) jinja: Jinja<'i>,
    frames: Vec<ValueExpression<'i>>,
    /// The names that are no part of a value around.
    pub(super) roots: BTreeSet<String>,
}

impl<'i> Writer<'i> {
    pub(super) fn new(inputs: &'i ByName<Input>, jinja: Jinja<'i>) -> Writer<'i> {
        Writer { inputs, jinja, frames: Vec::new(), roots: BTreeSet::new() }
    }

    pub(super) fn write(&mut self, branches: &[Branch], out: &mut String) -> Result<(), NotPlain> {
        for branch in branches {
            match branch {
                // A brace at the end may stand before a tag.
                Branch::Text(text) => self.jinja.text(text, true, out),
                Branch::Value { keys, range, .. } => {
                    let known = self.known(keys).ok_or_else(|| unclear("a value", keys, range))?;
                    let when = match known.needs.as_slice() {
                        [] => String::new(),
                        needs => format!(" if {}", needs.join(" and ")),
                    };
                    out.push_str(&format!("{{{{ {}{when} }}}}", known.expression));
                }
                Branch::Section { keys, inverted, body, range } => {
                    self.section(keys, *inverted, body, out).map_err(|not_plain| {
                        not_plain.unwrap_or_else(|| unclear("a Mustache section", keys, range))
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Writes a section; the error is `None` if it is not clear what it is.
    fn section(
        &mut self,
        keys: &[String],
        inverted: bool,
        body: &[Branch],
        out: &mut String,
    ) -> Result<(), Option<NotPlain>> {
        let known = self.known(keys).ok_or(None)?;
        let mut condition = known.needs.clone();
        match known.kind {
            // An empty object is something to Mustache, and nothing to Jinja2.
            Kind::Object => condition.push(format!("{} is mapping", known.expression)),
            Kind::Scalar | Kind::List => condition.push(known.expression.clone()),
            Kind::Unknown => return Err(None),
        }
        let condition = condition.join(" and ");
        if inverted {
            let condition = if condition.contains(' ') { format!("({condition})") } else { condition };
            out.push_str(&format!("{{% if not {condition} %}}"));
            self.write(body, out)?;
            out.push_str("{% endif %}");
            return Ok(());
        }
        if known.kind == Kind::List {
            return self.each(&known, body, out);
        }
        out.push_str(&format!("{{% if {condition} %}}"));
        self.frames.push(ValueExpression { needs: Vec::new(), ..known });
        self.write(body, out)?;
        self.frames.pop();
        out.push_str("{% endif %}");
        Ok(())
    }

    /// Writes what shows once for each item.
    fn each(
        &mut self,
        list: &ValueExpression<'i>,
        body: &[Branch],
        out: &mut String,
    ) -> Result<(), Option<NotPlain>> {
        let name = self.fresh();
        let needs = list.needs.join(" and ");
        if !needs.is_empty() {
            out.push_str(&format!("{{% if {needs} %}}"));
        }
        let otherwise = if list.is_certain { "" } else { " or []" };
        out.push_str(&format!("{{% for {name} in {}{otherwise} %}}", list.expression));
        let shape = list.shape.and_then(|shape| shape.get("items")).and_then(Json::as_object);
        let item = ValueExpression {
            expression: name,
            kind: kind_of(shape),
            shape,
            needs: Vec::new(),
            is_certain: true,
        };
        self.frames.push(item);
        self.write(body, out)?;
        self.frames.pop();
        out.push_str("{% endfor %}");
        if !needs.is_empty() {
            out.push_str("{% endif %}");
        }
        Ok(())
    }

    /// A name for an item that nothing else has.
    fn fresh(&self) -> String {
        let is_taken = |name: &str| {
            self.inputs.get(name).is_some() || self.frames.iter().any(|frame| frame.expression == name)
        };
        let mut name = "item".to_owned();
        let mut number = 1;
        while is_taken(&name) {
            number += 1;
            name = format!("item_{number}");
        }
        name
    }

    fn known(&mut self, keys: &[String]) -> Option<ValueExpression<'i>> {
        let known = self.find(keys)?;
        let root = known.expression.split(['.', '[']).next().unwrap_or_default();
        if self.frames.iter().all(|frame| frame.expression != root) {
            self.roots.insert(root.to_owned());
        }
        Some(known)
    }

    /// What a name means here; `None` if that depends on values.
    fn find(&self, keys: &[String]) -> Option<ValueExpression<'i>> {
        let Some((first, rest)) = keys.split_first() else { return self.frames.last().cloned() };
        if !keys.iter().all(|key| is_name(key)) {
            return None;
        }
        let is_outside = |depth: usize| {
            self.inputs.get(first).is_some()
                || self.frames[..depth].iter().any(|frame| property(frame, first).is_some())
        };
        let mut found = None;
        for (depth, frame) in self.frames.iter().enumerate().rev() {
            match (frame.kind, property(frame, first)) {
                (Kind::Scalar | Kind::List, _) => {}
                (_, Some(declared)) => {
                    // Where it is not given, the name would mean what is around.
                    let is_sure = declared.get("required") == Some(&Json::Bool(true));
                    if !is_sure && is_outside(depth) {
                        return None;
                    }
                    found = Some(part(frame, first, Some(declared)));
                    break;
                }
                (_, None) if has_properties(frame) => {}
                (_, None) if is_outside(depth) => return None,
                (_, None) => {
                    found = Some(part(frame, first, None));
                    break;
                }
            }
        }
        let mut known = match found {
            Some(found) => found,
            None => self.input(first),
        };
        for key in rest {
            if known.kind != Kind::Object && known.kind != Kind::Unknown {
                return None;
            }
            known.needs.push(format!("{} is mapping", known.expression));
            let declared = property(&known, key);
            known = part(&known, key, declared);
        }
        Some(known)
    }

    fn input(&self, name: &str) -> ValueExpression<'i> {
        let input = self.inputs.get(name);
        let kind = match input.map(|input| input.kind) {
            Some(Type::String | Type::Integer | Type::Number | Type::Boolean) => Kind::Scalar,
            Some(Type::List) => Kind::List,
            Some(Type::Object) => Kind::Object,
            Some(Type::Any) | None => Kind::Unknown,
        };
        let is_certain = input.is_some_and(Input::is_certain);
        let shape = input.map(|input| &input.more);
        ValueExpression { expression: name.to_owned(), kind, shape, needs: Vec::new(), is_certain }
    }
}

/// What a property of a value is declared to be.
fn property<'i>(of: &ValueExpression<'i>, name: &str) -> Option<&'i Map<String, Json>> {
    match of.shape?.get("properties")? {
        Json::Object(properties) => properties.get(name)?.as_object(),
        Json::Array(properties) => properties
            .iter()
            .filter_map(Json::as_object)
            .find(|property| property.get("name").and_then(Json::as_str) == Some(name)),
        _ => None,
    }
}

fn has_properties(of: &ValueExpression<'_>) -> bool {
    of.shape.is_some_and(|shape| shape.contains_key("properties"))
}

fn part<'i>(
    of: &ValueExpression<'i>,
    key: &str,
    declared: Option<&'i Map<String, Json>>,
) -> ValueExpression<'i> {
    let mut needs = of.needs.clone();
    let expression = match METHODS.contains(&key) {
        // Without the key, `["items"]` is the method too.
        true => {
            let is_mapping = format!("{} is mapping", of.expression);
            if of.kind != Kind::Object && !needs.contains(&is_mapping) {
                needs.push(is_mapping);
            }
            format!("{}.get(\"{key}\")", of.expression)
        }
        false => format!("{}.{key}", of.expression),
    };
    let is_certain = declared.is_some_and(|declared| declared.get("required") == Some(&Json::Bool(true)));
    ValueExpression { expression, kind: kind_of(declared), shape: declared, needs, is_certain }
}

fn kind_of(declared: Option<&Map<String, Json>>) -> Kind {
    let named =
        declared.and_then(|declared| declared.get("kind").or(declared.get("type"))).and_then(Json::as_str);
    match named.unwrap_or_default() {
        "string" | "integer" | "float" | "number" | "boolean" => Kind::Scalar,
        "array" => Kind::List,
        "object" => Kind::Object,
        _ => Kind::Unknown,
    }
}

fn unclear(what: &str, keys: &[String], range: &std::ops::Range<usize>) -> NotPlain {
    let name = if keys.is_empty() { ".".to_owned() } else { keys.join(".") };
    let what = format!("{what} `{name}` without a declared type");
    NotPlain { range: range.clone(), what }
}
