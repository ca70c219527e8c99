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
            Piece::Text(text) => serde_json::to_writer(out, &**text),
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
                    serde_json::to_writer(&mut *out, key)?;
                    out.push(b':');
                    value.write(out)?;
                }
                out.push(b'}');
                Ok(())
            }
        }
    }
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
