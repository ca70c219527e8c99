//! Paths where the system may have no files: on `wasm32-unknown-unknown`, a program gives all texts as [`Buffers`](super::Buffers).

use std::io;
use std::path::{Path, PathBuf};

use super::unsaved_in;

/// An absolute path, without following links. Where there is no current folder, a path from the root is one.
pub fn absolute(path: &Path) -> io::Result<PathBuf> {
    std::path::absolute(path).or_else(|error| if path.has_root() { Ok(path.to_owned()) } else { Err(error) })
}

/// Whether the reason is that nothing is there. `wasm32-unknown-unknown` has no files.
pub fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, Unsupported};
    matches!(error.kind(), NotFound | NotADirectory | Unsupported)
}

/// The names of what lies in a folder or is unsaved there. A folder that cannot be read has none.
pub fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let unsaved = unsaved_in(folder).into_keys().filter(|name| !names.contains(name)).collect::<Vec<_>>();
    names.extend(unsaved);
    names
}
