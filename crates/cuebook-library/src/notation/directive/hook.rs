//! The hooks of a directive: what is to happen at certain moments of a thread. They are read here and run by the code that runs threads.

use serde_json::{Map, Value as Json};

use super::element::DirectiveReader;
use super::metadata::coerced;
use super::opaque::OPAQUE;
use super::xml::{Node, elements, name};
use super::{
    ConditionFault, HOOK_CONTROL, HOOK_CONTROL_PARAMS, HOOK_DECISIONS, HOOK_EVENTS, HOOK_OPERATORS,
    PRIMARIES, condition_fault,
};
use crate::error::{Code, Diagnostic, did_you_mean, nearest};
use crate::source::Place;

/// Whether a hook that decides this changes anything at an event. Unknown decisions are reported elsewhere.
///
/// ```
/// use cuebook::dialect::directive::hook_may_decide;
///
/// assert!(hook_may_decide("error", "retry") && !hook_may_decide("after_step", "retry"));
/// ```
pub fn hook_may_decide(event: &str, decision: &str) -> bool {
    match (event, decision) {
        ("error", "retry") => true,
        (_, "retry") => false,
        // The thread has ended, or has not begun.
        (
            "after_complete" | "build_system_prompt" | "thread_started" | "thread_continued",
            "fail" | "abort" | "suspend" | "escalate",
        ) => false,
        _ => true,
    }
}

/// What a hook can decide at an event, in words.
pub fn decisions_at(event: &str) -> String {
    let decisions: Vec<&str> = ["retry", "fail", "suspend", "escalate", "abort"]
        .into_iter()
        .filter(|name| hook_may_decide(event, name))
        .collect();
    match decisions.is_empty() {
        true => format!("nothing can be decided at `{event}`; use `after_step`, `error` or `limit`"),
        false => format!("use one of these at `{event}`: {}", decisions.join(", ")),
    }
}

impl DirectiveReader<'_> {
    /// One hook: its attributes, and what stands in it by the names of the elements.
    pub(super) fn hook(&mut self, node: Node<'_, '_>) -> Map<String, Json> {
        let mut hook = self.attributes(node);
        if let Some(text) = self.xml.stripped(node) {
            hook.insert("content".into(), text.as_str().into());
        }
        for child in elements(node) {
            match name(child) {
                "condition" => {
                    let mut condition = self.attributes(child);
                    if let Some(value) = condition.get_mut("value")
                        && let Some(text) = value.as_str()
                    {
                        *value = coerced(text);
                    }
                    hook.insert("condition".into(), Json::Object(condition));
                }
                "action" => {
                    let several: Vec<Json> = elements(child)
                        .filter(|inside| PRIMARIES.contains(&name(*inside)))
                        .map(|inside| {
                            let mut action = self.attributes(inside);
                            action.insert("primary".into(), name(inside).into());
                            self.params(&mut action, inside, false);
                            Json::Object(action)
                        })
                        .collect();
                    if several.is_empty() {
                        let mut action = self.attributes(child);
                        self.params(&mut action, child, false);
                        hook.insert("action".into(), Json::Object(action));
                    } else {
                        hook.insert("actions".into(), Json::Array(several));
                    }
                }
                "inputs" => {
                    let inputs: Map<String, Json> = elements(child)
                        .map(|input| {
                            let key = input.attribute("name").unwrap_or(name(input));
                            let text = self.xml.stripped(input);
                            (key.to_owned(), text.map(|text| text.to_string()).unwrap_or_default().into())
                        })
                        .collect();
                    hook.insert("inputs".into(), Json::Object(inputs));
                }
                known if OPAQUE.contains(&known) => {}
                other => {
                    if let Some(text) = self.xml.text(child) {
                        hook.insert(other.to_owned(), text.stripped().as_str().into());
                    }
                }
            }
        }
        self.look_at_hook(node, &hook);
        hook
    }

    /// Notes what keeps a hook from doing what its author wants. It stays readable: only a thread needs it.
    fn look_at_hook(&mut self, node: Node<'_, '_>, hook: &Map<String, Json>) {
        match hook.get("event").and_then(Json::as_str) {
            Some(event) if !HOOK_EVENTS.contains(&event) => {
                let message = format!("unknown event {event:?}");
                self.bad_hook(message, self.value_place(node, "event"), event, &HOOK_EVENTS);
            }
            Some(_) => {}
            None => {
                let message = "the hook has no `event`".to_owned();
                self.bad_hook(message, self.xml.name_place(node), "", &HOOK_EVENTS);
            }
        }
        if !hook.contains_key("action") && !hook.contains_key("actions") {
            let diagnostic = Diagnostic::new(Code::BadHook, "the hook has no `action`")
                .at(self.xml.name_place(node))
                .hint("write <action><execute item_type=\"tool\" item_id=\"…\"/></action>");
            self.notes.push(diagnostic);
        }
        let event = hook.get("event").and_then(Json::as_str).unwrap_or_default();
        for child in elements(node) {
            match name(child) {
                "condition" => {
                    if let Some(operator) = child.attribute("op").filter(|op| !HOOK_OPERATORS.contains(op)) {
                        let message = format!("unknown operator {operator:?}");
                        self.bad_hook(message, self.value_place(child, "op"), operator, &HOOK_OPERATORS);
                    }
                    let value = child.attribute("value").map(coerced);
                    let (path, op) = (child.attribute("path"), child.attribute("op").unwrap_or("eq"));
                    let fault = path.and_then(|path| condition_fault(path, op, value.as_ref()));
                    if let Some(ConditionFault { part, message, hint }) = fault {
                        let diagnostic = Diagnostic::new(Code::BadHook, message).hint_opt(hint);
                        self.notes.push(diagnostic.at(self.value_place(child, part)));
                    }
                }
                "action" => {
                    let several: Vec<Node<'_, '_>> =
                        elements(child).filter(|inside| PRIMARIES.contains(&name(*inside))).collect();
                    if several.is_empty() {
                        let primary = child.attribute("primary").unwrap_or_default();
                        if !PRIMARIES.contains(&primary) {
                            let message = format!("unknown `primary` {primary:?} of an action");
                            self.bad_hook(message, self.value_place(child, "primary"), primary, &PRIMARIES);
                        }
                        self.look_at_decision(child, event);
                    }
                    several.into_iter().for_each(|inside| self.look_at_decision(inside, event));
                }
                _ => {}
            }
        }
    }

    /// Notes an unknown decision, or one that changes nothing at its event. What a thread fills in is known only then.
    fn look_at_decision(&mut self, node: Node<'_, '_>, event: &str) {
        if node.attribute("item_id") != Some(HOOK_CONTROL) {
            return;
        }
        let params: Vec<Node<'_, '_>> = elements(node).filter(|child| name(*child) == "param").collect();
        for &param in &params {
            let given = param.attribute("name").unwrap_or_default();
            if !given.is_empty() && !HOOK_CONTROL_PARAMS.contains(&given) {
                let message = format!("`{HOOK_CONTROL}` has no parameter `{given}`");
                self.bad_hook(message, self.value_place(param, "name"), given, &HOOK_CONTROL_PARAMS);
            }
        }
        let Some(param) = params.into_iter().find(|param| param.attribute("name") == Some("action")) else {
            let message = "the hook has no decision".to_owned();
            return self.bad_hook(message, self.xml.name_place(node), "", &HOOK_DECISIONS);
        };
        let written = self.xml.stripped(param).or_else(|| self.xml.attribute(param, "value"));
        let decision = written.as_ref().map(|text| text.as_str()).unwrap_or_default();
        let place = written.as_ref().map_or_else(|| self.xml.name_place(param), |text| text.place());
        if HOOK_DECISIONS.contains(&decision) || decision.contains("${") {
            if !hook_may_decide(event, decision) {
                let message = format!("the decision {decision:?} has no effect at `{event}`");
                let diagnostic = Diagnostic::new(Code::BadHook, message).at(place);
                self.notes.push(diagnostic.hint(decisions_at(event)));
            }
            return;
        }
        self.bad_hook(format!("unknown decision {decision:?}"), place, decision, &HOOK_DECISIONS);
    }

    fn value_place(&self, node: Node<'_, '_>, attribute: &str) -> Place {
        let written = self.xml.attribute(node, attribute);
        written.map_or_else(|| self.xml.name_place(node), |value| value.place())
    }

    fn bad_hook(&mut self, message: String, place: Place, written: &str, known: &[&str]) {
        let near = did_you_mean(&nearest(written, known.iter().copied()));
        let hint = near.unwrap_or_else(|| format!("use one of: {}", known.join(", ")));
        self.notes.push(Diagnostic::new(Code::BadHook, message).at(place).hint(hint));
    }
}
