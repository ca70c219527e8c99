//! The newest signing time that was seen of each item.
//!
//! A signature stays valid for ever, so an older signed version of an item can be put back where a newer one was. The
//! user's space remembers when the newest version of each item was signed, one file for each `.ai` folder:
//! `state/seen/<digest of the folder>.json`. A project cannot change it. It is written without waiting for the disk: a
//! record that is lost after a crash is made again when the item is used next.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::sha256::{Sha256, hex};
use serde::{Deserialize, Serialize};

use super::purpose::Purpose;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::files;
use crate::items::user_name;

/// The folder of the records below the user's `.ai`.
const FOLDER: &str = "state/seen";
/// The largest record.
const LARGEST: u64 = 64 << 20;

/// The record of one `.ai` folder.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    folder: PathBuf,
    /// The newest signing time of each item, by its type and id.
    items: BTreeMap<String, String>,
}

/// What was seen of the items of one `.ai` folder.
#[derive(Debug, Clone)]
pub(crate) struct SeenItems {
    /// The file, and its name for people.
    file: (PathBuf, String),
    record: Record,
}

impl SeenItems {
    /// The file that holds the record of an `.ai` folder.
    pub(crate) fn file(user: &Path, folder: &Path) -> PathBuf {
        let digest = hex(&Sha256::digest(resolved(folder).as_os_str().as_encoded_bytes()));
        user.join(FOLDER).join(format!("{}.json", &digest[..32]))
    }

    /// Reads the record of an `.ai` folder from the user's `.ai`.
    pub(crate) fn read(user: &Path, folder: &Path) -> Result<SeenItems> {
        let (path, folder) = (SeenItems::file(user, folder), resolved(folder));
        let below = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = format!("{}/{FOLDER}/{below}", user_name(user));
        let record = match files::look(&path).map_err(|error| files::io_error(&name, &error))? {
            None => Record::default(),
            Some(_) => parse(&path, &name)?,
        };
        // A file that was copied from another folder says nothing about this one.
        let record = Some(record).filter(|record| record.folder == folder).unwrap_or_default();
        Ok(SeenItems { file: (path, name), record: Record { folder, ..record } })
    }

    /// The newest signing time that was seen of an item.
    pub(crate) fn newest(&self, purpose: &Purpose) -> Option<&str> {
        self.record.items.get(purpose.subject()).map(String::as_str)
    }

    /// Stores signing times. A later one replaces an earlier one.
    pub(crate) fn store(&mut self, items: &[(Purpose, String)]) -> Result<()> {
        self.change(|record| {
            for (purpose, signed_at) in items {
                let newest = record.entry(purpose.subject().to_owned()).or_default();
                if *signed_at > *newest {
                    newest.clone_from(signed_at);
                }
            }
        })
    }

    /// Stores signing times, also where later ones were seen.
    pub(crate) fn replace(&mut self, items: &[(Purpose, String)]) -> Result<()> {
        self.change(|record| {
            record.extend(items.iter().map(|(purpose, at)| (purpose.subject().to_owned(), at.clone())));
        })
    }

    /// Forgets what was seen of an item.
    pub(crate) fn forget(&mut self, purpose: &Purpose) -> Result<()> {
        self.change(|record| drop(record.remove(purpose.subject())))
    }

    /// Changes the record under its lock, so that two processes lose nothing.
    fn change(&mut self, change: impl FnOnce(&mut BTreeMap<String, String>)) -> Result<()> {
        let (path, name) = &self.file;
        let _lock = files::Lock::acquire(path, name)?;
        // Another process may have stored something since this one read the file.
        let stored = files::look(path).map_err(|error| files::io_error(name, &error))?;
        let stored = stored.map(|_| parse(path, name)).transpose()?.unwrap_or_default();
        if stored.folder == self.record.folder {
            self.record.items = stored.items;
        }
        change(&mut self.record.items);
        let mut text = serde_json::to_vec(&self.record).unwrap_or_default();
        text.push(b'\n');
        write(path, &text).map_err(|error| files::write_error(name, &error))
    }
}

fn parse(path: &Path, name: &str) -> Result<Record> {
    let source = files::read_text(path, name, LARGEST)?;
    serde_json::from_str(source.text()).map_err(|error| {
        let diagnostic = Diagnostic::new(Code::BadTrust, format!("invalid record of signing times: {error}"))
            .file(name)
            .hint("delete the file: Cuebook then forgets which versions of your items it has seen");
        Error::new(ErrorKind::Integrity, diagnostic)
    })
}

/// Writes the file whole, without waiting for the disk.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let temporary = files::temporary_beside(path);
    let written = std::fs::write(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        // The write failed already; that the leftover stays is not the reason.
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

fn resolved(folder: &Path) -> PathBuf {
    std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())
}
