//! The trust stores: the keys that a user, a project and the program say are good.
//!
//! A key is a file `config/keys/trusted/<fingerprint>.toml`, and it counts only if the fingerprint is really that of the
//! key in it. Beyond that each space has its rule:
//!
//! - The **user's** files are theirs. They need no signature; one that has a signature must be as it was signed, by itself
//!   or by a key that is trusted as well.
//! - The **program's** are part of it.
//! - The **project's** are written by anyone who can write into the project, so they count only if a key that the user (or
//!   the program) trusts has signed them, directly or through another such file; or if the user's own settings say that
//!   every file of a project counts.
//!
//! Circles of files that sign each other prove nothing.
//!
//! A signed file counts only if it is written exactly as `cuebook trust add` and Rye write it, and if its signature is one of
//! Rye's, without a purpose. No item can look like that, so a signed item that is copied here is no key.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::key::{PublicKey, SigningKey};
use super::line::{Split, Style, is_hex};
use super::settings::{self, ProjectKeys, TrustSettings};
use super::sign::sign_as_rye;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, did_you_mean, nearest};
use crate::files::{self, Stamp};
use crate::items::{SpaceKind, Spaces, system_files, user_name};
use crate::limits::KEY_BYTES;
use crate::notation::toml::quoted;
use crate::notation::toml_error::toml_error;

/// The folder of the store below `.ai`.
const FOLDER: &str = "config/keys/trusted";

/// How many files may vouch for each other in a row.
const LONGEST: usize = 8;

/// A key of a trust store.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TrustedKey {
    /// The key.
    pub key: PublicKey,
    /// Whose it is, as the author of the file says.
    pub owner: Option<String>,
    /// Which store it is in.
    pub space: SpaceKind,
    /// The name of its file as people see it.
    pub file: String,
    /// The fingerprint of the key that signed the file, if one did.
    pub signed_by: Option<String>,
}

/// A file of a trust store, and whether it counts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TrustEntry {
    /// The fingerprint that the file is named after.
    pub fingerprint: String,
    /// The name of its file as people see it.
    pub file: String,
    /// Which store it is in.
    pub space: SpaceKind,
    /// The key; or why the file does not count.
    pub key: Result<TrustedKey>,
}

#[derive(Deserialize)]
struct KeyFile {
    fingerprint: String,
    #[serde(default)]
    owner: String,
    #[serde(default)]
    attestation: String,
    public_key: Pem,
}

impl KeyFile {
    /// The file as it is written.
    fn text(&self) -> String {
        let KeyFile { fingerprint, owner, attestation, public_key } = self;
        let [owner, attestation] = [owner, attestation].map(|text| quoted(text));
        format!(
            "fingerprint = \"{fingerprint}\"\nowner = {owner}\nattestation = {attestation}\n\n[public_key]\npem = \"\"\"\n{}\"\"\"\n",
            public_key.pem
        )
    }
}

#[derive(Deserialize)]
struct Pem {
    pem: String,
}

/// The stores that a project sees.
#[derive(Debug, Clone)]
pub(crate) struct Stores {
    /// The user's `.ai`.
    user: Option<PathBuf>,
    /// The project's `.ai`, unless it is the user's.
    project: Option<PathBuf>,
}

/// What a search for a key found, and which files it depends on.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) key: Option<TrustedKey>,
    /// Why a file of this key does not count.
    pub(crate) problem: Option<Error>,
    pub(crate) depends: Vec<(PathBuf, Option<Stamp>)>,
}

impl Stores {
    pub(crate) fn new(spaces: &Spaces) -> Stores {
        let user = spaces.user_folder();
        let project = spaces.space(SpaceKind::Project).and_then(|space| space.folder());
        let project = project.filter(|folder| Some(*folder) != user.as_deref()).map(Path::to_owned);
        Stores { user, project }
    }

    /// The user's `.ai`.
    #[doc(hidden)]
    pub fn user(&self) -> Option<&Path> {
        self.user.as_deref()
    }

    /// The `.ai` folder of a space; none for that of the program.
    pub(crate) fn folder_of(&self, space: SpaceKind) -> Option<PathBuf> {
        match space {
            SpaceKind::User => self.user.clone(),
            SpaceKind::Project => self.project.clone().or_else(|| self.user.clone()),
            SpaceKind::System => None,
        }
    }

    /// What the user has decided, and the file that says so.
    pub(crate) fn settings(&self, found: &mut Found) -> Result<TrustSettings> {
        if let Some(user) = &self.user {
            note(found, &user.join(settings::FILE));
        }
        TrustSettings::read(self.user.as_deref())
    }

    /// The key of a fingerprint, if one of the stores vouches for it.
    pub(crate) fn find(&self, fingerprint: &str) -> Result<Found> {
        let mut found = Found::default();
        let settings = self.settings(&mut found)?;
        self.find_with(fingerprint, settings, &mut Vec::new(), &mut found)?;
        Ok(found)
    }

    /// The key of a fingerprint among those of the program.
    pub(crate) fn find_system(&self, fingerprint: &str) -> Result<Option<TrustedKey>> {
        let path = format!("{FOLDER}/{fingerprint}.toml");
        let Some((_, bytes)) = system_files().iter().find(|(name, _)| *name == path) else { return Ok(None) };
        read(bytes, fingerprint, SpaceKind::System, &format!("system:cuebook/{path}")).map(Some)
    }

    /// Whether the program has a key.
    pub(crate) fn has_system_keys() -> bool {
        system_files().iter().any(|(name, _)| name.starts_with(FOLDER))
    }

    /// The user's own store first: a project cannot even change the name that a key goes by.
    fn find_with(
        &self,
        fingerprint: &str,
        settings: TrustSettings,
        seen: &mut Vec<String>,
        found: &mut Found,
    ) -> Result<()> {
        found.key = None;
        let circle = seen.iter().any(|known| known == fingerprint);
        if !is_hex(fingerprint, 16) || circle || seen.len() >= LONGEST {
            return Ok(());
        }
        seen.push(fingerprint.to_owned());
        if let Some(user) = &self.user {
            self.find_in(SpaceKind::User, user, fingerprint, settings, seen, found)?;
        }
        if found.key.is_none() {
            found.key = self.find_system(fingerprint)?;
        }
        if let (None, Some(project)) = (&found.key, &self.project) {
            self.find_in(SpaceKind::Project, project, fingerprint, settings, seen, found)?;
        }
        seen.pop();
        Ok(())
    }

    fn find_in(
        &self,
        space: SpaceKind,
        folder: &Path,
        fingerprint: &str,
        settings: TrustSettings,
        seen: &mut Vec<String>,
        found: &mut Found,
    ) -> Result<()> {
        let file = format!("{FOLDER}/{fingerprint}.toml");
        let path = folder.join(&file);
        let name = format!("{}/{file}", start_of(space, folder));
        note(found, &path);
        if files::look(&path).map_err(|error| files::io_error(&name, &error))?.is_none() {
            return Ok(());
        }
        let result = files::read_bytes(&path, &name, KEY_BYTES).and_then(|bytes| {
            let mut key = read(&bytes, fingerprint, space, &name)?;
            key.signed_by = self.signer(&bytes, &key, settings, seen, found)?;
            Ok(key)
        });
        match result {
            Ok(key) => found.key = Some(key),
            Err(error) => {
                found.key = None;
                found.problem.get_or_insert(error);
            }
        }
        Ok(())
    }

    /// Checks the signature of a file of a store by the rule of its space, and says whose it is.
    fn signer(
        &self,
        bytes: &[u8],
        key: &TrustedKey,
        settings: TrustSettings,
        seen: &mut Vec<String>,
        found: &mut Found,
    ) -> Result<Option<String>> {
        let theirs = key.space == SpaceKind::Project && settings.project_keys == ProjectKeys::Signed;
        let split = Split::of(bytes, Style::Hash)
            .map_err(|malformed| wrong(&key.file, format!("its signature is invalid: {}", malformed.what)))?;
        let Some(line) = &split.signature else {
            let message = "Cuebook uses a key in a project only if a key that you trust signed its file";
            return if theirs { Err(not_vouched(key, message)) } else { Ok(None) };
        };
        if split.hash() != line.hash {
            let hint = Hint::run("if you changed it, add the key again", "cuebook trust add");
            return Err(bad(&key.file, "the file changed after it was signed", hint));
        }
        // A signature of an item is no signature of a key, whatever the item holds.
        let written = std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| toml::from_str::<KeyFile>(text).ok())
            .is_some_and(|file| split.content() == file.text().as_bytes());
        if line.purpose.is_some() || !written {
            return Err(wrong(&key.file, "its signature is not for a key file".to_owned()));
        }
        let own = line.fingerprint == key.key.fingerprint();
        if own && theirs {
            return Err(not_vouched(key, "a key in a project cannot sign its own file"));
        }
        let signer = match own {
            true => Some(key.key.clone()),
            false => {
                // The files that the signer depends on are files that this key depends on.
                let mut other = Found::default();
                let reach = if key.space == SpaceKind::User { self.of_user() } else { self.clone() };
                reach.find_with(&line.fingerprint, settings, seen, &mut other)?;
                found.depends.append(&mut other.depends);
                other.key.map(|key| key.key)
            }
        };
        let Some(signer) = signer else {
            let message =
                format!("the file is signed with the key {}, which you do not trust", line.fingerprint);
            return Err(not_vouched(key, &message));
        };
        if !line.is_made_by(&signer) {
            let hint = "the signature is forged: delete the file";
            return Err(bad(&key.file, "the file's signature does not match the key that it names", hint));
        }
        Ok(Some(line.fingerprint.clone()))
    }

    /// What the user's own files may lean on.
    fn of_user(&self) -> Stores {
        Stores { user: self.user.clone(), project: None }
    }

    /// Every file of every store, in the order in which they are asked.
    pub(crate) fn list(&self) -> Result<Vec<TrustEntry>> {
        let settings = TrustSettings::read(self.user.as_deref())?;
        let mut all = Vec::new();
        for (space, folder) in [(SpaceKind::User, &self.user), (SpaceKind::Project, &self.project)] {
            let Some(folder) = folder else { continue };
            for fingerprint in fingerprints(&folder.join(FOLDER)) {
                let mut found = Found::default();
                self.find_in(
                    space,
                    folder,
                    &fingerprint,
                    settings,
                    &mut vec![fingerprint.clone()],
                    &mut found,
                )?;
                let start = start_of(space, folder);
                let file = format!("{start}/{FOLDER}/{fingerprint}.toml");
                let key = match (found.key, found.problem) {
                    (Some(key), _) => Ok(key),
                    (None, Some(problem)) => Err(problem),
                    (None, None) => continue,
                };
                all.push(TrustEntry { fingerprint, file, space, key });
            }
        }
        for (name, bytes) in system_files() {
            let fingerprint = name.strip_prefix(FOLDER).and_then(|name| name.strip_suffix(".toml"));
            if let Some(fingerprint) = fingerprint.map(|name| name.trim_start_matches('/').to_owned()) {
                let file = format!("system:cuebook/{name}");
                let key = read(bytes, &fingerprint, SpaceKind::System, &file);
                all.push(TrustEntry { fingerprint, file, space: SpaceKind::System, key });
            }
        }
        Ok(all)
    }

    /// Writes a key into the store of a user or of a project, signed if there is a key to sign it with.
    pub(crate) fn add(
        &self,
        space: SpaceKind,
        key: &PublicKey,
        owner: &str,
        signer: Option<&SigningKey>,
        now: jiff::Timestamp,
    ) -> Result<TrustedKey> {
        let (folder, start) = self.folder(space)?;
        let file = format!("{FOLDER}/{}.toml", key.fingerprint());
        let name = format!("{start}/{file}");
        let text = KeyFile {
            fingerprint: key.fingerprint().to_owned(),
            owner: owner.to_owned(),
            attestation: String::new(),
            public_key: Pem { pem: key.pem().to_owned() },
        }
        .text();
        let bytes = match signer {
            Some(signer) => sign_as_rye("toml", text.as_bytes(), signer, now)?,
            None => text.into_bytes(),
        };
        files::write_atomic(&folder.join(&file), &name, &bytes)?;
        Ok(TrustedKey {
            key: key.clone(),
            owner: Some(owner.to_owned()).filter(|owner| !owner.is_empty()),
            space,
            file: name,
            signed_by: signer.map(|signer| signer.fingerprint().to_owned()),
        })
    }

    /// Deletes a key's file; a beginning of the fingerprint is enough if it fits one file.
    pub(crate) fn remove(&self, space: SpaceKind, fingerprint: &str) -> Result<String> {
        let (folder, start) = self.folder(space)?;
        let known = fingerprints(&folder.join(FOLDER));
        let fits: Vec<&String> = known.iter().filter(|known| known.starts_with(fingerprint)).collect();
        let [one] = fits.as_slice() else {
            let message = match fits.len() {
                0 => format!("the store has no key with the fingerprint {fingerprint}"),
                count => {
                    format!("{count} keys in the store have fingerprints that start with {fingerprint}")
                }
            };
            let near = did_you_mean(&nearest(fingerprint, known.iter().map(String::as_str)));
            let hint = near.map_or_else(|| Hint::run("list the keys", "cuebook trust list"), Hint::from);
            let diagnostic = Diagnostic::new(Code::BadTrust, message).hint(hint);
            return Err(Error::new(ErrorKind::Usage, diagnostic));
        };
        let name = format!("{start}/{FOLDER}/{one}.toml");
        let path = folder.join(FOLDER).join(format!("{one}.toml"));
        std::fs::remove_file(path).map_err(|error| files::write_error(&name, &error))?;
        Ok((*one).clone())
    }

    fn folder(&self, space: SpaceKind) -> Result<(&Path, String)> {
        let found = match space {
            SpaceKind::User => self.user.as_deref(),
            SpaceKind::Project => self.project.as_deref(),
            SpaceKind::System => None,
        };
        found.map(|folder| (folder, start_of(space, folder))).ok_or_else(|| {
            let message = format!("the trust store of the {} cannot be written", space.as_str());
            let hint = "use the user space; set USER_SPACE if you have no home folder";
            Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadTrust, message).hint(hint))
        })
    }
}

/// What the names of files in the folder of a space begin with.
fn start_of(space: SpaceKind, folder: &Path) -> String {
    match space {
        SpaceKind::User => user_name(folder),
        SpaceKind::Project | SpaceKind::System => ".ai".to_owned(),
    }
}

/// The fingerprints that files of a folder are named after, in order.
fn fingerprints(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut found: Vec<String> = names
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .filter(|n| is_hex(n, 16))
        .collect();
    found.sort_unstable();
    found
}

/// Reads a file of a store: the key in it must be the one that the file is named after.
fn read(bytes: &[u8], fingerprint: &str, space: SpaceKind, name: &str) -> Result<TrustedKey> {
    let source = files::source_from_bytes(bytes.to_vec(), name)?;
    let file: KeyFile = toml::from_str(source.text()).map_err(|error| {
        toml_error(&source, Code::BadTrust, ErrorKind::Integrity, &error)
            .map(|found| found.hint(Hint::run("add the key again", "cuebook trust add")))
    })?;
    let key = PublicKey::from_pem(&file.public_key.pem)
        .map_err(|error| wrong(name, format!("its key is invalid: {}", error.diagnostic().message)))?;
    if key.fingerprint() != fingerprint || file.fingerprint != fingerprint {
        let message = format!("the fingerprint of the key in this file is {}", key.fingerprint());
        return Err(bad(
            name,
            &message,
            Hint::run("delete the file, and add the key again", "cuebook trust add"),
        ));
    }
    let owner = Some(file.owner).filter(|owner| !owner.is_empty());
    Ok(TrustedKey { key, owner, space, file: name.to_owned(), signed_by: None })
}

pub(super) fn note(found: &mut Found, path: &Path) {
    found.depends.push((path.to_owned(), Stamp::of(path)));
}

fn bad(file: &str, message: &str, hint: impl Into<Hint>) -> Error {
    let diagnostic = Diagnostic::new(Code::BadTrust, message).file(file).hint(hint);
    Error::new(ErrorKind::Integrity, diagnostic)
}

fn wrong(file: &str, message: String) -> Error {
    bad(file, &message, Hint::run("delete the file, and add the key again", "cuebook trust add"))
}

fn not_vouched(key: &TrustedKey, message: &str) -> Error {
    let hint = Hint::run("if you know the owner of the key, add it to your own store", "cuebook trust add");
    bad(&key.file, message, hint)
}
