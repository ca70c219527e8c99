//! The files of a revision, and a copy of those that a library needs.
//!
//! A tree comes from the author of the commit. Every path must be one that stays inside the copy; links are not made but followed
//! within the tree, and become the files and folders that they lead to; nothing becomes executable. What is larger than a
//! library can read is left out.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::process::Stdio;

use cuebook::error::{did_you_mean, nearest};
use cuebook::library::{CONFIG_FILE, Library, PROMPT_FILE, TEMPLATE_FILE};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result, files};
use cuebook_share::git::{LONGEST, Running};

use super::{FSCK, PrivateFolder, Repository, failed, path_of};

/// No file of a library is larger.
const MAX_OF_ONE: u64 = 16 << 20;
/// Bytes of all files together, and how many of them.
const MAX_OF_ALL: u64 = 256 << 20;
const MAX_FILES: usize = 50_000;
/// Links that lead to links.
const MAX_LINKS: usize = 8;
/// The folders of a project that hold what a library reads.
const PLACES: [&str; 5] = ["prompts", "user_data", "ecosystem", ".ai", CONFIG_FILE];

/// Files that are a prompt together with the folder that they lie in.
const IN_FOLDERS: [&str; 2] = [TEMPLATE_FILE, PROMPT_FILE];

/// The files of a revision, by their paths from the top of the repository.
#[derive(Debug)]
pub struct Tree {
    revision: String,
    entries: BTreeMap<PathBuf, Blob>,
}

#[derive(Debug, Clone)]
struct Blob {
    hash: String,
    /// `None` if a partial clone does not have it.
    size: Option<u64>,
    is_link: bool,
}

impl Blob {
    /// Whether it is here and small enough.
    fn fits(&self) -> bool {
        self.size.is_some_and(|size| size <= MAX_OF_ONE)
    }
}

/// A copy of the files of a revision. It is removed when it goes.
#[derive(Debug)]
pub struct Copy {
    /// The project's folder in it.
    root: PathBuf,
    folder: PrivateFolder,
}

impl Copy {
    /// The project's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where something lies that the repository has at this path.
    pub fn path(&self, path: &Path) -> PathBuf {
        self.folder.path().join(path)
    }
}

impl Tree {
    /// Reads what `git ls-tree -r -z -l` says: mode, type, hash and size, a tab and the path.
    pub(super) fn read(revision: &str, listing: &[u8]) -> Result<Tree> {
        let mut entries = BTreeMap::new();
        for entry in listing.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            let damaged = || failed(format!("cannot parse git's file list of `{revision}`"), FSCK);
            let tab = entry.iter().position(|byte| *byte == b'\t').ok_or_else(damaged)?;
            let about = String::from_utf8_lossy(&entry[..tab]).into_owned();
            let path = path_of(&entry[tab + 1..]);
            let words: Vec<&str> = about.split_whitespace().collect();
            let [mode, kind, hash, size] = words.as_slice() else { return Err(damaged()) };
            // Other repositories inside this one have files of their own, which are not here.
            if *kind != "blob" || !is_inside(&path) {
                continue;
            }
            let blob = Blob { hash: (*hash).to_owned(), size: size.parse().ok(), is_link: *mode == "120000" };
            entries.insert(path, blob);
        }
        Ok(Tree { revision: revision.to_owned(), entries })
    }

    /// Whether it has a file or a folder at a path.
    pub fn has(&self, path: &Path) -> bool {
        let from = self.entries.range(path.to_owned()..).next();
        path.as_os_str().is_empty() || from.is_some_and(|(found, _)| found.starts_with(path))
    }

    /// The error for something that it has and that is no file or folder here.
    pub fn leads_nowhere(&self, wanted: &str) -> Error {
        let message = format!("`{wanted}` in revision `{}` does not lead to a readable file", self.revision);
        let hint = "links must stay inside the revision, and files must have at most 16 MiB";
        let diagnostic = Diagnostic::new(Code::NotInRevision, message).hint(hint);
        Error::new(ErrorKind::PromptNotFound, diagnostic).with("revision", &self.revision)
    }

    /// The error for a path that it does not have.
    pub fn not_there(&self, wanted: &str, prefix: &Path) -> Error {
        let shown = |path: &PathBuf| path.strip_prefix(prefix).unwrap_or(path).to_string_lossy().into_owned();
        let names: Vec<String> = self.entries.keys().map(shown).collect();
        let near = nearest(wanted, names.iter().map(String::as_str));
        let message = format!("the revision `{}` has no `{wanted}`", self.revision);
        let hint = did_you_mean(&near)
            .unwrap_or_else(|| format!("list its files: git ls-tree -r --name-only {}", self.revision));
        let diagnostic = Diagnostic::new(Code::NotInRevision, message).hint(hint);
        Error::new(ErrorKind::PromptNotFound, diagnostic)
            .with("revision", &self.revision)
            .with("nearest", near)
    }

    /// Copies the project, and what lies around a path outside of it. Of a project that is too large for that, only what a
    /// library looks at.
    pub fn copy(&self, repository: &Repository, around: Option<&Path>) -> Result<Copy> {
        let prefix = repository.prefix();
        // A prompt in a folder of its own is seen together with its neighbours, and a file with what lies beside it.
        let above = |path: &Path| path.parent().unwrap_or(Path::new("")).to_owned();
        let near = around.map(|path| {
            match path.file_name().is_some_and(|name| IN_FOLDERS.iter().any(|own| name == *own)) {
                true => above(&above(path)),
                false => above(path),
            }
        });
        let is_near = |path: &Path| near.as_ref().is_some_and(|near| path.starts_with(near));
        let all = |path: &Path| path.starts_with(prefix) || is_near(path);
        let needed = |path: &Path| {
            let inside = path.strip_prefix(prefix).ok().and_then(|inside| inside.components().next());
            is_near(path)
                || inside.is_some_and(|first| PLACES.iter().any(|place| first.as_os_str() == *place))
        };
        let chosen = self.choose(&all).or_else(|| self.choose(&needed)).ok_or_else(|| self.too_large())?;
        if let Some((path, _)) = self.entries.iter().find(|(path, blob)| blob.size.is_none() && needed(path))
        {
            return Err(self.not_here(path));
        }
        let folder = PrivateFolder::new("the copy of a revision")?;
        let copy = Copy { root: folder.path().join(prefix), folder };
        make_folder(copy.root())?;
        self.fetch(repository, &chosen, |path, bytes| {
            let path = copy.path(path);
            make_folder(path.parent().unwrap_or(copy.folder.path()))?;
            std::fs::write(&path, bytes).map_err(|error| files::write_error("the copy of a revision", &error))
        })?;
        self.make_empty_folders(&copy, prefix)?;
        Ok(copy)
    }

    /// Makes the folders that the settings name and the revision does not have: git keeps no empty ones.
    fn make_empty_folders(&self, copy: &Copy, prefix: &Path) -> Result<()> {
        // Invalid settings are reported where they are used.
        let Ok(config) = Library::open(copy.root()).config() else { return Ok(()) };
        for path in &config.library.paths {
            let is_below =
                path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
            if is_below && !self.has(&prefix.join(path)) {
                make_folder(&copy.root().join(path))?;
            }
        }
        Ok(())
    }

    /// The error for a file whose content a partial clone has not fetched.
    fn not_here(&self, path: &Path) -> Error {
        let message = format!(
            "the content of `{}` in `{}` is missing: this is a partial clone",
            path.display(),
            self.revision
        );
        failed(message, "fetch it first, as in: git fetch --refetch --filter=blob:limit=16m")
    }

    fn too_large(&self) -> Error {
        let message = format!("the project in `{}` is too large to copy", self.revision);
        failed(message, "name the project's own folder with --root, or compare two files")
    }

    /// The files that a link leads to: one, or all of a folder. A link that leads out of the tree, around itself, or nowhere
    /// leads to nothing here.
    fn behind<'t>(&'t self, link: &CopiedFile<'_>, target: &Path, most: usize) -> Vec<CopiedFile<'t>> {
        let Some(leads) = follow(link.path, target).filter(|leads| !link.path.starts_with(leads)) else {
            return Vec::new();
        };
        let files = self.entries.range(leads.clone()..).take_while(|(path, _)| path.starts_with(&leads));
        let place = |path: &Path| match path.strip_prefix(&leads) {
            Ok(rest) if !rest.as_os_str().is_empty() => link.place.join(rest),
            _ => link.place.clone(),
        };
        files
            .filter(|(_, blob)| blob.fits())
            .map(|(path, blob)| CopiedFile { place: place(path), path, blob })
            .take(most)
            .collect()
    }

    /// The files that are wanted, with what is in them; `None` if that is too much.
    fn choose(&self, wanted: &dyn Fn(&Path) -> bool) -> Option<Vec<(&Path, &Blob)>> {
        let entries = self.entries.iter().filter(|(path, _)| wanted(path));
        let chosen: Vec<(&Path, &Blob)> =
            entries.filter(|(_, blob)| blob.fits()).map(|(path, blob)| (path.as_path(), blob)).collect();
        let bytes: u64 = chosen.iter().filter_map(|(_, blob)| blob.size).sum();
        (chosen.len() <= MAX_FILES && bytes <= MAX_OF_ALL).then_some(chosen)
    }

    /// Asks for the content of files, and hands it on, one after the other. Links come last, when it is known what they say.
    fn fetch(
        &self,
        repository: &Repository,
        chosen: &[(&Path, &Blob)],
        mut write: impl FnMut(&Path, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut wanted: Vec<CopiedFile<'_>> =
            chosen.iter().map(|(path, blob)| CopiedFile { place: path.to_path_buf(), path, blob }).collect();
        let (mut files, mut bytes) = (0, 0);
        // Each round follows links by one step.
        for _ in 0..=MAX_LINKS {
            files += wanted.len();
            bytes += wanted.iter().filter_map(|wanted| wanted.blob.size).sum::<u64>();
            if files > MAX_FILES || bytes > MAX_OF_ALL {
                return Err(self.too_large());
            }
            let mut links = Vec::new();
            contents(repository, &wanted, |wanted, bytes| {
                if !wanted.blob.is_link {
                    return write(&wanted.place, bytes);
                }
                // Counted while they are followed: many links may lead to one large folder.
                let room = (MAX_FILES + 1).saturating_sub(files + links.len());
                links.extend(self.behind(wanted, &path_of(bytes), room));
                if files + links.len() > MAX_FILES { Err(self.too_large()) } else { Ok(()) }
            })?;
            if links.is_empty() {
                return Ok(());
            }
            wanted = links;
        }
        Ok(())
    }
}

/// A file that is to be copied.
struct CopiedFile<'t> {
    /// Where to.
    place: PathBuf,
    /// Where the tree has it, which is another place if a link led to it.
    path: &'t Path,
    blob: &'t Blob,
}

fn make_folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|error| files::write_error("the copy of a revision", &error))
}

/// Whether a path is made of plain names only, none of which is git's own.
fn is_inside(path: &Path) -> bool {
    let mut parts = path.components().peekable();
    parts.peek().is_some()
        && parts.all(|part| match part {
            Component::Normal(name) => {
                let name = name.to_string_lossy();
                !name.eq_ignore_ascii_case(".git") && !name.contains('\\')
            }
            _ => false,
        })
}

/// Where a link leads, by name; `None` if that is outside.
fn follow(link: &Path, target: &Path) -> Option<PathBuf> {
    let mut path = link.parent()?.to_owned();
    for part in target.components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !path.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

/// Asks `git cat-file` for the content of blobs, in order.
fn contents(
    repository: &Repository,
    wanted: &[CopiedFile<'_>],
    mut take: impl FnMut(&CopiedFile<'_>, &[u8]) -> Result<()>,
) -> Result<()> {
    let mut command = repository.git()?;
    command.args(["cat-file", "--batch"]).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut running = Running::start(&mut command, LONGEST)?;
    let (stdin, stdout) = (running.stdin.take(), running.stdout.take());
    let hashes: String = wanted.iter().map(|wanted| format!("{}\n", wanted.blob.hash)).collect();
    // A client that writes all questions before reading an answer may wait for a server that waits.
    let asking = std::thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(hashes.as_bytes())));
    let done = match stdout {
        Some(stdout) => answers(BufReader::new(stdout), wanted, &mut take),
        None => Ok(()),
    };
    if done.is_err() {
        running.end();
    }
    let _ = asking.join();
    // If it was ended for being slow, that is the reason why its answer was not whole.
    running.wait().map(drop)?;
    done
}

fn answers(
    mut from: impl BufRead,
    wanted: &[CopiedFile<'_>],
    take: &mut impl FnMut(&CopiedFile<'_>, &[u8]) -> Result<()>,
) -> Result<()> {
    for wanted in wanted {
        let blob = wanted.blob;
        let size_of = blob.size.unwrap_or(0);
        let unreadable = || failed(format!("git has no file {} in the revision", blob.hash), FSCK);
        let mut header = String::new();
        from.by_ref().take(256).read_line(&mut header).map_err(|_| unreadable())?;
        let words: Vec<&str> = header.split_whitespace().collect();
        let ["blob", size] = words.get(1..).unwrap_or_default() else { return Err(unreadable()) };
        if size.parse() != Ok(size_of) || !words[0].eq_ignore_ascii_case(&blob.hash) {
            return Err(unreadable());
        }
        let mut bytes = Vec::new();
        from.by_ref().take(size_of + 1).read_to_end(&mut bytes).map_err(|_| unreadable())?;
        if bytes.pop() != Some(b'\n') || bytes.len() as u64 != size_of {
            return Err(unreadable());
        }
        take(wanted, &bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_followed_inside_the_tree_and_nowhere_else() {
        let leads = |link: &str, target: &str| {
            follow(Path::new(link), Path::new(target)).map(|path| path.to_string_lossy().into_owned())
        };
        assert_eq!(
            leads("prompts/a/template.md", "../b/template.md").as_deref(),
            Some("prompts/b/template.md")
        );
        assert_eq!(leads("a", "./b").as_deref(), Some("b"));
        assert_eq!(leads("a", "../b"), None);
        assert_eq!(leads("prompts/a", "../../../etc/passwd"), None);
        assert_eq!(leads("a", "/etc/passwd"), None);
    }

    #[test]
    fn paths_that_would_leave_the_copy_are_not_taken() {
        let lines = [
            "100644 blob aa 3\tprompts/a.md",
            "100644 blob bb 3\t../out",
            "100644 blob bb 3\t/etc/x",
            "100644 blob cc 3\t.git/config",
            "160000 commit dd -\tmodule",
            "120000 blob ee 4\tlink",
        ];
        let tree = Tree::read("HEAD", lines.join("\0").as_bytes()).unwrap();
        let paths: Vec<&str> = tree.entries.keys().filter_map(|path| path.to_str()).collect();
        assert_eq!(paths, ["link", "prompts/a.md"]);
        assert!(tree.has(Path::new("prompts")) && tree.has(Path::new("")) && !tree.has(Path::new("prompt")));
        assert!(Tree::read("HEAD", b"another type").is_err());
    }
}
