//! What keeps a directive that could be read from being executed ([CB326](crate::Code::BadDirective) and the codes of signatures).

use crate::error::Diagnostic;
use crate::prepared::{Prepared, directive_findings};

/// What keeps a directive that could be read from being executed: its signature, its place, those that it extends, and the knowledge
/// that it names.
pub(super) fn check(prepared: &Prepared, _namespaces: &[String]) -> Vec<Diagnostic> {
    match prepared.directive() {
        Some(_) => directive_findings(prepared),
        None => Vec::new(),
    }
}
