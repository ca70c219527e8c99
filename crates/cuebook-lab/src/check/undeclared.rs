#![doc = include_str!("../../../cuebook-text/src/error/pages/CB402.md")]

use std::collections::BTreeSet;

use crate::error::{Code, Diagnostic, Severity, did_you_mean, nearest};
use crate::prepared::Prepared;
use crate::sections::Missing;
use crate::source::Place;
use crate::variables::SYSTEM;

/// Variables that a template reads and its prompt does not declare. A prompt that declares nothing takes what it is given; a tree
/// of sections does so too, but what it is not given ends its render, so there it is reported.
pub(super) fn check(prepared: &Prepared, namespaces: &[String]) -> Vec<Diagnostic> {
    let prompt = prepared.prompt();
    let mut findings = alone(prepared);
    let is_lenient = !prompt.dialect.is_tree || prepared.missing() == Missing::Keep;
    if prepared.declares_nothing() && is_lenient {
        return findings;
    }
    let mut seen = BTreeSet::new();
    for (read, place) in prepared.reads() {
        let root = read.root.as_str();
        let known = prompt.variable(root).is_some()
            || read.maybe_local
            || root == SYSTEM
            || prepared.has_global(root)
            || prepared.is_session(root)
            || namespaces.iter().any(|namespace| namespace == root)
            || computed_by_hook(prepared, root);
        if known || !seen.insert(read.root.clone()) {
            continue;
        }
        let hint =
            did_you_mean(&nearest(root, prompt.variables.iter().map(|variable| variable.name.as_str())))
                .unwrap_or_else(|| prompt.dialect.declaration.replace("NAME", root));
        let message = format!("the prompt `{}` does not declare `{root}`", prompt.id);
        findings.push(Diagnostic::new(Code::UndeclaredVariable, message).at(place).hint(hint));
    }
    findings
}

/// Places that show `system` as a whole: it holds values, and is a variable only if the prompt declares it.
fn alone(prepared: &Prepared) -> Vec<Diagnostic> {
    if prepared.prompt().variable(SYSTEM).is_some() {
        return Vec::new();
    }
    let is_alone = |place: &Place| {
        let text = place.source().text();
        let (before, behind) =
            (text[..place.range().start].trim_end(), text[place.range().end..].trim_start());
        let opens = before.trim_end_matches(['-', '+']).ends_with("{{");
        opens && behind.trim_start_matches(['-', '+']).starts_with("}}")
    };
    let shown = prepared.reads().into_iter().filter(|(read, place)| read.path == SYSTEM && is_alone(place));
    let finding = |(_, place)| {
        Diagnostic::new(Code::UndeclaredVariable, "`system` holds several values, and cannot be shown as one")
            .severity(Severity::Error)
            .at(place)
            .hint("show one of them, as in {{ system.date }}, or declare a variable `system`")
    };
    shown.map(finding).collect()
}

/// A hook makes variables by naming them in a string: `variables["file_tree"] = …`.
fn computed_by_hook(prepared: &Prepared, name: &str) -> bool {
    prepared.prompt().hooks.iter().any(|hook| {
        let text = hook.place.source().text();
        text.contains(&format!("\"{name}\"")) || text.contains(&format!("'{name}'"))
    })
}
