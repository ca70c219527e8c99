//! The environment variables that prompts of a project may read.
//!
//! `${env:NAME}` of a `.prompty` file and `{env:NAME}` of an unsigned directive put a variable into a text that a model gets. A clone
//! must not choose which, so the user lists or grants each name. Connections are another matter: their keys are never text.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde::Deserialize;

use super::{Candidate, Library, UserConfig};
use crate::error::{Diagnostic, Result};
use crate::items::Spaces;
use crate::notation::prompty::{Definition, Environment, LoadOptions};
use crate::trust::{Granted, Grants, Request};

/// `[prompts]` of the user's settings.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PromptsConfig {
    /// Environment variables that prompts of all projects may read.
    pub env: Vec<String>,
}

/// The variables that the user listed, the user granted to the project, or the host program allows.
#[doc(hidden)]
pub struct GrantedEnvironment {
    spaces: Spaces,
    host: Arc<[String]>,
    /// Read when a prompt first asks for a variable; few do.
    given: OnceLock<(Vec<String>, Grants)>,
}

impl GrantedEnvironment {
    fn state(&self, name: &str) -> Granted {
        // Settings or grants that cannot be read give nothing; `cuebook allow` says what is wrong with them.
        let (listed, grants) = self.given.get_or_init(|| {
            let user = UserConfig::read(&self.spaces).unwrap_or_default();
            (user.prompts.env, Grants::of(&self.spaces).unwrap_or_default())
        });
        match self.host.iter().chain(listed).any(|listed| listed == name) {
            true => Granted::Yes,
            false => grants.state(&Request::env(name)),
        }
    }
}

impl Environment for GrantedEnvironment {
    fn get(&self, name: &str) -> Option<String> {
        (self.state(name) == Granted::Yes).then(|| std::env::var(name).ok()).flatten()
    }

    fn of_connection(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn refused(&self, name: &str) -> Option<Diagnostic> {
        let state = self.state(name);
        (state != Granted::Yes).then(|| Request::env(name).needed(state).diagnostic().clone())
    }
}

/// Notes which variables a file asks for.
#[derive(Default)]
struct Recorder(Mutex<Vec<String>>);

impl Environment for Recorder {
    fn get(&self, name: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(name.to_owned());
        None
    }

    fn of_connection(&self, _name: &str) -> Option<String> {
        None
    }
}

impl Library {
    /// The same library for a host program whose prompts may read these environment variables without a grant.
    #[must_use]
    pub fn with_env(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Library {
        self.env = names.into_iter().map(Into::into).collect();
        self
    }

    /// The names that the host program allows.
    #[doc(hidden)]
    pub fn host_env(&self) -> Arc<[String]> {
        self.env.clone()
    }

    /// What prompts of the project see of the environment.
    #[doc(hidden)]
    pub fn environment(&self) -> Arc<GrantedEnvironment> {
        let (spaces, host) = (self.spaces().clone(), self.env.clone());
        Arc::new(GrantedEnvironment { spaces, host, given: OnceLock::new() })
    }

    /// The requests for the variables that prompts of the project ask for. A file that cannot be read asks for what stands before
    /// its fault.
    pub(super) fn env_requests(&self) -> Result<Vec<Request>> {
        let limit = self.file_limit()?;
        // The commands that need the library report why it cannot be listed; a grant can be what is missing.
        let Ok(survey) = self.survey() else { return Ok(Vec::new()) };
        let candidates = survey.ids().flat_map(|(_, candidates)| candidates);
        let asks =
            |candidate: &&Candidate| candidate.dialect.reads_environment && candidate.pack_id.is_none();
        let mut names = Vec::new();
        for candidate in candidates.filter(asks) {
            let recorder = Arc::new(Recorder::default());
            drop(probe(candidate, limit, recorder.clone()));
            names.append(&mut recorder.0.lock().unwrap_or_else(PoisonError::into_inner));
        }
        names.sort_unstable();
        names.dedup();
        let listed = UserConfig::read(self.spaces())?.prompts.env;
        names.retain(|name| !name.is_empty() && !listed.contains(name) && !self.env.contains(name));
        Ok(names.iter().map(|name| Request::env(name)).collect())
    }
}

/// Reads a candidate with another environment, for the variables that it asks for.
fn probe(candidate: &Candidate, file_size: u64, environment: Arc<dyn Environment>) -> Result<Definition> {
    let options = LoadOptions { file_size, environment, ..LoadOptions::default() };
    let file = candidate.file(candidate.template_file.as_deref().unwrap_or_default());
    let source = candidate.root.read(&file, file_size)?;
    Definition::read(&source, candidate.root.path(&candidate.entry).as_deref(), &options)
}
