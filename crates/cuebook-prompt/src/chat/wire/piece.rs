//! Pieces of a body: JSON that borrows what it says.
//!
//! A conversation is said again with every turn, and most of it is long texts that are there already. A piece points at them,
//! and they are copied once, into the bytes that are sent.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value as Json;

use super::cached_tools::CachedTools;

/// The members of an object, in order.
pub(super) type Members<'r> = Vec<(&'r str, Piece<'r>)>;

/// A value of a body.
#[derive(Debug, Clone)]
pub(super) enum Piece<'r> {
    Text(Cow<'r, str>),
    List(Vec<Piece<'r>>),
    Object(Members<'r>),
    Json(Cow<'r, Json>),
    /// What was written before.
    Kept(Arc<CachedTools>),
}

impl<'r> Piece<'r> {
    /// An object with these members.
    pub fn object<const N: usize>(members: [(&'r str, Piece<'r>); N]) -> Piece<'r> {
        Piece::Object(members.into())
    }

    /// What an object has under a name, if that is text.
    pub fn text_of(&self, name: &str) -> Option<&str> {
        let Piece::Object(members) = self else {
            return match self {
                Piece::Json(json) => json.get(name)?.as_str(),
                _ => None,
            };
        };
        match &members.iter().find(|(key, _)| *key == name)?.1 {
            Piece::Text(text) => Some(text),
            Piece::Json(json) => json.as_str(),
            _ => None,
        }
    }

    /// Whether it is a block of this type.
    pub fn is_of_type(&self, name: &str) -> bool {
        self.text_of("type") == Some(name)
    }

    /// The same as a value of its own.
    pub fn into_json(self) -> Json {
        match self {
            Piece::Text(text) => Json::String(text.into_owned()),
            Piece::List(items) => items.into_iter().map(Piece::into_json).collect(),
            Piece::Object(members) => Json::Object(
                members.into_iter().map(|(key, value)| (key.to_owned(), value.into_json())).collect(),
            ),
            Piece::Json(json) => json.into_owned(),
            Piece::Kept(cached_tools) => cached_tools.json.clone(),
        }
    }

    /// Writes it as JSON.
    pub fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        match self {
            Piece::Text(text) => {
                write_text(text, out);
                Ok(())
            }
            Piece::Json(json) => serde_json::to_writer(out, &**json),
            Piece::Kept(cached_tools) => {
                out.extend_from_slice(&cached_tools.bytes);
                Ok(())
            }
            Piece::List(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.write(out)?;
                }
                out.push(b']');
                Ok(())
            }
            Piece::Object(members) => {
                out.push(b'{');
                for (index, (key, value)) in members.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write_text(key, out);
                    out.push(b':');
                    value.write(out)?;
                }
                out.push(b'}');
                Ok(())
            }
        }
    }
}

/// Writes a text as JSON, as serde_json does. Texts of prompts are long, so this looks at many bytes at once.
fn write_text(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    out.push(b'"');
    let (mut written, mut at) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        if bytes[at..].first_chunk::<32>().is_some_and(has_no_escape) {
            at += 32;
            continue;
        }
        if let Some(eight) = bytes[at..].first_chunk::<8>() {
            match first_escape(u64::from_le_bytes(*eight)) {
                8 => {
                    at += 8;
                    continue;
                }
                0 => {}
                plain => {
                    at += plain;
                    continue;
                }
            }
        }
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\t' => b"\\t",
            b'\r' => b"\\r",
            8 => b"\\b",
            12 => b"\\f",
            0..32 => b"\\u00",
            _ => {
                at += 1;
                continue;
            }
        };
        out.extend_from_slice(&bytes[written..at]);
        out.extend_from_slice(escape);
        if escape.len() == 4 {
            let digits = b"0123456789abcdef";
            out.extend([digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]);
        }
        at += 1;
        written = at;
    }
    out.extend_from_slice(&bytes[written..]);
    out.push(b'"');
}

/// Whether JSON escapes none of these bytes. Without a way out of the loop, the compiler makes few instructions of it.
fn has_no_escape(bytes: &[u8; 32]) -> bool {
    bytes.iter().fold(true, |plain, byte| plain & (*byte >= 32) & (*byte != b'"') & (*byte != b'\\'))
}

/// Which of eight bytes is the first that JSON escapes; 8 if none is. Each difference sets the highest bit of a byte that it is for, and
/// may set that of bytes behind it.
fn first_escape(eight: u64) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    let is_below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word & HIGH;
    let equals = |byte: u8| is_below(eight ^ (ONES * u64::from(byte)), 1);
    let found = is_below(eight, 32) | equals(b'"') | equals(b'\\');
    (found.trailing_zeros() / 8) as usize
}

impl<'r> From<&'r str> for Piece<'r> {
    fn from(text: &'r str) -> Piece<'r> {
        Piece::Text(Cow::Borrowed(text))
    }
}

impl<'r> From<&'r String> for Piece<'r> {
    fn from(text: &'r String) -> Piece<'r> {
        Piece::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Piece<'_> {
    fn from(text: String) -> Self {
        Piece::Text(Cow::Owned(text))
    }
}

impl<'r> From<Cow<'r, str>> for Piece<'r> {
    fn from(text: Cow<'r, str>) -> Piece<'r> {
        Piece::Text(text)
    }
}

impl From<Json> for Piece<'_> {
    fn from(json: Json) -> Self {
        Piece::Json(Cow::Owned(json))
    }
}

impl<'r> From<&'r Json> for Piece<'r> {
    fn from(json: &'r Json) -> Piece<'r> {
        Piece::Json(Cow::Borrowed(json))
    }
}

impl<'r> From<Vec<Piece<'r>>> for Piece<'r> {
    fn from(items: Vec<Piece<'r>>) -> Piece<'r> {
        Piece::List(items)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::write_text;

    fn same(text: &str) {
        let mut out = Vec::new();
        write_text(text, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(text).unwrap());
    }

    #[test]
    fn every_letter_is_written_as_serde_json_writes_it() {
        for letter in ('\0'..='\u{17f}').chain(['\u{2028}', '\u{fffd}', '\u{1f600}']) {
            for before in 0..34 {
                same(&format!("{}{letter}{letter}xyz{letter}abcdefgh", "a".repeat(before)));
            }
        }
    }

    proptest! {
        #[test]
        fn every_text_is_written_as_serde_json_writes_it(text in "[\\x00-\\x7fä€😀]{0,80}") {
            same(&text);
        }
    }
}
