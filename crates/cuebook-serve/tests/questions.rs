//! Questions to the user of a client, and threads as tasks.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod support;

use serde_json::{Value as Json, json};
use support::{Pipes, project};

const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The arguments of a call that needs an answer of the user.
fn limited() -> Json {
    json!({"item_type": "tool", "item_id": "limited"})
}

/// A client of 2025-11-25 with these capabilities.
fn legacy(project: &std::path::Path, capabilities: Json) -> Pipes {
    let mut desk = Pipes::desk(project);
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client});
    desk.ask(0, "initialize", hello);
    desk.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    desk
}

/// The parameters of a request of 2026-07-28, by a client with these capabilities.
fn modern(mut params: Json, capabilities: &Json) -> Json {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    params
}

#[test]
fn the_users_answer_decides_a_call() {
    let project = project();
    let mut desk = legacy(project.path(), json!({"elicitation": {}}));
    let accept = json!({"action": "accept", "content": {"limit": 7}});
    for (number, said) in [(1, accept), (2, json!({"action": "decline"})), (3, json!({"action": "cancel"}))] {
        let params = json!({"name": "rye_execute", "arguments": limited()});
        let asked = desk.ask(number, "tools/call", params);
        assert_eq!(asked["method"], "elicitation/create", "{asked:#}");
        assert_eq!(asked["params"]["message"], "3 of 3 turns. Continue?");
        assert_eq!(asked["params"]["requestedSchema"]["properties"]["limit"]["default"], 6);
        desk.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": said}));
        let answer = desk.next();
        assert_eq!(answer["id"], number, "{answer:#}");
        let (failed, content) = (&answer["result"]["isError"], &answer["result"]["structuredContent"]);
        match number {
            1 => assert_eq!((failed, &content["data"]["limit"]), (&json!(false), &json!(7)), "{answer:#}"),
            _ => {
                assert_eq!((failed, &content["error"]), (&json!(true), &json!("3 of 3 turns")), "{answer:#}")
            }
        }
    }
}

#[test]
fn a_client_that_cannot_ask_gets_the_error() {
    let project = project();
    let call = json!({"name": "rye_execute", "arguments": limited()});
    let answer = legacy(project.path(), json!({})).ask(1, "tools/call", call.clone());
    assert_eq!(answer["result"]["structuredContent"]["error"], "3 of 3 turns", "{answer:#}");
    let answer = Pipes::desk(project.path()).ask(1, "tools/call", modern(call, &json!({})));
    assert_eq!(answer["result"]["structuredContent"]["error"], "3 of 3 turns", "{answer:#}");
}

#[test]
fn a_modern_client_repeats_its_call_with_the_answer_once() {
    let project = project();
    let mut desk = Pipes::desk(project.path());
    let able = json!({"elicitation": {"form": {}}});
    let call = json!({"name": "rye_execute", "arguments": limited()});
    let asked = desk.ask(1, "tools/call", modern(call.clone(), &able));
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked:#}");
    assert_eq!(result["inputRequests"]["question"]["params"]["message"], "3 of 3 turns. Continue?");
    let mut again = call.clone();
    again["requestState"] = result["requestState"].clone();
    again["inputResponses"] = json!({"question": {"action": "accept", "content": {"limit": 9}}});
    let answer = desk.ask(2, "tools/call", modern(again.clone(), &able));
    assert_eq!(answer["result"]["structuredContent"]["data"], json!({"limit": 9}), "{answer:#}");
    for state in [again["requestState"].clone(), json!("0".repeat(32))] {
        again["requestState"] = state;
        let refused = desk.ask(3, "tools/call", modern(again.clone(), &able));
        assert_eq!(refused["error"]["code"], -32602, "{refused:#}");
    }
}

/// Asks for a task until it has a status.
fn until(desk: &mut Pipes, task: &Json, able: &Json, wanted: &str) -> Json {
    for number in 100..1100 {
        let now = desk.ask(number, "tasks/get", modern(json!({"taskId": task}), able));
        if now["result"]["status"] == wanted {
            return now["result"].clone();
        }
        assert!(
            ["working", "input_required"].contains(&now["result"]["status"].as_str().unwrap()),
            "{now:#}"
        );
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the task is never {wanted}");
}

#[test]
fn a_thread_is_a_task_for_a_client_that_has_tasks() {
    let project = project();
    let mut desk = Pipes::desk(project.path());
    let able = json!({"elicitation": {}, "extensions": {TASKS: {}}});
    let thread = |item: &str, steps: u32| {
        let parameters = json!({"steps": steps});
        let arguments =
            json!({"item_type": "directive", "item_id": item, "thread": true, "parameters": parameters});
        json!({"name": "rye_execute", "arguments": arguments})
    };
    let begun = desk.ask(1, "tools/call", modern(thread("count", 3), &able));
    assert_eq!(begun["result"]["resultType"], "task", "{begun:#}");
    let done = until(&mut desk, &begun["result"]["taskId"], &able, "completed");
    assert_eq!(done["result"]["structuredContent"]["data"]["steps"], 3.0, "{done:#}");
    // A question waits in the task.
    let begun = desk.ask(2, "tools/call", modern(thread("limited", 0), &able));
    let id = &begun["result"]["taskId"];
    let asked = until(&mut desk, id, &able, "input_required");
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let responses = json!({key: {"action": "accept", "content": {"limit": 4}}});
    desk.ask(3, "tasks/update", modern(json!({"taskId": id, "inputResponses": responses}), &able));
    let done = until(&mut desk, id, &able, "completed");
    assert_eq!(done["result"]["structuredContent"]["data"], json!({"limit": 4}), "{done:#}");
    // A cancelled task tells its work to stop.
    let begun = desk.ask(4, "tools/call", modern(thread("count", 100_000), &able));
    let id = &begun["result"]["taskId"];
    until(&mut desk, id, &able, "working");
    desk.ask(5, "tasks/cancel", modern(json!({"taskId": id}), &able));
    until(&mut desk, id, &able, "cancelled");
    let unknown = desk.ask(6, "tasks/get", modern(json!({"taskId": "none"}), &able));
    assert!(unknown["error"]["code"].is_number(), "{unknown:#}");
    // Without the capability, and for everything that is no thread, the answer comes at once.
    let plain = desk.ask(7, "tools/call", modern(thread("count", 1), &json!({})));
    assert_eq!(plain["result"]["structuredContent"]["data"]["steps"], 1.0, "{plain:#}");
}
