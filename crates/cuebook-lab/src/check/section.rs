#![doc = include_str!("../../../cuebook-text/src/error/pages/CB325.md")]

use crate::error::{Diagnostic, Severity};
use crate::prepared::Prepared;
use crate::sections::{Missing, Tree};

/// What is odd about a tree of sections that could be read: dollar signs that no render could make anything of, and overrides
/// that no longer fit or cannot be understood.
pub(super) fn check(prepared: &Prepared, _namespaces: &[String]) -> Vec<Diagnostic> {
    let Some(tree) = prepared.tree() else { return Vec::new() };
    let mut findings = match prepared.missing() {
        Missing::Error => tree.stray_dollars(),
        Missing::Keep => Vec::new(),
    };
    match prepared.override_tags() {
        Ok(tags) => findings.extend(tags.iter().flat_map(|tag| overrides(prepared, tree, tag))),
        Err(error) => findings.extend(error.into_diagnostics()),
    }
    for section in tree.sections() {
        let has_text = section.section.summary.is_some();
        if section.section.is_summarized()
            && !has_text
            && let Some(place) = &section.section.place
        {
            let message = format!("the section `{}` is summarized, but has no summary", section.dotted());
            let diagnostic = Diagnostic::new(crate::error::Code::BadSection, message)
                .severity(Severity::Warning)
                .at(place.clone())
                .hint(
                    "add `summary: …` to its settings: the model reads the summary to decide whether to open the \
                         section",
                );
            findings.push(diagnostic);
        }
    }
    findings
}

/// What is odd about the overrides under one tag: those that no longer fit, and those that no render could use.
fn overrides(prepared: &Prepared, tree: &Tree, tag: &str) -> Vec<Diagnostic> {
    match prepared.resolve_overrides(tag) {
        Ok(resolved) => {
            let mut findings = resolved.stale_findings();
            findings.extend(tree.override_problems(&resolved, prepared.missing()));
            findings
        }
        Err(error) => error.into_diagnostics(),
    }
}
