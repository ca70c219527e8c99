//! What `git` says of a project: revisions, and the files that they have.
//!
//! The real program is asked, without a shell and for a limited time. It may read objects and nothing else: no locks, no hooks, no
//! pager, no questions, and nothing is fetched. A revision is turned into the hash of its tree first; whatever is asked after that is asked with
//! hashes.

mod ask;
mod copy;
mod folder;
mod place;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use cuebook::error::{did_you_mean, nearest};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};

pub use copy::{Copy, Tree};
pub use folder::PrivateFolder;

/// How many names of branches and tags are looked at for the nearest.
const MAX_NAMES: &str = "--count=2000";

/// The repository around a project.
#[derive(Debug)]
pub struct Repository {
    /// The top of its tree, without links.
    top: PathBuf,
    /// Where the project lies in it; empty for the whole of it.
    prefix: PathBuf,
    /// Its own folder, which every question names: git looks nowhere else.
    folder: PathBuf,
}

impl Repository {
    /// The repository that a folder lies in.
    pub fn around(root: &Path) -> Result<Repository> {
        let root =
            root.canonicalize().map_err(|error| cuebook::files::io_error(&root.to_string_lossy(), &error))?;
        let (top, folder) = place::find(&root)?;
        let prefix = root.strip_prefix(&top).unwrap_or(Path::new("")).to_owned();
        // Git itself refuses the repository of another user, but only where it looks for one.
        let mut command = looking(&top)?;
        command.arg("-C").arg(&top).args(["rev-parse", "--absolute-git-dir"]);
        let output = ask::ask(&mut command, ask::LONGEST)?;
        if !output.status.success() {
            return Err(match said(&output) {
                said if said.contains("not a git repository") => no_repository(),
                said => failed(
                    format!("git cannot read this project's repository: {said}"),
                    "run `git status` here to see the problem",
                ),
            });
        }
        Ok(Repository { top, prefix, folder })
    }

    fn ask<'a>(&self, question: impl IntoIterator<Item = &'a str>) -> Result<Output> {
        ask::ask(self.git()?.args(question), ask::LONGEST)
    }

    /// The program, such that it can only look, and only here.
    fn git(&self) -> Result<Command> {
        let mut command = looking(&self.top)?;
        command.arg("-C").arg(&self.top).env("GIT_DIR", &self.folder);
        Ok(command)
    }

    /// The top of the repository.
    pub fn top(&self) -> PathBuf {
        self.top.clone()
    }

    /// Where the project lies in it.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// The files of a revision.
    pub fn tree(&self, revision: &str) -> Result<Tree> {
        let hash = self.hash(revision)?;
        let listed = ["ls-tree", "-r", "-z", "-l", "--full-tree", "--end-of-options"];
        let output = self.ask(listed.iter().copied().chain([hash.as_str()]))?;
        if !output.status.success() {
            return Err(failed(
                format!("git cannot list the files of `{revision}`: {}", said(&output)),
                FSCK,
            ));
        }
        Tree::read(revision, &output.stdout)
    }

    /// The hash of a revision's tree.
    fn hash(&self, revision: &str) -> Result<String> {
        let wanted = format!("{revision}^{{tree}}");
        let output = self.ask(["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted])?;
        let hash = String::from_utf8_lossy(line(&output.stdout)).into_owned();
        if output.status.success() && !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(hash);
        }
        Err(self.unknown(revision))
    }

    fn unknown(&self, revision: &str) -> Error {
        let format = "--format=%(refname:short)";
        let refs = ["for-each-ref", MAX_NAMES, format, "refs/heads", "refs/tags", "refs/remotes"];
        let listed = self.ask(refs).map(|output| output.stdout).unwrap_or_default();
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let names: Vec<&str> = listed.lines().chain(["HEAD"]).collect();
        let near = nearest(revision, names.iter().copied());
        let (message, hint) = match listed.is_empty() {
            true => (
                format!("unknown revision `{revision}`: the repository has no commits yet"),
                "commit the prompts first: git add . && git commit".to_owned(),
            ),
            false => (
                format!("the repository has no revision `{revision}`"),
                did_you_mean(&near).unwrap_or_else(|| {
                    "name a branch, a tag or a commit, such as HEAD~1; `git log --oneline` lists commits"
                        .to_owned()
                }),
            ),
        };
        let diagnostic = Diagnostic::new(Code::UnknownRevision, message).hint(hint);
        Error::new(ErrorKind::PromptNotFound, diagnostic).with("revision", revision).with("nearest", near)
    }
}

const FSCK: &str = "check the repository: git fsck";

fn failed(message: impl Into<String>, hint: &str) -> Error {
    Error::new(ErrorKind::Io, Diagnostic::new(Code::GitFailed, message).hint(hint))
}

/// The first line of what was printed.
fn line(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(b"\n").unwrap_or(bytes)
}

/// The first line of a complaint.
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let first = text.lines().next().unwrap_or("it printed no message");
    first.trim_start_matches("fatal: ").to_owned()
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(<OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes))
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

fn no_repository() -> Error {
    failed(
        "the project is not in a git repository, so there is nothing to compare with",
        "create one and commit the prompts (git init, git add, git commit), or name two files",
    )
}

/// The program on the `PATH`. Folders that are relative or lie in the repository (`node_modules/.bin`) are skipped: what is in
/// them comes with the project.
fn program(top: &Path) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let mut files = folders.map(|folder| folder.join(format!("git{}", std::env::consts::EXE_SUFFIX)));
    let found = files.find(|file| file.is_file() && !cuebook::trust::is_inside(top, file));
    found.ok_or_else(|| not_started(&std::io::ErrorKind::NotFound.into()))
}

/// The program, such that it can only look.
fn looking(top: &Path) -> Result<Command> {
    let mut command = Command::new(program(top)?);
    command
        .arg("--no-pager")
        .arg("--literal-pathspecs")
        .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false"])
        // A partial clone would fetch what it lacks. Releases before 2.45 do not know GIT_NO_LAZY_FETCH.
        .args(["-c", "protocol.allow=never"])
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_PAGER", "cat")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // A hook of git runs with these, and they would name another place than the project.
    for name in [
        "GIT_DIR",
        "GIT_COMMON_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
        "GIT_EXTERNAL_DIFF",
        "GIT_TRACE",
    ] {
        command.env_remove(name);
    }
    Ok(command)
}

fn not_started(error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            failed("git is not installed, and reading a revision needs it", "install git, or name two files")
        }
        _ => failed(format!("git does not start: {error}"), "check that `git --version` works"),
    }
}
