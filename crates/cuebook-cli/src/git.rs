//! What `git` says of a project: revisions, and the files that they have.
//!
//! The real program is asked, without a shell. It may read objects and nothing else: no locks, no hooks, no pager, no questions,
//! and nothing is fetched. A revision is turned into the hash of its tree first; whatever is asked after that is asked with
//! hashes.

mod copy;

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use cuebook::error::{did_you_mean, nearest};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};

pub use copy::{Copy, Tree};

/// What `git` may say at most when it is asked for a list.
const MOST_BYTES: u64 = 64 << 20;
/// How many names of branches and tags are looked at for the nearest.
const MOST_NAMES: &str = "--count=2000";

/// The repository around a project.
#[derive(Debug)]
pub struct Repository {
    /// The project's folder, without links.
    root: PathBuf,
    /// Where it lies in the repository; empty for the whole of it.
    prefix: PathBuf,
}

impl Repository {
    /// The repository that a folder lies in.
    pub fn around(root: &Path) -> Result<Repository> {
        let root =
            root.canonicalize().map_err(|error| cuebook::files::io_error(&root.to_string_lossy(), &error))?;
        let output = ask(&root, ["rev-parse", "--show-prefix"])?;
        if !output.status.success() {
            let said = said(&output);
            let hint = match said.contains("not a git repository") {
                true => {
                    "make one and commit the prompts (git init, git add, git commit), or name two versions that lie in files"
                }
                false => "see what `git status` says here",
            };
            let message = match said.contains("not a git repository") {
                true => {
                    "the project lies in no git repository, so there is nothing to compare with".to_owned()
                }
                false => format!("git cannot be asked about this project: {said}"),
            };
            return Err(failed(message, hint));
        }
        Ok(Repository { prefix: path_of(line(&output.stdout)), root })
    }

    /// The top of the repository.
    pub fn top(&self) -> PathBuf {
        let above = self.prefix.components().count();
        self.root.ancestors().nth(above).unwrap_or(&self.root).to_owned()
    }

    /// Where the project lies in it.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// The files of a revision.
    pub fn tree(&self, revision: &str) -> Result<Tree> {
        let hash = self.hash(revision)?;
        let listed = ["ls-tree", "-r", "-z", "-l", "--full-tree", "--end-of-options"];
        let output = ask(&self.root, listed.iter().copied().chain([hash.as_str()]))?;
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
        let output = ask(&self.root, ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted])?;
        let hash = String::from_utf8_lossy(line(&output.stdout)).into_owned();
        if output.status.success() && !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(hash);
        }
        Err(self.unknown(revision))
    }

    fn unknown(&self, revision: &str) -> Error {
        let format = "--format=%(refname:short)";
        let refs = ["for-each-ref", MOST_NAMES, format, "refs/heads", "refs/tags", "refs/remotes"];
        let listed = ask(&self.root, refs).map(|output| output.stdout).unwrap_or_default();
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let names: Vec<&str> = listed.lines().chain(["HEAD"]).collect();
        let near = nearest(revision, names.iter().copied());
        let (message, hint) = match listed.is_empty() {
            true => (
                format!("there is no revision `{revision}`: nothing has been committed yet"),
                "commit the prompts first: git add . && git commit".to_owned(),
            ),
            false => (
                format!("the repository has no revision `{revision}`"),
                did_you_mean(&near).unwrap_or_else(|| {
                    "name a branch, a tag or a commit, as in HEAD~1; git log --oneline lists them".to_owned()
                }),
            ),
        };
        let diagnostic = Diagnostic::new(Code::UnknownRevision, message).hint(hint);
        Error::new(ErrorKind::PromptNotFound, diagnostic).with("revision", revision).with("nearest", near)
    }
}

const FSCK: &str = "see whether the repository is whole: git fsck";

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
    let first = text.lines().next().unwrap_or("it says nothing");
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

/// The program, such that it can only look.
fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .arg("--no-pager")
        .arg("--literal-pathspecs")
        .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false"])
        .arg("-C")
        .arg(folder)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_PAGER", "cat")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // A hook of git runs with these, and they would name another place than the project.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_EXTERNAL_DIFF", "GIT_TRACE"]
    {
        command.env_remove(name);
    }
    command
}

fn not_started(error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => failed(
            "there is no git here, and only git can say what a revision has",
            "install git, or name two versions that lie in files",
        ),
        _ => failed(format!("git cannot be started: {error}"), "see whether `git --version` works"),
    }
}

/// Asks a question and waits for all of the answer.
fn ask<'a>(folder: &Path, question: impl IntoIterator<Item = &'a str>) -> Result<Output> {
    let mut child = git(folder).args(question).spawn().map_err(|error| not_started(&error))?;
    let complaint = child.stderr.take().map(|stderr| std::thread::spawn(move || read(stderr, 1 << 16)));
    let stdout = child.stdout.take().map(|stdout| read(stdout, MOST_BYTES + 1)).unwrap_or_default();
    if stdout.len() as u64 > MOST_BYTES {
        // It is of no use any more, and must not wait for a reader that has left.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| not_started(&error))?;
    let stderr = complaint.and_then(|complaint| complaint.join().ok()).unwrap_or_default();
    if stdout.len() as u64 > MOST_BYTES {
        return Err(failed("the repository has too many files to be looked at", "compare two files instead"));
    }
    Ok(Output { status, stdout, stderr })
}

fn read(from: impl Read, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What could not be read to its end shows in what it says, or in how the program ended.
    let _ = from.take(most).read_to_end(&mut bytes);
    bytes
}
