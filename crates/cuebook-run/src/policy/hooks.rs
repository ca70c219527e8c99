//! Hooks: what is to happen at certain moments of a thread, and under which condition.
//!
//! ```yaml
//! hooks:
//!   - id: cheap
//!     event: after_step
//!     condition: {path: cost.spend, op: gte, value: 0.5}
//!     action: {primary: execute, item_type: tool, item_id: rye/agent/threads/internal/control, params: {action: suspend}}
//! ```
//!
//! Hooks of the user come first, then those of the directive, those that are built in, those of the project, and at last those that
//! only keep books. Events are of two kinds: at a *control* event the first hook that [decides](super::control::Control) something
//! is obeyed, from any author, except the book-keepers; at a *context* event all texts are collected. Here hooks are read and chosen;
//! the code that runs the thread carries their actions out.

mod read;

use serde_json::{Map, Value as Json};

pub use read::{of_directive, of_file};

use super::condition;
use super::interpolate;
use super::tool_result::text_of;

/// Events at which a hook can decide how the thread goes on.
pub const CONTROL_EVENTS: [&str; 6] =
    ["error", "limit", "after_step", "directive_return", "context_limit_reached", "after_complete"];

/// Events at which hooks add to what the model gets.
pub const CONTEXT_EVENTS: [&str; 3] = ["build_system_prompt", "thread_started", "thread_continued"];

/// Who wrote a hook, in the order in which they are heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// The user, for all projects.
    User,
    /// The directive.
    Directive,
    /// Cuebook itself.
    Builtin,
    /// The project.
    Project,
    /// No one in particular: hooks that keep books and decide nothing.
    Infra,
}

impl Layer {
    const ALL: [Layer; 5] = [Layer::User, Layer::Directive, Layer::Builtin, Layer::Project, Layer::Infra];
}

/// Where a text goes that a hook adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Position {
    /// Before the prompt.
    #[default]
    Before,
    /// Behind it.
    After,
}

/// What a hook does.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// `execute`, `search`, `load` or `sign`.
    pub primary: String,
    /// The type of item; empty for a search in all.
    pub item_type: String,
    /// The item; empty for a search.
    pub item_id: String,
    /// What it is given.
    pub params: Map<String, Json>,
    /// Whether the capabilities of the thread must allow it: whatever a directive does, it does under its permissions; and where
    /// values of the thread are part of the id, a model may have had a hand in it.
    pub bound: bool,
}

/// A hook.
#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    /// Its name.
    pub id: String,
    /// When it happens.
    pub event: String,
    /// Who is heard first.
    pub layer: Layer,
    /// Where its text goes.
    pub position: Position,
    /// Whether its text is put into an element that says where it is from.
    pub wrap: bool,
    /// When it applies.
    pub condition: Json,
    /// What it does, with placeholders.
    pub actions: Vec<Action>,
    /// Where it is written, as words behind its name: `of directive a/b`, `in FILE`.
    pub whose: String,
}

/// A hook that applies, with everything filled in.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Firing {
    /// Its name.
    pub hook_id: String,
    /// What it does.
    pub actions: Vec<Action>,
    /// Where its text goes.
    pub position: Position,
    /// Whether its text is put into an element.
    pub wrap: bool,
    /// Whether it may decide how the thread goes on.
    pub controls: bool,
    /// Where it is written.
    pub whose: String,
}

/// The hooks of a thread, in the order in which they are heard.
#[derive(Debug, Clone, Default)]
pub struct Hooks(Vec<Hook>);

impl Hooks {
    /// Puts the hooks of all together.
    pub fn merged(user: Vec<Hook>, directive: Vec<Hook>, builtin: Vec<Hook>, project: Vec<Hook>) -> Hooks {
        let mut all: Vec<Hook> = [user, directive, builtin, project].into_iter().flatten().collect();
        all.sort_by_key(|hook| hook.layer);
        Hooks(all)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Hook> {
        self.0.iter()
    }

    /// Takes away hooks by their names, or by the knowledge that they add.
    pub fn suppress<S: AsRef<str>>(&mut self, names: &[S]) {
        let named = |name: &str| names.iter().any(|suppressed| suppressed.as_ref() == name);
        let adds = |hook: &Hook| {
            hook.actions.iter().any(|action| action.item_type == "knowledge" && named(&action.item_id))
        };
        self.0.retain(|hook| !named(&hook.id) && !adds(hook));
    }

    /// The hooks that apply to an event, in order.
    pub fn matching(&self, event: &str, context: &Json) -> Vec<Firing> {
        let applies = |hook: &&Hook| hook.event == event && condition::evaluate(&hook.condition, context);
        self.0.iter().filter(applies).map(|hook| hook.firing(context)).collect()
    }
}

impl Hook {
    fn firing(&self, context: &Json) -> Firing {
        let filled = |action: &Action| {
            let id = interpolate::interpolate(&Json::String(action.item_id.clone()), context);
            Action {
                primary: action.primary.clone(),
                item_type: action.item_type.clone(),
                item_id: if id.is_null() { String::new() } else { text_of(&id) },
                params: interpolate::map_filled(&action.params, context),
                bound: action.bound,
            }
        };
        Firing {
            hook_id: self.id.clone(),
            actions: self.actions.iter().map(filled).collect(),
            position: self.position,
            wrap: self.wrap,
            controls: self.layer != Layer::Infra,
            whose: self.whose.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use cuebook::dialect::directive;
    use cuebook::source::Source;
    use cuebook::{Code, Result};
    use serde_json::json;

    use super::*;

    fn file(text: &str, layer: Layer) -> Result<Vec<Hook>> {
        of_file(&Source::new("hooks.yaml", text), layer)
    }

    fn hook(id: &str, event: &str, layer: Layer) -> Vec<Hook> {
        let text = format!(
            "hooks: [{{id: {id}, event: {event}, action: {{primary: load, item_type: knowledge, item_id: k/{id}}}}}]"
        );
        file(&text, layer).unwrap()
    }

    fn ids(hooks: &Hooks) -> Vec<&str> {
        hooks.iter().map(|hook| hook.id.as_str()).collect()
    }

    #[test]
    fn hooks_of_a_directive_are_read_and_filled() {
        let text = "```xml\n<directive name=\"d\"><metadata><hooks>\n<hook id=\"h\" event=\"limit\"><condition path=\"cost.spend\" op=\"gt\" value=\"1.5\"/>\n<action><execute item_id=\"a/${directive}\"><param name=\"n\">${cost.spend}</param></execute><load item_type=\"knowledge\" item_id=\"k\"/></action></hook>\n<hook event=\"thread_started\" position=\"after\" wrap=\"false\"><action primary=\"load\" item_type=\"knowledge\" item_id=\"k\"/></hook>\n</hooks></metadata></directive>\n```\n";
        let directive = directive::read(&Source::new("d.md", text)).unwrap();
        let hooks = of_directive("d", &directive.hooks.unwrap()).unwrap();
        assert_eq!(
            (hooks[1].id.as_str(), hooks[1].position, hooks[1].wrap),
            ("thread_started_1", Position::After, false)
        );
        let hooks = Hooks::merged(vec![], hooks, vec![], vec![]);
        assert!(hooks.matching("limit", &json!({"cost": {"spend": 1.5}})).is_empty());
        let firing = hooks.matching("limit", &json!({"cost": {"spend": 2.0}, "directive": "x"})).remove(0);
        assert_eq!((firing.hook_id.as_str(), firing.actions.len(), firing.controls), ("h", 2, true));
        let first = &firing.actions[0];
        assert_eq!(
            (first.primary.as_str(), first.item_type.as_str(), first.item_id.as_str()),
            ("execute", "tool", "a/x")
        );
        assert_eq!((&first.params["n"], first.bound), (&json!(2.0), true));
        assert!(firing.actions[1].bound, "it is of a directive");
        let of_user = &hook("u", "limit", Layer::User)[0];
        assert!(!of_user.actions[0].bound);
    }

    #[test]
    fn checked_names_of_directives_are_those_of_threads() {
        let known: Vec<&str> = CONTROL_EVENTS.into_iter().chain(CONTEXT_EVENTS).collect();
        assert_eq!(known, directive::HOOK_EVENTS);
        let text = "hooks:\n  - event: limit\n    action: {primary: execute, item_id: rye/agent/threads/internal/control, params: {action: suspnd}}\n";
        let error = file(text, Layer::User).unwrap_err();
        assert_eq!(error.diagnostic().message, "unknown decision \"suspnd\"");
        assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `suspend`?"));
        assert_eq!(error.diagnostic().place.as_ref().unwrap().line(), 3);
        let error = file(&text.replace("suspnd", "retry"), Layer::User).unwrap_err();
        assert_eq!(error.diagnostic().message, "the decision \"retry\" has no effect at `limit`");
        assert_eq!(error.diagnostic().place.as_ref().unwrap().line(), 3);
        assert!(
            file(&text.replace("suspnd", "\"${cost.what}\""), Layer::User).is_ok(),
            "that is known only then"
        );
        assert!(file(&text.replace("suspnd", "continue"), Layer::User).is_ok());
        let text = "hooks:\n  - event: limit\n    action:\n      primary: execute\n      item_id: rye/agent/threads/internal/control\n      params:\n        action: suspend\n        suspend_reson: later\n";
        let error = file(text, Layer::User).unwrap_err();
        let reported = error.diagnostic();
        assert_eq!(reported.message, "`rye/agent/threads/internal/control` takes no `suspend_reson`");
        assert_eq!(reported.hint.as_deref(), Some("did you mean `suspend_reason`?"));
        assert_eq!(reported.place.as_ref().unwrap().line(), 8);
    }

    #[test]
    fn invalid_conditions_are_reported_at_their_place() {
        for (condition, line, message) in [
            ("{path: cost.spnd, op: gte,\n      value: 1}", 3, "a thread has no `cost.spnd`"),
            (
                "{path: cost.spend, op: gte,\n      value: a lot}",
                4,
                "this condition is never true: `cost.spend` is a number, but the value is a string",
            ),
            ("{path: error, op: regex,\n      value: (a}", 4, "invalid pattern of `regex`: unclosed group"),
        ] {
            let text = format!(
                "hooks:\n  - event: limit\n    condition: {condition}\n    action: {{primary: execute, item_id: a}}\n"
            );
            let error = file(&text, Layer::User).unwrap_err();
            assert_eq!(error.diagnostic().message, message);
            assert_eq!(error.diagnostic().place.as_ref().unwrap().line(), line, "{text}");
        }
    }

    #[test]
    fn conditions_read_every_field_of_cost_and_limits() {
        let cost = crate::store::Cost { estimated: 1, unpriced: true, ..Default::default() }.to_json();
        let limits = crate::policy::limits::ThreadLimits::defaults().to_json();
        for (whole, fields) in [("cost", &cost), ("limits", &limits)] {
            for (field, value) in fields.as_object().unwrap() {
                let condition = json!({"path": format!("{whole}.{field}"), "op": "eq", "value": value});
                crate::policy::condition::check(&condition).unwrap();
            }
        }
    }

    #[test]
    fn hooks_decide_in_the_order_of_their_layers() {
        let hooks = Hooks::merged(
            hook("u", "error", Layer::User),
            hook("d", "error", Layer::Directive),
            [hook("i", "error", Layer::Infra), hook("b", "error", Layer::Builtin)].concat(),
            [hook("p", "error", Layer::Project), hook("q", "error", Layer::Project)].concat(),
        );
        assert_eq!(ids(&hooks), ["u", "d", "b", "p", "q", "i"]);
        let controls: Vec<bool> =
            hooks.matching("error", &json!({})).iter().map(|firing| firing.controls).collect();
        assert_eq!(controls, [true, true, true, true, true, false]);
    }

    #[test]
    fn a_hook_may_step_back_and_never_forward() {
        let layer = |written: &str| {
            let text = format!(
                "hooks: [{{event: limit, layer: {written}, action: {{primary: execute, item_id: a}}}}]"
            );
            file(&text, Layer::Project).map(|hooks| hooks[0].layer)
        };
        assert_eq!(layer("0").unwrap(), Layer::Project);
        assert_eq!(layer("\"4\"").unwrap(), Layer::Infra);
        assert!(layer("5").is_err() && layer("high").is_err() && layer("-1").is_err());
    }

    #[test]
    fn hooks_can_be_suppressed_by_name_and_by_knowledge() {
        let mut hooks = Hooks::merged(
            vec![],
            vec![],
            [hook("a", "thread_started", Layer::Builtin), hook("b", "thread_started", Layer::Builtin)]
                .concat(),
            hook("c", "limit", Layer::Project),
        );
        hooks.suppress(&["a", "k/c", "k", "b/k"]);
        assert_eq!(ids(&hooks), ["b"]);
    }

    #[test]
    fn errors_in_a_file_have_a_place_and_a_fix() {
        let action = "action: {primary: execute, item_id: a}";
        for (text, line, message, hint) in [
            (
                format!("hooks:\n  - event: limt\n    {action}\n"),
                2,
                "unknown thread event \"limt\"",
                "did you mean `limit`?",
            ),
            (
                format!("hooks:\n  - event: limit\n    when: x\n    {action}\n"),
                3,
                "unknown key `when` in a hook",
                "there are id",
            ),
            (format!("hooks:\n  - {action}\n"), 2, "a hook has no `event`", ""),
            ("hooks:\n  - event: limit\n".to_owned(), 2, "a hook has no `action`", "write <action>"),
            (
                format!(
                    "hooks:\n  - event: limit\n    condition:\n      all:\n        - {{path: a, op: eqq, value: 1}}\n    {action}\n"
                ),
                5,
                "unknown operator \"eqq\"",
                "did you mean `eq`?",
            ),
            (
                "hooks:\n  - event: limit\n    actions:\n      - {primary: exec, item_id: a}\n".to_owned(),
                4,
                "invalid `primary` of an action: \"exec\"",
                "did you mean `execute`?",
            ),
            (
                "hooks:\n  - event: limit\n    action: {primary: load, item_id: a}\n".to_owned(),
                3,
                "invalid `item_type` of an action: nothing",
                "",
            ),
            (
                "hooks:\n  - event: limit\n    action: {primary: execute}\n".to_owned(),
                3,
                "an action has no `item_id`",
                "",
            ),
            ("hooks: {}\n".to_owned(), 1, "`hooks` must be a list, not an object", ""),
            ("- event: limit\n".to_owned(), 1, "the file must hold a map, not a list", "put the list under"),
            ("hook: []\n".to_owned(), 1, "unknown key `hook` in a hook", "did you mean `hooks`?"),
        ] {
            let error = file(&text, Layer::User).unwrap_err();
            let found = error.diagnostic();
            assert_eq!((error.code(), found.message.as_str()), (Code::BadHook, message));
            assert_eq!(found.place.as_ref().unwrap().line(), line, "{message}");
            assert!(
                found.hint.as_deref().unwrap_or_default().starts_with(hint),
                "{message}: {:?}",
                found.hint
            );
        }
        assert!(
            file("", Layer::User).unwrap().is_empty() && file("hooks:\n", Layer::User).unwrap().is_empty()
        );
        assert_eq!(file("hooks: [", Layer::User).unwrap_err().code(), Code::BadHook);
    }

    #[test]
    fn errors_in_a_directive_name_the_hook() {
        let hooks = [json!({"event": "limit", "when": "cost > 1", "execute": "x"})];
        let hooks: Vec<Map<String, Json>> =
            hooks.iter().map(|hook| hook.as_object().cloned().unwrap()).collect();
        let error = of_directive("web/build", &hooks).unwrap_err();
        let message = &error.diagnostic().message;
        assert!(message.ends_with("(hook 1 of directive web/build)"), "{message}");
    }
}
