//! What carries trust deeper in a project: the `.git` of repositories inside it.
//!
//! A tool could rename the folder around a guarded place and put another in its place. So every folder on the way there is mounted
//! on itself, because a mount cannot be renamed.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use super::guards::carries_trust;

/// The most folders that are searched for repositories. A tool could make more of them to hide one, so no tool runs in a project
/// that has more.
const MAX_FOLDERS: usize = 100_000;
/// The most bytes of `.gitmodules` that are read.
const LARGEST_LIST: u64 = 256 << 10;
/// Folders that hold many others and no repository that anyone works in.
const SKIPPED: [&str; 2] = ["node_modules", "__pycache__"];

/// The `.git` of every repository below a project.
pub(super) fn repositories(project: &Path) -> io::Result<BTreeSet<PathBuf>> {
    among(project, MAX_FOLDERS)
}

fn among(project: &Path, most: usize) -> io::Result<BTreeSet<PathBuf>> {
    let mut found: BTreeSet<PathBuf> = submodules(project).map(|folder| folder.join(".git")).collect();
    let mut waiting = VecDeque::from([project.to_owned()]);
    let mut seen = 0;
    while let Some(folder) = waiting.pop_front() {
        // A folder that cannot be listed cannot be changed by a tool of the same user either.
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name == ".git" && folder != project {
                found.insert(entry.path());
                continue;
            }
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let is_skipped = SKIPPED.iter().any(|skipped| name == *skipped);
            if !is_folder || is_skipped || carries_trust(project, &entry.path()) {
                continue;
            }
            seen += 1;
            if seen > most {
                let message = format!("the project has more than {most} folders to search for repositories");
                return Err(io::Error::new(io::ErrorKind::Unsupported, message));
            }
            waiting.push_back(entry.path());
        }
    }
    found.retain(|path| path.symlink_metadata().is_ok());
    Ok(found)
}

/// The folders of the submodules that `.gitmodules` lists.
fn submodules(project: &Path) -> impl Iterator<Item = PathBuf> {
    let mut text = String::new();
    if let Ok(file) = fs::File::open(project.join(".gitmodules")) {
        // A list that is not text names no submodule.
        let _ = file.take(LARGEST_LIST).read_to_string(&mut text);
    }
    let paths = text.lines().filter_map(|line| {
        let (name, path) = line.split_once('=')?;
        (name.trim() == "path").then(|| PathBuf::from(path.trim()))
    });
    let is_inside = |path: &PathBuf| path.components().all(|part| matches!(part, Component::Normal(_)));
    let folders: Vec<PathBuf> = paths.filter(is_inside).map(|path| project.join(path)).collect();
    folders.into_iter()
}

/// The folders between a project and guarded places.
pub(super) fn ways(project: &Path, guarded: &[PathBuf]) -> Vec<PathBuf> {
    let mut ways = BTreeSet::new();
    for path in guarded {
        let above = path.ancestors().skip(1).take_while(|folder| *folder != project);
        ways.extend(above.filter(|folder| folder.starts_with(project)).map(Path::to_owned));
    }
    ways.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_inside_a_project_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path();
        for path in [".git", "sub/deep/.git", "node_modules/x/.git", "node_modules/listed/.git", ".ai/x/.git"]
        {
            fs::create_dir_all(project.join(path)).unwrap();
        }
        fs::create_dir_all(project.join("lib")).unwrap();
        fs::write(project.join("lib/.git"), "gitdir: ../.git/modules/lib\n").unwrap();
        let list = "[submodule \"a\"]\n\tpath = node_modules/listed\n\turl = x\n[submodule \"b\"]\n\tpath = ../away\n";
        fs::write(project.join(".gitmodules"), list).unwrap();
        let found = Vec::from_iter(repositories(project).unwrap());
        let expected =
            ["lib/.git", "node_modules/listed/.git", "sub/deep/.git"].map(|path| project.join(path));
        assert_eq!(found, expected);
        assert!(among(project, 3).is_ok());
        assert_eq!(among(project, 2).unwrap_err().kind(), io::ErrorKind::Unsupported);
        let ways = ways(project, &found);
        let expected = ["lib", "node_modules", "node_modules/listed", "sub", "sub/deep"];
        assert_eq!(ways, expected.map(|path| project.join(path)));
    }
}
