//! Capabilities that imply others: to execute something one must find and read it.
//!
//! Threads do not use this: what they may do is said outright. Code that hands out capabilities can.

use std::collections::BTreeSet;

use super::capability::ACTIONS;

/// The types of items that a capability can name.
const TYPES: [&str; 3] = ["tool", "directive", "knowledge"];

/// Capabilities with those that follow from them, in alphabetical order: `execute` implies `search` and `load`, `sign` implies `load`,
/// and `rye.*` all four.
///
/// ```
/// use cuebook_run::policy::capability::expand;
///
/// assert_eq!(expand(["rye.sign.*"]), ["rye.load.*", "rye.sign.*"]);
/// ```
pub fn expand<'c>(capabilities: impl IntoIterator<Item = &'c str>) -> Vec<String> {
    let mut all = BTreeSet::new();
    for capability in capabilities {
        all.insert(capability.to_owned());
        let Some(rest) = capability.strip_prefix("rye.") else { continue };
        if rest == "*" {
            all.extend(ACTIONS.iter().map(|action| format!("rye.{action}.*")));
            continue;
        }
        let mut parts = rest.splitn(3, '.');
        let (action, kind, id) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        // What is left out stands for everything.
        let what = match (kind, id) {
            (None | Some("*"), _) => "*".to_owned(),
            (Some(kind), id) if TYPES.contains(&kind) => format!("{kind}.{}", id.unwrap_or("*")),
            _ => continue,
        };
        let implied: &[&str] = match action {
            "execute" => &["search", "load"],
            "sign" => &["load"],
            _ => &[],
        };
        all.extend(implied.iter().map(|action| format!("rye.{action}.{what}")));
    }
    all.into_iter().collect()
}

/// Whether a capability that was granted is enough for one that is required. A final `.*` stands for the thing itself and everything
/// below it; `rye.execute` and `rye.execute.tool` for everything below them.
///
/// ```
/// use cuebook_run::policy::capability::token_matches;
///
/// assert!(token_matches("rye.execute.tool", "rye.execute.tool.x"));
/// assert!(!token_matches("rye.execute.tool.x", "rye.execute.tool"));
/// ```
pub fn token_matches(granted: &str, required: &str) -> bool {
    let below = |folder: &str| {
        required.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if granted == required {
        return true;
    }
    if let Some(folder) = granted.strip_suffix(".*") {
        return below(folder);
    }
    let bare = |capability: &str| {
        let parts: Vec<&str> = capability.split('.').collect();
        matches!(parts.as_slice(), ["rye", action] if ACTIONS.contains(action))
            || matches!(parts.as_slice(), ["rye", action, kind] if ACTIONS.contains(action) && TYPES.contains(kind))
    };
    let kind = required.split('.').nth(2);
    bare(granted) && below(granted) && kind.is_none_or(|kind| kind == "*" || TYPES.contains(&kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_granted_capability_covers_what_is_below_it() {
        for (granted, required) in [
            ("rye.*", "rye.sign.tool.x"),
            ("rye.execute.*", "rye.execute"),
            ("rye.execute", "rye.execute.tool.x"),
            ("rye.execute", "rye.execute.*"),
            ("rye.execute.tool.a.*", "rye.execute.tool.a.b.c"),
            ("fs.*", "fs.read"),
        ] {
            assert!(token_matches(granted, required), "{granted} {required}");
        }
        for (granted, required) in [
            ("rye.execute.tool", "rye.execute.toolbox.x"),
            ("rye.execute.tool.a", "rye.execute.tool.a.b"),
            ("rye.execute.tool.*", "rye.execute.toolx"),
            ("rye.execute", "rye.load.tool.x"),
            ("rye.execute", "rye.execute.secret.x"),
            ("fs", "fs.read"),
            ("", "rye.execute"),
        ] {
            assert!(!token_matches(granted, required), "{granted} {required}");
        }
    }

    #[test]
    fn implications_keep_what_they_are_about() {
        assert_eq!(
            expand(["rye.execute.tool.a", "fs.read"]),
            ["fs.read", "rye.execute.tool.a", "rye.load.tool.a", "rye.search.tool.a"]
        );
        assert_eq!(expand(["rye.search.*"]), ["rye.search.*"]);
        assert_eq!(expand(["rye.executed.x", "rye", "rye.execute.secret.x"]).len(), 3);
        assert_eq!(expand(["rye.sign"]), ["rye.load.*", "rye.sign"]);
        assert_eq!(expand(["rye.sign.tool"]), ["rye.load.tool.*", "rye.sign.tool"]);
    }
}
