//! What tracers get about a run, by Prompty's names: `turn` is the whole of it, `execute` each question to the model,
//! `execute_tool` each call that is made. Inputs and results are reported without secrets, and nothing is made of them while there is no
//! listens.
//!
//! A span's name is known when the program is compiled, so the number of a turn is a field; `otel.name` makes `turn 3` of it where
//! names may be made.

use cuebook::chat::reply::{Answer, ToolCall};
use cuebook::chat::{Message, Role};
use cuebook::redact::{self, Secrets};
use cuebook::trace;
use serde_json::{Map, Value as Json, json};
use tracing::field::Empty;
use tracing::{Dispatch, Span, dispatcher, info_span};

use super::{Halt, Performed, Ports};

/// Where calls are made from: other threads must tell the same tracer, below the same span.
pub(super) struct Context {
    dispatch: Dispatch,
    span: Span,
}

impl Context {
    pub(super) fn here() -> Context {
        Context { dispatch: dispatcher::get_default(Dispatch::clone), span: Span::current() }
    }

    pub(super) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        dispatcher::with_default(&self.dispatch, || self.span.in_scope(work))
    }
}

/// The span of a run. Its number is that of the question: the first thing that the user says begins turn 1.
pub(super) fn turn(ports: &dyn Ports, conversation: &[Message]) -> Span {
    let number = conversation.iter().filter(|message| message.role == Role::User).count();
    let span = info_span!(
        target: "cuebook",
        "turn",
        signature = "cuebook.turn",
        otel.name = Empty,
        turn = number,
        prompt = Empty,
        inputs = Empty,
        result = Empty,
        error = Empty,
        error.type = Empty,
        gen_ai.operation.name = "turn",
    );
    if !span.is_disabled() {
        span.record("otel.name", format!("turn {number}"));
        if let Some(prompt) = ports.prompt() {
            span.record("prompt", prompt);
        }
        trace::given(&span, || messages(conversation));
    }
    span
}

/// Tells how a run ended.
pub(super) fn ended(span: &Span, outcome: &Result<Json, Halt>) {
    if !span.is_disabled() {
        finish(span, Secrets::new(), outcome.as_ref().map_err(halted), Json::clone);
    }
}

/// Asks the model within a span.
pub(super) fn asking(
    ports: &dyn Ports,
    conversation: &[Message],
    ask: impl FnOnce() -> Result<Answer, Halt>,
) -> Result<Answer, Halt> {
    let span = info_span!(
        target: "cuebook",
        "execute",
        signature = "cuebook.execute",
        prompt = Empty,
        inputs = Empty,
        result = Empty,
        error = Empty,
        error.type = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.request.model = Empty,
        gen_ai.response.model = Empty,
        gen_ai.response.id = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
    );
    if span.is_disabled() {
        return ask();
    }
    if let Some(model) = ports.model() {
        span.record("gen_ai.request.model", model);
    }
    let secrets = trace::given(&span, || messages(conversation));
    let answer = span.in_scope(ask);
    if let Ok(answer) = &answer {
        if let Some(model) = &answer.model {
            span.record("gen_ai.response.model", model.as_str());
        }
        if let Some(id) = &answer.id {
            span.record("gen_ai.response.id", id.as_str());
        }
        if let Some(finish) = &answer.finish {
            span.record("gen_ai.response.finish_reasons", json!([finish]).to_string());
        }
        if let Some(tokens) = answer.usage.and_then(|usage| usage.input) {
            span.record("gen_ai.usage.input_tokens", tokens);
        }
        if let Some(tokens) = answer.usage.and_then(|usage| usage.output) {
            span.record("gen_ai.usage.output_tokens", tokens);
        }
    }
    finish(&span, secrets, answer.as_ref().map_err(halted), |answer| answer.reply.to_json());
    answer
}

/// Makes a call within a span.
pub(super) fn performing(
    ports: &dyn Ports,
    call: &ToolCall,
    arguments: &Map<String, Json>,
    perform: impl FnOnce() -> Performed,
) -> Performed {
    let span = info_span!(
        target: "cuebook",
        "execute_tool",
        signature = "cuebook.execute_tool",
        otel.name = Empty,
        prompt = Empty,
        inputs = Empty,
        result = Empty,
        error = Empty,
        error.type = Empty,
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = call.name.as_str(),
        gen_ai.tool.call.id = call.id.as_str(),
    );
    if span.is_disabled() {
        return perform();
    }
    span.record("otel.name", format!("execute_tool {}", call.name));
    if let Some(prompt) = ports.prompt() {
        span.record("prompt", prompt);
    }
    let secrets = trace::given(&span, || json!({"name": call.name, "arguments": arguments}));
    let performed = span.in_scope(perform);
    let outcome = match performed.is_error {
        false => Ok(&performed),
        true => Err(("ToolError", performed.text.clone())),
    };
    finish(&span, secrets, outcome, |performed| json!(performed.text));
    performed
}

/// What a tracer gets about a run that stopped.
fn halted(halt: &Halt) -> (&'static str, String) {
    let kind = halt.error().map_or("Cancelled", |error| error.kind().name());
    (kind, halt.message().to_owned())
}

fn messages(conversation: &[Message]) -> Json {
    json!({"messages": conversation.iter().map(Message::to_json).collect::<Vec<_>>()})
}

fn finish<T>(
    span: &Span,
    mut secrets: Secrets,
    outcome: Result<&T, (&'static str, String)>,
    result: impl FnOnce(&T) -> Json,
) {
    let (field, mut reported) = match outcome {
        Ok(value) => ("result", result(value)),
        Err((kind, message)) => {
            span.record("error.type", kind);
            ("error", json!({"exception": kind, "message": message}))
        }
    };
    secrets.field(field, &mut reported);
    secrets.scrub(&mut reported);
    redact::scrub_kept(&mut reported);
    span.record(field, redact::field_text(&reported));
}
