//! A body that is being written, and what has to be said about it: refusals, notes, and the options that every format has
//! under names of its own.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value as Json, json};

use super::piece::{Members, Piece};
use super::{Api, Request};
use crate::chat::{ANNOTATIONS, Message, Part, Role};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, Severity, did_you_mean, nearest};

/// A body that is being written.
pub(super) struct Draft<'r> {
    pub api: Api,
    pub request: &'r Request<'r>,
    pub body: Members<'r>,
    pub notes: Vec<Diagnostic>,
}

/// A body that is written, and what has to be said about it.
pub(super) struct WrittenBody<'r> {
    pub body: Piece<'r>,
    pub notes: Vec<Diagnostic>,
}

/// A message, or a part of it, as people count them.
#[derive(Clone, Copy)]
pub(super) struct MessagePosition<'m> {
    pub index: usize,
    pub message: &'m Message,
    part: Option<usize>,
}

impl<'m> MessagePosition<'m> {
    pub fn part(self, index: usize) -> MessagePosition<'m> {
        MessagePosition { part: Some(index), ..self }
    }
}

impl fmt::Display for MessagePosition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(part) = self.part {
            write!(f, "part {} of ", part + 1)?;
        }
        write!(f, "message {} ({})", self.index + 1, self.message.role)
    }
}

impl<'r> Draft<'r> {
    pub fn new(api: Api, request: &'r Request<'r>) -> Draft<'r> {
        Draft { api, request, body: Members::new(), notes: Vec::new() }
    }

    /// Puts a member behind the others. It has to be a new one.
    pub fn put(&mut self, key: &'r str, value: impl Into<Piece<'r>>) {
        self.body.push((key, value.into()));
    }

    /// Whether there is a member of this name already.
    pub fn has(&self, key: &str) -> bool {
        self.body.iter().any(|(name, _)| *name == key)
    }

    /// The messages, with their numbers.
    pub fn spots(&self) -> impl Iterator<Item = MessagePosition<'r>> + use<'r> {
        self.request.messages.iter().enumerate().map(|(index, message)| MessagePosition {
            index,
            message,
            part: None,
        })
    }

    /// Something is not sent, or is sent although it will probably be refused.
    pub fn warn(&mut self, message: impl Into<String>, hint: impl Into<Hint>) {
        let diagnostic = Diagnostic::new(Code::UnsupportedContent, message).hint(hint);
        self.note(diagnostic.severity(Severity::Warning));
    }

    /// Notes a finding, once.
    pub fn note(&mut self, diagnostic: Diagnostic) {
        if !self.notes.iter().any(|note| note.message == diagnostic.message) {
            self.notes.push(diagnostic);
        }
    }

    /// The provider cannot take something.
    pub fn refuse(&self, spot: MessagePosition<'_>, why: impl fmt::Display, hint: impl Into<Hint>) -> Error {
        let diagnostic = Diagnostic::new(Code::UnsupportedContent, format!("{spot}: {why}")).hint(hint);
        let error = Error::new(ErrorKind::Wire, diagnostic).with("wire", self.api.as_str());
        let error = error.with("message_number", spot.index + 1);
        match spot.part {
            Some(part) => error.with("part_number", part + 1),
            None => error,
        }
    }

    /// There is nothing to send.
    pub fn nothing_to_say(&self, why: &str, hint: &str) -> Error {
        let message = format!("{} {why}", self.api.title());
        let is_empty = |message: &Message| message.role == Role::User && message.is_empty();
        let hint = match self.request.messages.iter().any(is_empty) {
            true => "the message of the user is empty: give its input a value",
            false => hint,
        };
        let diagnostic = Diagnostic::new(Code::UnsupportedContent, message).hint(hint);
        Error::new(ErrorKind::Wire, diagnostic).with("wire", self.api.as_str())
    }

    /// A role that only the caller knows.
    pub fn unknown_role(&self, spot: MessagePosition<'_>) -> Error {
        let why = format!("{} does not accept the role `{}`", self.api.title(), spot.message.role);
        self.refuse(spot, why, "use one of: system, developer, user, assistant, tool")
    }

    /// The texts of a message that can hold nothing else, joined as Prompty joins them.
    pub fn only_text(&self, spot: MessagePosition<'r>) -> Result<Cow<'r, str>> {
        for (index, part) in spot.message.parts.iter().enumerate() {
            if let Some(what) = media_word(part) {
                let whose = match spot.message.role {
                    Role::System | Role::Developer => "a system message",
                    Role::Assistant => "an assistant message",
                    Role::Tool => "a tool result",
                    _ => "a request",
                };
                let title = self.api.title();
                let (why, hint) = match self.api {
                    Api::OpenAiEmbeddings | Api::OpenAiImages => {
                        (format!("{title} accepts only text, but this is {what}"), "remove it")
                    }
                    _ => (
                        format!("{title} accepts only text in {whose}, but this is {what}"),
                        "move it to a user message, or remove it",
                    ),
                };
                return Err(self.refuse(spot.part(index), why, hint));
            }
        }
        Ok(joined(spot.message))
    }

    /// The texts of the system's and the developer's messages as one; `None` if it is missing. These interfaces have one
    /// place for them, in front of the conversation.
    pub fn instructions(&mut self) -> Result<Option<Cow<'r, str>>> {
        let mut texts = Vec::new();
        let mut talked = false;
        for spot in self.spots() {
            match spot.message.role {
                Role::System | Role::Developer => {
                    let text = self.only_text(spot)?;
                    self.leftover(spot, &[]);
                    if talked && !text.is_empty() {
                        self.warn(
                            format!("{spot} is moved to the beginning of the conversation"),
                            format!("{} accepts system messages only there", self.api.title()),
                        );
                    }
                    texts.extend((!text.is_empty()).then_some(text));
                }
                _ => talked = true,
            }
        }
        Ok(match texts.len() {
            0 | 1 => texts.pop(),
            _ => Some(Cow::Owned(texts.join("\n\n"))),
        })
    }

    /// Says which attributes of a message are not sent.
    pub fn leftover(&mut self, spot: MessagePosition<'_>, sent: &[&str]) {
        let is_sent = |key: &str| key == ANNOTATIONS || sent.contains(&key);
        for key in spot.message.metadata.keys().filter(|key| !is_sent(key)) {
            let hint = format!("{} has no such attribute", self.api.title());
            self.warn(format!("{spot}: the attribute `{key}` is not sent"), hint);
        }
    }

    /// The options under the names that the format has for them, and notes on the others. `handled` are options that
    /// the format sees to by itself.
    pub fn options(&mut self, names: &[(&str, &'static str)], handled: &[&str]) -> Vec<(&'static str, Json)> {
        let options = &self.request.model.options;
        let mut given: Vec<(&str, Json)> = Vec::new();
        for (key, number) in options.numbers() {
            given.extend(number.map(|number| (key, Json::Number(number.clone()))));
        }
        if !options.stop_sequences.is_empty() {
            given.push(("stopSequences", json!(options.stop_sequences)));
        }
        given.extend(options.allow_multiple_tool_calls.map(|may| ("allowMultipleToolCalls", json!(may))));
        let mut named = Vec::new();
        for (key, value) in given {
            match names.iter().find(|(name, _)| *name == key) {
                Some((_, wire)) => named.push((*wire, value)),
                None if handled.contains(&key) => {}
                None => self.warn(
                    format!("the option `{key}` is not sent"),
                    format!(
                        "{} has no such option; use `additionalProperties` to send it unchanged",
                        self.api.title()
                    ),
                ),
            }
        }
        for key in options.extra.keys() {
            let hint = did_you_mean(&nearest(key, names.iter().map(|(name, _)| *name)));
            let hint = hint.unwrap_or_else(|| {
                "unknown option; use `additionalProperties` to send it unchanged".to_owned()
            });
            self.warn(format!("the option `{key}` is not sent"), hint);
        }
        named
    }

    /// Whether the author wants the answer bit by bit.
    pub fn streams(&self) -> bool {
        self.request.model.options.additional_properties.get("stream") == Some(&json!(true))
    }

    /// What the interface has no place for at all: tools and outputs.
    pub fn no_tools_and_outputs(&mut self) {
        let title = self.api.title();
        for (what, given) in
            [("tools", !self.request.tools.is_empty()), ("outputs", !self.request.outputs.is_empty())]
        {
            if given {
                self.warn(format!("the prompt's {what} are not sent"), format!("{title} has no {what}"));
            }
        }
    }

    /// Adds what the author passes on as it is, wherever nothing stands yet, and ends the body.
    pub fn finish(self) -> WrittenBody<'r> {
        self.finish_without(&[])
    }

    /// The same, without what the format sees to by itself.
    pub fn finish_without(mut self, handled: &[&str]) -> WrittenBody<'r> {
        let additional = &self.request.model.options.additional_properties;
        for (key, value) in additional.iter().filter(|(key, _)| !handled.contains(&key.as_str())) {
            self.add(key, value);
        }
        self.end()
    }

    /// Ends the body as it is.
    pub fn end(self) -> WrittenBody<'r> {
        WrittenBody { body: Piece::Object(self.body), notes: self.notes }
    }

    /// Adds a member that the author passes on as it is, without replacing any.
    pub fn add(&mut self, key: &'r str, value: &'r Json) {
        let Some(index) = self.body.iter().position(|(name, _)| *name == key) else {
            self.put(key, value);
            return;
        };
        let there = std::mem::replace(&mut self.body[index].1, Piece::List(Vec::new()));
        let mut both = Map::from_iter([(key.to_owned(), there.into_json())]);
        self.fill(&mut both, Map::from_iter([(key.to_owned(), value.clone())]), "additionalProperties");
        self.body[index].1 = both.shift_remove(key).unwrap_or_default().into();
    }

    /// Adds entries without replacing any; objects are joined, so that `text.verbosity` finds its place beside
    /// `text.format`.
    pub fn fill(&mut self, into: &mut Map<String, Json>, from: Map<String, Json>, path: &str) {
        for (key, value) in from {
            let path = format!("{path}.{key}");
            match (into.get_mut(&key), value) {
                (None, value) => drop(into.insert(key, value)),
                (Some(Json::Object(inner)), Json::Object(value)) => self.fill(inner, value, &path),
                (Some(there), value) if *there == value => {}
                (Some(_), _) => self.warn(
                    format!("`{path}` is not sent"),
                    "the request already has another value there, which is kept",
                ),
            }
        }
    }
}

/// The texts of a message, joined as Prompty joins them.
pub(super) fn joined(message: &Message) -> Cow<'_, str> {
    let mut texts = message.texts();
    let first = texts.next().unwrap_or_default();
    let Some(second) = texts.next() else { return Cow::Borrowed(first) };
    let all: Vec<&str> = [first, second].into_iter().chain(texts).collect();
    Cow::Owned(all.join("\n"))
}

/// What a part is, if it is not text.
pub(super) fn media_word(part: &Part) -> Option<&'static str> {
    match part {
        Part::Text { .. } => None,
        Part::Image(_) => Some("an image"),
        Part::Audio(_) => Some("audio"),
        Part::File(_) => Some("a file"),
    }
}
