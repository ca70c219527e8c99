#![doc = include_str!("../error/pages/CB307.md")]

use crate::error::Diagnostic;
use crate::prepared::Prepared;
use crate::template::jinja::Program;

/// Templates that include each other in a circle.
pub(super) fn check(prepared: &Prepared, _namespaces: &[String]) -> Vec<Diagnostic> {
    prepared.outline().jinja().map(Program::include_circles).unwrap_or_default()
}
