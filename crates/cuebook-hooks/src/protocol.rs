//! What we and a worker say to each other: frames of a length and a value (see [`crate::marshal`]).
//!
//! A worker may have been taken over by the script that it runs, so what it says is read with suspicion: every reply must
//! carry the number of the call that it answers, which cannot be guessed, and unknown fields are refused.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use cuebook::hooks::{Refusal, Values};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::marshal::{self, Writer};
use crate::not_json::NotJson;

/// The bytes before a value that say how long it is.
pub const HEADER: usize = 4;

/// One call, as it goes to a worker.
#[derive(Debug)]
pub struct Request<'c> {
    /// The number of the call, which the reply must repeat.
    pub id: &'c str,
    /// The function.
    pub function: &'static str,
    /// The name of the script's module.
    pub name: &'c str,
    /// The script, for a worker that does not have it yet.
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
    pub state: Option<&'c Values>,
    /// Bytes that a reply may have.
    pub most: usize,
}

/// A script.
#[derive(Debug)]
pub struct Sent<'c> {
    /// Its path.
    pub path: Cow<'c, str>,
    /// Its text.
    pub text: &'c str,
    /// The folders that hold its modules.
    pub folders: Vec<Cow<'c, str>>,
    /// The modules themselves, by path, if they are not to be read from there.
    pub modules: Option<&'c BTreeMap<PathBuf, String>>,
}

/// What a function is called with, but for the context.
#[derive(Debug)]
pub enum Arguments<'c> {
    /// Of `pre_render`.
    Variables(&'c Values),
    /// Of `post_render`.
    Text(&'c str, &'c Values),
    /// Of `provide`.
    Nothing,
}

impl Request<'_> {
    /// The frame that says it. `None` if it is longer than a frame can be.
    pub fn frame(&self) -> Option<Vec<u8>> {
        let mut to = Writer::new(&[0; HEADER]);
        to.dict();
        for (name, text) in [("id", self.id), ("function", self.function), ("name", self.name)] {
            to.text(name);
            to.text(text);
        }
        if let Some(Sent { path, text, folders, modules }) = &self.script {
            to.text("script");
            to.list(4);
            to.text(path);
            to.text(text);
            to.list(folders.len());
            for folder in folders {
                to.text(folder);
            }
            match modules {
                None => to.value(&Json::Null),
                Some(modules) => {
                    to.dict();
                    for (path, text) in *modules {
                        to.text(&path.to_string_lossy());
                        to.text(text);
                    }
                    to.end();
                }
            }
        }
        to.text("arguments");
        match self.arguments {
            Arguments::Variables(variables) => {
                to.list(1);
                to.values(variables);
            }
            Arguments::Text(text, variables) => {
                to.list(2);
                to.text(text);
                to.values(variables);
            }
            Arguments::Nothing => to.list(0),
        }
        to.text("workspace");
        to.text(&self.workspace);
        to.text("session");
        to.values(self.session);
        to.text("functions");
        to.list(self.functions.len());
        for function in self.functions {
            to.text(function);
        }
        if let Some(state) = self.state {
            to.text("state");
            to.values(state);
        }
        to.text("most");
        to.integer(self.most as i128);
        to.end();
        framed(to)
    }
}

/// The answer to a question of a worker.
#[derive(Debug)]
pub enum HostAnswer<'a> {
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

impl<'a> From<&'a Refusal> for HostAnswer<'a> {
    fn from(refusal: &'a Refusal) -> HostAnswer<'a> {
        HostAnswer::Raise { raise: refusal.exception, message: &refusal.message }
    }
}

impl HostAnswer<'_> {
    /// The frame that says it. `None` if it is longer than a frame can be.
    pub fn frame(&self) -> Option<Vec<u8>> {
        let mut to = Writer::new(&[0; HEADER]);
        to.dict();
        match self {
            HostAnswer::Value { value } => {
                to.text("value");
                to.value(value);
            }
            HostAnswer::Raise { raise, message } => {
                to.text("raise");
                to.text(raise);
                to.text("message");
                to.text(message);
            }
        }
        to.end();
        framed(to)
    }
}

/// What a worker says. Nothing else may stand in it.
#[derive(Debug, Default)]
pub struct Reply {
    /// That it is ready: the version of its Python.
    pub ready: bool,
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
    /// What in the arguments or the result JSON cannot hold.
    pub not_json: Option<NotJson>,
}

impl Reply {
    /// Reads what a frame says. `None` if that is nothing that a worker says.
    pub fn read(bytes: &[u8]) -> Option<Reply> {
        let (Json::Object(said), not_json) = marshal::read(bytes)? else { return None };
        let mut reply = Reply { not_json, ..Reply::default() };
        for (name, value) in said {
            match (name.as_str(), value) {
                ("ready", Json::Array(_)) => reply.ready = true,
                ("id", Json::String(id)) => reply.id = id,
                ("ask", Json::String(function)) => reply.ask = Some(function),
                ("arguments", Json::Object(arguments)) => reply.arguments = arguments,
                ("values", Json::Object(values)) => reply.values = Some(values),
                ("text", Json::String(text)) => reply.text = Some(text),
                ("over", Json::Bool(over)) => reply.over = over,
                ("error", error) => reply.error = Some(serde_json::from_value(error).ok()?),
                ("kept", Json::Array(kept)) => {
                    let names = kept.into_iter().map(|name| match name {
                        Json::String(name) => Some(name),
                        _ => None,
                    });
                    reply.kept = names.collect::<Option<_>>()?;
                }
                _ => return None,
            }
        }
        Some(reply)
    }
}

/// Why a call has no result.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Fault {
    /// An exception.
    Raised(Box<Raised>),
    /// There is no such function, but perhaps something of this type.
    Missing {
        #[serde(rename = "type")]
        kind: String,
        #[serde(default)]
        defined: bool,
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
    #[serde(rename = "not_json")]
    NotJson(NotJson),
    /// The result is larger than any that could be accepted.
    Large { size: u64 },
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
    /// What was added to it.
    pub notes: Vec<String>,
    /// The exceptions that it came from, the nearest first.
    pub causes: Vec<Cause>,
    /// The exceptions of a group.
    pub inner: Vec<Cause>,
    /// Whether a function of the context raised it.
    pub ours: bool,
    /// The module of the standard library that something was looked for in, where the script has one of that name.
    pub shadowed: Option<String>,
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

/// An exception that another came from, or one of a group.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its text.
    pub message: String,
    /// Whether the script says so with `from`.
    pub explicit: bool,
    /// Where it was raised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<Frame>,
    /// The whole way to there, outermost first.
    #[serde(skip_serializing)]
    pub frames: Vec<Frame>,
    /// Whether a function of the context raised it.
    #[serde(skip_serializing)]
    pub ours: bool,
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

/// A frame of what was written behind room for its length.
fn framed(to: Writer) -> Option<Vec<u8>> {
    let mut bytes = to.finish();
    let length = u32::try_from(bytes.len() - HEADER).ok()?;
    bytes[..HEADER].copy_from_slice(&length.to_le_bytes());
    Some(bytes)
}

/// The length that a header says.
pub fn length(header: [u8; HEADER]) -> usize {
    u32::from_le_bytes(header) as usize
}

/// A number for a call, which cannot be guessed from those before.
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
    fn a_frame_is_its_length_and_its_value() {
        let frame = HostAnswer::Value { value: json!("é") }.frame().unwrap();
        assert_eq!(frame, b"\x13\0\0\0{u\x05\0\0\0valueu\x02\0\0\0\xc3\xa90");
        assert_eq!(length([0x13, 0, 0, 0]), frame.len() - HEADER);
    }

    #[test]
    fn a_number_never_comes_twice() {
        let numbers: std::collections::HashSet<String> = (0..1000).map(|_| number()).collect();
        assert_eq!(numbers.len(), 1000);
        assert!(numbers.iter().all(|number| number.len() == 32));
    }

    #[test]
    fn nothing_unknown_may_stand_in_a_reply() {
        let read = |said: Json| {
            let mut writer = Writer::new(b"");
            writer.value(&said);
            Reply::read(&writer.finish())
        };
        assert_eq!(read(json!({"id": "1", "text": "x"})).unwrap().text.as_deref(), Some("x"));
        for bad in [
            json!({"id": "1", "text": "x", "more": 1}),
            json!({"id": 1}),
            json!({"id": "1", "error": {"kind": "new"}}),
            json!({"id": "1", "kept": [1]}),
            json!(["id"]),
        ] {
            assert!(read(bad.clone()).is_none(), "{bad}");
        }
    }
}
