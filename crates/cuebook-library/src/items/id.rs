//! The ids of items. They become paths, so what could lead out of a space is refused before any file is touched.

use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};

/// How long an id may be, in bytes.
const MAX: usize = 512;

/// How long a part of it may be: file systems take names of 255 bytes, and an extension follows.
const LONGEST_PART: usize = 240;

/// The id of an item: names with `/` between them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId(Box<str>);

impl ItemId {
    /// Checks a text of the user.
    pub fn new(text: &str) -> Result<ItemId> {
        let why = if text.is_empty() {
            Some("an id is the path of a file without its extension")
        } else if text.len() > MAX {
            Some("an id can have at most 512 bytes")
        } else if text.starts_with('/') || text.get(1..2) == Some(":") {
            Some("an id is relative to the folder of its type")
        } else if text.contains('\\') {
            Some("use `/` between the parts of an id")
        } else if text.chars().any(char::is_control) {
            Some("an id cannot contain control characters")
        } else if text.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
            Some("a part of an id cannot be empty, `.` or `..`")
        } else if text.split('/').any(|part| part.len() > LONGEST_PART) {
            Some("a part of an id can have at most 240 bytes, because it names a file")
        } else {
            None
        };
        match why {
            None => Ok(ItemId(text.into())),
            Some(why) => {
                let diagnostic = Diagnostic::new(Code::InvalidItemId, format!("invalid item id {text:?}"));
                Err(Error::new(ErrorKind::Usage, diagnostic.hint(why)).with("item_id", text))
            }
        }
    }

    /// The id itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its last part, which is the name of its file.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// Everything before its last part; empty if there is nothing.
    pub fn category(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(category, _)| category)
    }
}

impl std::fmt::Display for ItemId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_lead_out_of_its_space() {
        for wrong in ["", "/etc/passwd", "../x", "a/../b", "a//b", "a/", "a\\b", "./a", "C:/x", "a\nb", "a\0"]
        {
            let error = ItemId::new(wrong).unwrap_err();
            assert_eq!(error.code(), Code::InvalidItemId, "{wrong:?}");
        }
        assert!(ItemId::new(&"a/".repeat(257)).is_err());
        assert!(ItemId::new(&"a".repeat(241)).is_err());
        assert!(ItemId::new(&format!("{0}/{0}", "a".repeat(240))).is_ok());
    }

    #[test]
    fn an_id_has_a_name_and_a_category() {
        let id = ItemId::new("rye/core/init").unwrap();
        assert_eq!((id.name(), id.category()), ("init", "rye/core"));
        let id = ItemId::new("init").unwrap();
        assert_eq!((id.name(), id.category()), ("init", ""));
    }
}
