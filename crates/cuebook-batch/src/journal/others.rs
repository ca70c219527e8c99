//! The journals of other processes, in a folder that all of them share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cuebook::{Result, files};

use super::{Journal, Lookup, QuestionRecord};
use crate::key::Key;

/// The journals of a folder, but for one.
#[derive(Debug)]
pub(super) struct Others {
    folder: PathBuf,
    own: PathBuf,
    known: BTreeMap<PathBuf, Journal>,
}

impl Others {
    pub(super) fn new(folder: &Path, own: &Path) -> Result<Others> {
        let mut others =
            Others { folder: folder.to_owned(), own: own.to_owned(), known: BTreeMap::default() };
        others.refresh()?;
        Ok(others)
    }

    /// The answer to a question. A failure of another process is not an answer: this one asks again.
    pub(super) fn answer(&mut self, key: Key) -> Result<Option<QuestionRecord>> {
        if let Some(answer) = self.find(key)? {
            return Ok(Some(answer));
        }
        if self.refresh()? { self.find(key) } else { Ok(None) }
    }

    fn find(&self, key: Key) -> Result<Option<QuestionRecord>> {
        for journal in self.known.values() {
            if let Some(answer @ QuestionRecord::Answered(_)) = journal.own(key)? {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    /// Reads what other processes have written since the last look; says whether there is something.
    fn refresh(&mut self) -> Result<bool> {
        let mut is_changed = false;
        let folder = self.folder.to_string_lossy();
        let entries = std::fs::read_dir(&self.folder).map_err(|error| files::io_error(&folder, &error))?;
        for entry in entries {
            let path = entry.map_err(|error| files::io_error(&folder, &error))?.path();
            if path == self.own || path.extension().is_none_or(|end| end != "journal") {
                continue;
            }
            match self.known.get(&path) {
                Some(journal) => is_changed |= journal.read_on()?,
                None => {
                    if let Some(journal) = Journal::look_at(path.clone())? {
                        self.known.insert(path, journal);
                        is_changed = true;
                    }
                }
            }
        }
        Ok(is_changed)
    }
}

impl Journal {
    /// Reads what another process has added; says whether it has.
    fn read_on(&self) -> Result<bool> {
        let name = self.name();
        let mut state = self.state();
        let length = state.file.metadata().map_err(|error| files::io_error(&name, &error))?.len();
        let before = state.length;
        if length > before {
            let reader = self.reader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            state.read(&name, &mut Lookup { reader: &reader, name: &name })?;
        }
        Ok(state.length > before)
    }
}
