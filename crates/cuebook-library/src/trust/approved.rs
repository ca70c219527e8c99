//! The texts of a pack as the user approved them, so that the next approval can show what changed.
//!
//! They lie beside the approvals in the user's space, one file for each pack. They only inform: the approval itself is bound to
//! digests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::sha256::{Sha256, hex};
use serde::{Deserialize, Serialize};

use super::approval::{ApprovalsFile, ContentDigest};
use crate::error::Result;
use crate::files::{self, Lock};

/// Bytes of all texts of one pack that are kept. Larger files are only named when they change.
const MAX: usize = 1 << 20;
/// Bytes of the file that holds them: text may double as JSON.
const LARGEST: u64 = 8 << 20;

/// Texts of files, by their path in the pack.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Texts(BTreeMap<String, String>);

impl Texts {
    /// The texts of a pack whose files have these digests. What is no text, too large or not as it was is left out.
    pub(crate) fn of(pack: &Path, content: &ContentDigest) -> Texts {
        let mut texts = BTreeMap::new();
        let mut left = MAX;
        for file in content.files() {
            // A file that cannot be read now has no text to show; its digest says that it changed.
            let Ok(bytes) = files::read_bytes_inside(pack, &pack.join(&file.path), &file.path, left as u64)
            else {
                continue;
            };
            let is_same = hex(&Sha256::digest(&bytes)) == file.sha256;
            if let (true, Ok(text)) = (is_same, String::from_utf8(bytes)) {
                left -= text.len();
                texts.insert(file.path, text);
            }
        }
        Texts(texts)
    }

    /// The text of a file.
    pub(crate) fn get(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    /// The texts that were approved last; none if none were kept.
    pub(crate) fn approved(approvals: &ApprovalsFile, pack: &str) -> Result<Texts> {
        let (path, name) = place(approvals, pack);
        if files::look(&path).map_err(|error| files::io_error(&name, &error))?.is_none() {
            return Ok(Texts::default());
        }
        let source = files::read_text(&path, &name, LARGEST)?;
        // A damaged file shows no differences, and the whole text is shown instead.
        Ok(serde_json::from_str(source.text()).unwrap_or_default())
    }

    /// Keeps them for the next approval.
    pub(crate) fn keep(&self, approvals: &ApprovalsFile, pack: &str) -> Result<()> {
        let (path, name) = place(approvals, pack);
        let lock = Lock::acquire(&path, &name)?;
        lock.write_private(&name, &serde_json::to_vec(&self.0).unwrap_or_default())
    }
}

/// The file of a pack's texts, and its name for people.
fn place(approvals: &ApprovalsFile, pack: &str) -> (PathBuf, String) {
    let file = format!("{pack}.json");
    let folder = approvals.name.trim_end_matches(".json");
    (approvals.path.with_extension("").join(&file), format!("{folder}/{file}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_kept_up_to_a_limit_and_only_as_they_were_approved() {
        let folder = tempfile::tempdir().unwrap();
        let pack = folder.path().join("pack");
        std::fs::create_dir(&pack).unwrap();
        for (name, bytes) in [("a.py", b"old".to_vec()), ("b.bin", vec![0xff]), ("c.md", vec![b'x'; MAX + 1])]
        {
            std::fs::write(pack.join(name), bytes).unwrap();
        }
        std::fs::write(pack.join("d.py"), "approved").unwrap();
        let content = ContentDigest::of(&pack, "pack", 1 << 30).unwrap();
        std::fs::write(pack.join("d.py"), "changed meanwhile").unwrap();
        let path = folder.path().join("approvals/0.json");
        let approvals = ApprovalsFile { project: "/p".into(), path, name: "approvals/0.json".into() };
        assert!(Texts::approved(&approvals, "p").unwrap().0.is_empty());
        Texts::of(&pack, &content).keep(&approvals, "p").unwrap();
        let kept = Texts::approved(&approvals, "p").unwrap();
        assert_eq!(kept.0.keys().collect::<Vec<_>>(), ["a.py"]);
        assert_eq!(kept.get("a.py"), Some("old"));
    }
}
