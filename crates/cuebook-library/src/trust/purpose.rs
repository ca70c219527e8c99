//! What a signature is for: an item with its type, its id and its format, or a settings file.
//!
//! The purpose is part of the signature line and of the bytes that are signed. A signature made for one purpose is
//! invalid for every other one, so a signed file cannot take the place of another file.

use std::fmt;

use crate::items::{ItemId, ItemType, Located};

/// The first line of the signed bytes. No other signature of Cuebook or Rye begins like this.
const DOMAIN: &str = "cuebook signature 1";

/// The longest purpose in a line: an id of 512 bytes, each of which may take three characters, and the words around it.
const LONGEST: usize = 2048;

/// What a signature is for, as in `tool/desk/order.py` or `config/providers/acme.yaml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purpose(String);

impl Purpose {
    /// An item: its type, its id and the extension of its file.
    pub fn item(kind: ItemType, id: &ItemId, extension: &str) -> Purpose {
        Purpose(format!("{kind}/{}.{extension}", encoded(id.as_str())))
    }

    /// An item that was found.
    pub fn of(located: &Located) -> Purpose {
        Purpose::item(located.kind, &located.id, located.extension)
    }

    /// A settings file, by its path below `.ai/config`.
    pub fn config(below: &str) -> Purpose {
        Purpose(format!("config/{}", encoded(below)))
    }

    /// The file at a path below `.ai`, as in `tools/desk/order.py`; none if no signature is for such a file.
    pub fn at(path: &str) -> Option<Purpose> {
        let (folder, below) = path.split_once('/')?;
        if folder == "config" {
            return Some(Purpose::config(below));
        }
        let kind = ItemType::ALL.into_iter().find(|kind| kind.folder() == folder)?;
        let (id, extension) = below.rsplit_once('.')?;
        Some(Purpose::item(kind, &ItemId::new(id).ok()?, extension))
    }

    /// It without the extension: the type and the id, which are the same in all formats.
    pub(super) fn subject(&self) -> &str {
        self.0.rsplit_once('.').map_or(&self.0, |(subject, _)| subject)
    }

    /// Reads what a signature line says.
    pub(super) fn read(text: &str) -> Option<Purpose> {
        let is_known = |byte: u8| is_plain(byte) || byte == b'%';
        let fits = (1..=LONGEST).contains(&text.len()) && text.bytes().all(is_known);
        fits.then(|| Purpose(text.to_owned()))
    }

    /// The bytes that are signed: the domain, the purpose, the time and the hash of the content.
    pub(super) fn message(&self, signed_at: &str, hash: &str) -> Vec<u8> {
        format!("{DOMAIN}\n{self}\n{signed_at}\n{hash}").into_bytes()
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._/-".contains(&byte)
}

/// A path in the characters that a signature line may hold; every other byte becomes `%` and two digits.
fn encoded(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match is_plain(byte) {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_purposes_never_share_a_text() {
        let id = |text: &str| ItemId::new(text).unwrap();
        let all = [
            Purpose::item(ItemType::Tool, &id("a/b"), "py"),
            Purpose::item(ItemType::Tool, &id("a/b"), "sh"),
            Purpose::item(ItemType::Tool, &id("a b"), "py"),
            Purpose::item(ItemType::Tool, &id("a%20b"), "py"),
            Purpose::item(ItemType::Knowledge, &id("a/b"), "md"),
            Purpose::item(ItemType::Directive, &id("a/b"), "md"),
            Purpose::config("a/b.md"),
        ];
        for (at, one) in all.iter().enumerate() {
            assert_eq!(Purpose::read(&one.to_string()).as_ref(), Some(one));
            assert!(all[..at].iter().all(|other| other != one), "{one}");
        }
        assert_eq!(all[2].to_string(), "tool/a%20b.py");
        for wrong in ["", "a b", "a:b", "é", "a\nb", "-->"] {
            assert_eq!(Purpose::read(wrong), None, "{wrong}");
        }
    }
}
