//! A file that is read again only when it has changed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Result;
use crate::files::{self, Stamp};

/// What was read from a file, with the stamp of the file that it was read from.
pub(crate) struct Cached<T> {
    path: PathBuf,
    /// The name for people.
    name: String,
    state: Mutex<Option<(Option<Stamp>, Arc<T>)>>,
}

impl<T: Default> Cached<T> {
    pub(crate) fn new(path: PathBuf, name: String) -> Cached<T> {
        Cached { path, name, state: Mutex::new(None) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What the file says now; the default if there is nothing at its path. A link that leads nowhere is something: a user who
    /// made it has settings, and must not get the default ones.
    pub(crate) fn get(&self, read: impl FnOnce(&Path) -> Result<T>) -> Result<Arc<T>> {
        let found = files::look(&self.path).map_err(|error| files::io_error(&self.name, &error))?;
        let now = found.as_ref().map(Stamp::from_metadata);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((earlier, value)) = &*state
            && Stamp::proves_unchanged(&now, earlier)
        {
            return Ok(value.clone());
        }
        let value = Arc::new(if now.is_some() { read(&self.path)? } else { T::default() });
        *state = Some((now, value.clone()));
        Ok(value)
    }
}

impl<T> std::fmt::Debug for Cached<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cached").field("path", &self.path).finish_non_exhaustive()
    }
}
