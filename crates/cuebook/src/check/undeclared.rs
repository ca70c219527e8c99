#![doc = include_str!("../error/pages/CB402.md")]

use std::collections::BTreeSet;

use crate::error::{Code, Diagnostic, did_you_mean, nearest};
use crate::prepared::Prepared;
use crate::prompt::Dialect;
use crate::sections::Missing;

/// Variables that a template reads and its prompt does not declare. A prompt that declares nothing takes what it is given; a tree
/// of sections does so too, but what it is not given ends its render, so there it is told.
pub(super) fn check(prepared: &Prepared, namespaces: &[String]) -> Vec<Diagnostic> {
    let prompt = prepared.prompt();
    let is_lenient = prompt.dialect != Dialect::Sections || prepared.missing() == Missing::Keep;
    if prepared.declares_nothing() && is_lenient {
        return Vec::new();
    }
    let declared: Vec<&str> = prompt.variables.iter().map(|variable| variable.name.as_str()).collect();
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for (read, place) in prepared.reads() {
        let root = read.root.as_str();
        let known = declared.contains(&root)
            || read.maybe_local
            || root == "system"
            || prepared.is_session(root)
            || namespaces.iter().any(|namespace| namespace == root)
            || computed_by_hook(prepared, root);
        if known || !seen.insert(read.root.clone()) {
            continue;
        }
        let hint = did_you_mean(&nearest(root, declared.iter().copied())).unwrap_or_else(|| {
            match prompt.dialect {
                Dialect::Prompty | Dialect::Sections => format!("declare it under `inputs`: {{name: {root}, kind: string}}"),
                Dialect::Directive => format!("declare it: <input name=\"{root}\" type=\"string\">…</input>"),
                Dialect::Template => format!(
                    "declare it in VARIABLES: {{\"name\": \"{root}\", \"type\": \"string\", \"default\": \"\"}}"
                ),
            }
        });
        let message = format!("the prompt `{}` does not declare `{root}`", prompt.id);
        findings.push(Diagnostic::new(Code::UndeclaredVariable, message).at(place).hint(hint));
    }
    findings
}

/// A hook makes variables by naming them in a string: `variables["file_tree"] = …`.
fn computed_by_hook(prepared: &Prepared, name: &str) -> bool {
    prepared.prompt().hooks.iter().any(|hook| {
        let text = hook.place.source().text();
        text.contains(&format!("\"{name}\"")) || text.contains(&format!("'{name}'"))
    })
}
