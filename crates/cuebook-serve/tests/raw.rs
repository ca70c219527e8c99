//! Bytes on standard input that no client would send: each gets the error that the protocol has for it, and the server goes on.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod support;

use serde_json::{Value as Json, json};
use support::{Pipes, project};

/// The code and the id of an error.
fn error(answer: &Json) -> (i64, Json) {
    (answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{answer}")), answer["id"].clone())
}

#[test]
fn garbage_is_answered_with_errors_and_harms_nothing() {
    let project = project();
    let mut desk = Pipes::desk(project.path());
    // Before the handshake: nothing of this ends the connection.
    desk.write("\n\r\n  \nnonsense\n");
    assert_eq!(error(&desk.next()), (-32700, Json::Null));
    desk.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    desk.send(&json!({"jsonrpc": "2.0", "id": 5, "result": {}}));
    let answer = desk.ask(1, "prompts/list", json!({}));
    assert_eq!(error(&answer), (-32602, json!(1)));
    let answer = desk.ask(2, "ping", json!({}));
    assert_eq!(answer["result"], json!({}));
    let answer = desk.initialize();
    assert_eq!(answer["result"]["serverInfo"]["name"], "cuebook");
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");

    for (line, code, id) in [
        ("{", -32700, Json::Null),
        ("{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"", -32700, Json::Null),
        ("\u{0}\u{1}\u{7f}", -32700, Json::Null),
        ("[{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}]", -32600, Json::Null),
        ("null", -32600, Json::Null),
        ("\"text\"", -32600, Json::Null),
        ("{\"id\": 9}", -32600, json!(9)),
        ("{\"jsonrpc\": \"2.0\", \"id\": 1.5, \"method\": \"ping\"}", -32600, Json::Null),
        ("{\"jsonrpc\": \"2.0\", \"id\": {}, \"method\": \"prompts/list\"}", -32600, Json::Null),
        ("{\"jsonrpc\": \"2.0\", \"id\": null, \"method\": \"prompts/list\"}", -32600, Json::Null),
        ("{\"jsonrpc\": \"2.0\", \"id\": \"x\", \"method\": \"no/such/method\"}", -32601, json!("x")),
        ("{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"prompts/get\"}", -32602, json!(7)),
        (
            "{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"prompts/get\", \"params\": {\"name\": 5}}",
            -32602,
            json!(7),
        ),
        (
            "{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"prompts/get\", \"params\": \"greet\"}",
            -32602,
            json!(7),
        ),
        (
            "{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"prompts/get\", \"params\": {\"name\": \"greet\", \"arguments\": [1]}}",
            -32602,
            json!(7),
        ),
        (
            "{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"tools/call\", \"params\": {\"name\": null}}",
            -32602,
            json!(7),
        ),
        (
            "{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"tools/call\", \"params\": {\"name\": \"nothing\"}}",
            -32602,
            json!(7),
        ),
        (
            "{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"completion/complete\", \"params\": {\"ref\": {}}}",
            -32602,
            json!(7),
        ),
        (
            "{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"resources/read\", \"params\": {\"uri\": 1}}",
            -32602,
            json!(7),
        ),
        (
            "{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"prompts/list\", \"params\": {\"cursor\": \"no\"}}",
            -32602,
            json!(7),
        ),
        (
            "{\"jsonrpc\": \"2.0\", \"id\": -9223372036854775808, \"method\": \"no/such/method\"}",
            -32601,
            json!(i64::MIN),
        ),
        ("{\"jsonrpc\": \"2.0\", \"id\": 18446744073709551615, \"method\": \"ping\"}", -32600, Json::Null),
    ] {
        desk.write(format!("{line}\n"));
        assert_eq!(error(&desk.next()), (code, id), "{line}");
    }
    desk.write(b"\xff\xfe\xfd\n");
    assert_eq!(error(&desk.next()).0, -32700);
    desk.write(format!("{}\n", "[".repeat(1 << 20)));
    assert_eq!(error(&desk.next()).0, -32700);
    // Notifications that is unknown have no answer.
    desk.send(&json!({"jsonrpc": "2.0", "method": "notifications/nobody/knows", "params": {"a": 1}}));
    desk.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 12345}}),
    );
    desk.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": 5}));
    // Values of other types than text are taken as they are.
    let arguments = json!({"name": "Ann", "times": 3, "tags": ["x"]});
    let answer = desk.ask("last", "prompts/get", json!({"name": "greet", "arguments": arguments}));
    assert_eq!(answer["result"]["messages"][0]["content"]["text"], "Hi Ann! 3 times, x");
    assert!(desk.end().success());
}

#[test]
fn a_line_that_never_ends_is_refused_once_and_skipped() {
    let project = project();
    let mut desk = Pipes::desk(project.path());
    desk.initialize();
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..40 {
        desk.write(&piece);
    }
    assert_eq!(error(&desk.next()), (-32600, Json::Null));
    desk.write("\n");
    let answer = desk.ask(1, "tools/list", json!({}));
    assert_eq!(answer["result"]["tools"][0]["name"], "rye_execute");
    assert!(desk.end().success());
}

#[test]
fn a_last_message_without_newline_is_answered() {
    let project = project();
    let mut desk = Pipes::desk(project.path());
    desk.initialize();
    desk.write(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string());
    let desk = desk.close_input();
    assert_eq!(desk.next()["id"], 1);
    assert!(desk.end().success());
}

#[test]
fn unknown_protocol_revisions_get_a_known_one() {
    let project = project();
    for (asked, agreed) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2024-11-05", "2024-11-05"),
        ("1999-01-01", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ] {
        let mut desk = Pipes::desk(project.path());
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let answer = desk.ask(1, "initialize", params);
        assert_eq!(answer["result"]["protocolVersion"], agreed, "{asked}");
    }
    // Without a handshake, every request names its revision.
    let mut desk = Pipes::desk(project.path());
    let meta = |version: &str| {
        json!({"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {},
               "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"}})
    };
    let answer = desk.ask(1, "server/discover", json!({"_meta": meta("2026-07-28")}));
    let versions = answer["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")), "{answer}");
    let answer = desk.ask(2, "tools/list", json!({"_meta": meta("2026-07-28")}));
    assert_eq!(answer["result"]["resultType"], "complete");
    let answer = desk.ask(3, "tools/list", json!({"_meta": meta("2999-01-01")}));
    assert!(answer["error"]["data"]["supported"].is_array(), "{answer}");
    let answer = desk.ask(4, "tools/list", json!({}));
    assert_eq!(error(&answer), (-32602, json!(4)));
    assert!(desk.end().success());
}

#[test]
fn a_client_that_leaves_during_a_call_ends_the_server() {
    let project = project();
    let mut desk = Pipes::desk(project.path());
    desk.initialize();
    let arguments = json!({"item_type": "tool", "item_id": "count", "parameters": {"steps": 100_000}});
    desk.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "rye_execute", "arguments": arguments}}));
    std::thread::sleep(std::time::Duration::from_millis(200));
    // `end` waits 20 seconds; the call would take an hour.
    assert!(desk.end().success());
}
