//! The files of a skill, each with its size and its SHA-256. A skill with a link is refused: what the link leads to is not the skill's.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cuebook_text::sha256::{Sha256, hex};
use serde_json::{Map, Value as Json};

use super::Skill;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use crate::files;
use crate::library::Candidate;
use crate::prompt::SKILL;
use crate::source::Source;
use crate::trust::{
    ContentDigest, PUBLISHER_FILE, PackFile, PublicKey, SigningKey, Trust, package_signer, sign_package,
};

/// The file that every skill has.
pub const SKILL_FILE: &str = "SKILL.md";
/// The most files of a skill.
const MAX_FILES: usize = 512;
/// The most bytes of all its files together.
const MAX_BYTES: u64 = 16 << 20;
/// How deep its folders are nested at most.
const MAX_DEPTH: usize = 16;

/// A skill on disk: its front matter and its files.
#[derive(Debug, Clone)]
pub struct SkillFolder {
    name: String,
    description: String,
    front_matter: Map<String, Json>,
    allowed_tools: Option<Vec<String>>,
    problem: Option<Diagnostic>,
    pub(super) folder: PathBuf,
    pub(super) shown: String,
}

/// A file of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillFile {
    /// Its size in bytes.
    pub size: u64,
    /// The SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
}

/// What signatures call a skill.
const KIND: &str = "skill";

/// Who signed a skill.
#[derive(Debug, Clone)]
pub enum SkillSignature {
    /// There is no signature.
    Unsigned,
    /// The files are as they were signed, with a key that the user does not trust.
    Unknown(PublicKey),
    /// The files are as they were signed, with a key that the user trusts, and the name of its owner.
    Trusted(PublicKey, Option<String>),
}

impl SkillFolder {
    /// The skill that a candidate of a library is; `None` if it is a prompt of another dialect.
    ///
    /// # Errors
    ///
    /// `CB318` for front matter that is missing or invalid, and whatever keeps the file from being read.
    pub fn of(candidate: &Candidate, limit: u64) -> Result<Option<SkillFolder>> {
        if *candidate.dialect != SKILL {
            return Ok(None);
        }
        let source = candidate.root.read(&candidate.file(SKILL_FILE), limit)?;
        Ok(SkillFolder::around(&Skill::read(&source)?, &source, candidate))
    }

    /// The folder around a file that was read; `None` if it is not on disk.
    pub(super) fn around(skill: &Skill, source: &Arc<Source>, candidate: &Candidate) -> Option<SkillFolder> {
        let folder = candidate.root.path(&candidate.entry)?;
        let front_matter = match skill.root.to_json() {
            Json::Object(entries) => entries,
            _ => Map::new(),
        };
        let problem = skill.problems(&candidate.entry).into_iter().next();
        let shown = source.name().trim_end_matches(SKILL_FILE).trim_end_matches('/').to_owned();
        let (name, description) = (skill.name.0.clone(), skill.description.0.clone());
        let allowed_tools = skill.root.get("allowed-tools").map(|_| skill.allowed_tools());
        Some(SkillFolder { name, description, front_matter, allowed_tools, problem, folder, shown })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// When it helps.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Its folder on disk.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its folder, as messages name it.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The front matter, with the keys of the file.
    pub fn front_matter(&self) -> &Map<String, Json> {
        &self.front_matter
    }

    /// The tools that it names in `allowed-tools`; `None` if it does not say.
    pub fn allowed_tools(&self) -> Option<&[String]> {
        self.allowed_tools.as_deref()
    }

    /// The text below the front matter of a `SKILL.md`: what an agent reads when it opens the skill.
    ///
    /// # Errors
    ///
    /// `CB318` for front matter that is missing or invalid.
    pub fn body(file: &Arc<Source>) -> Result<Arc<Source>> {
        Ok(Source::inside(file, Skill::read(file)?.body))
    }

    /// An error if its name or its description is not what the format demands.
    ///
    /// # Errors
    ///
    /// `CB318`.
    pub fn check(&self) -> Result<()> {
        match &self.problem {
            None => Ok(()),
            Some(found) => Err(Error::new(ErrorKind::PromptRead, found.clone())),
        }
    }

    /// All its files, by their paths below its folder. Hidden files are not part of it, and neither is what Python caches.
    ///
    /// # Errors
    ///
    /// `CB110` for a link and `CB112` for a skill with more than 512 files or 16 MiB.
    pub fn files(&self) -> Result<BTreeMap<String, SkillFile>> {
        let paths = self.paths()?;
        let (mut found, mut total) = (BTreeMap::new(), 0);
        for path in paths {
            let bytes = self.bytes(&path)?;
            let size = bytes.len() as u64;
            total += size;
            if total > MAX_BYTES {
                return Err(self.too_large(format!("the skill has more than {} MiB", MAX_BYTES >> 20)));
            }
            found.insert(path, SkillFile { size, sha256: hex(&Sha256::digest(&bytes)) });
        }
        Ok(found)
    }

    /// The same files as one digest.
    ///
    /// # Errors
    ///
    /// As for [`SkillFolder::files`].
    pub fn digest(&self) -> Result<ContentDigest> {
        let files = self.files()?.into_iter();
        Ok(files.map(|(path, file)| PackFile { path, sha256: file.sha256 }).collect())
    }

    /// Who signed the skill with all its files.
    ///
    /// # Errors
    ///
    /// `CB221` if a file was changed, added or removed after the skill was signed, and as for [`SkillFolder::files`].
    pub fn signature(&self, trust: &Trust) -> Result<SkillSignature> {
        if !self.folder.join(PUBLISHER_FILE).is_file() {
            return Ok(SkillSignature::Unsigned);
        }
        let signer = package_signer(&self.folder, &self.shown, KIND, &self.name, &self.digest()?);
        let signer = signer.map_err(|error| match error.code() {
            Code::PublisherKey => {
                let message = format!("the skill `{}` was changed after it was signed", self.name);
                let found = Diagnostic::new(Code::ContentChanged, message).file(&self.shown);
                let hint = Hint::run(
                    "if you made the change, sign it again",
                    format!("cuebook sign skill {}", self.name),
                );
                Error::new(ErrorKind::Integrity, found.hint(hint))
            }
            _ => error,
        })?;
        let Some(key) = signer else { return Ok(SkillSignature::Unsigned) };
        Ok(match trust.trusts(key.fingerprint())? {
            Some(known) => SkillSignature::Trusted(key, known.owner),
            None => SkillSignature::Unknown(key),
        })
    }

    /// Signs the skill with all its files.
    ///
    /// # Errors
    ///
    /// `CB318` if the format does not allow its name or description, and whatever keeps the signature from being written.
    pub fn sign(&self, key: &SigningKey) -> Result<()> {
        self.check()?;
        sign_package(&self.folder, &self.shown, KIND, &self.name, &self.digest()?, key)
    }

    /// The content of one file; `None` if the skill has no such file.
    ///
    /// # Errors
    ///
    /// As for [`SkillFolder::files`].
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>> {
        match self.paths()?.iter().any(|known| known == path) {
            true => self.bytes(path).map(Some),
            false => Ok(None),
        }
    }

    /// The paths of its files, sorted.
    ///
    /// # Errors
    ///
    /// As for [`SkillFolder::files`].
    pub fn paths(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        self.collect(&self.folder, "", 0, &mut found)?;
        found.sort_unstable();
        Ok(found)
    }

    fn bytes(&self, path: &str) -> Result<Vec<u8>> {
        files::read_bytes_inside(
            &self.folder,
            &self.folder.join(path),
            &format!("{}/{path}", self.shown),
            MAX_BYTES,
        )
    }

    fn collect(&self, folder: &Path, below: &str, depth: usize, found: &mut Vec<String>) -> Result<()> {
        let shown = if below.is_empty() { self.shown.clone() } else { format!("{}/{below}", self.shown) };
        if depth > MAX_DEPTH {
            return Err(self.too_large(format!("the skill nests more than {MAX_DEPTH} folders")));
        }
        for entry in fs::read_dir(folder).map_err(|error| files::io_error(&shown, &error))? {
            let entry = entry.map_err(|error| files::io_error(&shown, &error))?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                let message = format!("a file name is not UTF-8: {}", name.to_string_lossy());
                let diagnostic = Diagnostic::new(Code::NotUtf8, message).file(&shown).hint("rename the file");
                return Err(Error::new(ErrorKind::Io, diagnostic));
            };
            if name.starts_with('.') || name == "__pycache__" {
                continue;
            }
            let path = if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
            let kind = entry.file_type().map_err(|error| files::io_error(&shown, &error))?;
            if kind.is_symlink() {
                let message = "a skill cannot have symbolic links";
                let diagnostic = Diagnostic::new(Code::Unreadable, message);
                let diagnostic = diagnostic.file(format!("{}/{path}", self.shown));
                return Err(Error::new(ErrorKind::Io, diagnostic.hint("replace the link with the file")));
            }
            match kind.is_dir() {
                true => self.collect(&entry.path(), &path, depth + 1, found)?,
                false => found.push(path),
            }
            if found.len() > MAX_FILES {
                return Err(self.too_large(format!("the skill has more than {MAX_FILES} files")));
            }
        }
        Ok(())
    }

    fn too_large(&self, message: String) -> Error {
        let diagnostic = Diagnostic::new(Code::FileTooLarge, message).file(&self.shown);
        Error::new(ErrorKind::Io, diagnostic.hint("move files that no agent needs out of the skill"))
    }
}
