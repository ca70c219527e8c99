//! Packs: manifests that are wrong ([CB201](crate::Code::BadManifest)), that list what is not there
//! ([CB202](crate::Code::MissingPackPrompt)) or leave out what is ([CB203](crate::Code::UnlistedPackPrompt)), and providers
//! that cannot be called ([CB317](crate::Code::HookSignature)).

use crate::book::Book;
use crate::error::{Code, Diagnostic, Result};
use crate::library::Survey;

/// Looks at every installed pack.
pub(super) fn check(book: &Book, survey: &Survey) -> Result<Vec<Diagnostic>> {
    let mut findings = Vec::new();
    for pack in survey.roots().iter().filter_map(|root| root.pack_id()) {
        match book.library().inspect_pack(pack) {
            Ok((manifest, odd)) => {
                // A file that is not there has its finding already.
                let listed_in_vain = odd.iter().any(|finding| finding.code == Code::MissingPackPrompt);
                findings.extend(odd);
                if !listed_in_vain {
                    for provider in &manifest.variable_providers {
                        findings.extend(book.library().provider_problems(pack, &provider.file));
                    }
                }
            }
            Err(error) => findings.extend(error.into_diagnostics()),
        }
    }
    Ok(findings)
}
