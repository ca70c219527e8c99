#![doc = include_str!("../../../cuebook-text/src/error/pages/CB403.md")]

use std::collections::BTreeSet;

use crate::error::{Code, Diagnostic};
use crate::prepared::Prepared;

/// Variables that a prompt declares and none of its templates reads. A hook, or a template whose name is computed, may read
/// what cannot be seen here, so then nothing is said.
pub(super) fn check(prepared: &Prepared, _namespaces: &[String]) -> Vec<Diagnostic> {
    let prompt = prepared.prompt();
    if !prompt.hooks.is_empty() || prepared.has_computed_references() {
        return Vec::new();
    }
    let mut used: BTreeSet<String> = prepared.reads().into_iter().map(|(read, _)| read.root).collect();
    used.extend(prompt.tools.iter().flat_map(|tool| tool.bindings.values().cloned()));
    prompt
        .variables
        .iter()
        // The dialect itself supplies names such as `@history`.
        .filter(|variable| !variable.name.starts_with('@'))
        .filter(|variable| variable.inherited_from.is_none() && !used.contains(&variable.name))
        .map(|variable| {
            let message = format!("unused variable `{}`: no template of the prompt uses it", variable.name);
            let diagnostic =
                Diagnostic::new(Code::UnusedVariable, message).hint("use it, or remove the declaration");
            match &variable.place {
                Some(place) => diagnostic.at(place.clone()),
                None => diagnostic,
            }
        })
        .collect()
}
