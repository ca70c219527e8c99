//! Packs: manifests that are wrong ([CB201](crate::Code::BadManifest)), that list what is not there
//! ([CB202](crate::Code::MissingPackPrompt)) or leave out what is ([CB203](crate::Code::UnlistedPackPrompt)), and providers
//! that cannot be called ([CB317](crate::Code::HookSignature)).

use std::path::Path;

use crate::book::Book;
use crate::error::{Code, Diagnostic, Result};
use crate::library::{Library, Manifest, Survey};

/// Looks at every installed pack.
pub(super) fn check(book: &Book, survey: &Survey) -> Result<Vec<Diagnostic>> {
    let mut findings: Vec<Diagnostic> = book.library().unused_approvals().into_iter().collect();
    for pack in survey.roots().iter().filter_map(|root| root.pack_id()) {
        match book.library().inspect_pack(pack) {
            Ok((manifest, odd)) => {
                let folder = book.library().packs_folder().join(pack);
                let wrong = providers(book.library(), Some(pack), &folder, &manifest, &odd);
                findings.extend(odd);
                findings.extend(wrong);
            }
            Err(error) => findings.extend(error.into_diagnostics()),
        }
    }
    Ok(findings)
}

/// What is wrong with the providers of a pack. A file that is not there has its finding already.
pub(super) fn providers(
    library: &Library,
    pack: Option<&str>,
    folder: &Path,
    manifest: &Manifest,
    odd: &[Diagnostic],
) -> Vec<Diagnostic> {
    if odd.iter().any(|finding| finding.code == Code::MissingPackPrompt) {
        return Vec::new();
    }
    let name =
        pack.map_or_else(|| library.name(folder), |pack| library.name(&library.packs_folder().join(pack)));
    manifest
        .variable_providers
        .iter()
        .flat_map(|provider| library.provider_problems(folder, &name, &provider.file))
        .collect()
}
