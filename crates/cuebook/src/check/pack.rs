//! Packs: manifests that are wrong ([CB201](crate::Code::BadManifest)), that list what is not there
//! ([CB202](crate::Code::MissingPackPrompt)) or leave out what is ([CB203](crate::Code::UnlistedPackPrompt)).

use crate::book::Book;
use crate::error::{Diagnostic, Result};

/// Looks at every installed pack.
pub(super) fn check(book: &Book) -> Result<Vec<Diagnostic>> {
    let mut findings = Vec::new();
    for (_, pack) in book.library().packs()? {
        match pack {
            Ok(pack) => findings.extend(pack.findings),
            Err(error) => findings.extend(error.into_diagnostics()),
        }
    }
    Ok(findings)
}
