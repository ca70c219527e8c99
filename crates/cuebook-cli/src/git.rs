//! What `git` says of a project: revisions, and the files that they have.
//!
//! The real program is asked, without a shell and for a limited time. It may read objects and nothing else: no locks, no hooks, no
//! pager, no questions, and nothing is fetched. A revision is turned into the hash of its tree first; whatever is asked after that is asked with
//! hashes.

mod copy;
mod place;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cuebook::error::{did_you_mean, nearest};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use cuebook_share::git::{LONGEST, ask, failed, first_error_line, line, looking, path_of};

pub use copy::{Copy, Tree};
pub use cuebook_share::git::PrivateFolder;

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
        let output = ask(&mut command, LONGEST)?;
        if !output.status.success() {
            return Err(match first_error_line(&output) {
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
        ask(self.git()?.args(question), LONGEST)
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
                format!("git cannot list the files of `{revision}`: {}", first_error_line(&output)),
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

fn no_repository() -> Error {
    failed(
        "the project is not in a git repository, so there is nothing to compare with",
        "create one and commit the prompts (git init, git add, git commit), or name two files",
    )
}
