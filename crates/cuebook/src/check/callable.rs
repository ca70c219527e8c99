#![doc = include_str!("../error/pages/CB316.md")]

use std::collections::{BTreeSet, HashSet};

use crate::error::Diagnostic;
use crate::prepared::Prepared;

/// Filters, tests and functions that do not exist.
pub(super) fn check(prepared: &Prepared, _namespaces: &[String]) -> Vec<Diagnostic> {
    let names: BTreeSet<String> = prepared.known_names();
    let known: HashSet<&str> = names.iter().map(String::as_str).collect();
    let outline = prepared.outline();
    outline.jinja().map(|program| program.unknown_callables(&known)).unwrap_or_default()
}
