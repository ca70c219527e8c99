//! The overrides of a project.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::Store;
use crate::error::Result;

/// The store of a project's overrides, kept for what it remembers of its files.
#[derive(Debug, Default)]
#[doc(hidden)]
pub struct ProjectStore(Mutex<Option<Arc<Store>>>);

impl ProjectStore {
    /// The store as it is now: which of two folders it is in can change while a program runs.
    #[doc(hidden)]
    pub fn store(&self, project: &Path) -> Result<Arc<Store>> {
        let now = Store::of_project(project)?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some(store) if store.root() == now.root() => Ok(store.clone()),
            _ => Ok(known.insert(Arc::new(now)).clone()),
        }
    }
}
