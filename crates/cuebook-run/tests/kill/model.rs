//! The model of the run: it says what it says by how far the conversation is, so that it says the same to a caller that goes on.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cuebook_mock::{Reply, Request, Script};
use serde_json::{Value as Json, json};

#[derive(Default)]
pub struct Model {
    fast: Arc<AtomicBool>,
}

fn mark(mark: &str) -> Json {
    json!({"item_type": "tool", "item_id": "demo/mark", "parameters": {"mark": mark}})
}

impl Model {
    pub fn script(&self) -> Script {
        let fast = self.fast.clone();
        Script::answer(move |request| reply(request, fast.load(Ordering::SeqCst)))
    }

    /// From now on it speaks without pauses.
    pub fn hurry(&self) {
        self.fast.store(true, Ordering::SeqCst);
    }
}

fn reply(request: &Request, fast: bool) -> Reply {
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    let turn = messages.iter().filter(|message| message["role"] == "assistant").count();
    // A caller that is reported that is unknown whether it returned does it again, in another call.
    let returns =
        || Reply::call(format!("r{turn}"), "directive_return", json!({"said": "all of it"})).usage(300, 30);
    let bash = json!({"item_type": "tool", "item_id": "rye/bash/bash", "parameters": {"command": "echo oops >> marks"}});
    let kid = json!({"item_type": "directive", "item_id": "demo/kid", "parameters": {}, "thread": true});
    if messages[0].to_string().contains("You are the kid") {
        return match turn {
            0 => Reply::call("k1", "rye_execute", mark("k1")).usage(50, 7),
            _ => returns(),
        };
    }
    match turn {
        0 => Reply::text("Let me think about it.").usage(101, 11),
        1 => Reply::call("c1", "rye_execute", mark("m1"))
            .and_call("c2", "rye_execute", bash)
            .and_call("c3", "rye_execute", mark("m2"))
            .and_call("c4", "rye_execute", mark("m3"))
            .usage(202, 22),
        2 => Reply::call("c5", "rye_execute", kid).and_call("c6", "rye_execute", mark("m4")).usage(303, 33),
        3 => {
            let said = Reply::text("I am almost there, and say so at some length. ".repeat(4))
                .and_call("c7", "rye_execute", mark("m5"))
                .usage(404, 44);
            if fast { said } else { said.pause(Duration::from_millis(25)) }
        }
        _ => returns(),
    }
}

/// Whether a request tells the model that is unknown what came of a call.
pub fn tells_unknown(body: &Json, call: &str) -> bool {
    body["messages"].as_array().into_iter().flatten().any(|message| {
        message["tool_call_id"] == call
            && message["content"].as_str().is_some_and(|text| text.contains("its result is unknown"))
    })
}

/// A conversation that every provider takes: behind the calls of an answer stand their results, each once and in their order, and
/// the model does not have the last word.
pub fn valid(body: &Json) {
    let messages = body["messages"].as_array().unwrap();
    let mut expected: Vec<String> = Vec::new();
    let mut seen = HashSet::new();
    for message in messages {
        let role = message["role"].as_str().unwrap();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            assert!(!expected.is_empty(), "a result without a call: {body:#}");
            assert_eq!(expected.remove(0), id, "{body:#}");
            continue;
        }
        assert!(expected.is_empty(), "{expected:?} have no result: {body:#}");
        if let Some(calls) = message["tool_calls"].as_array() {
            expected = calls.iter().map(|call| call["id"].as_str().unwrap().to_owned()).collect();
            assert!(expected.iter().all(|id| seen.insert(id.clone())), "a call is told twice: {body:#}");
        }
    }
    assert!(expected.is_empty(), "{expected:?} have no result: {body:#}");
    assert_ne!(messages.last().unwrap()["role"], "assistant", "{body:#}");
}
