//! Where the repository of a project lies.
//!
//! A project's files say where git looks: `.git` may be a file or a link that names another folder. A project could so make
//! `diff` read any repository of the user. Only a repository that belongs to the project's own tree is read: a folder `.git`, or
//! the folder of a worktree or submodule that refers back to the tree.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use cuebook::Result;

use super::{failed, no_repository};

/// Files of a repository that git reads before anything else, and folders that it follows.
const FILES: [&str; 4] = ["HEAD", "config", "packed-refs", "index"];
const FOLDERS: [&str; 2] = ["objects", "refs"];
/// Longer than any path.
const MAX_OF_A_PATH: u64 = 1 << 16;

/// The top of the tree that a folder lies in, and the folder of its repository.
pub(super) fn find(root: &Path) -> Result<(PathBuf, PathBuf)> {
    let has_one = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
    let top = root.ancestors().find(has_one).ok_or_else(no_repository)?;
    let named = top.join(".git");
    let kind = named.symlink_metadata().map_err(|_| no_repository())?.file_type();
    let folder = if kind.is_dir() {
        if named.join("commondir").symlink_metadata().is_ok() {
            return Err(elsewhere(&named));
        }
        refuse_links(&named)?;
        named
    } else if kind.is_file() {
        linked(top, &named).ok_or_else(|| elsewhere(&named))?
    } else {
        return Err(elsewhere(&named));
    };
    refuse_odd_files(&folder)?;
    Ok((top.to_owned(), folder))
}

/// The folder that a file `.git` names, if that one refers back to the file: a worktree's or a submodule's does.
fn linked(top: &Path, file: &Path) -> Option<PathBuf> {
    let named = text(file)?;
    let folder = top.join(named.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let is_worktree = || {
        let above = folder.parent().filter(|above| above.ends_with("worktrees"))?.parent()?;
        let common = folder.join(text(&folder.join("commondir"))?.trim()).canonicalize().ok()?;
        let back = folder.join(text(&folder.join("gitdir"))?.trim()).canonicalize().ok()?;
        (common == above && back == file.canonicalize().ok()?).then_some(())
    };
    let is_submodule = || {
        let config = text(&folder.join("config"))?;
        let lines = config.lines().map(str::trim);
        let mut named =
            lines.filter_map(|line| line.strip_prefix("worktree")?.trim_start().strip_prefix('='));
        let back = folder.join(named.next()?.trim().trim_matches('"')).canonicalize().ok()?;
        (!folder.join("commondir").exists() && back == top).then_some(())
    };
    is_worktree().or_else(is_submodule).map(|()| folder)
}

/// A short plain file. A pipe is not opened: reading one waits for a writer.
fn text(file: &Path) -> Option<String> {
    if !file.symlink_metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    fs::File::open(file).ok()?.take(MAX_OF_A_PATH).read_to_string(&mut text).ok()?;
    Some(text)
}

fn refuse_links(folder: &Path) -> Result<()> {
    for name in FILES.iter().chain(&FOLDERS) {
        let path = folder.join(name);
        if path.symlink_metadata().is_ok_and(|about| about.file_type().is_symlink()) {
            return Err(elsewhere(&path));
        }
    }
    Ok(())
}

fn refuse_odd_files(folder: &Path) -> Result<()> {
    for name in FILES {
        let path = folder.join(name);
        // A link is followed: it may lead to a pipe.
        if path.metadata().is_ok_and(|about| !about.is_file()) {
            let message = format!("{} in the repository is not a regular file", path.display());
            return Err(failed(message, super::FSCK));
        }
    }
    Ok(())
}

fn elsewhere(path: &Path) -> cuebook::Error {
    failed(
        format!("{} leads to a repository that does not belong to this project", path.display()),
        "clone the repository, or add a worktree with `git worktree add`",
    )
}
