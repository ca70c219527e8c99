//! Hears one reply: events as they come, or a body as a whole.

use cuebook::chat::reply::{self, Answer, Chunk, Reply, Sse, Stream};
use cuebook::chat::wire::Api;
use serde_json::Value as Json;

use super::Listener;
use super::carry::{Broken, Head, Hear, What};
use super::failure::{Failure, from_broken, from_reply, from_status};
use super::file::ProviderFile;

/// Hears one reply.
pub(super) struct Ear<'l> {
    api: Api,
    outputs: bool,
    listener: &'l dyn Listener,
    head: Head,
    sse: Sse,
    /// Set for a reply that comes in events.
    stream: Option<Stream>,
    /// A reply that comes as a whole, and what is said about a failure.
    whole: Vec<u8>,
    /// Whether the listener heard something of an answer.
    said: bool,
    /// An event that cannot be read.
    wrong: Option<String>,
}

impl Hear for Ear<'_> {
    fn head(&mut self, head: &Head) {
        self.head = head.clone();
        let kind = head.header("content-type").unwrap_or_default().to_ascii_lowercase();
        if (200..300).contains(&head.status) && kind.starts_with("text/event-stream") {
            self.stream = Some(Stream::new(self.api).with_outputs(self.outputs));
        }
    }

    fn bytes(&mut self, bytes: &[u8]) -> bool {
        let Some(stream) = &mut self.stream else {
            self.whole.extend_from_slice(bytes);
            return false;
        };
        for event in self.sse.feed(bytes) {
            match event {
                Ok(event) => {
                    for chunk in stream.feed_sse(&event) {
                        self.said |= matches!(chunk, Chunk::Text(_) | Chunk::Thinking(_) | Chunk::Tool(_));
                        // What became of it is told by the answer, or by the error.
                        if !matches!(chunk, Chunk::Failure { .. }) {
                            self.listener.chunk(&chunk);
                        }
                    }
                }
                Err(error) => {
                    self.wrong.get_or_insert_with(|| error.diagnostic().message.clone());
                }
            }
        }
        stream.has_ended() || self.wrong.is_some()
    }
}

impl<'l> Ear<'l> {
    /// Listens to a reply of this interface.
    pub fn new(api: Api, outputs: bool, listener: &'l dyn Listener) -> Ear<'l> {
        Ear {
            api,
            outputs,
            listener,
            head: Head::default(),
            sse: Sse::new(),
            stream: None,
            whole: Vec::new(),
            said: false,
            wrong: None,
        }
    }

    /// What came of it, now that the reply is over.
    pub fn finish(
        mut self,
        carried: Result<(), Broken>,
        file: &ProviderFile,
    ) -> Result<Answer, Box<Failure>> {
        if let Some(stream) = self.stream.take() {
            return self.finish_stream(stream, carried, file);
        }
        if let Err(broken) = carried {
            return Err(from_broken(&broken, file));
        }
        if !(200..300).contains(&self.head.status) {
            return Err(from_status(&self.head, &self.whole, file));
        }
        let response: Json = serde_json::from_slice(&self.whole).map_err(|error| {
            let message = format!("what came is no JSON: {error}");
            from_broken(&Broken { what: What::Nonsense, message }, file)
        })?;
        let answer = reply::read(self.api, &response, self.outputs)
            .map_err(|error| from_reply(&error, &self.head, file))?;
        for chunk in pieces(&answer) {
            self.listener.chunk(&chunk);
        }
        Ok(answer)
    }

    fn finish_stream(
        self,
        mut stream: Stream,
        carried: Result<(), Broken>,
        file: &ProviderFile,
    ) -> Result<Answer, Box<Failure>> {
        let ended = stream.has_ended() && self.wrong.is_none();
        let broken = match (carried, &self.wrong) {
            (Err(broken), _) if !ended => Some(broken),
            (_, Some(wrong)) => Some(Broken { what: What::Nonsense, message: wrong.clone() }),
            _ => None,
        };
        if let Some(broken) = &broken {
            stream.transport_error(&broken.message);
        }
        let reported = stream.error().cloned();
        let outcome = stream.finish();
        for chunk in outcome.chunks.iter().filter(|chunk| !matches!(chunk, Chunk::Failure { .. })) {
            self.listener.chunk(chunk);
        }
        if let Some(answer) = outcome.answer.or(outcome.refused) {
            return Ok(answer);
        }
        let mut failure = match (broken, reported) {
            (Some(broken), _) => from_broken(&broken, file),
            (None, Some(error)) => from_reply(&error, &self.head, file),
            (None, None) => {
                let why = outcome.chunks.iter().find_map(|chunk| match chunk {
                    Chunk::Failure { message, .. } => Some(message.clone()),
                    _ => None,
                });
                let message = why.unwrap_or_else(|| "an event of the stream cannot be understood".to_owned());
                from_broken(&Broken { what: What::Cut, message }, file)
            }
        };
        failure.said = self.said;
        failure.partial_text = outcome.partial_text;
        failure.indeterminate |= outcome.requires_reconciliation;
        Err(failure)
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
