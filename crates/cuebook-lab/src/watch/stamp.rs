//! What files and folders looked like, by names, sizes and times: enough to notice that something has changed without reading it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::UNIX_EPOCH;

/// How deep folders are looked into.
const DEEPEST: usize = 32;

/// The state of a file, or of a folder and everything in it, as a number. The order in which a folder is read does not matter,
/// and what is hidden or made by others (`__pycache__`, `node_modules`) does not count.
pub fn stamp_of(path: &Path) -> u64 {
    match std::fs::metadata(path) {
        Err(_) => 0,
        Ok(metadata) if metadata.is_dir() => below(path, 0),
        Ok(metadata) => stamp(path, &metadata),
    }
}

fn below(folder: &Path, depth: usize) -> u64 {
    let mut sum: u64 = 1;
    let Ok(entries) = std::fs::read_dir(folder) else { return sum };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || name == "__pycache__" || name == "node_modules" {
            continue;
        }
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        let state = if kind.is_dir() && depth < DEEPEST {
            let mut hasher = DefaultHasher::new();
            (&path, below(&path, depth + 1)).hash(&mut hasher);
            hasher.finish()
        } else {
            // What a link leads to counts; folders behind links are not looked into.
            std::fs::metadata(&path).map_or(0, |metadata| stamp(&path, &metadata))
        };
        sum = sum.wrapping_add(state);
    }
    sum
}

fn stamp(path: &Path, metadata: &std::fs::Metadata) -> u64 {
    let mut hasher = DefaultHasher::new();
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    (path, metadata.len(), modified, metadata.is_dir()).hash(&mut hasher);
    #[cfg(unix)]
    std::os::unix::fs::MetadataExt::ino(metadata).hash(&mut hasher);
    hasher.finish()
}
