//! A reply that comes in pieces.
//!
//! Text is passed on as it comes; calls are whole only at the end, so they come then, in the order of their numbers. A
//! stream ends in one of three ways: the provider said that it was done, and the answer counts; it said that it failed
//! or refused, and it is certain that there is no answer; or it stopped in the middle, and it is unknown what the model
//! did. Nothing counts then, and the caller has to find out before asking again.

mod anthropic;
mod gemini;
mod openai;
mod responses;

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::anthropic::is_pause;
use super::reply_value::{ReplyValue, bad};
use super::{
    Answer, Api, ProviderState, Reply, SseEvent, ToolCall, Usage, label, provider_error, shown, some_text,
};
use crate::error::{Code, Error, Result};

/// A piece of a reply.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Chunk {
    /// Further text.
    Text(String),
    /// Further thoughts.
    Thinking(String),
    /// A whole call.
    Tool(ToolCall),
    /// How much was read and written so far.
    Usage(Usage),
    /// There will be no answer. Nothing follows.
    Failure {
        /// Whether it is certain what became of the request.
        outcome: OutcomeKind,
        /// What happened.
        message: String,
    },
}

/// Whether it is certain what became of a request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutcomeKind {
    /// It failed, and the provider said so.
    Determinate,
    /// It is unknown how far it came.
    Indeterminate,
}

impl OutcomeKind {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            OutcomeKind::Determinate => "determinate",
            OutcomeKind::Indeterminate => "indeterminate",
        }
    }
}

impl Chunk {
    /// The piece as scripts see it.
    pub fn to_json(&self) -> Json {
        match self {
            Chunk::Text(text) => json!({"kind": "text", "value": text}),
            Chunk::Thinking(text) => json!({"kind": "thinking", "value": text}),
            Chunk::Tool(call) => json!({"kind": "tool", "toolCall": call.to_json()}),
            Chunk::Usage(usage) => json!({"kind": "usage", "usage": usage.to_json()}),
            Chunk::Failure { outcome, message } => {
                json!({"kind": "failure", "failure": {"outcome": outcome.as_str(), "message": message}})
            }
        }
    }
}

/// How a stream ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The pieces that come at the end: calls, or a failure that showed only now.
    pub chunks: Vec<Chunk>,
    /// All the text that came, whether it counts or not.
    pub partial_text: String,
    /// Whether a person has to find out what became of the request before it is sent again.
    pub requires_reconciliation: bool,
    /// The answer, if the stream came to its end.
    pub answer: Option<Answer>,
    /// The same for a model that declined: that is a failure here, and still has its usage.
    pub refused: Option<Answer>,
}

impl Outcome {
    /// Whether there is an answer that counts.
    pub fn is_committed(&self) -> bool {
        self.answer.is_some()
    }

    /// The outcome as scripts see it, without its chunks.
    pub fn to_json(&self) -> Json {
        json!({
            "partialText": self.partial_text,
            "requiresReconciliation": self.requires_reconciliation,
            "completionCommitted": self.is_committed(),
        })
    }
}

/// Puts a reply together from its pieces.
#[derive(Debug)]
pub struct Stream {
    api: Api,
    outputs: bool,
    text: String,
    thinking: String,
    refusal: String,
    calls: BTreeMap<u64, Draft>,
    images: Vec<String>,
    /// Anthropic's blocks of thoughts and OpenAI's items of them, by their numbers.
    thoughts: BTreeMap<u64, Json>,
    /// What else an answer of Anthropic is made of, which matters if it is paused.
    blocks: anthropic::Blocks,
    /// What was said about usage so far; providers say it in instalments.
    usage: Map<String, Json>,
    finish: Option<String>,
    model: Option<String>,
    id: Option<String>,
    /// The provider said that it was done.
    ended: bool,
    failed: Option<OutcomeKind>,
    /// What the provider said about its failure.
    error: Option<Error>,
    /// How much of the reply is kept, in bytes.
    weight: usize,
}

/// A call that is not whole yet.
#[derive(Debug, Default)]
struct Draft {
    id: String,
    name: String,
    arguments: String,
    /// All the arguments, from an event that has them whole.
    whole: Option<String>,
    /// What has to be sent back with the call.
    signature: Option<String>,
}

impl Draft {
    fn finish(self, number: usize) -> Result<ToolCall> {
        if self.name.is_empty() {
            return Err(bad(format!("tool call {number} of the stream has no name")));
        }
        // Where both are given they agree, unless pieces were lost on the way.
        let arguments = self.whole.filter(|whole| !whole.is_empty()).unwrap_or(self.arguments);
        Ok(ToolCall { id: self.id, name: self.name, arguments })
    }

    /// Sets what is not known yet: some gateways repeat ids and names in every piece.
    fn named(&mut self, id: Option<&str>, name: Option<&str>) {
        for (known, said) in [(&mut self.id, id), (&mut self.name, name)] {
            if known.is_empty() {
                known.push_str(said.unwrap_or_default());
            }
        }
    }
}

impl Stream {
    /// A stream of this interface, at its beginning.
    pub fn new(api: Api) -> Stream {
        Stream {
            api,
            outputs: false,
            text: String::new(),
            thinking: String::new(),
            refusal: String::new(),
            calls: BTreeMap::new(),
            images: Vec::new(),
            thoughts: BTreeMap::new(),
            blocks: anthropic::Blocks::default(),
            usage: Map::new(),
            finish: None,
            model: None,
            id: None,
            ended: false,
            failed: None,
            error: None,
            weight: 0,
        }
    }

    /// The same, for a prompt with outputs: text is read as JSON at the end, as by [`read`](super::read).
    pub fn with_outputs(mut self, outputs: bool) -> Stream {
        self.outputs = outputs;
        self
    }

    /// Takes an event and gives the pieces that it brings. After a failure there are no more.
    pub fn feed(&mut self, event: &Json) -> Vec<Chunk> {
        if self.failed.is_some() {
            return Vec::new();
        }
        let look = ReplyValue::new(event);
        if let Some(error) = provider_error(&look) {
            return self.provider_failed(&error);
        }
        self.weight = self.weight.saturating_add(weight(event));
        let mut chunks = Vec::new();
        let fed = look.object().and_then(|_| match self.api {
            Api::OpenAiChat => openai::feed(self, &look, &mut chunks),
            Api::OpenAiResponses => responses::feed(self, &look, &mut chunks),
            Api::Anthropic => anthropic::feed(self, &look, &mut chunks),
            Api::Gemini => gemini::feed(self, &look, &mut chunks),
            Api::OpenAiEmbeddings | Api::OpenAiImages => {
                Err(bad(format!("{} does not stream replies", label(self.api))))
            }
        });
        // What came before an event went wrong has come, and stays.
        match fed {
            Ok(()) => {}
            Err(error) if error.code() == Code::ProviderFailed => chunks.extend(self.provider_failed(&error)),
            Err(error) => {
                chunks.extend(self.fail(OutcomeKind::Indeterminate, error.diagnostic().message.clone()));
            }
        }
        chunks
    }

    /// Takes an event as it came over the wire.
    pub fn feed_sse(&mut self, event: &SseEvent) -> Vec<Chunk> {
        if event.is_done() {
            self.ended = true;
            return Vec::new();
        }
        match event.json() {
            Ok(event) => self.feed(&event),
            Err(_) if self.failed.is_some() || event.data.trim().is_empty() => Vec::new(),
            Err(error) => self.fail(OutcomeKind::Indeterminate, error.diagnostic().message.clone()),
        }
    }

    /// Takes that the connection broke.
    pub fn transport_error(&mut self, message: &str) -> Vec<Chunk> {
        // A break behind the end, or behind a failure, changes nothing.
        if self.failed.is_some() || self.ended {
            return Vec::new();
        }
        self.fail(OutcomeKind::Indeterminate, message.to_owned())
    }

    /// Ends the stream, and says what became of it.
    pub fn finish(mut self) -> Outcome {
        let mut chunks = Vec::new();
        let mut answer = None;
        let mut refused = None;
        if self.failed.is_none() {
            if !self.refusal.is_empty() {
                let message = format!("Model refused: {}", self.refusal);
                refused =
                    Some(Answer { reply: Reply::Refusal(self.refusal.clone()), ..self.answer(Vec::new()) });
                chunks = self.fail(OutcomeKind::Determinate, message);
            } else if !self.ended {
                let message = "the stream ended before the reply was complete".to_owned();
                chunks = self.fail(OutcomeKind::Indeterminate, message);
            } else {
                let drafts = std::mem::take(&mut self.calls);
                let signatures = drafts.values().map(|draft| draft.signature.clone()).collect();
                let calls: Result<Vec<ToolCall>> =
                    drafts.into_values().enumerate().map(|(number, draft)| draft.finish(number)).collect();
                match calls {
                    Ok(calls) => {
                        chunks.extend(calls.iter().cloned().map(Chunk::Tool));
                        answer = Some(self.answer(calls));
                        if let Some(answer) = &mut answer {
                            answer.provider_state.signatures = signatures;
                        }
                    }
                    Err(error) => {
                        chunks = self.fail(OutcomeKind::Indeterminate, error.diagnostic().message.clone());
                    }
                }
            }
        }
        Outcome {
            chunks,
            partial_text: self.text,
            requires_reconciliation: self.failed == Some(OutcomeKind::Indeterminate),
            answer,
            refused,
        }
    }

    /// Whether the provider said that it was done; what follows changes nothing.
    pub fn has_ended(&self) -> bool {
        self.ended || self.failed.is_some()
    }

    /// Whether the provider said that it was done, and nothing went wrong until then. What it counted is all there is.
    pub fn is_done(&self) -> bool {
        self.ended && self.failed.is_none()
    }

    /// What the provider said about its failure, if it reported one: its words and its names for it are fields.
    pub fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }

    /// About how many bytes the reply has so far: its texts, thoughts, pictures and calls, without what the provider repeats in every
    /// event. A reader of a stream can stop when that is too much.
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// How many calls the reply makes so far.
    pub fn calls(&self) -> usize {
        self.calls.len()
    }

    /// All the text that came so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// All that the model has said so far, whatever it was: thoughts, text, and calls as far as they came. It is as long as
    /// what a provider charges for if the rest never comes.
    pub fn written(&self) -> String {
        let mut written = format!("{}{}{}", self.thinking, self.text, self.refusal);
        for draft in self.calls.values() {
            written.push_str(&draft.name);
            written.push_str(draft.whole.as_deref().unwrap_or(&draft.arguments));
        }
        written
    }

    /// What the provider has said so far about how much was read and written.
    pub fn counted(&self) -> Option<Usage> {
        self.usage()
    }

    fn answer(&mut self, calls: Vec<ToolCall>) -> Answer {
        let mut provider_state = ProviderState::default();
        self.thoughts.values().for_each(|block| provider_state.thought(block));
        if is_pause(self.finish.as_deref()) && calls.is_empty() {
            provider_state.paused = self.blocks.content(&self.text, &self.thoughts);
        }
        Answer {
            reply: shown(calls, self.text.clone(), std::mem::take(&mut self.images), self.outputs),
            thinking: some_text(std::mem::take(&mut self.thinking)),
            usage: self.usage(),
            finish: self.finish.take(),
            model: self.model.take(),
            id: self.id.take(),
            provider_state,
        }
    }

    fn usage(&self) -> Option<Usage> {
        Usage::read(self.api, Some(&Json::Object(self.usage.clone())))
    }

    fn fail(&mut self, outcome: OutcomeKind, message: String) -> Vec<Chunk> {
        self.failed = Some(outcome);
        vec![Chunk::Failure { outcome, message }]
    }

    /// The provider said that it failed: that is certain.
    fn provider_failed(&mut self, error: &Error) -> Vec<Chunk> {
        self.error = Some(error.clone());
        self.fail(OutcomeKind::Determinate, error.diagnostic().message.clone())
    }

    /// Notes text, and passes it on if there is any.
    fn say(&mut self, text: &str) -> Option<Chunk> {
        self.text.push_str(text);
        some_text(text.to_owned()).map(Chunk::Text)
    }

    /// Notes thoughts, and passes them on if there are any.
    fn think(&mut self, text: &str) -> Option<Chunk> {
        self.thinking.push_str(text);
        some_text(text.to_owned()).map(Chunk::Thinking)
    }

    /// Notes what is said about usage, and passes it on if it says something.
    fn count(&mut self, usage: Option<&Json>) -> Option<Chunk> {
        let usage = usage?.as_object()?;
        // `null` is no news.
        let news = usage.iter().filter(|(_, value)| !value.is_null());
        self.usage.extend(news.map(|(key, value)| (key.clone(), value.clone())));
        self.usage().map(Chunk::Usage)
    }

    /// Notes which model answers, and under which name.
    fn identify(&mut self, model: Option<String>, id: Option<String>) {
        self.model = self.model.take().or(model);
        self.id = self.id.take().or(id);
    }
}

/// Where the interfaces put what is said: `delta` and `content_block` of Anthropic, `delta` and `item` of OpenAI's responses, `choices`
/// of its chats, `candidates` of Gemini.
const SAID: [&str; 5] = ["delta", "content_block", "item", "choices", "candidates"];
/// What a value takes besides its text.
const VALUE: usize = 8;

/// How many bytes of an event are kept.
fn weight(event: &Json) -> usize {
    fn of(value: &Json) -> usize {
        VALUE
            + match value {
                Json::String(text) => text.len(),
                Json::Array(items) => items.iter().map(of).sum(),
                Json::Object(members) => members.values().map(of).sum(),
                _ => 0,
            }
    }
    SAID.iter().filter_map(|name| event.get(name)).map(of).sum()
}

#[cfg(test)]
mod tests;
