//! From text in which a dialect marked messages, sections and media to messages, white space and all.
//!
//! A mark is a frame of the engine, which no value can write. What stands before the first one is the user's; what is nothing but white
//! space is no message, and no part of one.

use std::ops::Range;

use serde_json::{Map, Value as Json, json};

use super::media_type::guess;
use super::parse::{Run, rich_in};
use super::{Media, Message, Part, Role, thread};
use crate::error::Result;
use crate::prompt::Rich;
use crate::template::unit::{MARK_FRAMES, MESSAGES};
use crate::variables::RichInput;

/// The attribute of a message with what only programs know of it. No model gets it.
pub const ANNOTATIONS: &str = "annotations";

/// What a frame marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// A message of a role begins.
    Message(Role),
    /// An attribute of that message: its name, and then its value.
    Attribute,
    /// A section begins: its name.
    Section,
    /// A picture, a sound or a document: its address.
    Media,
    /// The media type of it.
    MediaType,
    /// The mark ends.
    End,
}

/// What a frame of this name marks, if it marks anything.
#[doc(hidden)]
pub fn mark_of(frame: &str) -> Option<Mark> {
    if let Some((_, role)) = MESSAGES.iter().find(|(name, _)| *name == frame) {
        return Some(Mark::Message(Role::named(role)));
    }
    let marks = [Mark::Attribute, Mark::Section, Mark::Media, Mark::MediaType, Mark::End];
    MARK_FRAMES.iter().zip(marks).find(|(name, _)| **name == frame).map(|(_, mark)| mark)
}

/// Makes messages of a text whose runs cover it.
pub(super) fn parse(text: &str, runs: &[Run<'_>]) -> Result<Vec<Message>> {
    let mut assembly = Assembly::new(text, Role::User);
    let mut at = 0;
    while let Some(run) = runs.get(at) {
        match &run.mark {
            None | Some(Mark::End) => {
                assembly.text(runs, at)?;
                at += 1;
            }
            Some(mark) => {
                let length = runs[at..].iter().position(|run| run.mark == Some(Mark::End));
                let end = length.map_or(runs.len(), |length| at + length);
                assembly.mark(mark, &runs[at..end])?;
                at = end + 1;
            }
        }
    }
    assembly.end();
    Ok(assembly.messages)
}

/// Puts a conversation between messages that do not show it: before the last of them if that is the user's, and else behind all of
/// them. The option `history` of the parser names its input.
pub fn insert_history<'r>(
    mut messages: Vec<Message>,
    options: &Map<String, Json>,
    mut inputs: impl Iterator<Item = &'r RichInput>,
) -> Result<Vec<Message>> {
    let Some(name) = options.get("history").and_then(Json::as_str) else { return Ok(messages) };
    let Some(input) = inputs.find(|input| input.name == name && input.kind == Rich::Thread) else {
        return Ok(messages);
    };
    let is_history = |message: &Message| {
        message.metadata.get(ANNOTATIONS).is_some_and(|annotations| annotations["purpose"] == "history")
    };
    let Some(value) = input.value.as_ref().filter(|_| !messages.iter().any(is_history)) else {
        return Ok(messages);
    };
    let history = thread::messages(&input.name, value, &input.roles)?;
    let at = messages.len() - usize::from(messages.last().is_some_and(|last| last.role == Role::User));
    messages.splice(at..at, history);
    Ok(messages)
}

struct Assembly<'t> {
    text: &'t str,
    messages: Vec<Message>,
    role: Role,
    annotations: Map<String, Json>,
    parts: Vec<Part>,
    /// The sections of the message that begins before each part.
    sections: Vec<Json>,
    /// The text that is no part yet.
    pending: Vec<Range<usize>>,
}

impl<'t> Assembly<'t> {
    fn new(text: &'t str, role: Role) -> Assembly<'t> {
        Assembly {
            text,
            messages: Vec::new(),
            role,
            annotations: Map::new(),
            parts: Vec::new(),
            sections: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// Takes the text of a run, with the conversations and pictures that stand in it.
    fn text(&mut self, runs: &[Run<'_>], at: usize) -> Result<()> {
        let run = &runs[at];
        if run.rich.is_empty() {
            self.pending.push(run.range.clone());
            return Ok(());
        }
        let mut start = run.range.start;
        for (range, input) in rich_in(self.text, &runs[at..=at], &run.range)? {
            self.pending.push(start..range.start);
            start = range.end;
            // An input without a value leaves nothing behind.
            let value = input.value.as_ref();
            match (input.kind, value) {
                (Rich::Thread, value) => {
                    self.end();
                    for mut message in value
                        .map(|value| thread::messages(&input.name, value, &input.roles))
                        .transpose()?
                        .unwrap_or_default()
                    {
                        message.metadata.insert(ANNOTATIONS.into(), json!({"purpose": "history"}));
                        self.messages.push(message);
                    }
                }
                (kind, Some(value)) => {
                    self.flush();
                    self.parts.push(thread::media(&input.name, kind, value)?);
                }
                (_, None) => {}
            }
        }
        self.pending.push(start..run.range.end);
        Ok(())
    }

    /// Takes a mark, with the runs up to its end.
    fn mark(&mut self, mark: &Mark, runs: &[Run<'_>]) -> Result<()> {
        let written = |run: &Run<'_>| &self.text[run.range.clone()];
        match mark {
            Mark::Message(role) => {
                let mut attributes: Vec<(String, String)> = Vec::new();
                for run in &runs[1..] {
                    match (&run.mark, attributes.last_mut()) {
                        (Some(Mark::Attribute), _) => {
                            let name = written(run).trim_matches([' ', '=']);
                            attributes.push((name.to_owned(), String::new()));
                        }
                        (_, Some((_, value))) => value.push_str(written(run)),
                        (_, None) => {}
                    }
                }
                if self.says_something() {
                    self.end();
                }
                self.pending.clear();
                self.role = role.clone();
                let attributes = attributes.into_iter().map(|(name, value)| (name, Json::from(value)));
                self.annotations.extend(attributes);
            }
            Mark::Section => {
                let name: String = runs[1..].iter().map(written).collect();
                self.flush();
                self.sections.push(json!({"purpose": name, "part": self.parts.len()}));
            }
            Mark::Media => {
                let (mut source, mut kind) = (String::new(), String::new());
                let mut is_kind = false;
                for run in &runs[1..] {
                    match run.mark {
                        Some(Mark::MediaType) => is_kind = true,
                        _ if is_kind => kind.push_str(written(run)),
                        _ => source.push_str(written(run)),
                    }
                }
                self.flush();
                let media_type = Some(kind).filter(|kind| !kind.is_empty());
                let media = Media { source, media_type, ..Media::default() };
                let kind = match Part::of_media(media.clone()) {
                    Part::Audio(_) => Rich::Audio,
                    Part::File(_) => Rich::File,
                    _ => Rich::Image,
                };
                self.parts.push(thread::media("media", kind, &media.to_json())?);
            }
            Mark::Attribute | Mark::MediaType | Mark::End => {}
        }
        Ok(())
    }

    fn says_something(&self) -> bool {
        !self.parts.is_empty()
            || !self.sections.is_empty()
            || self.pending.iter().any(|range| !self.text[range.clone()].trim().is_empty())
    }

    /// Makes a part of the text so far, unless it is nothing but white space.
    fn flush(&mut self) {
        let ranges = std::mem::take(&mut self.pending);
        let value: String = ranges.iter().map(|range| &self.text[range.clone()]).collect();
        if value.trim().is_empty() {
            return;
        }
        let mut joined: Vec<Range<usize>> = Vec::new();
        for range in ranges.into_iter().filter(|range| !range.is_empty()) {
            match joined.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => joined.push(range),
            }
        }
        self.parts.push(Part::Text { value, ranges: joined });
    }

    /// Ends the message, if there is one.
    fn end(&mut self) {
        self.flush();
        let mut annotations = std::mem::take(&mut self.annotations);
        let sections = std::mem::take(&mut self.sections);
        if self.parts.is_empty() && sections.is_empty() {
            return;
        }
        if !sections.is_empty() {
            annotations.insert("sections".into(), sections.into());
        }
        let mut metadata = Map::new();
        if !annotations.is_empty() {
            metadata.insert(ANNOTATIONS.into(), annotations.into());
        }
        let parts = std::mem::take(&mut self.parts);
        self.messages.push(Message { role: self.role.clone(), parts, metadata });
    }
}

impl Part {
    /// A picture, a sound or a document, by its media type, or else by the end of its address; a picture if neither says.
    pub fn of_media(media: Media) -> Part {
        let of_address = || match media.source.strip_prefix("data:") {
            Some(data) => data.split([';', ',']).next().map(str::to_owned),
            None => guess(media.source.split(['?', '#']).next().unwrap_or_default()).map(str::to_owned),
        };
        let kind = media.media_type.clone().or_else(of_address).unwrap_or_default();
        match kind.split('/').next().unwrap_or_default() {
            "" | "image" => Part::Image(media),
            "audio" => Part::Audio(media),
            _ => Part::File(media),
        }
    }
}
