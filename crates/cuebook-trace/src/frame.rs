//! One frame of a trace: a span that has ended, with the frames inside of it.

use std::time::Duration;

use cuebook::redact::Secrets;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// A span that has ended.
#[derive(Debug, Clone)]
pub struct Frame {
    /// The span's name.
    pub name: String,
    /// When it began.
    pub start: Timestamp,
    /// How long it took.
    pub duration: Duration,
    /// What it said, redacted and within the limits. JSON text has become JSON.
    pub fields: Map<String, Value>,
    /// The frames inside of it, by their beginning.
    pub frames: Vec<Frame>,
    /// What it cost.
    pub usage: Option<Usage>,
    /// How many frames inside of it were left out, since there were too many or too deep ones.
    pub left_out: u64,
}

/// What calls of a model cost, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens that were read.
    pub input: u64,
    /// Tokens that were written.
    pub output: u64,
    /// All of them, as the provider counts.
    pub total: u64,
}

impl Frame {
    /// When it ended.
    pub fn end(&self) -> Timestamp {
        let nanos = i64::try_from(self.duration.as_nanos()).unwrap_or(i64::MAX);
        self.start.checked_add(jiff::SignedDuration::from_nanos(nanos)).unwrap_or(self.start)
    }

    /// The error that it ended with: `{exception, message}`.
    pub fn error(&self) -> Option<Value> {
        let kind = self.fields.get("error.type").and_then(Value::as_str);
        let (exception, message) = error_of(self.fields.get("error")?, kind);
        Some(json!({"exception": exception, "message": message}))
    }

    /// The id of the prompt that it is about: its own, or that of the first frame that has one.
    pub fn prompt(&self) -> Option<&str> {
        let own = self.fields.get("prompt").and_then(Value::as_str).filter(|id| !id.is_empty());
        own.or_else(|| self.frames.iter().find_map(Frame::prompt))
    }

    /// What the frame itself says that it cost, or else the sum of the frames inside of it. Never both: a frame that
    /// tells the sum would count everything twice.
    pub(crate) fn hoist_usage(&mut self) {
        self.usage = self.own_usage().or_else(|| {
            let inner: Vec<Usage> = self.frames.iter().filter_map(|frame| frame.usage).collect();
            inner.into_iter().reduce(|a, b| Usage {
                input: a.input.saturating_add(b.input),
                output: a.output.saturating_add(b.output),
                total: a.total.saturating_add(b.total),
            })
        });
    }

    fn own_usage(&self) -> Option<Usage> {
        let field = |name: &str| count(self.fields.get(name)?);
        let (input, output) = (field("gen_ai.usage.input_tokens"), field("gen_ai.usage.output_tokens"));
        if input.is_some() || output.is_some() {
            return Some(Usage::of(input, output, None));
        }
        // A raw answer of a provider tells it in its own words.
        let usage = self.fields.get("result")?.get("usage")?;
        let member = |names: [&str; 2]| names.iter().find_map(|name| count(usage.get(*name)?));
        let input = member(["prompt_tokens", "input_tokens"]);
        let output = member(["completion_tokens", "output_tokens"]);
        let total = usage.get("total_tokens").and_then(count);
        (input.is_some() || output.is_some() || total.is_some()).then(|| Usage::of(input, output, total))
    }

    /// Takes out secrets that became known after a field was recorded.
    /// Takes out what has become a secret of the whole process since it was recorded.
    pub(crate) fn scrub_kept(&mut self) {
        self.fields.values_mut().for_each(cuebook::redact::scrub_kept);
        self.frames.iter_mut().for_each(Frame::scrub_kept);
    }

    pub(crate) fn scrub(&mut self, secrets: &Secrets) {
        self.fields.values_mut().for_each(|value| secrets.scrub(value));
        self.frames.iter_mut().for_each(|frame| frame.scrub(secrets));
    }
}

impl Usage {
    fn of(input: Option<u64>, output: Option<u64>, total: Option<u64>) -> Usage {
        let (input, output) = (input.unwrap_or(0), output.unwrap_or(0));
        Usage { input, output, total: total.unwrap_or(input.saturating_add(output)) }
    }
}

/// What kind of error a field `error` tells of, and its message. `kind` is what `error.type` says.
pub(crate) fn error_of(reported: &Value, kind: Option<&str>) -> (String, String) {
    // An error's document says `{"status": "error", "error": {…}}`; the inner object alone will do.
    let error = reported.get("error").filter(|inner| inner.is_object()).unwrap_or(reported);
    let text = |name: &str| error.get(name).and_then(Value::as_str);
    let exception =
        ["exception", "type", "kind"].iter().find_map(|name| text(name)).or(kind).unwrap_or("Error");
    let message = match (text("message"), error) {
        (Some(message), _) => message.to_owned(),
        (None, Value::String(message)) => message.clone(),
        (None, other) => other.to_string(),
    };
    (exception.to_owned(), message)
}

/// A count, also one that was recorded as text.
fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}
