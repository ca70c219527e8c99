//! Conflicts without a recorded choice ([CB102](crate::Code::PromptConflict)) and recorded choices that no longer fit
//! ([CB103](crate::Code::StaleResolution)); the same for packs that provide one namespace
//! ([CB415](crate::Code::ProviderConflict)).

use std::collections::BTreeSet;

use crate::book::Book;
use crate::error::{Code, Diagnostic, Result};
use crate::library::{Library, PROVIDER, Survey, provider_key};
use crate::prepared::choose_provider;

/// Looks at every id that several places offer, and at every recorded choice.
pub(super) fn check(book: &Book, survey: &Survey) -> Result<Vec<Diagnostic>> {
    let library = book.library();
    let resolutions = library.resolutions()?;
    // Choices for tools and flows are other programs' business; partials are looked at where they are included.
    let recorded = resolutions.ids().filter(|id| {
        !["tool.", "flow.", PROVIDER].iter().any(|kind| id.starts_with(kind)) && !id.contains('/')
    });
    // One candidate without a recorded choice is not a conflict.
    let is_open = |id: &&str| survey.offers(id) != 1 || resolutions.get(id).is_some();
    let ids: BTreeSet<&str> = survey.ids().map(|(id, _)| id).filter(is_open).chain(recorded).collect();
    let mut findings = Vec::new();
    for id in ids {
        if let Err(error) = survey.choose(library, id) {
            match error.code() {
                Code::PromptNotFound => {
                    let message = format!(
                        "the recorded choice for `{id}` is unused: the library no longer has this prompt"
                    );
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
    findings.extend(providers(library)?);
    Ok(findings)
}

/// Namespaces that several packs provide, and recorded choices between them.
fn providers(library: &Library) -> Result<Vec<Diagnostic>> {
    let resolutions = library.resolutions()?;
    let (providers, _) = library.providers(|_| {}).unwrap_or_default();
    let recorded = resolutions.ids().filter_map(|id| id.strip_prefix(PROVIDER));
    let names: BTreeSet<&str> =
        providers.iter().map(|(_, offer)| offer.namespace.as_str()).chain(recorded).collect();
    let mut findings = Vec::new();
    for name in names {
        let offers = providers.iter().filter(|(_, offer)| offer.namespace == name).cloned().collect();
        let place = resolutions.place(&provider_key(name));
        if let Err(error) = choose_provider(library, name, offers, place.as_ref()) {
            findings.extend(error.into_diagnostics());
        }
    }
    Ok(findings)
}
