//! Slow and hostile clients do not delay or shut out others.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod support;

use serde_json::json;
use support::{Pipes, project};

/// Sends calls that end only when the test makes a file.
fn slow_calls(desk: &mut Pipes, gate: &std::path::Path, count: usize) {
    for id in 0..count {
        let arguments = json!({"item_type": "tool", "item_id": "gate", "parameters": {"file": gate}});
        let params = json!({"name": "rye_execute", "arguments": arguments});
        desk.send(
            &json!({"jsonrpc": "2.0", "id": format!("slow{id}"), "method": "tools/call", "params": params}),
        );
    }
}

#[test]
fn prompts_and_lists_do_not_wait_for_slow_calls() {
    let project = project();
    let gate = project.path().join("gate");
    let mut desk = Pipes::desk(project.path());
    desk.initialize();
    slow_calls(&mut desk, &gate, 80);
    // Not one of the calls can end before the gate opens, and it opens when all of these were answered.
    let get = json!({"name": "greet", "arguments": {"name": "Ann"}});
    for (method, params) in [
        ("prompts/get", get),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("tools/list", json!({})),
        ("resources/read", json!({"uri": "cuebook://knowledge/team/style"})),
    ] {
        let answer = desk.ask(method, method, params);
        assert_eq!(answer["id"], method);
        assert!(answer["result"].is_object(), "{answer}");
    }
    std::fs::write(&gate, "").unwrap();
    for _ in 0..80 {
        let answer = desk.next();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    assert!(desk.end().success());
}

#[test]
fn a_client_with_too_many_calls_is_refused_clearly() {
    let project = project();
    let gate = project.path().join("gate");
    let mut desk = Pipes::desk(project.path());
    desk.initialize();
    slow_calls(&mut desk, &gate, 520);
    let mut refused = 0;
    for _ in 0..8 {
        let answer = desk.next();
        let content = &answer["result"]["structuredContent"];
        assert_eq!(content["metadata"]["error"]["code"], "CB807", "{answer}");
        refused += 1;
    }
    std::fs::write(&gate, "").unwrap();
    for _ in 0..520 - refused {
        assert_eq!(desk.next()["result"]["isError"], false);
    }
    assert_eq!(
        desk.ask("after", "prompts/get", json!({"name": "greet", "arguments": {"name": "A"}}))["id"],
        "after"
    );
}
