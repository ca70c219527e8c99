//! Who answers for an engine's threads, where they are kept, and which keys must not show.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cuebook::{Result, files};

use super::Secrets;
use super::launch::Launch;
use super::managed::ChosenModel;
use crate::engine::{Engine, Project};
use crate::provider::{Budget, Chosen, HttpProvider, ModelPreference, Providers, ToolMode};
use crate::store::{self, LogKey, SqliteStore, Store};

/// Where a project's threads are kept without a setting.
const FILE: &str = ".ai/state/threads.db";
/// Its folder.
const STATE: &str = ".ai/state";

impl Engine {
    /// Who is to be asked, which must be possible: a thread that cannot begin is not registered.
    ///
    /// A replay uses the recorded provider: no keys are needed, and there may be none by which to choose.
    pub(super) fn choose(&self, providers: &Providers, preference: &ModelPreference<'_>) -> Result<Chosen> {
        let preference =
            &ModelPreference { only: self.settings().provider.as_deref().or(preference.only), ..*preference };
        let chosen = providers.resolve(preference);
        let Some(replay) = self.settings().replay.as_deref() else {
            let chosen = chosen?;
            HttpProvider::new(&self.client()?, chosen.clone()).check()?;
            return Ok(chosen);
        };
        let recording = self.recording(replay)?;
        let Some(model) = recording.model().filter(|_| chosen.is_err()) else { return chosen };
        let recorded = ModelPreference { model: Some(&model), id: None, tier: None, ..*preference };
        providers.resolve(&recorded).or(chosen)
    }

    /// The model of a thread that is continued: another model, or the one that it had.
    pub(super) fn choose_again(
        &self,
        project: &Project,
        launch: &Launch,
        model: Option<&str>,
    ) -> Result<Chosen> {
        let providers = Providers::new(&project.spaces, project.trust())?;
        let only = Some(launch.provider.as_str()).filter(|_| model.is_none());
        let model = model.or(Some(&launch.model.id));
        self.choose(&providers, &ModelPreference { model, only, ..Default::default() })
    }

    /// A provider that can be asked: the real one, or recorded replies.
    pub(super) fn chosen_model(&self, chosen: &Chosen) -> Result<ChosenModel> {
        Ok(ChosenModel {
            provider: Arc::new(self.provider_of(chosen)?),
            price: chosen.price,
            most_output: chosen.max_output,
            calls_in_text: chosen.profile.tool_mode == ToolMode::Text,
        })
    }

    /// Who carries the questions: the network, which may be recorded, or a recording.
    pub(super) fn provider_of(&self, chosen: &Chosen) -> Result<HttpProvider> {
        let settings = self.settings();
        let provider = match (&settings.replay, &settings.record) {
            // A recording needs no budget, and its headers are not of today.
            (Some(replay), _) => {
                return Ok(HttpProvider::replaying(self.recording(replay)?, chosen.clone()));
            }
            (None, Some(record)) => {
                HttpProvider::recording(&self.client()?, &self.recorder(record)?, chosen.clone())
            }
            (None, None) => HttpProvider::new(&self.client()?, chosen.clone()),
        };
        Ok(provider.with_budget(self.budget_of(chosen)?))
    }

    /// The budget of requests and tokens for the key of a provider: all processes on one database share it, or else all of this
    /// user.
    fn budget_of(&self, chosen: &Chosen) -> Result<Arc<Budget>> {
        let file = &chosen.provider;
        let key = file.key.as_deref().and_then(|name| std::env::var(name).ok()).unwrap_or_default();
        let (address, key) = (&file.base_url, key.trim());
        if let Some(place) = &self.settings().store
            && store::file(place)?.is_none()
        {
            // If no threads use the store, it is opened only for budgets, under another name, because it has no log key.
            let store = match self.opened_store(place) {
                Some(store) => store,
                None => {
                    self.kept_store(&format!("{place} budgets"), || store::open(place, LogKey::none()))?
                }
            };
            return Ok(Arc::new(Budget::on_store(store, address, key, file.rate)));
        }
        Ok(Arc::new(match self.user_folder() {
            Some(user) => Budget::shared(&user, address, key, file.rate),
            None => Budget::of_this_process(file.rate),
        }))
    }

    /// The keys of all providers that the project knows, the secrets of their headers and options, and the password of the store.
    pub(crate) fn secrets(&self, project: &Project) -> Result<Secrets> {
        let providers = Providers::new(&project.spaces, project.trust())?;
        Ok(self.secrets_of(&providers))
    }

    /// The same, of providers that are read already. From here on, no trace tells them.
    pub(super) fn secrets_of(&self, providers: &Providers) -> Secrets {
        let names = providers.list().flat_map(|provider| provider.variables().map(str::to_owned));
        let written = providers.list().flat_map(|provider| provider.written_secrets());
        let password = self.settings().store.as_deref().and_then(store::password);
        Secrets::of_environment(names).and(written.chain(password)).kept()
    }

    /// The threads of a project.
    pub(crate) fn store_of(&self, project: &Project) -> Result<Arc<dyn Store>> {
        let place = self.place_of(project)?;
        self.kept_store(&place, || store::open(&place, LogKey::of(&project.spaces)))
    }

    /// The threads of a project for a caller that begins none. A missing file is not made.
    pub(super) fn looked_at(&self, project: &Project) -> Result<Arc<dyn Store>> {
        let place = self.place_of(project)?;
        match store::file(&place)? {
            Some(path) if !path.exists() => Ok(Arc::new(SqliteStore::nothing(path, LogKey::none())?)),
            _ => self.store_of(project),
        }
    }

    /// The file in which the threads of a project would be, if it is not there: where there are none, that is why.
    ///
    /// # Errors
    ///
    /// `CB724` if the kind of store is unknown.
    #[doc(hidden)]
    pub fn missing_store(&self, project: Option<&Path>) -> Result<Option<PathBuf>> {
        let place = self.place_of(&*self.project(project)?)?;
        let missing = store::file(&place)?.filter(|path| !path.exists());
        Ok(missing.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned())))
    }

    /// The place that the user named, or the file in the project, to which no link of the project may lead elsewhere.
    fn place_of(&self, project: &Project) -> Result<String> {
        if let Some(place) = &self.settings().store {
            return Ok(place.clone());
        }
        let root = project.spaces.project();
        files::stays_inside(root, &root.join(STATE), STATE)?;
        // Tools that a model calls do not see this folder, but the rest of the project.
        for end in ["", "-wal", "-shm"] {
            let name = format!("{FILE}{end}");
            files::stays_inside(&root.join(STATE), &root.join(&name), &name)?;
        }
        Ok(root.join(FILE).to_string_lossy().into_owned())
    }
}
