//! Where a search looks: a type, and a part of its ids.

use crate::items::ItemType;

/// The scope of a search, as in `tool.rye.core.*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// The type.
    pub kind: ItemType,
    /// What ids begin with, with `/` at the end; none for all of them.
    pub namespace: Option<String>,
    /// Whether the last part of it may be the beginning of a longer name: it was written with a star behind it.
    open: bool,
}

impl Scope {
    /// Reads a scope: `directive`, `tool.rye.core`, `tool.rye.core.*`, `tool.rye.co*`, each also behind `rye.search.`.
    pub fn new(text: &str) -> Option<Scope> {
        let text = text.trim();
        let text = text.strip_prefix("rye.search.").unwrap_or(text);
        let (kind, rest) = text.split_once('.').unwrap_or((text, ""));
        let kind = ItemType::named(kind)?;
        let (rest, open) = match (rest.strip_suffix(".*"), rest.strip_suffix('*')) {
            (Some(rest), _) => (rest, false),
            (None, Some(rest)) => (rest, !rest.is_empty()),
            (None, None) => (rest, false),
        };
        let path = rest.trim_matches('.').replace('.', "/");
        let namespace = (!path.is_empty()).then(|| format!("{path}/"));
        Some(Scope { kind, namespace, open })
    }

    /// Whether an id is in it.
    pub fn holds(&self, id: &str) -> bool {
        let Some(namespace) = &self.namespace else { return true };
        let start = namespace.trim_end_matches('/');
        match id.strip_prefix(start) {
            Some(rest) => self.open || rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_a_type_and_a_part_of_its_ids() {
        for (text, kind, namespace) in [
            ("directive", ItemType::Directive, None),
            ("rye.search.directive.*", ItemType::Directive, None),
            ("rye.search.tool.rye.core.*", ItemType::Tool, Some("rye/core/")),
            ("tool.rye*", ItemType::Tool, Some("rye/")),
            ("knowledge.*", ItemType::Knowledge, None),
            ("knowledge.a.b", ItemType::Knowledge, Some("a/b/")),
        ] {
            let scope = Scope::new(text).unwrap();
            assert_eq!((scope.kind, scope.namespace.as_deref()), (kind, namespace), "{text}");
        }
        for wrong in ["", "banana", "rye.search", "rye.search.", "rye.search.banana.*", "*"] {
            assert_eq!(Scope::new(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_id_part_matches_whole_names_without_a_star() {
        let holds = |scope: &str, id: &str| Scope::new(scope).unwrap().holds(id);
        assert!(holds("tool.rye.core", "rye/core/x"));
        assert!(holds("tool.rye.core.x", "rye/core/x"));
        assert!(!holds("tool.rye.co", "rye/core/x"));
        assert!(!holds("tool.rye.co.*", "rye/core/x"));
        assert!(holds("tool.rye.co*", "rye/core/x"));
    }
}
