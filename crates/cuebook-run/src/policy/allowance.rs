//! What clients of a server may do with the items of a project.
//!
//! Searching, reading, directives and knowledge are always allowed. Tools are not, until the user allows them: `desk/order`,
//! `desk/*`. A tool that runs a shell or any program, or that writes files, counts only if a pattern without wildcards names
//! it. Signing (`rye_sign`) and copying items (`rye_load`) are allowed by their names.
//!
//! An engine that has an allowance applies it to every call, from any caller: a client, a model in a thread that a client
//! started, a hook of such a thread. So a thread never does what its client could not do directly.

use cuebook::items::ItemId;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use serde_json::{Map, Value as Json};

use super::capability::Capabilities;
use super::glob::{Glob, PatternChar};
use crate::actions::Action;
use crate::chain::Element;
use crate::script;

/// What clients may do. The default is nothing beyond reading, directives and knowledge.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allowance {
    tools: Vec<Pattern>,
    signs: bool,
    copies: bool,
}

/// A pattern of ids of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    written: String,
    glob: Glob,
    /// It has no wildcards.
    is_name: bool,
}

impl Allowance {
    /// Reads patterns as users write them: `desk/order`, `desk/*`, `tool:desk/*`, `rye_sign`, `rye_load`.
    ///
    /// ```
    /// use cuebook_run::policy::allowance::Allowance;
    ///
    /// let allowance = Allowance::new(["desk/*", "rye/bash/bash"]).unwrap();
    /// assert!(allowance.may_run("desk/order") && allowance.may_run("rye/bash/bash"));
    /// assert!(!allowance.may_run("rye/file-system/read"));
    /// ```
    ///
    /// # Errors
    ///
    /// `CB808` if a pattern is invalid.
    pub fn new<P: AsRef<str>>(patterns: impl IntoIterator<Item = P>) -> Result<Allowance> {
        let mut allowance = Allowance::default();
        for pattern in patterns {
            allowance.add(pattern.as_ref())?;
        }
        Ok(allowance)
    }

    fn add(&mut self, pattern: &str) -> Result<()> {
        let trimmed = pattern.trim();
        match Action::ALL.into_iter().find(|action| action.name() == trimmed) {
            Some(Action::Sign) => self.signs = true,
            Some(Action::Load) => self.copies = true,
            // Always allowed; what they run is allowed by its id.
            Some(Action::Execute | Action::Search) => return Err(always(pattern)),
            None => {
                let read = Pattern::new(trimmed).ok_or_else(|| bad(pattern))?;
                if !self.tools.contains(&read) {
                    self.tools.push(read);
                }
            }
        }
        Ok(())
    }

    /// The patterns, as [`Allowance::new`] reads them.
    pub fn patterns(&self) -> Vec<&str> {
        let names = [(self.signs, Action::Sign.name()), (self.copies, Action::Load.name())];
        let names = names.into_iter().filter_map(|(is_allowed, name)| is_allowed.then_some(name));
        self.tools.iter().map(|pattern| pattern.written.as_str()).chain(names).collect()
    }

    /// Whether some pattern allows a tool of this id. The tool may still need to be named.
    pub fn may_run(&self, id: &str) -> bool {
        let text = letters(id);
        self.tools.iter().any(|pattern| pattern.glob.matches(&text))
    }

    /// Whether any tool is allowed.
    pub fn has_tools(&self) -> bool {
        !self.tools.is_empty()
    }

    /// Whether signing is allowed.
    pub fn may_sign(&self) -> bool {
        self.signs
    }

    /// Whether copying items is allowed.
    pub fn may_copy(&self) -> bool {
        self.copies
    }

    /// Checks a call by its arguments alone, before anything is read.
    ///
    /// # Errors
    ///
    /// `CB805` if clients may not do it.
    pub fn check(&self, action: Action, arguments: &Map<String, Json>) -> Result<()> {
        let text = |name: &str| arguments.get(name).and_then(Json::as_str).unwrap_or_default();
        match action {
            Action::Execute if text("item_type") == "tool" => self.check_tool(text("item_id")),
            Action::Load if arguments.get("destination").is_some_and(|to| !to.is_null()) && !self.copies => {
                Err(refused("MCP clients cannot copy items".to_owned(), action.name()))
            }
            Action::Sign if !self.signs => {
                Err(refused("MCP clients cannot sign items".to_owned(), action.name()))
            }
            _ => Ok(()),
        }
    }

    /// Checks the id of a tool.
    pub(crate) fn check_tool(&self, id: &str) -> Result<()> {
        if self.may_run(id) {
            return Ok(());
        }
        // An id that no tool can have cannot be allowed either; what is wrong with it is reported later.
        match ItemId::new(id) {
            Ok(_) => Err(refused(format!("MCP clients cannot execute the tool `{id}`"), id)),
            Err(_) => Ok(()),
        }
    }

    /// Checks what a tool can do, which its chain tells.
    pub(crate) fn check_chain(&self, id: &str, chain: &[Element]) -> Result<()> {
        self.check_tool(id)?;
        match power(id, chain) {
            Some(power) if !self.names(id) => {
                let message = format!(
                    "the tool `{id}` {power}, so MCP clients can execute it only if you allow it by name"
                );
                Err(refused(message, id))
            }
            _ => Ok(()),
        }
    }

    fn names(&self, id: &str) -> bool {
        self.tools.iter().any(|pattern| pattern.is_name && pattern.written == id)
    }

    /// Capabilities as far as clients have them. A thread that has none gets none.
    pub(crate) fn narrow(&self, capabilities: &Capabilities) -> Capabilities {
        if capabilities.is_empty() {
            return Capabilities::default();
        }
        let always = ["search.*", "load.*", "execute.directive.*", "execute.knowledge.*"];
        let tools = self.tools.iter().map(|pattern| format!("execute.tool.{}", escaped(&pattern.written)));
        let signs = self.signs.then(|| "sign.*".to_owned());
        let all = always.map(str::to_owned).into_iter().chain(tools).chain(signs);
        capabilities.attenuate(Some(&Capabilities::new(all.map(|rest| format!("rye.{rest}")))))
    }
}

impl Pattern {
    fn new(written: &str) -> Option<Pattern> {
        let written = written.strip_prefix("tool:").unwrap_or(written);
        // A wildcard stands for letters of an id, so with letters in its place it must be one.
        ItemId::new(&written.replace(['*', '?'], "x")).ok()?;
        if written.contains([':', '[', ']', '{', '}', ',']) {
            return None;
        }
        let is_name = !written.contains(['*', '?']);
        Some(Pattern { written: written.to_owned(), glob: Glob::new(written), is_name })
    }
}

/// A pattern of ids as one of capabilities, in which a dot is the slash of an id.
fn escaped(pattern: &str) -> String {
    pattern.replace('.', "[.]").replace('/', ".")
}

/// An id as what a pattern of ids matches.
fn letters(id: &str) -> Vec<PatternChar> {
    id.chars().map(|c| (c, false)).collect()
}

/// What a tool can do that a wildcard must not allow by accident.
fn power(id: &str, chain: &[Element]) -> Option<&'static str> {
    const WRITES: [&str; 2] = ["rye/file-system/write", "rye/file-system/edit"];
    if WRITES.contains(&id) {
        return Some("writes files");
    }
    let is_part =
        |element: &Element| matches!(element.tool.tool_type.as_deref(), Some("runtime" | "primitive"));
    if id.starts_with("rye/core/") || chain.first().is_some_and(is_part) {
        return Some("runs any program");
    }
    let is_shell = id.starts_with("rye/bash/") || chain.iter().any(runs_shell);
    is_shell.then_some("runs a shell")
}

/// Whether an element of a chain names a shell: as its interpreter, its program, or an argument of that.
fn runs_shell(element: &Element) -> bool {
    fn names_shell(value: &Json) -> bool {
        match value {
            Json::String(text) => text.split_whitespace().any(script::is_shell),
            Json::Array(all) => all.iter().any(names_shell),
            Json::Object(all) => all.values().any(names_shell),
            _ => false,
        }
    }
    let config = ["program", "command", "args", "args_for"];
    element.tool.env_config.get("interpreter").is_some_and(names_shell)
        || config.iter().filter_map(|name| element.tool.config.get(*name)).any(names_shell)
}

/// `CB805`: what is refused, and what the user would allow.
fn refused(message: String, what: &str) -> Error {
    let hint = format!(
        "the user can allow it: add \"{what}\" to `allow` under `[mcp]` in ~/.ai/config/cuebook.toml"
    );
    let diagnostic = Diagnostic::new(Code::NotAllowedOverMcp, message).hint(hint);
    Error::new(ErrorKind::Execute, diagnostic).with("allow", what)
}

fn bad(pattern: &str) -> Error {
    let hint = "write the id of a tool (desk/order), a pattern of ids (desk/*), `rye_sign` or `rye_load`";
    wrong(format!("`{pattern}` is not a permission for MCP clients"), hint, pattern)
}

fn always(pattern: &str) -> Error {
    let hint = "allow tools by their ids, such as desk/order or desk/*";
    wrong(format!("`{pattern}` is always allowed"), hint, pattern)
}

fn wrong(message: String, hint: &str, pattern: &str) -> Error {
    let diagnostic = Diagnostic::new(Code::BadAllow, message).hint(hint);
    Error::new(ErrorKind::Usage, diagnostic).with("allow", pattern)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn allowance(patterns: &[&str]) -> Allowance {
        Allowance::new(patterns).unwrap()
    }

    fn check(allowance: &Allowance, action: Action, arguments: Json) -> Result<()> {
        allowance.check(action, arguments.as_object().unwrap())
    }

    #[test]
    fn by_default_clients_only_read() {
        let none = Allowance::default();
        for (action, arguments) in [
            (Action::Search, json!({"scope": "tool", "query": ""})),
            (Action::Load, json!({"item_type": "tool", "item_id": "a"})),
            (Action::Execute, json!({"item_type": "directive", "item_id": "a"})),
            (Action::Execute, json!({"item_type": "knowledge", "item_id": "a"})),
        ] {
            assert!(check(&none, action, arguments).is_ok(), "{action:?}");
        }
        for (action, arguments, name) in [
            (Action::Execute, json!({"item_type": "tool", "item_id": "desk/order"}), "desk/order"),
            (Action::Load, json!({"item_type": "tool", "item_id": "a", "destination": "user"}), "rye_load"),
            (Action::Sign, json!({"item_type": "tool", "item_id": "a"}), "rye_sign"),
        ] {
            let error = check(&none, action, arguments.clone()).unwrap_err();
            assert_eq!(error.code(), Code::NotAllowedOverMcp);
            assert!(error.diagnostic().hint.as_ref().unwrap().contains(&format!("add {name:?} to `allow`")));
            assert!(check(&allowance(&[name]), action, arguments).is_ok(), "{name}");
        }
    }

    #[test]
    fn patterns_match_ids_and_a_dot_is_a_dot() {
        let desk = allowance(&["tool:desk/*", "v1.2/?"]);
        for (id, is_allowed) in [
            ("desk/order", true),
            ("desk/deep/er", true),
            ("desk", false),
            ("desks/order", false),
            ("v1.2/a", true),
            ("v1/2/a", false),
            ("v1.2/ab", false),
        ] {
            assert_eq!(desk.may_run(id), is_allowed, "{id}");
        }
        assert_eq!(Allowance::new(desk.patterns()).unwrap(), desk);
    }

    #[test]
    fn a_wildcard_allows_no_shell_no_writing_and_no_runtime() {
        for id in [
            "rye/bash/bash",
            "rye/file-system/write",
            "rye/file-system/edit",
            "rye/core/primitives/subprocess",
        ] {
            for pattern in ["*", "rye/*", "rye/*/*"] {
                assert!(allowance(&[pattern]).check_chain(id, &[]).is_err(), "{pattern} {id}");
            }
            assert!(allowance(&["*", id]).check_chain(id, &[]).is_ok(), "{id}");
        }
        assert!(allowance(&["rye/file-system/*"]).check_chain("rye/file-system/read", &[]).is_ok());
    }

    #[test]
    fn invalid_patterns_are_refused() {
        for wrong in
            ["", "../x", "/etc", "a//b", "directive:a", "a b\\c", "a[b]", "rye_execute", "rye_search"]
        {
            let error = Allowance::new([wrong]).unwrap_err();
            assert_eq!(error.code(), Code::BadAllow, "{wrong}");
        }
    }

    #[test]
    fn a_thread_gets_no_more_than_its_client_has() {
        let own = |patterns: &[&str]| Capabilities::new(patterns.iter().map(|pattern| (*pattern).to_owned()));
        let desk = allowance(&["desk/*"]);
        let narrowed = desk.narrow(&own(&["rye.*"]));
        assert!(narrowed.check("execute", "tool", "desk/order").is_ok());
        assert!(narrowed.check("execute", "directive", "a/b").is_ok());
        assert!(narrowed.check("execute", "tool", "rye/bash/bash").is_err());
        assert!(narrowed.check("sign", "tool", "desk/order").is_err());
        assert!(desk.narrow(&own(&["rye.execute.tool.rye.bash.bash"])).is_empty());
        assert!(desk.narrow(&Capabilities::default()).is_empty());
    }
}
