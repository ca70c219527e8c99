#![doc = include_str!("../../../cuebook-text/src/error/pages/CB316.md")]

use std::collections::HashSet;

use crate::error::Diagnostic;
use crate::prepared::Prepared;

/// Filters, tests and functions that do not exist.
pub(super) fn check(prepared: &Prepared, _namespaces: &[String]) -> Vec<Diagnostic> {
    let known: HashSet<&str> = prepared.known_names().iter().map(String::as_str).collect();
    // A tree of sections has a program for each of its texts.
    let outlines = match prepared.tree() {
        Some(tree) => tree.other_outlines(),
        None => vec![prepared.outline()],
    };
    let programs = outlines.iter().filter_map(|outline| outline.jinja());
    programs.flat_map(|program| program.unknown_callables(&known)).collect()
}
