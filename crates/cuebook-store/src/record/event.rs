//! Events: the steps of a thread, each hashed together with the one before it.
//!
//! A hash covers the hash before it, the thread, the number, the moment, the kind and the payload as it is stored, and is keyed
//! with the user's [log key](LogKey). A program that changes, removes, adds or moves an event breaks every hash
//! from there on, and cannot compute them again; [`verify`] says where. Logs of earlier versions have hashes without a key.

use std::fmt;

use cuebook_text::sha256::hex;
use cuebook_text::{Code, Diagnostic, Error, ErrorKind, Result};
use jiff::Timestamp;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::{LogKey, ThreadId};

macro_rules! kinds {
    ($($variant:ident $word:literal $about:literal)*) => {
        /// What kind of step an event is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Kind {
            $(#[doc = $about] $variant,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Kind] = &[$(Kind::$variant,)*];

            /// The word for it.
            pub fn as_str(self) -> &'static str {
                match self { $(Kind::$variant => $word,)* }
            }
        }
    };
}

kinds! {
    Started "thread_started" "The thread starts, with everything it was started with."
    Resumed "thread_resumed" "The thread was resumed."
    ContextInjected "context_injected" "Knowledge added around the prompt."
    CognitionIn "cognition_in" "New messages for the model."
    TokenDelta "token_delta" "The model's text so far in this turn."
    CognitionOut "cognition_out" "The model's answer."
    CognitionReasoning "cognition_reasoning" "The model's reasoning, if the provider shows it."
    CognitionPartial "cognition_partial" "A partial answer that broke off. It is not part of the conversation."
    Retry "provider_retry" "A request failed. Cuebook retries it unless a limit is reached."
    ToolStart "tool_call_start" "A tool is about to run."
    ToolResult "tool_call_result" "A tool's result."
    Artifact "artifact" "The full text of a result that the model got shortened."
    ToolUnknown "tool_call_unknown" "A tool may have run, and its result is unknown. Cuebook does not repeat it."
    Denied "permission_denied" "A call without permission. Nothing ran."
    Nudge "nudge" "A reminder to the model to act, or to return the outputs."
    Disclosed "sections_disclosed" "The model opened sections, and Cuebook rendered the prompt again."
    HookStart "hook_start" "A hook's action is about to run."
    Hook "hook" "A hook ran."
    HookUnknown "hook_unknown" "A hook's action may have run, and its result is unknown."
    Limit "limit_reached" "A limit was reached."
    ContextFull "context_limit_reached" "The conversation no longer fits the model's window."
    Return "directive_return" "The outputs of the directive."
    Completed "thread_completed" "The thread completed."
    Failed "thread_error" "The thread failed."
    Cancelled "thread_cancelled" "The thread was stopped."
    Suspended "thread_suspended" "The thread waits for a decision."
    Handoff "thread_handoff" "Another thread continues the conversation."
    Continued "thread_continued" "The thread ended, and another thread continued it."
    Interrupted "thread_interrupted" "The thread's process died or was asked to stop."
}

impl Kind {
    /// The kind with this word.
    pub fn named(word: &str) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.as_str() == word)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An event that is yet to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What kind of step it is.
    pub kind: Kind,
    /// What there is to say about it.
    pub payload: Json,
}

impl Entry {
    /// An event of a kind, with what there is to say about it.
    pub fn new(kind: Kind, payload: Json) -> Entry {
        Entry { kind, payload }
    }
}

/// An event of a log.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// Its number in the log, from one.
    pub seq: u64,
    /// When it was written.
    pub at: Timestamp,
    /// What kind of step it is.
    pub kind: Kind,
    /// What there is to say about it.
    pub payload: Json,
    /// The payload as it is stored. The hash is made of it, because reading and writing a number again can change it.
    pub text: String,
    /// Its hash, in hexadecimal digits.
    pub hash: String,
}

impl Event {
    /// The event that an entry becomes behind another one.
    pub fn chain(
        key: Option<&LogKey>,
        thread: &ThreadId,
        previous: &str,
        seq: u64,
        at: Timestamp,
        entry: &Entry,
    ) -> Event {
        // Much faster than `to_string`, and the same.
        let text = serde_json::to_string(&entry.payload).unwrap_or_else(|_| entry.payload.to_string());
        let event =
            Event { seq, at, kind: entry.kind, payload: entry.payload.clone(), text, hash: String::new() };
        Event { hash: event.hashed(key, thread, previous), ..event }
    }

    /// The hash that the event has behind another one.
    #[doc(hidden)]
    pub fn hashed(&self, key: Option<&LogKey>, thread: &ThreadId, previous: &str) -> String {
        // Microseconds are what every store keeps. Nothing before the payload holds a line break.
        let (seq, at, kind) = (self.seq, self.at.as_microsecond(), self.kind.as_str());
        let head = format!("{previous}\n{thread}\n{seq}\n{at}\n{kind}\n");
        let parts = [head.as_bytes(), self.text.as_bytes()];
        match key {
            Some(key) => key.mac("cuebook event 1", parts),
            None => hex(&Sha256::digest(parts.concat())),
        }
    }

    /// The event as scripts see it, in one line.
    pub fn to_json(&self, thread: &ThreadId) -> Json {
        json!({
            "seq": self.seq,
            "timestamp": self.at.to_string(),
            "thread_id": thread.as_str(),
            "event_type": self.kind.as_str(),
            "payload": self.payload,
            "hash": self.hash,
        })
    }
}

/// What the first event of a log is hashed with.
pub fn first_hash() -> String {
    "0".repeat(64)
}

/// Checks that a log is whole: every number, every hash, from the first event to the last one that the registry knows of. A log
/// of an earlier version is checked without a key.
///
/// # Errors
///
/// [`Code::BrokenLog`] with the number of the first event that does not fit.
pub fn verify(
    key: Option<&LogKey>,
    thread: &ThreadId,
    events: &[Event],
    last: Option<(u64, &str)>,
) -> Result<()> {
    let broken = |seq: u64, what: &str| {
        let message = format!("the log of `{thread}` is broken at event {seq}: {what}");
        let hint = "another program changed the log; do not rely on anything after this event";
        let diagnostic = Diagnostic::new(Code::BrokenLog, message).hint(hint);
        Err(Error::new(ErrorKind::Integrity, diagnostic).with("thread_id", thread.as_str()).with("seq", seq))
    };
    let mut previous = first_hash();
    for (event, seq) in events.iter().zip(1..) {
        if event.seq != seq {
            return broken(seq, &format!("event {} is there", event.seq));
        }
        if event.hashed(key, thread, &previous) != event.hash {
            return broken(seq, "its hash does not match");
        }
        previous.clone_from(&event.hash);
    }
    match last {
        Some((seq, hash)) if seq != events.len() as u64 || hash != previous => {
            broken(events.len() as u64 + 1, "events are missing at the end")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> LogKey {
        LogKey::from_bytes([1; 32])
    }

    fn log(thread: &ThreadId, key: Option<&LogKey>) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        for number in 0..4 {
            let previous = events.last().map_or_else(first_hash, |event| event.hash.clone());
            let entry = Entry::new(Kind::Nudge, json!({"number": number, "text": "line\nbreak"}));
            let at = Timestamp::from_microsecond(1_000_000 + number).unwrap();
            events.push(Event::chain(key, thread, &previous, events.len() as u64 + 1, at, &entry));
        }
        events
    }

    #[test]
    fn every_change_of_a_log_is_detected() {
        let (thread, key) = (ThreadId::known("a/b/b-1"), key());
        let whole = log(&thread, Some(&key));
        let last = whole[3].hash.clone();
        let verify = |thread: &ThreadId, events: &[Event], last| verify(Some(&key), thread, events, last);
        verify(&thread, &whole, Some((4, &last))).unwrap();
        let broken = |change: &dyn Fn(&mut Vec<Event>), at: u64| {
            let mut events = whole.clone();
            change(&mut events);
            let error = verify(&thread, &events, Some((4, &last))).unwrap_err();
            assert_eq!((error.code(), error.field("seq")), (Code::BrokenLog, Some(&json!(at))));
        };
        broken(&|events| events[1].text = "{}".into(), 2);
        broken(&|events| events[1].kind = Kind::Hook, 2);
        broken(&|events| events[2].at = Timestamp::from_microsecond(5).unwrap(), 3);
        broken(&|events| drop(events.remove(0)), 1);
        broken(&|events| events.swap(1, 2), 2);
        broken(&|events| drop(events.pop()), 4);
        assert!(verify(&ThreadId::known("a/b/b-2"), &whole, None).is_err(), "of another thread");
    }

    #[test]
    fn a_log_that_was_hashed_again_without_the_key_is_detected() {
        let thread = ThreadId::known("a/b/b-1");
        for other in [None, Some(&LogKey::from_bytes([2; 32]))] {
            let forged = log(&thread, other);
            verify(other, &thread, &forged, None).unwrap();
            let error = verify(Some(&key()), &thread, &forged, None).unwrap_err();
            assert_eq!((error.code(), error.field("seq")), (Code::BrokenLog, Some(&json!(1))));
        }
    }
}
