//! What a thread may do: capabilities such as `rye.execute.tool.rye.file-system.*`.
//!
//! A capability is a pattern of `rye.<action>.<type>.<id>`, in which the id has dots for its slashes. Nothing is allowed that no
//! capability matches, and a thread without capabilities may do nothing. Decisions that are not obvious:
//!
//! - An id that no item can have (`..`, a backslash, a control character) is denied whatever the capabilities say, before anything
//!   looks at it. Wildcards in an *id* are letters like others.
//! - A dot inside of a part of an id is not the dot between two parts: `a.b/c` and `a/b/c` are different items, and a capability for one
//!   says nothing about the other. `[.]`, `?` and `*` match such a dot.
//! - Case and Unicode count letter for letter: what only looks the same is something else.
//! - To search a type is one permission for all items of the type: `rye.search.directive` and `rye.search.directive.*` both give it.
//! - The internal tools of threads may always be executed, and only that.
//! - A child gets what it asks for as far as its parent has it. One that declares nothing gets what its parent has.

use cuebook::items::ItemId;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use serde_json::{Value as Json, json};

use super::glob::{Glob, PatternChar, letters};

pub use super::token::{expand, token_matches};

/// What can be done with items.
pub const ACTIONS: [&str; 4] = ["execute", "search", "load", "sign"];

/// Tools that threads need themselves.
const INTERNAL: &str = "rye/agent/threads/internal/";

/// What a thread may do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capabilities(Vec<String>);

impl Capabilities {
    /// Capabilities as they were written, with dots or slashes. Each is kept once.
    ///
    /// ```
    /// use cuebook_run::policy::capability::Capabilities;
    ///
    /// let capabilities = Capabilities::new(["rye.execute.tool.rye/file-system/*".to_owned()]);
    /// assert!(capabilities.check("execute", "tool", "rye/file-system/write").is_ok());
    /// assert!(capabilities.check("execute", "tool", "rye/bash/bash").is_err());
    /// ```
    pub fn new(patterns: impl IntoIterator<Item = String>) -> Capabilities {
        let mut capabilities = Capabilities::default();
        patterns.into_iter().for_each(|pattern| capabilities.add(pattern));
        capabilities
    }

    /// Adds one.
    pub fn add(&mut self, pattern: impl Into<String>) {
        let pattern = pattern.into().trim().replace('/', ".");
        if !pattern.is_empty() && !self.0.contains(&pattern) {
            self.0.push(pattern);
        }
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether there are none, so that nothing is allowed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether something may be done: `execute`, `search`, `load` or `sign`, with a type of item and an id. The id of a search does
    /// not matter.
    pub fn check(&self, action: &str, item_type: &str, item_id: &str) -> Result<(), Denied> {
        let denied = |error: String| {
            Err(Denied {
                action: action.to_owned(),
                item_type: item_type.to_owned(),
                item_id: item_id.to_owned(),
                error,
            })
        };
        if !ACTIONS.contains(&action) {
            return denied(format!(
                "Permission denied: unknown action {action:?}, use {}",
                ACTIONS.join(", ")
            ));
        }
        // A type with a dot could pass for a type and the beginning of an id.
        if item_type.is_empty() || !item_type.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') {
            return denied(format!("Permission denied: unknown item type {item_type:?}"));
        }
        let id = if action == "search" { "" } else { item_id };
        if !id.is_empty()
            && let Err(error) = ItemId::new(id)
        {
            let why = error.diagnostic().hint.as_deref().unwrap_or_default();
            return denied(format!("Permission denied: {}: {why}", error.diagnostic().message));
        }
        if action == "execute" && item_type == "tool" && id.starts_with(INTERNAL) {
            return Ok(());
        }
        if self.0.is_empty() {
            let target = if item_id.is_empty() { item_type } else { item_id };
            return denied(format!(
                "Permission denied: no capabilities declared. Cannot {action} {item_type} '{target}'"
            ));
        }
        let (text, shown) = required(action, item_type, id);
        if self.0.iter().map(|pattern| Glob::new(pattern)).any(|pattern| admits(&pattern, action, &text)) {
            return Ok(());
        }
        let have: Vec<String> = self.0.iter().map(|pattern| format!("'{pattern}'")).collect();
        denied(format!("Permission denied: '{shown}' not covered by capabilities [{}]", have.join(", ")))
    }

    /// Whether anything at all may be done of a kind: `execute`, `search`, `load` or `sign`. A model is not offered what it may
    /// never do.
    pub fn allows_some(&self, action: &str) -> bool {
        let wanted = Glob::new(&format!("rye.{action}.*"));
        let words = format!("rye.{action}");
        self.0.iter().any(|pattern| {
            let own = Glob::new(pattern);
            grants(&wanted, &own) || grants(&own, &wanted) || *pattern == words
        })
    }

    /// What a child may do that asks for these: nothing that its parent may not. Where it asks for more, it gets every capability of
    /// its parent within that; where it asks for nothing, it gets what its parent has.
    pub fn attenuate(&self, parent: Option<&Capabilities>) -> Capabilities {
        let Some(parent) = parent else { return self.clone() };
        if self.is_empty() {
            return parent.clone();
        }
        let theirs: Vec<Glob> = parent.iter().map(Glob::new).collect();
        let mut kept = Capabilities::default();
        for pattern in &self.0 {
            let wanted = Glob::new(pattern);
            if theirs.iter().any(|has| grants(has, &wanted)) {
                kept.add(pattern.as_str());
                continue;
            }
            let narrower = parent.0.iter().zip(&theirs).filter(|(_, has)| grants(&wanted, has));
            narrower.for_each(|(pattern, _)| kept.add(pattern.as_str()));
        }
        kept
    }

    /// The capabilities as scripts and logs see them.
    pub fn to_json(&self) -> Json {
        json!(self.0)
    }

    /// What [`Capabilities::to_json`] wrote into a log.
    ///
    /// # Errors
    ///
    /// `CB714` if it is something else.
    pub fn from_json(json: &Json) -> Result<Capabilities> {
        let patterns: Option<Vec<String>> =
            json.as_array().and_then(|all| all.iter().map(|one| one.as_str().map(str::to_owned)).collect());
        let Some(patterns) = patterns else {
            let diagnostic = Diagnostic::new(
                Code::BrokenLog,
                "the capabilities in the thread's log are not a list of patterns",
            )
            .hint("another program wrote the log; start a new thread");
            return Err(Error::new(ErrorKind::Integrity, diagnostic));
        };
        Ok(Capabilities::new(patterns))
    }
}

/// What is needed for something, as letters and as it is shown: as the capability that would allow it.
fn required(action: &str, item_type: &str, id: &str) -> (Vec<PatternChar>, String) {
    let mut text = letters(&format!("rye.{action}.{item_type}"));
    let mut shown = format!("rye.{action}.{item_type}");
    if !id.is_empty() {
        text.push(('.', false));
        shown.push('.');
    }
    for c in id.chars() {
        match c {
            '/' => {
                text.push(('.', false));
                shown.push('.');
            }
            // Written as the set that matches nothing but this letter.
            '.' | '*' | '?' | '[' => {
                text.push((c, c == '.'));
                shown.extend(['[', c, ']']);
            }
            other => {
                text.push((other, false));
                shown.push(other);
            }
        }
    }
    (text, shown)
}

/// Whether a capability allows something. One for everything in a type lets the type be searched.
fn admits(pattern: &Glob, action: &str, text: &[PatternChar]) -> bool {
    let all_of_type = || action == "search" && pattern.folder().is_some_and(|folder| folder.matches(text));
    pattern.matches(text) || all_of_type()
}

/// Whether one capability allows everything that another one does.
fn grants(wide: &Glob, narrow: &Glob) -> bool {
    let searches =
        |narrow: &Glob| wide.covers(narrow) || wide.folder().is_some_and(|folder| folder.covers(narrow));
    match narrow.folder() {
        // It also lets its folder be searched, which the other one must do as well.
        Some(folder) => wide.covers(narrow) && searches(&folder),
        None => wide.covers(narrow) || (narrow.begins_with("rye.search.") && searches(narrow)),
    }
}

/// Something that may not be done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denied {
    /// What was to be done.
    pub action: String,
    /// With which type of item.
    pub item_type: String,
    /// With which item.
    pub item_id: String,
    /// Why not.
    pub error: String,
}

impl Denied {
    /// What the model gets instead of a result.
    pub fn to_json(&self) -> Json {
        json!({
            "error": self.error,
            "denied_action": self.action,
            "denied_item_type": self.item_type,
            "denied_item_id": self.item_id,
        })
    }

    /// `CB717`, for callers that are not a model.
    pub fn into_error(self) -> Error {
        let diagnostic = Diagnostic::new(Code::NotPermitted, &self.error)
            .hint("a thread's capabilities are in the <permissions> of its directive; a child never holds a capability that its parent lacks");
        Error::new(ErrorKind::Execute, diagnostic)
            .with("denied_action", self.action)
            .with("denied_item_type", self.item_type)
            .with("denied_item_id", self.item_id)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn capabilities(patterns: &[&str]) -> Capabilities {
        Capabilities::new(patterns.iter().map(|pattern| (*pattern).to_owned()))
    }

    fn allowed(patterns: &[&str], action: &str, item_type: &str, id: &str) -> bool {
        capabilities(patterns).check(action, item_type, id).is_ok()
    }

    #[test]
    fn a_thread_without_capabilities_runs_nothing() {
        let none = Capabilities::default();
        let denied = none.check("search", "directive", "").unwrap_err();
        assert_eq!(
            denied.error,
            "Permission denied: no capabilities declared. Cannot search directive 'directive'"
        );
        assert!(none.check("execute", "tool", "rye/agent/threads/internal/control").is_ok());
        for (action, item_type, id) in [
            ("sign", "tool", "rye/agent/threads/internal/control"),
            ("execute", "directive", "rye/agent/threads/internal/control"),
            ("execute", "tool", "rye/agent/threads/internal/"),
            ("execute", "tool", "rye/agent/threads/internal/../../bash/bash"),
            ("execute", "tool", "rye/agent/threads/internalx/y"),
        ] {
            assert!(none.check(action, item_type, id).is_err(), "{action} {item_type} {id}");
        }
    }

    #[test]
    fn a_denial_says_what_would_be_needed() {
        let denied =
            capabilities(&["rye.load.*", "rye.search.*"]).check("execute", "tool", "a.b/c*").unwrap_err();
        assert_eq!(
            denied.error,
            "Permission denied: 'rye.execute.tool.a[.]b.c[*]' not covered by capabilities ['rye.load.*', 'rye.search.*']"
        );
        assert!(allowed(&["rye.execute.tool.a[.]b.c[*]"], "execute", "tool", "a.b/c*"));
        assert_eq!(denied.to_json()["denied_item_id"], "a.b/c*");
        assert_eq!(denied.into_error().code(), Code::NotPermitted);
    }

    #[test]
    fn ids_that_differ_in_dots_and_slashes_are_different() {
        for pattern in ["rye.execute.tool.a.b.c", "rye.execute.tool.a/b/c", "rye.execute.tool.a.b.*"] {
            assert!(allowed(&[pattern], "execute", "tool", "a/b/c"), "{pattern}");
            for id in ["a.b/c", "a.b.c"] {
                assert!(!allowed(&[pattern], "execute", "tool", id), "{pattern} {id}");
            }
        }
        assert!(!allowed(&["rye.execute.tool.a.b.c"], "execute", "tool", "a/b.c"));
        assert!(!allowed(&["rye.execute.tool.a.*"], "execute", "tool", "a.b/c"));
        assert!(allowed(&["rye.execute.tool.a[.]b.c"], "execute", "tool", "a.b/c"));
        assert!(allowed(&["rye.execute.tool.*"], "execute", "tool", "a.b/c"));
    }

    #[test]
    fn an_id_that_nothing_can_have_is_denied_whatever_is_allowed() {
        for id in ["..", "a/../b", "/etc/passwd", "a\\b", "a//b", "a\0b", "a\nb", "./a", "a/"] {
            let denied = capabilities(&["rye.*", "*"]).check("execute", "tool", id).unwrap_err();
            assert!(denied.error.contains("invalid item id"), "{id:?}: {}", denied.error);
        }
    }

    #[test]
    fn wildcards_in_an_id_are_letters() {
        assert!(!allowed(&["rye.execute.tool.rye.bash.bash"], "execute", "tool", "*"));
        assert!(!allowed(&["rye.execute.tool.rye.bash.bash"], "execute", "tool", "rye/bash/*"));
        assert!(!allowed(&["rye.execute.tool.ab"], "execute", "tool", "a?"));
        assert!(!allowed(&["rye.execute.tool.ab"], "execute", "tool", "[a]b"));
    }

    #[test]
    fn capabilities_with_similar_names_differ() {
        assert!(!allowed(&["rye.execute.tool.bash"], "execute", "tool", "Bash"));
        assert!(!allowed(&["rye.execute.tool.bash"], "execute", "tool", "b\u{430}sh"));
        assert!(!allowed(&["rye.execute.tool.\u{e9}"], "execute", "tool", "e\u{301}"));
        assert!(!allowed(&["rye.execute.tool.a.b"], "execute", "tool", "a\u{ff0f}b"));
    }

    #[test]
    fn an_action_or_type_cannot_carry_a_part_of_the_id() {
        let patterns = ["rye.execute.tool.rye.bash.*", "rye.execute.tool.x"];
        assert!(!allowed(&patterns, "execute", "tool.rye.bash", "bash"));
        assert!(!allowed(&patterns, "execute.tool", "x", ""));
        assert!(!allowed(&["rye.*"], "execute", "", "x"));
        assert!(!allowed(&["rye.*"], "destroy", "tool", "x"));
        assert!(!allowed(&["rye.*"], "execute", "*", "x"));
    }

    #[test]
    fn everything_of_a_type_can_be_searched_with_either_form() {
        for pattern in
            ["rye.search.directive", "rye.search.directive.*", "rye.search.*", "rye.*", "rye.search.*.*"]
        {
            assert!(allowed(&[pattern], "search", "directive", ""), "{pattern}");
        }
        for pattern in ["rye.search.directive.web.*", "rye.search.tool.*", "rye.load.directive.*"] {
            assert!(!allowed(&[pattern], "search", "directive", "web/build"), "{pattern}");
        }
        assert!(!allowed(&["rye.load.directive.*"], "load", "directive", ""));
    }

    #[test]
    fn a_child_gets_all_of_its_parents_capabilities_within_its_own() {
        let attenuate =
            |child: &[&str], parent: &[&str]| capabilities(child).attenuate(Some(&capabilities(parent))).0;
        assert_eq!(attenuate(&["rye.*"], &["rye.load.*", "rye.search.*"]), ["rye.load.*", "rye.search.*"]);
        assert_eq!(attenuate(&["rye.execute.tool.a.b"], &["rye.execute.tool.a.*"]), ["rye.execute.tool.a.b"]);
        assert_eq!(attenuate(&["rye.load.*"], &["rye.load.knowledge.x", "rye.*"]), ["rye.load.*"]);
        assert_eq!(attenuate(&["rye.sign.*"], &["rye.execute.*"]), [""; 0]);
        assert_eq!(attenuate(&["rye.execute.*"], &[]), [""; 0]);
        assert_eq!(attenuate(&[], &["rye.load.*"]), ["rye.load.*"]);
        assert_eq!(
            attenuate(&["rye.search.directive"], &["rye.search.directive.*"]),
            ["rye.search.directive"]
        );
        // As texts, the child's star is one letter. As capabilities it is more than its parent has.
        assert_eq!(attenuate(&["rye.execute.tool.a*"], &["rye.execute.tool.a?"]), ["rye.execute.tool.a?"]);
        assert_eq!(attenuate(&["rye.execute.tool*"], &["rye.execute.tool[*]"]), ["rye.execute.tool[*]"]);
        assert_eq!(attenuate(&["rye.search.tool.*"], &["rye.search.tool?*"]), [""; 0]);
    }

    #[test]
    fn capabilities_come_back_from_a_log_as_they_went_in() {
        let all = capabilities(&["rye.load.*", "rye.execute.tool.a/b", "rye.load.*", " "]);
        assert_eq!(all.iter().collect::<Vec<_>>(), ["rye.load.*", "rye.execute.tool.a.b"]);
        assert_eq!(Capabilities::from_json(&all.to_json()).unwrap(), all);
        assert_eq!(Capabilities::from_json(&json!(["a", 1])).unwrap_err().code(), Code::BrokenLog);
    }

    fn pattern() -> impl Strategy<Value = String> {
        prop_oneof![
            (
                prop_oneof!["execute", "search", r"\*", r"[?e]xecute"],
                prop_oneof!["tool", r"\*", r"to\*"],
                r"[ab./*?\[\]!]{0,5}",
            )
                .prop_map(|(action, item_type, id)| format!("rye.{action}.{item_type}.{id}")),
            Just("rye.*".to_owned()),
            Just("rye.search.tool".to_owned()),
            r"rye\.search\.tool[.?*]{1,3}",
        ]
    }

    proptest! {
        #[test]
        fn a_child_may_nothing_that_its_parent_may_not(
            child in proptest::collection::vec(pattern(), 0..4),
            parent in proptest::collection::vec(pattern(), 0..4),
            action in prop_oneof!["execute", "search", "load"],
            id in r"[ab./*?\[]{0,5}",
        ) {
            let (own, parent) = (Capabilities::new(child), Capabilities::new(parent));
            let child = own.attenuate(Some(&parent));
            if child.check(&action, "tool", &id).is_ok() {
                prop_assert!(parent.check(&action, "tool", &id).is_ok());
                prop_assert!(own.is_empty() || own.check(&action, "tool", &id).is_ok());
            }
        }
    }
}
