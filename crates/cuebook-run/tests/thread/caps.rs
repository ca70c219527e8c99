//! What one answer of a model can make a thread do.

use cuebook_mock::Reply;
use cuebook_run::{Kind, Status};
use serde_json::json;

use crate::resume::{COUNT, counted};
use crate::setup::*;

/// So many calls of a tool that counts, in one answer.
fn calls(count: usize) -> Reply {
    let arguments =
        |n: usize| json!({"item_type": "tool", "item_id": "demo/count", "parameters": {"n": n.to_string()}});
    (1..count).fold(Reply::call("c0", "rye_execute", arguments(0)).usage(100, 10), |reply, n| {
        reply.and_call(format!("c{n}"), "rye_execute", arguments(n))
    })
}

#[test]
fn an_answer_with_too_many_calls_makes_none_of_them() {
    let stage = Setup::new(script([calls(65), returns("z", "x")]));
    stage.tool("count", COUNT).worker("");
    let answer = stage.run("demo/work");
    assert_eq!((code_of(&answer), &answer["thread_status"]), ("CB716", &json!("suspended")), "{answer:#}");
    let id = id_of(&answer);
    assert!(counted(&stage).is_empty() && stage.payloads(&id, Kind::ToolStart).is_empty());
    let reached = &stage.payloads(&id, Kind::Limit)[0];
    assert_eq!((&reached["limit_code"], &reached["current_value"]), (&json!("calls_exceeded"), &json!(65)));
    let finished = stage.resume(&id, json!({"calls": 65}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
    assert_eq!(stage.payloads(&id, Kind::ToolResult).len(), 66);
}

#[test]
fn an_answer_that_costs_more_than_the_limit_does_nothing() {
    // Ten dollars for a million tokens: this one costs 1.40.
    let stage = Setup::new(script([calls(2).usage(100, 140_000), returns("z", "x")]));
    stage.tool("count", COUNT).worker("");
    let answer = stage.run_within("demo/work", json!({"spend": 0.1}));
    assert_eq!((code_of(&answer), &answer["thread_status"]), ("CB716", &json!("suspended")), "{answer:#}");
    assert!(counted(&stage).is_empty(), "{}", counted(&stage));
    let finished = stage.resume(&id_of(&answer), json!({"spend": 3}));
    assert_eq!(finished.status, Status::Completed, "{finished:?}");
    let mut made: Vec<char> = counted(&stage).chars().collect();
    made.sort_unstable();
    assert_eq!(made, ['0', '1']);
}
