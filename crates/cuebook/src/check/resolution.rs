//! Conflicts that nobody has resolved ([CB102](crate::Code::PromptConflict)) and recorded choices that no longer fit
//! ([CB103](crate::Code::StaleResolution)).

use std::collections::BTreeSet;

use crate::book::Book;
use crate::error::{Code, Diagnostic, Result};
use crate::library::Survey;

/// Looks at every id that several places offer, and at every recorded choice.
pub(super) fn check(book: &Book, survey: &Survey) -> Result<Vec<Diagnostic>> {
    let library = book.library();
    let resolutions = library.resolutions()?;
    // Choices for tools and flows are other programs' business; partials are looked at where they are included.
    let recorded = resolutions
        .ids()
        .filter(|id| !id.starts_with("tool.") && !id.starts_with("flow.") && !id.contains('/'));
    let ids: BTreeSet<&str> = survey.ids().map(|(id, _)| id).chain(recorded).collect();
    let mut findings = Vec::new();
    for id in ids {
        if let Err(error) = survey.choose(library, id) {
            match error.code() {
                Code::PromptNotFound => {
                    let message = format!("a choice is recorded for `{id}`, and no place offers it any more");
                    let diagnostic = Diagnostic::new(Code::StaleResolution, message)
                        .hint(format!("remove the entry `{id}`"));
                    findings.push(match resolutions.place(id) {
                        Some(place) => diagnostic.at(place),
                        None => diagnostic,
                    });
                }
                _ => findings.extend(error.into_diagnostics()),
            }
        }
    }
    Ok(findings)
}
