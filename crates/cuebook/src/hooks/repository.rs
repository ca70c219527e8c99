//! The git repository of a workspace, and whether hooks can read it.
//!
//! Hooks see the workspace only. A subfolder of a repository, a worktree and a submodule have their repository elsewhere, so git
//! finds none, and a hook that copes with that gives nothing. Cuebook gives hooks no further folder by itself, because a `.git`
//! file can name any folder; the user lists it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::Subject;
use crate::error::{Code, Diagnostic};
use crate::files;
use crate::library::HooksConfig;

/// Bytes of a file that names a repository.
const MAX_BYTES: u64 = 4096;

/// A warning if the workspace is in a git repository that hooks cannot read, for code that looks for one.
pub(crate) fn hidden_repository(
    workspace: &Path,
    settings: &HooksConfig,
    subject: &Subject,
) -> Option<Diagnostic> {
    let git =
        workspace.ancestors().map(|folder| folder.join(".git")).find(|git| git.symlink_metadata().is_ok())?;
    let readable = settings.readable();
    let is_seen = |path: &Path| {
        [workspace]
            .into_iter()
            .chain(readable.iter().map(PathBuf::as_path))
            .any(|seen| path.starts_with(seen))
    };
    let hint = match repository(&git) {
        Some(repository) if is_seen(&git) && is_seen(&repository) => return None,
        Some(repository) => {
            let hidden =
                [git.as_path(), &repository].map(|path| (!is_seen(path)).then(|| format!("{path:?}")));
            let hidden: BTreeSet<String> = hidden.into_iter().flatten().collect();
            let hidden: Vec<String> = hidden.into_iter().collect();
            let paths = hidden.join(", ");
            format!(
                "to let hooks read it, write `readable = [{paths}]` under [hooks] in ~/.ai/config/cuebook.toml"
            )
        }
        None if fs::canonicalize(&git).is_ok_and(|real| real.is_dir() && is_seen(&real)) => return None,
        None => format!("{} leads to a folder that does not belong to it", git.display()),
    };
    let message = format!(
        "code of {subject} uses git, but hooks cannot read the git repository of {}",
        workspace.display()
    );
    Some(Diagnostic::new(Code::RepositoryHidden, message).hint(hint))
}

/// The folder of the repository whose `.git` this is, without links. `None` if it is a file or a link to a folder that does not
/// know it: what a file of the project names is not for the user to open.
fn repository(git: &Path) -> Option<PathBuf> {
    let folder = git.parent()?;
    let real = fs::canonicalize(git).ok()?;
    if real.is_dir() {
        return real.starts_with(folder).then_some(real);
    }
    let text =
        |path: &Path| Some(files::read_text(path, ".git", MAX_BYTES).ok()?.text().trim_end().to_owned());
    let named = fs::canonicalize(folder.join(text(git)?.strip_prefix("gitdir: ")?)).ok()?;
    let Some(common) = text(&named.join("commondir")) else {
        // A submodule is stored in the repository that it is a part of.
        let is_part = |above: &Path| above.join(".git").is_dir() && named.starts_with(above.join(".git"));
        return (named.starts_with(folder) || folder.ancestors().skip(1).any(is_part)).then_some(named);
    };
    let common = fs::canonicalize(named.join(common)).ok()?;
    // A repository lists its worktrees by their `.git`.
    let back = fs::canonicalize(named.join(text(&named.join("gitdir"))?)).ok()?;
    (back == real && named.starts_with(common.join("worktrees"))).then_some(common)
}
