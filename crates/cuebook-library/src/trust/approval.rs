//! Approval of pack code, bound to the content of the pack's files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::sha256::{Sha256, hex};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::files::{self, Lock};
use crate::items::Spaces;
use crate::json::Step::Key;
use crate::json::{Document, Problems, quoted};

use super::{file_of, resolved};

/// Before the target of a link, in the place of a digest.
const LINK: &str = "link:";
/// Bytes of a file of approvals.
const LARGEST: u64 = 64 << 20;

/// A file of a pack and the digest of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackFile {
    /// Its path inside the pack, with `/` between the parts.
    pub path: String,
    /// SHA-256 of its content, in hexadecimal digits.
    pub sha256: String,
}

/// What a pack consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentDigest {
    files: BTreeMap<String, String>,
}

impl ContentDigest {
    /// Reads every file of a pack. Hidden files are not part of it, and neither is what Python caches.
    pub fn of(pack: &Path, name: &str, limit: u64) -> Result<ContentDigest> {
        let mut found = BTreeMap::new();
        collect(pack, "", name, limit, &mut found)?;
        Ok(ContentDigest { files: found })
    }

    /// The files, by path.
    pub fn files(&self) -> impl Iterator<Item = PackFile> + '_ {
        self.files.iter().map(|(path, sha256)| PackFile { path: path.clone(), sha256: sha256.clone() })
    }

    /// Whether there is anything that can run. A link may lead to anything.
    pub fn has_code(&self) -> bool {
        self.files.keys().any(|path| path.ends_with(".py")) || self.links().next().is_some()
    }

    /// The paths that are links.
    pub fn links(&self) -> impl Iterator<Item = &str> {
        self.files.iter().filter(|(_, digest)| digest.starts_with(LINK)).map(|(path, _)| path.as_str())
    }

    /// One digest over all names and contents.
    pub fn digest(&self) -> String {
        let mut hasher = Sha256::new();
        for (path, sha256) in &self.files {
            // Lengths in front keep `ab` + `c` apart from `a` + `bc`.
            hasher.update((path.len() as u64).to_le_bytes());
            hasher.update(path.as_bytes());
            hasher.update((sha256.len() as u64).to_le_bytes());
            hasher.update(sha256.as_bytes());
        }
        hex(&hasher.finalize())
    }
}

impl FromIterator<PackFile> for ContentDigest {
    fn from_iter<I: IntoIterator<Item = PackFile>>(files: I) -> ContentDigest {
        ContentDigest { files: files.into_iter().map(|file| (file.path, file.sha256)).collect() }
    }
}

fn collect(
    folder: &Path,
    below: &str,
    name: &str,
    limit: u64,
    found: &mut BTreeMap<String, String>,
) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(|error| files::io_error(name, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| files::io_error(name, &error))?;
        let file_name = entry.file_name();
        // Two names that only look the same would be one here, and only one of them would have been shown.
        let Some(file_name) = file_name.to_str().map(str::to_owned) else {
            let message = format!("a file name is not UTF-8: {}", file_name.to_string_lossy());
            let diagnostic = Diagnostic::new(Code::NotUtf8, message).file(name).hint("rename the file");
            return Err(Error::new(ErrorKind::Pack, diagnostic));
        };
        if file_name.starts_with('.') || file_name == "__pycache__" {
            continue;
        }
        let path = if below.is_empty() { file_name } else { format!("{below}/{file_name}") };
        let full_name = format!("{name}/{path}");
        // Links are not followed: what they lead to is not the pack's, and may change without it.
        let kind = entry.file_type().map_err(|error| files::io_error(&full_name, &error))?;
        if kind.is_dir() {
            collect(&entry.path(), &path, name, limit, found)?;
        } else if kind.is_symlink() {
            let target = fs::read_link(entry.path()).map_err(|error| files::io_error(&full_name, &error))?;
            found.insert(path, format!("{LINK}{}", target.to_string_lossy()));
        } else {
            let bytes = files::read_bytes(&entry.path(), &full_name, limit)?;
            found.insert(path, hex(&Sha256::digest(&bytes)));
        }
    }
    Ok(())
}

/// Whether a pack's code may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// There is no code.
    NotNeeded,
    /// Approved, and nothing has changed since.
    Approved {
        /// When.
        approved_at: String,
    },
    /// It is not approved.
    Missing,
    /// It was approved, and files have changed since.
    Changed {
        /// Files that are new.
        added: Vec<String>,
        /// Files that are gone.
        removed: Vec<String>,
        /// Files with other content.
        changed: Vec<String>,
    },
}

impl Approval {
    /// The word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Approval::NotNeeded => "not needed",
            Approval::Approved { .. } => "approved",
            Approval::Missing => "missing",
            Approval::Changed { .. } => "changed",
        }
    }
}

/// The folder of approvals below the user's `.ai`: a file for each project.
pub(crate) const APPROVALS: &str = "config/approvals";

/// What the user approved in one project.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Approvals {
    project: PathBuf,
    packs: indexmap::IndexMap<String, Record>,
}

/// The approvals of a project, in its user's space.
#[derive(Debug, Clone)]
pub struct ApprovalsFile {
    /// The real path of the project.
    pub(crate) project: PathBuf,
    /// The file.
    pub path: PathBuf,
    /// Its name for people.
    pub(crate) name: String,
}

impl ApprovalsFile {
    /// The file for a project; none for a user without a home folder.
    pub(crate) fn of(spaces: &Spaces) -> Option<ApprovalsFile> {
        let (path, name) = file_of(spaces, APPROVALS)?;
        Some(ApprovalsFile { project: resolved(spaces.project()), path, name })
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    approved_at: String,
    digest: String,
    files: BTreeMap<String, String>,
}

fn read(file: &ApprovalsFile) -> Result<Approvals> {
    let ApprovalsFile { project, path, name } = file;
    let empty = || Approvals { project: project.clone(), ..Approvals::default() };
    if files::look(path).map_err(|error| files::io_error(name, &error))?.is_none() {
        return Ok(empty());
    }
    let source = files::read_text(path, name, LARGEST)?;
    let document = Document::parse(&source, Code::BadApprovals, ErrorKind::Config)?;
    let mut problems = Problems::new(&document);
    let hint = "delete the file, and approve the packs again";
    let nothing = serde_json::Map::new();
    let packs = match document.object()?.get("packs") {
        Some(Json::Object(packs)) => packs,
        Some(other) => {
            problems.wrong_type(&[Key("packs")], other, "`packs`", "an object", hint);
            &nothing
        }
        None => &nothing,
    };
    for (pack, record) in packs {
        let Json::Object(record) = record else {
            let what = format!("the approval of {}", quoted(pack));
            problems.wrong_type(&[Key("packs"), Key(pack)], record, &what, "an object", hint);
            continue;
        };
        for field in ["approved_at", "digest"] {
            match record.get(field) {
                Some(Json::String(_)) => {}
                Some(other) => {
                    problems.wrong_type(
                        &[Key("packs"), Key(pack), Key(field)],
                        other,
                        &quoted(field),
                        "a string",
                        hint,
                    );
                }
                None => problems.wrong_key(
                    &[Key("packs"), Key(pack)],
                    format!("the approval of {} has no {}", quoted(pack), quoted(field)),
                    hint,
                ),
            }
        }
        let files = record.get("files").and_then(Json::as_object);
        if !files.is_some_and(|files| files.values().all(Json::is_string)) {
            let message = format!("the approval of {} does not list its files", quoted(pack));
            problems.wrong_key(&[Key("packs"), Key(pack)], message, hint);
        }
    }
    problems.or(())?;
    let approvals: Approvals = serde_json::from_str(source.text()).map_err(|error| {
        let diagnostic = Diagnostic::new(Code::BadApprovals, error.to_string()).file(name).hint(hint);
        Error::new(ErrorKind::Config, diagnostic)
    })?;
    // A file that was copied here is about another project.
    Ok(if approvals.project == *project { approvals } else { empty() })
}

/// Whether the content of a pack is what was approved.
pub(crate) fn status(file: Option<&ApprovalsFile>, pack: &str, content: &ContentDigest) -> Result<Approval> {
    if !content.has_code() {
        return Ok(Approval::NotNeeded);
    }
    let record = file.map(read).transpose()?.and_then(|mut approvals| approvals.packs.shift_remove(pack));
    let Some(record) = record else { return Ok(Approval::Missing) };
    if record.digest == content.digest() {
        return Ok(Approval::Approved { approved_at: record.approved_at });
    }
    let missing_in = |these: &BTreeMap<String, String>, those: &BTreeMap<String, String>| -> Vec<String> {
        these.keys().filter(|path| !those.contains_key(*path)).cloned().collect()
    };
    Ok(Approval::Changed {
        added: missing_in(&content.files, &record.files),
        removed: missing_in(&record.files, &content.files),
        changed: content
            .files
            .iter()
            .filter(|(path, digest)| record.files.get(*path).is_some_and(|known| known != *digest))
            .map(|(path, _)| path.clone())
            .collect(),
    })
}

/// Records that the content of a pack was approved.
pub(crate) fn approve(
    file: Option<&ApprovalsFile>,
    pack: &str,
    content: &ContentDigest,
    now: Timestamp,
) -> Result<()> {
    let Some(file) = file else {
        let diagnostic =
            Diagnostic::new(Code::ApprovalRequired, "there is no home folder to store approvals in")
                .hint("set HOME, or USER_SPACE to the folder that holds your `.ai`");
        return Err(Error::new(ErrorKind::PromptApprovalRequired, diagnostic));
    };
    let lock = Lock::acquire(&file.path, &file.name)?;
    let mut approvals = read(file)?;
    let record = Record {
        approved_at: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        digest: content.digest(),
        files: content.files.clone(),
    };
    approvals.packs.insert(pack.to_owned(), record);
    let mut text = serde_json::to_vec_pretty(&approvals).unwrap_or_default();
    text.push(b'\n');
    lock.write_private(&file.name, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pack {
        folder: tempfile::TempDir,
    }

    impl Pack {
        fn new() -> Pack {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join("pack/prompts/a")).unwrap();
            let pack = Pack { folder };
            pack.write("prompts/a/prompt.py", "METADATA = {}");
            pack.write("pack.json", "{}");
            pack
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.folder.path().join("pack").join(path), text).unwrap();
        }

        fn content(&self) -> ContentDigest {
            ContentDigest::of(&self.folder.path().join("pack"), "pack", 1 << 20).unwrap()
        }

        fn file(&self) -> ApprovalsFile {
            let path = self.folder.path().join("approvals.json");
            ApprovalsFile { project: "/project".into(), path, name: "approvals.json".into() }
        }

        fn status(&self) -> Approval {
            status(Some(&self.file()), "p", &self.content()).unwrap()
        }

        fn approve(&self) {
            approve(Some(&self.file()), "p", &self.content(), Timestamp::UNIX_EPOCH).unwrap();
        }
    }

    #[test]
    fn approval_holds_for_the_bytes_that_were_seen() {
        let pack = Pack::new();
        assert_eq!(pack.status(), Approval::Missing);
        pack.approve();
        assert_eq!(pack.status(), Approval::Approved { approved_at: "1970-01-01T00:00:00Z".into() });
        pack.write("prompts/a/prompt.py", "METADATA = {'x': 1}");
        pack.write("prompts/a/helper.py", "");
        fs::remove_file(pack.folder.path().join("pack/pack.json")).unwrap();
        assert_eq!(
            pack.status(),
            Approval::Changed {
                added: vec!["prompts/a/helper.py".into()],
                removed: vec!["pack.json".into()],
                changed: vec!["prompts/a/prompt.py".into()],
            }
        );
    }

    #[test]
    fn approvals_of_another_project_count_for_nothing() {
        let pack = Pack::new();
        pack.approve();
        let elsewhere = ApprovalsFile { project: "/elsewhere".into(), ..pack.file() };
        assert_eq!(status(Some(&elsewhere), "p", &pack.content()).unwrap(), Approval::Missing);
        assert_eq!(status(None, "p", &pack.content()).unwrap(), Approval::Missing);
    }

    #[test]
    fn a_pack_without_code_needs_no_approval() {
        let pack = Pack::new();
        fs::remove_file(pack.folder.path().join("pack/prompts/a/prompt.py")).unwrap();
        assert_eq!(pack.status(), Approval::NotNeeded);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_becomes_a_link_is_a_change() {
        let pack = Pack::new();
        pack.approve();
        let file = pack.folder.path().join("pack/prompts/a/prompt.py");
        let elsewhere = pack.folder.path().join("elsewhere.py");
        fs::rename(&file, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
        assert!(
            matches!(pack.status(), Approval::Changed { changed, .. } if changed == ["prompts/a/prompt.py"])
        );
    }

    #[test]
    fn an_invalid_approvals_file_is_refused_with_its_place() {
        let pack = Pack::new();
        fs::write(pack.file().path, "{\n  \"packs\": {\"p\": {\"approved_at\": 7}}\n}\n").unwrap();
        let error = status(Some(&pack.file()), "p", &pack.content()).unwrap_err();
        assert_eq!(
            crate::json::shown(error.diagnostics()),
            "\
error approvals.json:2:34: `approved_at` must be a string [CB209]
  at 7 -- this is a number
  help: delete the file, and approve the packs again
error approvals.json:2:13: the approval of `p` has no `digest` [CB209]
  at \"p\" -- (no label)
  help: delete the file, and approve the packs again
error approvals.json:2:13: the approval of `p` does not list its files [CB209]
  at \"p\" -- (no label)
  help: delete the file, and approve the packs again
"
        );
    }
}
