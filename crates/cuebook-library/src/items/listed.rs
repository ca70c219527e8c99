//! The files that a signed tool lists: the hash of each is in the tool's text, so its signature covers them too.

use std::path::{Component, Path};

use crate::sha256::{Sha256, hex};
use serde_json::{Map, Value as Json};

/// The hash of a file's content, as a tool writes it in its list.
pub fn file_hash(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}

/// Why an entry of a tool's list is wrong, if it is: its path leads out of the tool's folder, there is no such file, or its content has
/// another hash.
fn wrong_file(folder: &Path, name: &str, said: &Json, most: u64) -> Option<String> {
    let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    if name.is_empty() || !plain {
        return Some(format!("the listed file {name:?} must be a path below the folder of the tool"));
    }
    let bytes = match crate::files::read_bytes(&folder.join(name), name, most) {
        Ok(bytes) => bytes,
        Err(error) => return Some(format!("the listed file `{name}`: {}", error.diagnostic().message)),
    };
    let hash = file_hash(&bytes);
    (said.as_str() != Some(hash.as_str()))
        .then(|| format!("the listed file `{name}` has the hash {hash:?}, not {said}"))
}

/// All entries of a tool's list that are wrong.
#[doc(hidden)]
pub fn wrong_files(folder: &Path, files: &Map<String, Json>, most: u64) -> Vec<String> {
    files.iter().filter_map(|(name, said)| wrong_file(folder, name, said, most)).collect()
}
