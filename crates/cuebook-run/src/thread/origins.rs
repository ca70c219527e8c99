//! Where the messages of a thread came from.
//!
//! The log keeps the spans of a prompt's messages beside them: the distinct origins once, and for each text of each message the
//! offset where a span ends and the number of its origin. All other messages come from events: answers of the model, results of
//! tools, reminders.

use std::collections::HashMap;
use std::ops::Range;

use cuebook::chat::{Message, Part, Role};
use cuebook::render::{Rendered, Span};
use serde_json::{Value as Json, json};

use super::Rebuilt;

/// The version of what the log keeps.
const VERSION: u64 = 1;

/// Where a message of a conversation came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageSource {
    /// It is this message of the prompt.
    Prompt(usize),
    /// An earlier thread of the same conversation had it.
    Earlier,
    /// The model wrote it, and this event keeps it.
    Model(u64),
    /// A tool's result.
    Tool,
    /// Cuebook reminded the model with this event.
    Reminder(u64),
    /// This event added it.
    Event(u64),
}

/// A message, with the origin of each piece of its text.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExplainedMessage {
    /// Its role.
    pub role: Role,
    /// Its text, in pieces of one origin each.
    pub pieces: Vec<ExplainedPiece>,
}

/// A piece of a message with one origin.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExplainedPiece {
    /// The text.
    pub text: String,
    /// The origin, as `render --json` writes it, or one of a thread's own: `message`, `model`, `tool`, `reminder`, `event`,
    /// `earlier`, `unknown`.
    pub origin: Json,
}

impl ExplainedMessage {
    /// The message as scripts see it.
    pub fn to_json(&self) -> Json {
        let piece = |piece: &ExplainedPiece| json!({"text": piece.text, "origin": piece.origin});
        json!({"role": self.role.as_str(), "pieces": self.pieces.iter().map(piece).collect::<Vec<_>>()})
    }
}

/// The origins of a prompt's messages, as the log keeps them.
pub(super) fn of(rendered: &Rendered, messages: &[Message]) -> Json {
    let spans: Vec<Span> = rendered.spans().collect();
    let mut table = Table::default();
    let has_question = rendered.scope().context().message.is_some();
    let last = messages.len().saturating_sub(1);
    let messages: Vec<Json> = messages
        .iter()
        .enumerate()
        .map(|(index, message)| {
            let texts = message.parts.iter().filter_map(|part| match part {
                Part::Text { value, ranges } => Some((value, ranges)),
                _ => None,
            });
            texts
                .map(|(value, ranges)| match ranges.as_slice() {
                    [] if has_question && index == last => {
                        json!([value.len(), table.number(json!({"kind": "message"}))])
                    }
                    [] => json!([value.len(), table.number(json!({"kind": "rich"}))]),
                    ranges => table.pieces(&spans, ranges),
                })
                .collect()
        })
        .collect();
    json!({"version": VERSION, "origins": table.origins, "messages": messages})
}

/// Pieces of one text, each with its origin, in the form of the log.
pub(super) fn of_pieces(pieces: Vec<(usize, Json)>) -> Json {
    let (mut table, mut flat, mut end) = (Table::default(), Vec::new(), 0);
    for (length, origin) in pieces {
        end += length;
        let number = table.number(origin);
        flat.extend([end, number]);
    }
    json!({"version": VERSION, "origins": table.origins, "messages": [[flat]]})
}

/// The distinct origins.
#[derive(Default)]
struct Table {
    origins: Vec<Json>,
    numbers: HashMap<String, usize>,
}

impl Table {
    fn number(&mut self, origin: Json) -> usize {
        let next = self.origins.len();
        let number = *self.numbers.entry(origin.to_string()).or_insert(next);
        if number == next {
            self.origins.push(origin);
        }
        number
    }

    /// The ends of the spans of a text that consists of these ranges, counted from its start, each with the number of its origin.
    fn pieces(&mut self, spans: &[Span], ranges: &[Range<usize>]) -> Json {
        let (mut flat, mut before) = (Vec::new(), 0);
        for range in ranges {
            self.piece(spans, range, before, &mut flat);
            before += range.len();
        }
        json!(flat)
    }

    fn piece(&mut self, spans: &[Span], range: &Range<usize>, before: usize, flat: &mut Vec<usize>) {
        let first = spans.partition_point(|span| span.range.end <= range.start);
        for span in spans[first..].iter().take_while(|span| span.range.start < range.end) {
            let mut origin = span.origin.to_json();
            if let Some(section) = &span.section {
                origin["section"] = json!(&**section);
            }
            // A literal that begins before the message has other lines before its own.
            if let (Some(place), true) =
                (span.origin.place(), span.range.start < range.start && span.origin.is_literal())
            {
                let start = place.range().start + (range.start - span.range.start);
                let (line, column) = place.source().line_column(start);
                origin["line"] = line.into();
                origin["column"] = column.into();
                origin["start"] = place.source().file_range(start..start).start.into();
            }
            let number = self.number(origin);
            flat.extend([before + span.range.end.min(range.end) - range.start, number]);
        }
    }
}

/// The messages of a thread, with the origin of each piece.
pub fn explain(thread: &Rebuilt) -> Vec<ExplainedMessage> {
    let sources = thread.sources.iter().copied().chain(std::iter::repeat(MessageSource::Earlier));
    let conversation = thread.start.conversation.iter();
    conversation.zip(sources).map(|(message, source)| one(thread, message, source)).collect()
}

/// Whether the log keeps the spans of its prompt. Logs of earlier versions do not.
pub fn has_origins(thread: &Rebuilt) -> bool {
    thread.origins["version"] == VERSION
}

fn one(thread: &Rebuilt, message: &Message, source: MessageSource) -> ExplainedMessage {
    let whole = |origin: Json| {
        let pieces = message.texts().filter(|text| !text.is_empty());
        pieces.map(|text| ExplainedPiece { text: text.to_owned(), origin: origin.clone() }).collect()
    };
    let said = |name: &str| message.metadata.get(name).cloned().unwrap_or_default();
    let pieces = match source {
        MessageSource::Prompt(index) => {
            let stored = &thread.origins["messages"][index];
            let texts = message.texts().enumerate();
            texts.flat_map(|(part, text)| stored_pieces(&thread.origins, &stored[part], text)).collect()
        }
        MessageSource::Earlier => {
            let launch = &thread.launch;
            let forked = launch.forked_from.as_ref().map(|point| &point.thread);
            let before = launch.continuation_of.as_ref().or(forked).map(|id| id.as_str());
            whole(json!({"kind": "earlier", "thread_id": before}))
        }
        MessageSource::Model(event) => {
            whole(json!({"kind": "model", "model": thread.launch.model.id, "event": event}))
        }
        MessageSource::Tool => {
            let call = message.metadata.get("tool_call_id").and_then(Json::as_str).unwrap_or_default();
            if let Some(origins) = thread.tool_sources.get(call) {
                let texts = message.texts().enumerate();
                let stored = &origins["messages"][0];
                return ExplainedMessage {
                    role: message.role.clone(),
                    pieces: texts
                        .flat_map(|(part, text)| stored_pieces(origins, &stored[part], text))
                        .collect(),
                };
            }
            whole(json!({"kind": "tool", "name": said("name"), "call_id": said("tool_call_id")}))
        }
        MessageSource::Reminder(event) => whole(json!({"kind": "reminder", "event": event})),
        MessageSource::Event(event) => whole(json!({"kind": "event", "event": event})),
    };
    ExplainedMessage { role: message.role.clone(), pieces }
}

/// The pieces of a text. A text that no longer has the length of its spans was changed after the render: a secret was removed.
fn stored_pieces(origins: &Json, stored: &Json, text: &str) -> Vec<ExplainedPiece> {
    let unknown = |why: &str| {
        vec![ExplainedPiece { text: text.to_owned(), origin: json!({"kind": "unknown", "why": why}) }]
    };
    let Some(flat) = stored.as_array() else { return unknown("the log keeps no spans") };
    let mut start = 0;
    let mut pieces = Vec::new();
    for pair in flat.chunks(2) {
        let [end, origin] = pair else { return unknown("the log keeps no spans") };
        let number = |json: &Json| json.as_u64().and_then(|number| usize::try_from(number).ok());
        let (Some(end), Some(number)) = (number(end), number(origin)) else {
            return unknown("the log keeps no spans");
        };
        let Some(piece) = text.get(start..end) else { return unknown("a secret was removed from this text") };
        if !piece.is_empty() {
            pieces
                .push(ExplainedPiece { text: piece.to_owned(), origin: origins["origins"][number].clone() });
        }
        start = end;
    }
    match start == text.len() {
        true => pieces,
        false => unknown("a secret was removed from this text"),
    }
}

/// An origin in a few words. `lines` is the number of lines of its text before the one that is shown.
pub fn label(origin: &Json, lines: u64) -> String {
    let text = |name: &str| origin[name].as_str().unwrap_or_default();
    let place = |lines: u64| format!("{}:{}", text("file"), origin["line"].as_u64().unwrap_or(1) + lines);
    match text("kind") {
        "literal" => place(lines),
        "value" => {
            let variable = |variable: &Json| {
                let (path, layer) =
                    (variable["path"].as_str().unwrap_or_default(), variable["layer"].as_str());
                format!("{path} ({})", layer.unwrap_or("no value"))
            };
            let shown: Vec<String> =
                origin["variables"].as_array().into_iter().flatten().map(variable).collect();
            match shown.is_empty() {
                true => format!("computed at {}", place(0)),
                false => format!("variable {} at {}", shown.join(", "), place(0)),
            }
        }
        "rich" if origin["input"].is_null() => "a conversation among the inputs".to_owned(),
        "rich" => format!("input {} ({})", text("input"), text("input_kind")),
        "hook" => format!("hook {} of {}", text("function"), text("prompt")),
        "frame" => format!("Cuebook ({})", text("name")),
        "message" => "message of the caller".to_owned(),
        "model" => format!("model {} (event {})", text("model"), origin["event"]),
        "tool" => format!("result of the tool {} ({})", text("name"), text("call_id")),
        "reminder" => format!("reminder by Cuebook (event {})", origin["event"]),
        "event" => format!("added by event {}", origin["event"]),
        "earlier" => match origin["thread_id"].as_str() {
            Some(thread) => format!("thread {thread}"),
            None => "an earlier thread".to_owned(),
        },
        _ => format!("unknown: {}", origin["why"].as_str().unwrap_or("the log keeps no spans")),
    }
}

#[cfg(test)]
mod tests {
    use cuebook::chat::Role;
    use jiff::Timestamp;

    use super::super::{Entry, Event, Kind, ThreadId, first_hash, rebuild};
    use super::*;
    use crate::policy::limits::ThreadLimits;

    #[test]
    fn a_log_without_spans_is_explained_as_unknown() {
        let message = Message::text(Role::User, "Hello.").to_json();
        let launch = json!({
            "kind": "prompt", "directive": "demo", "project": "/p", "provider": "mock", "model": {"id": "m"},
            "context_window": 1000, "limits": ThreadLimits::defaults().to_json(), "capabilities": [], "messages": [message],
        });
        let id = ThreadId::known("demo/demo-1");
        let entry = Entry::new(Kind::Started, launch);
        let event = Event::chain(None, &id, &first_hash(), 1, Timestamp::UNIX_EPOCH, &entry);
        let thread = rebuild(&id, &[event]).unwrap();
        assert!(!has_origins(&thread));
        let explained = explain(&thread);
        assert_eq!(explained[0].pieces[0].text, "Hello.");
        assert_eq!(label(&explained[0].pieces[0].origin, 0), "unknown: the log keeps no spans");
    }

    #[test]
    fn a_text_that_lost_a_secret_has_no_spans() {
        let origins = json!({"version": 1, "origins": [{"kind": "message"}]});
        let pieces = |text: &str| stored_pieces(&origins, &json!([5, 0]), text);
        assert_eq!(pieces("12345")[0].origin["kind"], "message");
        for changed in ["1234", "123456", "1234é"] {
            assert_eq!(pieces(changed)[0].origin["kind"], "unknown", "{changed}");
        }
    }
}
