//! Packs: manifests that are wrong ([CB201](crate::Code::BadManifest)), that list what is not there
//! ([CB202](crate::Code::MissingPackPrompt)) or leave out what is ([CB203](crate::Code::UnlistedPackPrompt)).

use crate::book::Book;
use crate::error::{Diagnostic, Result};
use crate::library::Survey;

/// Looks at every installed pack.
pub(super) fn check(book: &Book, survey: &Survey) -> Result<Vec<Diagnostic>> {
    let mut findings = Vec::new();
    for pack in survey.roots().iter().filter_map(|root| root.pack_id()) {
        match book.library().inspect_pack(pack) {
            Ok((_, odd)) => findings.extend(odd),
            Err(error) => findings.extend(error.into_diagnostics()),
        }
    }
    Ok(findings)
}
