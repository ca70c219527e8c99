#![doc = include_str!("../error/pages/CB307.md")]

use crate::error::Diagnostic;
use crate::prepared::Prepared;

/// Templates that include each other in a circle.
pub(super) fn check(prepared: &Prepared, _namespaces: &[String]) -> Vec<Diagnostic> {
    prepared.template().program().include_circles()
}
