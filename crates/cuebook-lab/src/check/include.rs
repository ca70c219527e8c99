#![doc = include_str!("../../../cuebook-text/src/error/pages/CB332.md")]

use crate::error::Diagnostic;
use crate::prepared::{Prepared, guest_findings};

/// What is odd about what a prompt includes: what stays behind, who cannot agree on a variable, and what is not signed.
pub(super) fn check(prepared: &Prepared, _namespaces: &[String]) -> Vec<Diagnostic> {
    let mut findings =
        guest_findings(prepared.guests(), prepared.prompt().dialect, prepared.contradictions());
    findings.extend(prepared.bare_files());
    findings
}
