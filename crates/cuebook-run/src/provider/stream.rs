//! Hears one reply: events as they come, or a body as a whole.

use cuebook::chat::reply::{self, Answer, Chunk, OutcomeKind, Reply, Sse, Stream};
use cuebook::chat::wire::Api;
use cuebook::redact::Secrets;
use serde_json::Value as Json;

use super::failure::{Failure, from_broken, from_reply, from_silence, from_status};
use super::file::ProviderFile;
use super::transport::{ReplyFailure, ReplyFailureKind, ReplyHead, ReplyListener};
use super::{Charge, Ending, Listener, ending};

/// The most bytes of an answer: many times what the longest answers of models have.
pub(super) const MAX_ANSWER: usize = 16 << 20;
/// The most calls of an answer. A thread makes far fewer of them at once: its limit `calls`.
const MAX_CALLS: usize = 1024;

/// Hears one reply.
pub(super) struct StreamReader<'l> {
    api: Api,
    outputs: bool,
    listener: &'l dyn Listener,
    /// What must stay private.
    secrets: &'l Secrets,
    head: ReplyHead,
    sse: Sse,
    /// Set for a reply that comes in events.
    stream: Option<Stream>,
    /// A reply that comes as a whole, and what is said about a failure.
    whole: Vec<u8>,
    /// Whether the listener heard something of an answer.
    said: bool,
    /// An event that cannot be read, or an answer that is too large.
    wrong: Option<(ReplyFailureKind, String)>,
}

impl ReplyListener for StreamReader<'_> {
    fn head(&mut self, head: &ReplyHead) {
        self.head = head.clone();
        let kind = head.header("content-type").unwrap_or_default().to_ascii_lowercase();
        if (200..300).contains(&head.status) && kind.starts_with("text/event-stream") {
            self.stream = Some(Stream::new(self.api).with_outputs(self.outputs));
        }
    }

    fn bytes(&mut self, bytes: &[u8]) -> bool {
        let Some(stream) = &mut self.stream else {
            if self.whole.len() + bytes.len() > MAX_ANSWER {
                self.wrong.get_or_insert_with(too_much);
                return true;
            }
            self.whole.extend_from_slice(bytes);
            return false;
        };
        for event in self.sse.feed(bytes) {
            match event {
                Ok(event) => {
                    for chunk in stream.feed_sse(&event) {
                        if let Chunk::Failure { outcome: OutcomeKind::Indeterminate, message } = &chunk {
                            let data = self.secrets.scrub_text(&event.data);
                            let why =
                                || (ReplyFailureKind::Nonsense, format!("{message}: {}", excerpt(&data)));
                            self.wrong.get_or_insert_with(why);
                        }
                        self.said |= matches!(chunk, Chunk::Text(_) | Chunk::Thinking(_) | Chunk::Tool(_));
                        // The answer or the error reports the outcome.
                        if !matches!(chunk, Chunk::Failure { .. }) {
                            self.listener.chunk(&chunk);
                        }
                    }
                }
                Err(error) => {
                    // The only failure of this reader: an event is too long.
                    let why = || (ReplyFailureKind::TooMuch, error.diagnostic().message.clone());
                    self.wrong.get_or_insert_with(why);
                }
            }
            if stream.weight() > MAX_ANSWER {
                self.wrong.get_or_insert_with(too_much);
            } else if stream.calls() > MAX_CALLS {
                self.wrong.get_or_insert_with(too_many_calls);
            }
            if self.wrong.is_some() {
                return true;
            }
        }
        stream.has_ended() || self.wrong.is_some()
    }
}

impl<'l> StreamReader<'l> {
    /// Listens to a reply of this interface.
    pub fn new(
        api: Api,
        outputs: bool,
        listener: &'l dyn Listener,
        secrets: &'l Secrets,
    ) -> StreamReader<'l> {
        StreamReader {
            api,
            outputs,
            listener,
            secrets,
            head: ReplyHead::default(),
            sse: Sse::with_limit(MAX_ANSWER),
            stream: None,
            whole: Vec::new(),
            said: false,
            wrong: None,
        }
    }

    /// The headers of the reply; none if it did not begin.
    pub fn headers(&self) -> &[(String, String)] {
        &self.head.headers
    }

    /// What came of it, now that the reply is over.
    pub fn finish(
        mut self,
        carried: Result<(), ReplyFailure>,
        file: &ProviderFile,
    ) -> Result<Answer, Box<Failure>> {
        if let Some(stream) = self.stream.take() {
            return self.finish_stream(stream, carried, file);
        }
        let refused = self.head.status != 0 && !(200..300).contains(&self.head.status);
        match carried {
            // What it says about it may not have come to its end, but it has refused.
            Err(broken) if refused && broken.what != ReplyFailureKind::Stopped => {}
            Err(broken) => {
                return Err(from_broken(&ReplyFailure { sent: broken.sent && !refused, ..broken }, file));
            }
            Ok(()) => {}
        }
        if refused {
            return Err(from_status(&self.head, &self.whole, file));
        }
        if let Some((what, why)) = self.wrong {
            return Err(from_broken(&ReplyFailure::new(what, why), file));
        }
        let response: Json = serde_json::from_slice(&self.whole).map_err(|error| {
            let message = format!("the answer is not JSON: {error}");
            from_broken(&ReplyFailure::new(ReplyFailureKind::Nonsense, message), file)
        })?;
        let answer = reply::read(self.api, &response, self.outputs)
            .map_err(|error| from_reply(&error, &self.head, file))?;
        if matches!(&answer.reply, Reply::ToolCalls { calls, .. } if calls.len() > MAX_CALLS) {
            let (what, why) = too_many_calls();
            return Err(from_broken(&ReplyFailure::new(what, why), file));
        }
        if self.is_nothing(&answer) {
            return Err(from_silence(&answer, file));
        }
        for chunk in pieces(&answer) {
            self.listener.chunk(&chunk);
        }
        Ok(answer)
    }

    /// Whether an answer says nothing, and the caller has no use for that. One that was cut off or is paused says why.
    fn is_nothing(&self, answer: &Answer) -> bool {
        let is_empty = matches!(&answer.reply, Reply::Text(text) if text.trim().is_empty());
        let explains = matches!(ending(answer.finish.as_deref()), Ending::Cut | Ending::Full);
        is_empty
            && !explains
            && answer.provider_state.paused.is_empty()
            && !self.listener.accepts_empty_answer()
    }

    fn finish_stream(
        self,
        mut stream: Stream,
        carried: Result<(), ReplyFailure>,
        file: &ProviderFile,
    ) -> Result<Answer, Box<Failure>> {
        let ended = stream.has_ended() && self.wrong.is_none();
        let done = stream.is_done();
        let broken = match (carried, &self.wrong) {
            (Err(broken), _) if !ended => Some(broken),
            (_, Some((what, why))) => Some(ReplyFailure::new(*what, why.clone())),
            _ => None,
        };
        if let Some(broken) = &broken {
            stream.transport_error(&broken.message);
        }
        let reported = stream.error().cloned();
        let (written, usage) = (stream.written(), stream.counted());
        let outcome = stream.finish();
        for chunk in outcome.chunks.iter().filter(|chunk| !matches!(chunk, Chunk::Failure { .. })) {
            self.listener.chunk(chunk);
        }
        if let Some(answer) = outcome.answer.or(outcome.refused) {
            return if self.is_nothing(&answer) { Err(from_silence(&answer, file)) } else { Ok(answer) };
        }
        let mut failure = match (broken, reported) {
            (Some(broken), _) => {
                let mut failure = from_broken(&broken, file);
                if broken.what == ReplyFailureKind::Nonsense && self.wrong.is_some() {
                    failure.advise(format!(
                        "check `base_url` and `api` in {}; if the server or a proxy cannot stream, write `stream: false` there",
                        file.file
                    ));
                }
                failure
            }
            (None, Some(error)) => from_reply(&error, &self.head, file),
            (None, None) => {
                let why = outcome.chunks.iter().find_map(|chunk| match chunk {
                    Chunk::Failure { message, .. } => Some(message.clone()),
                    _ => None,
                });
                let message = why.unwrap_or_else(|| "invalid event in the stream".to_owned());
                // A stream that came to its end was carried whole, whatever it said.
                from_broken(
                    &ReplyFailure::new(
                        if ended { ReplyFailureKind::Nonsense } else { ReplyFailureKind::Cut },
                        message,
                    ),
                    file,
                )
            }
        };
        // A provider that failed before it said anything has refused; one whose answer broke off charges for what came.
        let charged = failure.charge != Charge::Nothing || !written.is_empty();
        if charged {
            // A provider that came to its end has said what it charges for, and nothing has to be guessed.
            let reported = usage.is_some_and(|usage| usage.input.is_some() && usage.output.is_some());
            let written = if done && reported { String::new() } else { written };
            failure.charge = Charge::Broken { written, usage };
        }
        failure.said = self.said;
        failure.partial_text = outcome.partial_text;
        failure.indeterminate |= outcome.requires_reconciliation;
        Err(failure)
    }
}

fn too_much() -> (ReplyFailureKind, String) {
    (ReplyFailureKind::TooMuch, format!("the answer has more than {} MiB", MAX_ANSWER >> 20))
}

fn too_many_calls() -> (ReplyFailureKind, String) {
    (ReplyFailureKind::TooMuch, format!("the answer makes more than {MAX_CALLS} calls"))
}

/// Characters of an event that cannot be understood, in an error.
const EXCERPT: usize = 120;

/// The beginning of what a server sent.
fn excerpt(data: &str) -> String {
    let line = data.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// A whole answer in the pieces in which a stream would have brought it.
fn pieces(answer: &Answer) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = answer.thinking.iter().cloned().map(Chunk::Thinking).collect();
    match &answer.reply {
        Reply::Text(text) => chunks.push(Chunk::Text(text.clone())),
        Reply::Structured { raw, .. } => chunks.push(Chunk::Text(raw.clone())),
        Reply::ToolCalls { calls, text } => {
            chunks.extend(text.iter().cloned().map(Chunk::Text));
            chunks.extend(calls.iter().cloned().map(Chunk::Tool));
        }
        _ => {}
    }
    chunks.extend(answer.usage.map(Chunk::Usage));
    chunks
}
