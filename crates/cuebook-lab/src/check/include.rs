#![doc = include_str!("../../../cuebook-text/src/error/pages/CB332.md")]

use crate::error::Diagnostic;
use crate::prepared::{Prepared, included_findings};

/// What is odd about what a prompt includes: what stays behind, who cannot agree on a variable, and what is not signed.
pub(super) fn check(prepared: &Prepared, _namespaces: &[String]) -> Vec<Diagnostic> {
    let mut findings =
        included_findings(prepared.included_prompts(), prepared.prompt().dialect, prepared.contradictions());
    findings.extend(prepared.bare_files());
    findings
}
