//! The metadata of a directive: what it is, which model it is for, how far it may go and what it may do.

use serde_json::{Map, Value as Json, json};

use super::element::DirectiveReader;
use super::opaque::OPAQUE;
use super::written::Written;
use super::xml::{Node, elements, name};
use super::{Directive, PRIMARIES};
use crate::error::{Code, Diagnostic, did_you_mean, nearest};
use crate::items::ItemType;
use crate::source::Place;

/// The elements of metadata that mean something.
const KNOWN: [&str; 13] = [
    "description",
    "category",
    "model",
    "model_class",
    "limits",
    "permissions",
    "hooks",
    "context",
    "author",
    "continuation_directive",
    "name",
    "version",
    "extends",
];

/// The limits that threads know.
const LIMITS: [&str; 8] =
    ["turns", "tokens", "spend", "spend_currency", "spawns", "duration_seconds", "depth", "calls"];

/// What a thread may do. Where it is written makes no difference.
#[derive(Debug, Clone, Default)]
pub struct Permissions {
    /// As patterns, such as `rye.execute.tool.rye.file-system.*`.
    pub capabilities: Vec<String>,
    /// Where they stand, in the same order.
    pub places: Vec<Place>,
    /// Risks that the author knows of.
    pub acknowledged: Vec<Acknowledged>,
}

impl PartialEq for Permissions {
    fn eq(&self, other: &Permissions) -> bool {
        (&self.capabilities, &self.acknowledged) == (&other.capabilities, &other.acknowledged)
    }
}

impl Eq for Permissions {}

/// A risk that the author of a directive knows of.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Acknowledged {
    /// Which one.
    pub risk: String,
    /// Why it is taken.
    pub reason: String,
}

/// Ids of knowledge that a thread is given, by where it stands.
#[derive(Debug, Clone, Default)]
pub struct ContextIds {
    /// In the system's message.
    pub system: Vec<Written>,
    /// Before the prompt.
    pub before: Vec<Written>,
    /// Behind the prompt.
    pub after: Vec<Written>,
    /// Hooks and knowledge that are left out.
    pub suppress: Vec<Written>,
}

impl ContextIds {
    /// The positions by their names.
    pub const POSITIONS: [&str; 4] = ["system", "before", "after", "suppress"];

    /// The ids at a position.
    pub fn at(&self, position: &str) -> &[Written] {
        match position {
            "system" => &self.system,
            "before" => &self.before,
            "after" => &self.after,
            _ => &self.suppress,
        }
    }

    /// The ids of knowledge that a model reads.
    #[doc(hidden)]
    pub fn knowledge(&self) -> impl Iterator<Item = &Written> {
        self.system.iter().chain(&self.before).chain(&self.after)
    }

    pub(super) fn at_mut(&mut self, position: &str) -> &mut Vec<Written> {
        match position {
            "system" => &mut self.system,
            "before" => &mut self.before,
            "after" => &mut self.after,
            _ => &mut self.suppress,
        }
    }

    /// The ids as scripts see them.
    pub fn to_json(&self) -> Json {
        let ids = |position: &str| self.at(position).iter().map(Written::as_str).collect::<Vec<_>>();
        json!({"system": ids("system"), "before": ids("before"), "after": ids("after"), "suppress": ids("suppress")})
    }
}

impl DirectiveReader<'_> {
    pub(super) fn metadata(&mut self, directive: &mut Directive, node: Node<'_, '_>) {
        self.refuse_repeated(node, &KNOWN);
        self.refuse_two_models(node);
        for child in elements(node) {
            let text = || self.xml.text(child).map(Written::stripped);
            match name(child) {
                "description" => directive.description = text().or(directive.description.take()),
                "category" => {
                    // A directive that lies in no folder says so with an empty one.
                    let place = child.range();
                    directive.category = text().or_else(|| {
                        let start = self.xml.start + place.start;
                        Some(Written::verbatim(self.xml.source, start..start))
                    });
                }
                "model" | "model_class" => {
                    let known = ["tier", "id", "provider", "fallback", "fallback_id", "parallel"];
                    self.know_attributes(child, &known);
                    directive.model = Some(self.attributes(child));
                }
                "limits" => {
                    self.know_attributes(child, &LIMITS);
                    self.know_amounts(child);
                    let limits =
                        child.attributes().map(|limit| (limit.name().to_owned(), number(limit.value())));
                    directive.limits = Some(limits.collect());
                    directive.limits_at = Some(self.xml.place(child.range()));
                }
                "permissions" => directive.permissions = Some(self.permissions(child)),
                "hooks" => directive.hooks = Some(elements(child).map(|hook| self.hook(hook)).collect()),
                "context" => directive.context = Some(self.context(child)),
                "inputs" | "outputs" => {
                    let hint = "move it directly into <directive>, next to <metadata>";
                    self.unknown_element(child, &[], hint);
                }
                known if OPAQUE.contains(&known) => {}
                other => {
                    let Some(text) = text() else { continue };
                    match other {
                        "name" => directive.name = Some(text),
                        "version" => directive.version = Some(text),
                        "extends" => directive.extends = Some(text),
                        _ => {
                            if !KNOWN.contains(&other) && elements(child).next().is_some() {
                                self.unknown_element(child, &KNOWN, "only its text is kept");
                            }
                            directive.more.insert(other.to_owned(), text);
                        }
                    }
                }
            }
        }
    }

    /// Refuses two elements that both choose a model.
    fn refuse_two_models(&mut self, node: Node<'_, '_>) {
        let mut models = elements(node).filter(|child| matches!(name(*child), "model" | "model_class"));
        if let (Some(first), Some(second)) = (models.next(), models.next())
            && name(first) != name(second)
        {
            let message = format!("both <{}> and <{}> choose a model", name(first), name(second));
            let diagnostic = Diagnostic::new(Code::BadDirective, message)
                .at(self.xml.name_place(second))
                .related(self.xml.name_place(first), "first one here")
                .hint("remove one of them");
            self.wrong.push(diagnostic);
        }
    }

    /// Notes limits that are no amounts: no thread can begin with them.
    fn know_amounts(&mut self, node: Node<'_, '_>) {
        for limit in node.attributes() {
            let amount = number(limit.value()).as_f64().filter(|amount| *amount >= 0.0);
            let (good, wanted, example) = match limit.name() {
                "spend_currency" => (!limit.value().trim().is_empty(), "a word", "USD"),
                "spend" => (amount.is_some(), "a number that is not negative", "1.50"),
                "duration_seconds" => (amount.is_some(), "a number that is not negative", "600"),
                name if LIMITS.contains(&name) => (
                    amount.is_some_and(|amount| amount.fract() == 0.0),
                    "a whole number that is not negative",
                    "25",
                ),
                _ => continue,
            };
            if !good {
                let message =
                    format!("the limit `{}` must be {wanted}, but is {:?}", limit.name(), limit.value());
                let finding =
                    Diagnostic::new(Code::BadLimit, message).at(self.xml.place(limit.range_value()));
                self.notes.push(finding.hint(format!("write {}=\"{example}\"", limit.name())));
            }
        }
    }

    /// Warns of a permission for something that is no item: it permits nothing, and its author thinks that it does.
    fn know_type(&mut self, node: Node<'_, '_>, primary: &str) {
        let types = ItemType::ALL.map(ItemType::as_str);
        if types.contains(&name(node)) {
            return;
        }
        let message = format!("<{}> inside <{primary}> permits nothing", name(node));
        let near = did_you_mean(&nearest(name(node), types));
        let hint = near.unwrap_or_else(|| format!("known permissions: {}", types.join(", ")));
        let finding = Diagnostic::new(Code::UnknownKey, message).at(self.xml.name_place(node)).hint(hint);
        self.notes.push(finding);
    }

    fn permissions(&mut self, node: Node<'_, '_>) -> Permissions {
        let mut permissions = Permissions::default();
        let is_all = |text: Option<Written>| text.is_some_and(|text| &*text == "*");
        // A star and nothing else is everything; a risk that is known beside it takes nothing away.
        if is_all(self.xml.stripped(node)) && elements(node).all(|child| name(child) == "acknowledge") {
            permissions.capabilities.push("rye.*".to_owned());
            permissions.places.push(self.xml.name_place(node));
        }
        for child in elements(node) {
            match name(child) {
                "acknowledge" => {
                    let reason =
                        self.xml.stripped(child).map(|reason| reason.to_string()).unwrap_or_default();
                    match child.attribute("risk").filter(|risk| !risk.is_empty()) {
                        Some(risk) => {
                            permissions.acknowledged.push(Acknowledged { risk: risk.to_owned(), reason })
                        }
                        None => self.unknown_element(child, &[], "name the risk: <acknowledge risk=\"…\">"),
                    }
                }
                primary if PRIMARIES.contains(&primary) => {
                    let mut inside = elements(child).peekable();
                    let found: Vec<(String, Place)> = if inside.peek().is_some() {
                        inside
                            .filter_map(|what| {
                                self.know_type(what, primary);
                                let text = self.xml.stripped(what)?;
                                Some((format!("rye.{primary}.{}.{text}", name(what)), text.place()))
                            })
                            .collect()
                    } else {
                        let text = self.xml.stripped(child);
                        let text = text.map(|text| (format!("rye.{primary}.{text}"), text.place()));
                        text.into_iter().collect()
                    };
                    for (capability, place) in found {
                        permissions.capabilities.push(capability);
                        permissions.places.push(place);
                    }
                }
                other => {
                    let message = format!(
                        "Unknown tag <{other}> inside <permissions>. Valid tags: acknowledge, execute, load, search, sign"
                    );
                    let near = nearest(other, PRIMARIES.into_iter().chain(["acknowledge"]));
                    let hint = did_you_mean(&near).unwrap_or_else(|| {
                        "write <execute><tool>rye.file-system.*</tool></execute>, or `*` for everything"
                            .to_owned()
                    });
                    let diagnostic = Diagnostic::new(Code::BadDirective, message);
                    self.wrong.push(diagnostic.at(self.xml.name_place(child)).hint(hint));
                }
            }
        }
        permissions
    }

    fn context(&mut self, node: Node<'_, '_>) -> ContextIds {
        let mut context = ContextIds::default();
        for child in elements(node) {
            if !ContextIds::POSITIONS.contains(&name(child)) {
                self.unknown_element(
                    child,
                    &ContextIds::POSITIONS,
                    "write <system>, <before>, <after> or <suppress>",
                );
            } else if let Some(id) = self.xml.stripped(child) {
                context.at_mut(name(child)).push(id);
            }
        }
        context
    }
}

/// A limit as a number, where it is one as Python writes it: with a dot it is a float, without one an integer.
pub(super) fn number(text: &str) -> Json {
    let digits = text.trim();
    // Python lets single underscores stand between digits.
    let bare: String = digits.replace('_', "");
    let underscores = !digits.contains("__") && !digits.starts_with('_') && !digits.ends_with('_');
    let plain = bare.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let number = if !underscores || !plain {
        None
    } else if bare.contains('.') {
        bare.parse::<f64>().ok().and_then(serde_json::Number::from_f64)
    } else {
        bare.parse::<i64>().ok().map(serde_json::Number::from)
    };
    number.map_or_else(|| text.into(), Json::Number)
}

/// The value of a condition: a boolean or a number where it looks like one.
pub(super) fn coerced(text: &str) -> Json {
    match text.to_lowercase().as_str() {
        "true" => return true.into(),
        "false" => return false.into(),
        _ => {}
    }
    match number(text) {
        Json::String(text) => {
            let plain = text.bytes().any(|byte| byte.is_ascii_digit())
                && text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
            let float =
                plain.then(|| text.parse::<f64>().ok().and_then(serde_json::Number::from_f64)).flatten();
            float.map_or(Json::String(text), Json::Number)
        }
        number => number,
    }
}

#[doc(hidden)]
pub fn permissions_json(permissions: &Permissions, object: &mut Map<String, Json>) {
    let capabilities = permissions.capabilities.iter();
    let capabilities: Vec<Json> =
        capabilities.map(|capability| json!({"tag": "cap", "content": capability})).collect();
    if !permissions.acknowledged.is_empty() {
        let risks = permissions.acknowledged.iter();
        let risks: Vec<Json> =
            risks.map(|known| json!({"risk": known.risk, "reason": known.reason})).collect();
        object.insert("acknowledged_risks".into(), Json::Array(risks));
    }
    object.insert("permissions".into(), Json::Array(capabilities));
}
