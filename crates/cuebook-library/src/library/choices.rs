//! The recorded choices between candidates of one id, and between packs that provide one namespace.

use jiff::Timestamp;

use super::manifest::VariableProvider;
use super::resolution::{self, Resolution};
use super::{Candidate, Library, PACKS};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, shell_word};

/// Under which the choice between providers of a namespace is recorded: `provider.git`.
pub const PROVIDER: &str = "provider.";

/// The name under which resolutions record the choice of a variable provider.
pub fn provider_key(namespace: &str) -> String {
    format!("{PROVIDER}{namespace}")
}

/// What a provider is known by in a recorded choice: its file.
#[doc(hidden)]
pub fn provider_source(pack: &str, provider: &VariableProvider) -> String {
    format!("{PACKS}/{pack}/{}", provider.file)
}

impl Library {
    /// Records the choice between the candidates of an id, or between the packs that provide a namespace
    /// (`provider.NAMESPACE`).
    pub fn set_resolution(&self, id: &str, source: &str) -> Result<Resolution> {
        if let Some(namespace) = id.strip_prefix(PROVIDER) {
            return self.choose_provider(namespace, source);
        }
        let (id, mut candidates) = self.resolve_id(id)?;
        candidates.retain(|candidate| candidate.shadowed_by.is_none());
        let sources: Vec<String> = candidates.iter().map(|candidate| candidate.source.clone()).collect();
        let wanted = source.trim_end_matches('/').trim_start_matches("./");
        let of_pack: Vec<&Candidate> =
            candidates.iter().filter(|candidate| candidate.pack_id.as_deref() == Some(wanted)).collect();
        let exact = candidates.iter().find(|candidate| candidate.source == wanted);
        // A pack that proposes to replace the prompt can be chosen as well, at any time after it was installed.
        let proposed = self.proposed(&id)?;
        let proposal = proposed.iter().find(|(pack, source)| pack == wanted || source == wanted);
        let (chosen, replaced_by) = match (exact, of_pack.as_slice(), proposal) {
            (Some(candidate), _, _) | (None, &[candidate], _) => {
                let replaces = proposed.iter().find(|(_, source)| *source == candidate.source);
                (candidate.source.clone(), replaces.map(|(pack, _)| pack.clone()))
            }
            (None, _, Some((pack, source))) => (source.clone(), Some(pack.clone())),
            _ => {
                let message = format!("{source} has no prompt `{id}`");
                let hint = format!("choose one of: {}", sources.join(", "));
                let diagnostic = Diagnostic::new(Code::UnknownSource, message).hint(hint);
                return Err(Error::new(ErrorKind::PromptConflict, diagnostic)
                    .with("prompt_id", &id)
                    .with("candidates", candidates.iter().map(Candidate::to_json).collect::<Vec<_>>()));
            }
        };
        let mut sources = sources;
        if !sources.contains(&chosen) {
            sources.push(chosen.clone());
        }
        let resolution = Resolution {
            source: chosen,
            resolved_at: Some(resolution::timestamp(Timestamp::now())),
            candidates: Some(sources),
            replaced_by,
        };
        self.record(&[(id, resolution.clone())])?;
        Ok(resolution)
    }

    /// The packs that provide a namespace, each with its provider.
    pub(crate) fn offers_of(&self, namespace: &str) -> Result<Vec<(String, VariableProvider)>> {
        let (mut providers, _) = self.providers(|_| {})?;
        providers.retain(|(_, provider)| provider.namespace == namespace);
        Ok(providers)
    }

    /// The packs that provide a namespace, each with the source by which its provider is chosen.
    #[doc(hidden)]
    pub fn provider_sources(&self, namespace: &str) -> Result<Vec<(String, String)>> {
        let sourced = |(pack, provider): (String, VariableProvider)| {
            let source = provider_source(&pack, &provider);
            (pack, source)
        };
        Ok(self.offers_of(namespace)?.into_iter().map(sourced).collect())
    }

    /// Records which pack provides a namespace: its id, or the source of the provider.
    fn choose_provider(&self, namespace: &str, wanted: &str) -> Result<Resolution> {
        let offers = self.provider_sources(namespace)?;
        let sources: Vec<String> = offers.iter().map(|(_, source)| source.clone()).collect();
        let Some((_, chosen)) = offers.iter().find(|(pack, source)| pack == wanted || source == wanted)
        else {
            let message = format!("{wanted} does not provide `{namespace}`");
            let hint = match sources.is_empty() {
                true => Hint::run("no installed pack provides it", "cuebook pack list"),
                false => format!("choose one of: {}", sources.join(", ")).into(),
            };
            let diagnostic = Diagnostic::new(Code::UnknownSource, message).hint(hint);
            return Err(Error::new(ErrorKind::PromptConflict, diagnostic).with("candidates", sources));
        };
        let resolution = Resolution {
            source: chosen.clone(),
            resolved_at: Some(resolution::timestamp(Timestamp::now())),
            candidates: Some(sources),
            replaced_by: None,
        };
        self.record(&[(provider_key(namespace), resolution.clone())])?;
        Ok(resolution)
    }

    /// Removes recorded choices, all in one step.
    pub(crate) fn forget(&self, ids: &[&str]) -> Result<()> {
        let path = self.resolutions.path();
        resolution::update(&self.root, path, &self.name(path), self.file_limit()?, |entries| {
            entries.retain(|id, _| !ids.contains(&id.as_str()));
            Ok(())
        })
    }

    /// Writes recorded choices, all in one step.
    pub(crate) fn record(&self, choices: &[(String, Resolution)]) -> Result<()> {
        let path = self.resolutions.path();
        resolution::update(&self.root, path, &self.name(path), self.file_limit()?, |entries| {
            for (id, resolution) in choices {
                let entry = resolution::entry(entries.get(id), resolution);
                entries.insert(id.clone(), entry);
            }
            Ok(())
        })
    }
}

/// The error for an id that several candidates offer.
pub(super) fn conflict(
    id: &str,
    diagnostic: Diagnostic,
    candidates: Vec<Candidate>,
    recorded: Option<&Resolution>,
) -> Error {
    let choice = |candidate: &Candidate| {
        format!("cuebook resolve {} {}", shell_word(id), shell_word(&candidate.source))
    };
    let choices: Vec<String> = candidates.iter().map(choice).collect();
    let hint = if choices.is_empty() {
        "install the pack again, or remove the entry from resolution.json".into()
    } else {
        Hint::choose("choose one; Cuebook records the choice", choices)
    };
    let error = Error::new(ErrorKind::PromptConflict, diagnostic.hint(hint))
        .with("prompt_id", id)
        .with("candidates", candidates.iter().map(Candidate::to_json).collect::<Vec<_>>());
    match recorded {
        Some(resolution) => error.with("recorded", &resolution.source),
        None => error,
    }
}
