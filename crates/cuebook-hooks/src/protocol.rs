//! What we and a worker say to each other: frames of a length and a JSON text.
//!
//! A worker may have been taken over by the script that it runs, so what it says is read with suspicion: every reply must
//! carry the number of the call that it answers, which nobody can guess, and nothing that we do not know may stand in it.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use cuebook::hooks::{Refusal, Values};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// The bytes before a text that say how long it is.
pub const HEADER: usize = 4;

/// One call, as it goes to a worker.
#[derive(Debug, Serialize)]
pub struct Request<'c> {
    /// The number of the call, which the reply must repeat.
    pub id: &'c str,
    /// The function.
    pub function: &'static str,
    /// The name of the script's module.
    pub name: &'c str,
    /// The script, for a worker that does not have it yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<Sent<'c>>,
    /// What the function is called with, but for the context.
    pub arguments: Arguments<'c>,
    /// The context: the path of the workspace.
    pub workspace: Cow<'c, str>,
    /// The context: the session.
    pub session: &'c Values,
    /// The context: the functions that it has.
    pub functions: &'c [&'static str],
    /// The context: the session's state, if it is granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'c Values>,
    /// Bytes that a reply may have.
    pub most: usize,
}

/// A script: its path, its text, and the folders that hold its modules.
#[derive(Debug, Serialize)]
pub struct Sent<'c>(pub Cow<'c, str>, pub &'c str, pub Vec<Cow<'c, str>>);

/// What a function is called with, but for the context.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Arguments<'c> {
    /// Of `pre_render`.
    Variables([&'c Values; 1]),
    /// Of `post_render`.
    Text(&'c str, &'c Values),
    /// Of `provide`.
    Nothing([(); 0]),
}

/// The answer to a question of a worker.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Answered<'a> {
    /// The value that was asked for.
    Value {
        /// The value.
        value: Json,
    },
    /// An exception to raise.
    Raise {
        /// Its name.
        raise: &'a str,
        /// Its text.
        message: &'a str,
    },
}

impl<'a> From<&'a Refusal> for Answered<'a> {
    fn from(refusal: &'a Refusal) -> Answered<'a> {
        Answered::Raise { raise: refusal.exception, message: &refusal.message }
    }
}

/// The first thing that a worker says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// The version of its Python.
    #[allow(dead_code)] // Said for whoever looks at the pipe.
    pub ready: (u16, u16, u16),
}

/// Anything else that a worker says.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reply {
    /// The number of the call.
    pub id: String,
    /// A question: the function of the context that is called.
    pub ask: Option<String>,
    /// Its arguments.
    pub arguments: Values,
    /// What `pre_render` or `provide` returned, but for what is kept.
    pub values: Option<Values>,
    /// Variables that have kept the values that were sent.
    pub kept: Vec<String>,
    /// What `post_render` returned.
    pub text: Option<String>,
    /// Why there is no result.
    pub error: Option<Fault>,
    /// The worker thinks that it should not be used again.
    pub over: bool,
}

/// Why a call has no result.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Fault {
    /// An exception.
    Raised(Box<Raised>),
    /// There is no such function, but something of this type.
    Missing {
        #[serde(rename = "type")]
        kind: String,
    },
    /// The result is of another type than it must be.
    Returned {
        #[serde(rename = "type")]
        kind: String,
        wanted: String,
        #[serde(default)]
        yields: bool,
    },
    /// The result holds something that JSON cannot.
    Unfit(Unfit),
    /// The result is larger than any that could be accepted.
    Large { size: u64 },
}

/// Something in a result that JSON cannot hold.
#[derive(Debug, Deserialize)]
pub struct Unfit {
    /// Where it is, as one would write it in Python.
    pub path: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// What is wrong with it.
    pub why: Why,
    /// How Python writes it, where that helps.
    #[serde(default)]
    pub value: String,
    /// The type of the key that is wrong.
    #[serde(default)]
    pub key: String,
}

/// Why JSON cannot hold a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Why {
    /// It has no such type.
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

/// An exception.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Raised {
    /// Whether the script was loaded, called, or had returned: `load`, `call`, `return`.
    pub stage: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The built-in types that it is one of.
    pub bases: Vec<String>,
    /// Its text.
    pub message: String,
    /// Where it came from, outermost first, without our own frames.
    pub frames: Vec<Frame>,
    /// What was added to it, and the exceptions of a group.
    pub notes: Vec<String>,
    /// The exceptions that it came from, the nearest first.
    pub causes: Vec<Cause>,
    /// Of a syntax error: its place.
    pub syntax: Option<Syntax>,
}

/// One line of a traceback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The function.
    pub function: String,
}

/// An exception that another came from.
#[derive(Debug, Serialize, Deserialize)]
pub struct Cause {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its text.
    pub message: String,
    /// Whether the script says so with `from`.
    pub explicit: bool,
    /// Where it was raised.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub frame: Option<Frame>,
}

/// The place of a syntax error.
#[derive(Debug, Deserialize)]
pub struct Syntax {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1; 0 if it is not known.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

/// The bytes of a frame. `None` if it is longer than a frame can be.
pub fn frame(content: &impl Serialize) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(512);
    bytes.extend([0; HEADER]);
    // Values have string keys and finite numbers, so this cannot fail.
    serde_json::to_writer(&mut bytes, content).ok()?;
    let length = u32::try_from(bytes.len() - HEADER).ok()?;
    bytes[..HEADER].copy_from_slice(&length.to_le_bytes());
    Some(bytes)
}

/// The length that a header says.
pub fn length(header: [u8; HEADER]) -> usize {
    u32::from_le_bytes(header) as usize
}

/// A number for a call, which nobody can guess from those before.
pub fn number() -> String {
    static SECRETS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let [first, second] = &*SECRETS;
    format!("{:016x}{:016x}", first.hash_one(count), second.hash_one(!count))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_frame_is_its_length_and_its_text() {
        let bytes = frame(&json!({"a": "é"})).unwrap();
        assert_eq!(bytes, b"\x0a\0\0\0{\"a\":\"\xc3\xa9\"}");
        assert_eq!(length([10, 0, 0, 0]), 10);
    }

    #[test]
    fn a_number_never_comes_twice() {
        let numbers: std::collections::HashSet<String> = (0..1000).map(|_| number()).collect();
        assert_eq!(numbers.len(), 1000);
        assert!(numbers.iter().all(|number| number.len() == 32));
    }

    #[test]
    fn nothing_unknown_may_stand_in_a_reply() {
        assert!(serde_json::from_str::<Reply>(r#"{"id": "1", "text": "x"}"#).is_ok());
        for bad in [
            r#"{"id": "1", "text": "x", "more": 1}"#,
            r#"{"id": 1}"#,
            r#"{"id": "1", "error": {"kind": "new"}}"#,
        ] {
            assert!(serde_json::from_str::<Reply>(bad).is_err(), "{bad}");
        }
    }
}
