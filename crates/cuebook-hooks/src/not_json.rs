//! Results that JSON cannot hold.

use serde::Deserialize;

/// Something in a result that JSON cannot hold.
#[derive(Debug, Default, Deserialize)]
pub struct NotJson {
    /// Where it is, as one would write it in Python.
    pub path: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What is wrong with it.
    pub why: NotJsonReason,
    /// How Python writes it, where that helps.
    #[serde(default)]
    pub value: String,
    /// The type of the key that is wrong.
    #[serde(default)]
    pub key: String,
    /// What its type is one of: `dataclass`, `enum`, `path`, or nothing of these.
    #[serde(default)]
    pub like: String,
}

/// Why JSON cannot hold a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NotJsonReason {
    /// It has no such type.
    #[default]
    Type,
    /// The number has more than 64 bits.
    Int,
    /// It is no number, or infinite.
    Float,
    /// A string with half a character.
    Surrogate,
    /// A key is no string.
    Key,
    /// It contains itself.
    Cycle,
    /// It is nested too deep.
    Depth,
}
