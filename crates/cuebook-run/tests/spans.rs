//! What tracers are reported about a run.
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::{Arc, Barrier, Mutex};

use cuebook::chat::reply::{Answer, Reply, ToolCall, Usage};
use cuebook::chat::{Message, Role};
use cuebook_agent::{Agent, Cancel, ModelFailure};
use cuebook_trace::{Backend, Frame, Recorder, is_ours};
use serde_json::{Value as Json, json};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry};

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Frame>>>);

impl Backend for Kept {
    fn name(&self) -> String {
        "kept".into()
    }

    fn finished(&self, root: &Frame) -> std::io::Result<()> {
        self.0.lock().unwrap().push(root.clone());
        Ok(())
    }
}

/// The one trace of a run.
fn traced(run: impl FnOnce()) -> Frame {
    let kept = Kept::default();
    let recorder = Recorder::new().with(kept.clone());
    let subscriber = Registry::default().with(recorder.with_filter(filter_fn(is_ours)));
    tracing::subscriber::with_default(subscriber, run);
    let mut frames = kept.0.lock().unwrap();
    assert_eq!(frames.len(), 1, "all of a run is one trace, whichever threads made its calls");
    frames.remove(0)
}

fn said(reply: Reply, tokens: u64) -> Answer {
    let usage = Usage { input: Some(tokens), output: Some(tokens / 10), ..Usage::default() };
    let model = Some("small-2".to_owned());
    Answer {
        reply,
        thinking: None,
        usage: Some(usage),
        finish: Some("stop".into()),
        model,
        id: Some("r-1".into()),
        provider_state: Default::default(),
    }
}

fn question() -> Vec<Message> {
    vec![Message::text(Role::User, "well?")]
}

fn names(frame: &Frame) -> Vec<&str> {
    frame.frames.iter().map(|frame| frame.name.as_str()).collect()
}

#[test]
fn a_run_is_a_turn_with_its_questions_and_calls_inside() {
    let both = Barrier::new(2);
    let frame = traced(|| {
        let agent = Agent::new(|question| {
            let call = |id: &str, arguments: Json| ToolCall {
                id: id.into(),
                name: "sign_in".into(),
                arguments: arguments.to_string(),
            };
            Ok(match question.turn {
                0 => {
                    let calls = vec![
                        call("a", json!({"apiKey": "violet-42"})),
                        call("b", json!({"apiKey": "green-1234"})),
                    ];
                    said(Reply::ToolCalls { calls, text: None }, 100)
                }
                _ => said(Reply::Text("in".into()), 200),
            })
        })
        .prompt("greeting")
        .tool("sign_in", |arguments| {
            both.wait();
            match arguments["apiKey"].as_str() {
                Some("violet-42") => Ok("signed in with violet-42"),
                _ => Err("green-1234 is wrong"),
            }
        });
        agent.run(question()).outcome.unwrap();
    });
    assert_eq!(
        (frame.name.as_str(), names(&frame)),
        ("turn", vec!["execute", "execute_tool", "execute_tool", "execute"])
    );
    assert_eq!(frame.fields["signature"], "cuebook.turn");
    assert_eq!(frame.fields["otel.name"], "turn 1");
    assert_eq!(frame.fields["gen_ai.operation.name"], "turn");
    assert_eq!(frame.fields["result"], "in");
    assert_eq!(frame.prompt(), Some("greeting"));
    let usage = frame.usage.unwrap();
    assert_eq!((usage.input, usage.output), (300, 30), "what the turn cost is what its questions cost");

    let asked = &frame.frames[0].fields;
    assert_eq!(asked["gen_ai.operation.name"], "chat");
    assert_eq!(asked["gen_ai.response.model"], "small-2");
    assert_eq!(asked["gen_ai.response.id"], "r-1");
    assert_eq!(asked["inputs"]["messages"][0]["content"][0]["value"], "well?");

    let mut calls: Vec<&Frame> = frame.frames[1..3].iter().collect();
    calls.sort_by_key(|call| call.fields["gen_ai.tool.call.id"].to_string());
    for (call, reported) in calls.iter().zip(["result", "error"]) {
        assert_eq!(call.fields["signature"], "cuebook.execute_tool");
        assert_eq!(call.fields["gen_ai.operation.name"], "execute_tool");
        assert_eq!(call.fields["inputs"], json!({"name": "sign_in", "arguments": {"apiKey": "[REDACTED]"}}));
        assert!(call.fields.contains_key(reported), "{:?}", call.fields);
    }
    assert_eq!(calls[0].fields["result"], "signed in with [REDACTED]");
    assert_eq!(calls[1].error().unwrap()["message"], "Error: Tool 'sign_in' failed: [REDACTED] is wrong");
    let everything = format!("{frame:?}");
    assert!(!everything.contains("violet-42") && !everything.contains("green-1234"), "{everything}");
}

#[test]
fn a_run_that_stops_says_why() {
    let frame = traced(|| {
        let agent =
            Agent::new(|_| Err(ModelFailure { again: false, ..ModelFailure::accident("the line is dead") }));
        agent.run(question()).outcome.unwrap_err();
    });
    assert_eq!(names(&frame), ["execute"]);
    assert!(frame.error().unwrap()["message"].as_str().unwrap().contains("the line is dead"));
    assert!(frame.frames[0].error().is_some());

    let cancel = Cancel::new();
    cancel.cancel();
    let frame = traced(|| {
        let agent = Agent::new(|_| Ok(said(Reply::Text("in".into()), 1))).cancel(&cancel);
        agent.run(question()).outcome.unwrap_err();
    });
    assert_eq!(frame.error().unwrap()["exception"], "Cancelled");
}
