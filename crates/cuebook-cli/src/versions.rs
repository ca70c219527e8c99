//! What a user means by a version of a prompt: something that is here, something that a revision has, or something in a pack
//! that is not installed.

use std::cell::OnceCell;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cuebook::error::{did_you_mean, nearest};
use cuebook::library::{Library, is_path};
use cuebook::variables::Clock;
use cuebook::{Book, Code, Context, Diagnostic, Error, ErrorKind, Hint, Result, files};
use cuebook_lab::diff::{Names, Version};

use crate::git::{Copy, PrivateFolder, Repository, Tree};

/// How packs end that are one file.
const ARCHIVES: [&str; 3] = [".tar.gz", ".tgz", ".zip"];

/// What is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionName {
    /// A prompt of the project, or one at a path.
    Here(String),
    /// A prompt as a revision has it.
    Revision {
        /// The revision, in git's words.
        revision: String,
        /// An id or a path.
        prompt: String,
    },
    /// A prompt of a pack that is not installed.
    Packed {
        /// The archive or the folder.
        pack: String,
        /// An id.
        prompt: String,
    },
}

/// A place that a version is in, kept for as long as it is looked at.
pub enum OpenVersion<'b> {
    /// The project.
    Here {
        /// Its book.
        book: &'b Book,
        /// The id, or the path from the current directory.
        prompt: String,
        /// What was given.
        label: String,
    },
    /// A copy of what a revision has.
    Revision {
        /// The copy's book.
        book: Arc<Book>,
        /// The id or path in the copy.
        prompt: String,
        /// What people call it.
        label: String,
        /// What they call its files.
        names: Names,
        /// Kept for as long as the book is used.
        copy: Arc<Copy>,
    },
    /// A project that has nothing but the pack.
    Packed {
        /// The project's book.
        book: Box<Book>,
        /// The prompt in it.
        prompt: String,
        /// What people call it.
        label: String,
        /// What they call its files.
        names: Names,
        /// What to say if the pack has no such prompt.
        absent: Error,
        /// Kept for as long as the book is used.
        _folder: PrivateFolder,
    },
}

/// A revision of the project. Its files are copied once, for any number of prompts.
pub struct PastRevision {
    repository: Repository,
    tree: Tree,
    revision: String,
    copied: OnceCell<(Arc<Copy>, Arc<Book>)>,
}

impl VersionName {
    /// Reads what was given. A file may have a colon in its name, so what is there is taken first.
    pub fn read(given: &str) -> Result<VersionName> {
        let here = || Ok(VersionName::Here(given.to_owned()));
        if Path::new(given).symlink_metadata().is_ok() {
            return here();
        }
        let Some((place, prompt)) = split(given) else { return here() };
        if place.is_empty() || prompt.is_empty() {
            let missing = if place.is_empty() { "revision before" } else { "prompt after" };
            let diagnostic = Diagnostic::new(Code::BadInput, format!("`{given}` has no {missing} its colon"))
                .hint("write REVISION:PROMPT, as in HEAD~1:greeting");
            return Err(Error::new(ErrorKind::Usage, diagnostic));
        }
        let (place, prompt) = (place.to_owned(), prompt.to_owned());
        let is_pack = ARCHIVES.iter().any(|end| place.to_lowercase().ends_with(end))
            || Path::new(&place).join("pack.json").is_file();
        Ok(match is_pack {
            true => VersionName::Packed { pack: place, prompt },
            false => VersionName::Revision { revision: place, prompt },
        })
    }
}

/// Splits at the first colon that is not inside of braces, as in `HEAD@{10:00}:greeting`.
fn split(given: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    for (at, letter) in given.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ':' if depth == 0 => return Some((&given[..at], &given[at + 1..])),
            _ => {}
        }
    }
    None
}

impl<'b> OpenVersion<'b> {
    /// Opens what is meant.
    pub fn open(meant: &VersionName, book: &'b Book) -> Result<OpenVersion<'b>> {
        match meant {
            VersionName::Here(given) => {
                Ok(OpenVersion::Here { book, prompt: here(book, given), label: given.clone() })
            }
            VersionName::Revision { revision, prompt } => {
                PastRevision::open(book, revision)?.stand(prompt, None)
            }
            VersionName::Packed { pack, prompt } => Self::packed(pack, prompt),
        }
    }

    /// Whether it is the project as it is now.
    pub fn is_here(&self) -> bool {
        matches!(self, OpenVersion::Here { .. })
    }

    /// What a file of it is called.
    pub fn name(&self, file: &str) -> String {
        match self {
            OpenVersion::Here { .. } => file.to_owned(),
            OpenVersion::Revision { names, .. } | OpenVersion::Packed { names, .. } => names.file(file),
        }
    }

    /// Finds the version.
    pub fn version(&self, context: &Context, clock: &Arc<dyn Clock>) -> Result<Version<'_>> {
        match self {
            OpenVersion::Here { book, prompt, label } => {
                Ok(Version::find(book, prompt, context, clock)?.labelled(label))
            }
            OpenVersion::Revision { prompt, label, names, .. }
            | OpenVersion::Packed { prompt, label, names, .. } => {
                let version = Version::find(self.book(), prompt, context, clock);
                let version = version.map_err(|error| match (self, error.code()) {
                    // Where it was looked for is the copy's business.
                    (OpenVersion::Packed { absent, .. }, Code::PromptNotFound | Code::Unreadable) => {
                        absent.clone()
                    }
                    _ => names.rename_files(error),
                })?;
                if !version.lies_in(&self.folder()) {
                    return Err(from_elsewhere(label, &version.prepared().found().candidate.source));
                }
                Ok(version.called(label, names).without_code())
            }
        }
    }

    /// Its book.
    fn book(&self) -> &Book {
        match self {
            OpenVersion::Here { book, .. } => book,
            OpenVersion::Revision { book, .. } => book,
            OpenVersion::Packed { book, .. } => book,
        }
    }

    /// The folder that everything of it lies in.
    fn folder(&self) -> PathBuf {
        match self {
            OpenVersion::Here { book, .. } => book.library().root().to_owned(),
            OpenVersion::Revision { copy, .. } => copy.path(Path::new("")),
            OpenVersion::Packed { book, .. } => book.library().root().to_owned(),
        }
    }

    /// A pack is installed into a project that has nothing else.
    fn packed(pack: &str, prompt: &str) -> Result<OpenVersion<'b>> {
        OpenVersion::staged(Path::new(pack), pack, prompt)
    }

    /// A prompt of a pack that lies anywhere, under another name for the pack.
    pub fn staged(path: &Path, pack: &str, prompt: &str) -> Result<OpenVersion<'b>> {
        if path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            return Err(files::not_there(path, pack));
        }
        let folder = PrivateFolder::new("the copy of a pack")?;
        let root = folder.path().to_owned();
        let library = Library::open(root.clone());
        let installation = library.stage_pack(path)?;
        let manifest = installation.manifest();
        let (id, offered) = (manifest.pack_id.clone(), manifest.prompts.clone());
        installation.commit(false, &[])?;
        let names = Names::new(format!("{pack}:"), &root).without(format!("user_data/packs/{id}/"));
        let label = format!("{pack}:{prompt}");
        let asked = prompt;
        let prompt = match is_path(prompt) {
            true => root.join("user_data/packs").join(&id).join(prompt).to_string_lossy().into_owned(),
            false => format!("{id}/{prompt}"),
        };
        let book = Box::new(Book::open(root).with_paths(true));
        let absent = not_packed(asked, pack, &offered);
        Ok(OpenVersion::Packed { book, prompt, label, names, absent, _folder: folder })
    }
}

impl PastRevision {
    /// A revision of the repository around a project.
    pub fn open(book: &Book, revision: &str) -> Result<PastRevision> {
        let repository = Repository::around(book.library().root())?;
        let tree = repository.tree(revision)?;
        Ok(PastRevision { repository, tree, revision: revision.to_owned(), copied: OnceCell::new() })
    }

    /// The book of the revision.
    pub fn book(&self) -> Result<Arc<Book>> {
        Ok(self.copied(None)?.1)
    }

    /// What it has in the place of a version that is here, or else under the same id.
    pub fn in_place_of<'b>(&self, version: &Version<'_>, book: &Book) -> Result<OpenVersion<'b>> {
        let found = version.prepared().found();
        if version.is_built_in() {
            let message = format!("`{}` is built into the program, so no revision has it", found.id);
            let diagnostic = Diagnostic::new(Code::NotInRevision, message)
                .hint(Hint::run("name two versions", format!("cuebook diff {} OTHER", found.id)));
            return Err(Error::new(ErrorKind::PromptNotFound, diagnostic));
        }
        let source = book.library().root().join(&found.candidate.source);
        self.stand(version.label(), Some((&source, &found.id)))
    }

    /// A copy of the project, and of what lies around a path outside of it.
    fn copied(&self, around: Option<&Path>) -> Result<(Arc<Copy>, Arc<Book>)> {
        if let Some(copied) = self.copied.get() {
            return Ok(copied.clone());
        }
        let copy = Arc::new(self.tree.copy(&self.repository, around)?);
        let book = Arc::new(Book::open(copy.root()).with_paths(true));
        Ok(self.copied.get_or_init(|| (copy, book)).clone())
    }

    /// A prompt of the revision.
    fn stand<'b>(&self, prompt: &str, in_place_of: Option<(&Path, &str)>) -> Result<OpenVersion<'b>> {
        let PastRevision { repository, tree, revision, .. } = self;
        let top = repository.top();
        let in_tree = |path: PathBuf| {
            let path = normal(&path).strip_prefix(&top).ok()?.to_owned();
            tree.has(&path).then_some(path)
        };
        let path = match in_place_of {
            Some((source, _)) => in_tree(real(source)),
            None if is_path(prompt) => {
                // As it is seen from here, from the project, and from the top; then a prompt of a pack.
                let here = std::env::current_dir().map(|here| real(&here)).unwrap_or_default();
                let project = top.join(repository.prefix());
                let of_pack = prompt
                    .split_once('/')
                    .map(|(pack, id)| project.join("user_data/packs").join(pack).join("prompts").join(id));
                let tried = [here, project, top.clone()].map(|folder| folder.join(prompt));
                tried.into_iter().chain(of_pack).find_map(in_tree)
            }
            None => None,
        };
        let (copy, old) = self.copied(path.as_deref())?;
        if path.as_ref().is_some_and(|path| !copy.path(path).exists()) {
            return Err(tree.leads_nowhere(prompt));
        }
        let names = Names::new(format!("{revision}:"), copy.root());
        let asked = prompt;
        let prompt = match (&path, in_place_of) {
            (Some(path), _) => copy.path(path).to_string_lossy().into_owned(),
            (None, Some((_, id))) => id.to_owned(),
            (None, None) => prompt.to_owned(),
        };
        let mut elsewhere = None;
        if path.is_none() {
            // Only ids are left, and those of directives look like paths.
            let found = old.library().choose(&prompt);
            let is_there = match &found {
                Ok(found) => !is_path(&prompt) || found.candidate.dialect.is_item,
                Err(error) => {
                    !matches!(error.code(), Code::PromptNotFound | Code::ItemNotFound | Code::InvalidId)
                }
            };
            if !is_there {
                return Err(match is_path(&prompt) {
                    true => tree.not_there(&prompt, repository.prefix()),
                    false => no_prompt(&prompt, revision, found.err()),
                });
            }
            // It is another file of the same id.
            elsewhere = found.ok().map(|found| found.candidate.source).filter(|_| is_path(asked));
        }
        let label = match in_place_of {
            Some(_) if elsewhere.is_some() => format!("{revision}:{}", elsewhere.unwrap_or_default()),
            Some(_) => format!("{revision}:{asked}"),
            None => format!("{revision}:{}", shown(&names, &prompt, revision)),
        };
        Ok(OpenVersion::Revision { book: old, prompt, label, names, copy })
    }
}

/// Every library has what is part of the program, and what is the user's; no revision and no archive has.
fn from_elsewhere(label: &str, source: &str) -> Error {
    let message = format!("`{label}` does not exist; the prompt with that name is {source}");
    let diagnostic =
        Diagnostic::new(Code::NotInRevision, message).hint("leave out the part before the colon");
    Error::new(ErrorKind::PromptNotFound, diagnostic)
}

fn no_prompt(prompt: &str, revision: &str, error: Option<Error>) -> Error {
    let hint = error.as_ref().and_then(|error| error.diagnostic().hint.clone());
    let hint = hint.filter(|hint| hint.starts_with("did you mean"));
    let message = format!("the revision `{revision}` has no prompt `{prompt}`");
    let diagnostic = Diagnostic::new(Code::NotInRevision, message).hint(
        hint.unwrap_or_else(|| Hint::from(format!("list its files: git ls-tree -r --name-only {revision}"))),
    );
    Error::new(ErrorKind::PromptNotFound, diagnostic).with("revision", revision).with("prompt_id", prompt)
}

fn not_packed(prompt: &str, pack: &str, offered: &[String]) -> Error {
    let near = did_you_mean(&nearest(prompt, offered.iter().map(String::as_str)));
    let hint = near.unwrap_or_else(|| match offered.is_empty() {
        true => "its pack.json lists no prompts".to_owned(),
        false => format!("it has {}", offered.join(", ")),
    });
    let message = format!("the pack `{pack}` has no prompt `{prompt}`");
    let diagnostic = Diagnostic::new(Code::PromptNotFound, message).hint(hint);
    Error::new(ErrorKind::PromptNotFound, diagnostic).with("pack", pack).with("prompt_id", prompt)
}

/// The name of a prompt in a revision, without the revision: the copy's folder is nothing to people.
fn shown(names: &Names, prompt: &str, revision: &str) -> String {
    let name = if Path::new(prompt).is_absolute() { names.file(prompt) } else { prompt.to_owned() };
    name.strip_prefix(&format!("{revision}:")).unwrap_or(&name).to_owned()
}

/// The source of a candidate is a path from the project's folder, whatever the current directory is.
fn here(book: &Book, prompt: &str) -> String {
    let from_root = book.library().root().join(prompt);
    let is_source = is_path(prompt) && !Path::new(prompt).exists() && from_root.exists();
    if is_source { from_root.to_string_lossy().into_owned() } else { prompt.to_owned() }
}

/// A path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for above in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (above.canonicalize(), path.strip_prefix(above)) {
            return real.join(rest);
        }
    }
    path
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_parts_revisions_and_archives_from_prompts() {
        let revision = |revision: &str, prompt: &str| VersionName::Revision {
            revision: revision.into(),
            prompt: prompt.into(),
        };
        assert_eq!(VersionName::read("HEAD~2:support/reply").unwrap(), revision("HEAD~2", "support/reply"));
        assert_eq!(VersionName::read("HEAD@{10:00}:hi").unwrap(), revision("HEAD@{10:00}", "hi"));
        assert_eq!(VersionName::read("polite/greet").unwrap(), VersionName::Here("polite/greet".into()));
        assert!(matches!(VersionName::read("p-1.0.tar.gz:greet").unwrap(), VersionName::Packed { .. }));
        assert!(VersionName::read(":hi").is_err() && VersionName::read("HEAD:").is_err());
    }
}
