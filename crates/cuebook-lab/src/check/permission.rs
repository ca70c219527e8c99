//! Permissions of a directive that permit nothing, because no item has such a name ([CB116](crate::Code::ItemNotFound)).
//!
//! It is a warning: the item may come later, or lie in the space of another user.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use globset::GlobBuilder;

use crate::error::{Code, Diagnostic, Hint, Severity, did_you_mean, nearest};
use crate::items::{ItemType, Spaces};
use crate::prepared::Prepared;

/// The ids of all items, with dots for slashes as permissions have them. They are looked for on first use, and once.
#[derive(Debug, Default)]
pub(crate) struct Ids(Mutex<HashMap<ItemType, Arc<Vec<String>>>>);

impl Ids {
    fn of(&self, kind: ItemType, spaces: &Spaces) -> Arc<Vec<String>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.entry(kind).or_insert_with(|| {
            let items = spaces.all().iter().filter_map(|space| spaces.walk(kind, space).ok()).flatten();
            Arc::new(items.map(|item| item.id.as_str().replace('/', ".")).collect())
        });
        found.clone()
    }
}

pub(super) fn check(prepared: &Prepared, spaces: &Spaces, ids: &Ids) -> Vec<Diagnostic> {
    let Some(permissions) = prepared.directive().and_then(|directive| directive.permissions.as_ref()) else {
        return Vec::new();
    };
    let written = permissions.capabilities.iter().zip(&permissions.places);
    let finding = |(capability, place): (&String, &crate::source::Place)| {
        let mut parts = capability.splitn(4, '.').skip(1);
        // A client that may search a type may search all of it.
        let action = parts.next().filter(|action| *action != "search")?;
        let kind = ItemType::named(parts.next()?)?;
        let pattern = parts.next()?.trim().replace('/', ".");
        // Braces mean nothing in a permission.
        let escaped = pattern.replace('{', "[{]").replace('}', "[}]");
        let glob = GlobBuilder::new(&escaped).literal_separator(false).build().ok()?.compile_matcher();
        let known = ids.of(kind, spaces);
        let built_in = kind == ItemType::Tool && BUILT_IN.iter().any(|id| glob.is_match(id));
        if built_in || known.iter().any(|id| glob.is_match(id)) {
            return None;
        }
        let message = format!("the permission to {action} `{pattern}` matches no {kind}");
        let near = match pattern.contains(['*', '?', '[']) {
            false => nearest(&pattern, known.iter().map(String::as_str)),
            true => nearest(&pattern, folders(&known).iter().map(String::as_str)),
        };
        let hint = did_you_mean(&near).map(Hint::from).unwrap_or_else(|| {
            Hint::run(
                "write the id with dots, as in team.report or team.*; list the items",
                format!("cuebook search {kind}"),
            )
        });
        let diagnostic = Diagnostic::new(Code::ItemNotFound, message).severity(Severity::Warning);
        Some(diagnostic.at(place.clone()).hint(hint))
    };
    written.filter_map(finding).collect()
}

/// Tools of the engine itself, which are no files.
const BUILT_IN: [&str; 4] = [
    "rye.agent.threads.directive_return",
    "rye.agent.threads.orchestrator",
    "rye.agent.threads.internal.control",
    "rye.agent.threads.internal.result",
];

/// Patterns for everything below each folder.
fn folders(ids: &[String]) -> Vec<String> {
    let parents =
        |id: &String| id.match_indices('.').map(|(at, _)| format!("{}.*", &id[..at])).collect::<Vec<_>>();
    let mut all: Vec<String> = ids.iter().flat_map(parents).collect();
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use crate::BookExt;
    use crate::book::Book;
    use crate::items::Spaces;

    /// What `check` says of a directive with permissions, in a project with one tool.
    fn reported(permissions: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(".ai/tools/team/report.sh", "true\n");
        write(
            ".ai/directives/team/d.md",
            &format!(
                "# D\n\n```xml\n<directive name=\"d\" version=\"1.0.0\">\n<metadata>\n<description>d</description>\n\
                 <category>team</category>\n<permissions>\n{permissions}\n</permissions>\n</metadata>\n</directive>\n```\n"
            ),
        );
        let book = Book::open(folder.path()).with_spaces(Spaces::new(folder.path(), None));
        let report = book.check(&[], |_| {}).unwrap();
        let reported = report.findings.iter().filter(|finding| finding.code.as_str() != "CB220");
        reported
            .map(|finding| {
                let line = finding.place.as_ref().map_or(0, |place| place.line());
                let hint = finding.hint.as_deref().unwrap_or_default();
                format!("{} {line} {}: {}; {hint}", finding.severity, finding.code, finding.message)
            })
            .collect()
    }

    #[test]
    fn a_permission_for_no_item_warns_with_the_nearest_item() {
        assert_eq!(
            reported("<execute><tool>teem.*</tool></execute>"),
            ["warning 9 CB116: the permission to execute `teem.*` matches no tool; did you mean `team.*`?"]
        );
        assert_eq!(
            reported("<execute>\n<tool>team/reprt</tool></execute>"),
            [
                "warning 10 CB116: the permission to execute `team.reprt` matches no tool; did you mean `team.report`?"
            ]
        );
        assert_eq!(reported("<load><knowledge>nothing.*</knowledge></load>").len(), 1);
    }

    #[test]
    fn permissions_that_match_an_item_are_not_reported() {
        for permissions in [
            "<execute><tool>team.*</tool><tool>team/report</tool><tool>team.re[pq]ort</tool></execute>",
            "<execute>*</execute><search>*</search><search><directive>no.such.*</directive></search>",
            "<execute><tool>rye.bash.*</tool><tool>rye.agent.threads.directive_return</tool></execute>",
            "<execute><tool>*</tool><directive>team.d</directive></execute>",
        ] {
            assert_eq!(reported(permissions), Vec::<String>::new(), "{permissions}");
        }
    }

    #[test]
    fn a_type_that_there_is_not_is_a_warning_with_the_nearest_one() {
        assert_eq!(
            reported("<execute>\n<tols>team.*</tols></execute>"),
            ["warning 10 CB315: <tols> inside <execute> permits nothing; did you mean `tool`?"]
        );
    }
}
