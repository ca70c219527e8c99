//! Over HTTP: who is answered, who is not, and how the server begins and ends.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use support::{TEST_SERVER, TOKEN, TestServer, project};

/// The status and the rest of an answer to a request with these headers.
fn ask(desk: &TestServer, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(desk.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut request =
        format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
    let mut answer = Vec::new();
    // A stream that stays open is cut off; what has come by then is enough.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .unwrap_or_else(|| panic!("{answer:?}"));
    (status, answer)
}

const BEARER: (&str, &str) = ("Authorization", "Bearer a-token-of-the-tests-0123456789");
const JSON: (&str, &str) = ("Content-Type", "application/json");
const BOTH: (&str, &str) = ("Accept", "application/json, text/event-stream");

fn initialize(desk: &TestServer, more: &[(&str, &str)]) -> (u16, String) {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string();
    let mut headers = vec![JSON, BOTH];
    headers.extend(more);
    ask(desk, "POST", "/mcp", &headers, &body)
}

#[test]
fn strangers_are_refused_before_anything_is_looked_at() {
    let project = project();
    let desk = TestServer::listening(project.path(), "127.0.0.1:0");
    let (host, token) = (("Host", desk.address()), BEARER);
    assert_eq!(initialize(&desk, &[host, token]).0, 200);
    assert_eq!(initialize(&desk, &[("Host", "localhost"), token]).0, 200);
    assert_eq!(initialize(&desk, &[host, token, ("Origin", "https://app.example.com")]).0, 200);
    for headers in [
        &[("Host", "evil.example"), token][..],
        &[host, token, ("Origin", "https://evil.example")],
        &[host, token, ("Origin", "null")],
        &[host, token, ("Origin", "http://localhost:1")],
    ] {
        let (status, answer) = initialize(&desk, headers);
        assert_eq!(status, 403, "{headers:?}: {answer}");
        assert!(!answer.to_lowercase().contains("access-control-allow-origin"), "{answer}");
    }
    for headers in
        [&[host][..], &[host, ("Authorization", "Bearer wrong")], &[host, ("Authorization", TOKEN)]]
    {
        let (status, answer) = initialize(&desk, headers);
        assert_eq!(status, 401, "{headers:?}: {answer}");
        assert!(answer.to_lowercase().contains("www-authenticate: bearer"), "{answer}");
        assert!(!answer.contains(TOKEN), "{answer}");
    }
    // Not even whether a path exists is reported.
    assert_eq!(ask(&desk, "GET", "/other", &[host], "").0, 401);
    assert_eq!(ask(&desk, "GET", "/other", &[host, token], "").0, 404);
}

#[test]
fn a_page_that_was_allowed_may_ask_and_read() {
    let project = project();
    let desk = TestServer::listening(project.path(), "127.0.0.1:0");
    let host = ("Host", desk.address());
    let page = ("Origin", "https://app.example.com");
    let asks = ("Access-Control-Request-Method", "POST");
    let (status, answer) = ask(&desk, "OPTIONS", "/mcp", &[host, page, asks], "");
    let answer = answer.to_lowercase();
    assert_eq!(status, 204, "{answer}");
    assert!(answer.contains("access-control-allow-origin: https://app.example.com"), "{answer}");
    assert!(answer.contains("authorization") && answer.contains("mcp-session-id"), "{answer}");
    assert_eq!(ask(&desk, "OPTIONS", "/mcp", &[host, ("Origin", "https://evil.example"), asks], "").0, 403);
}

#[test]
fn garbage_over_http_is_refused_and_harms_nothing() {
    let project = project();
    let desk = TestServer::listening(project.path(), "127.0.0.1:0");
    let host = ("Host", desk.address());
    for body in ["", "{", "[]", "5", "{\"jsonrpc\": \"2.0\"}", "\u{0}"] {
        let (status, answer) = ask(&desk, "POST", "/mcp", &[host, BEARER, JSON, BOTH], body);
        assert!((400..500).contains(&status), "{body:?}: {answer}");
    }
    assert!((400..500).contains(&ask(&desk, "PUT", "/mcp", &[host, BEARER], "").0));
    assert!((400..500).contains(
        &ask(&desk, "POST", "/mcp", &[host, BEARER, JSON, BOTH, ("Mcp-Session-Id", "none")], "{}").0
    ));
    let large = format!(
        "{{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\", \"params\": {{\"x\": \"{}\"}}}}",
        "y".repeat(1 << 20)
    );
    assert!(ask(&desk, "POST", "/mcp", &[host, BEARER, JSON, BOTH], &large).0 < 500);
    assert_eq!(initialize(&desk, &[host, BEARER]).0, 200);
}

#[cfg(unix)]
#[test]
fn it_ends_on_request_even_with_listeners() {
    let project = project();
    let desk = TestServer::listening(project.path(), "127.0.0.1:0");
    let (_, answer) = initialize(&desk, &[("Host", desk.address()), BEARER]);
    let session = answer
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned));
    let mut stream = TcpStream::connect(desk.address()).unwrap();
    let head = format!(
        "GET /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nAccept: text/event-stream\r\nMcp-Session-Id: {}\r\n\r\n",
        desk.address(),
        session.unwrap()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    assert!(desk.terminate().success());
}

#[cfg(unix)]
#[test]
fn running_calls_stop_with_the_server() {
    let project = project();
    let desk = TestServer::listening(project.path(), "127.0.0.1:0");
    let (_, answer) = initialize(&desk, &[("Host", desk.address()), BEARER]);
    let session = answer
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned))
        .unwrap();
    let headers = [("Host", desk.address()), BEARER, JSON, BOTH, ("Mcp-Session-Id", session.as_str())];
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    assert_eq!(ask(&desk, "POST", "/mcp", &headers, &initialized).0, 202);
    let arguments = json!({"item_type": "tool", "item_id": "count", "parameters": {"steps": 100_000}});
    let params = json!({"name": "rye_execute", "arguments": arguments, "_meta": {"progressToken": "p"}});
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string();
    let mut stream = TcpStream::connect(desk.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut head = format!("POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", call.len());
    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    stream.write_all(format!("{head}\r\n{call}").as_bytes()).unwrap();
    let (mut reported, mut piece) = (String::new(), [0; 1024]);
    while !reported.contains("notifications/progress") {
        let length = stream.read(&mut piece).unwrap();
        assert!(length > 0, "{reported}");
        reported.push_str(&String::from_utf8_lossy(&piece[..length]));
    }
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        let _ = stream.read_to_string(&mut rest);
        rest
    });
    assert!(desk.terminate().success());
    let rest = rest.join().unwrap();
    assert!(rest.contains("-32603") && rest.contains("the request was cancelled"), "{rest}");
}

#[test]
fn a_server_that_cannot_or_may_not_listen_says_so() {
    let project = project();
    let desk = TestServer::listening(project.path(), "127.0.0.1:0");
    let fails = |address: &str, token: &str| {
        let mut command = Command::new(TEST_SERVER);
        command.arg(project.path()).args([address, "DESK_TOKEN"]).env("DESK_TOKEN", token);
        let output = command.output().unwrap();
        assert!(!output.status.success(), "{address}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(fails(desk.address(), TOKEN).contains("CB801"));
    assert!(fails("nowhere", TOKEN).contains("CB802"));
    assert!(fails("127.0.0.1:0", "").contains("CB803"));
    let short = fails("127.0.0.1:0", "hunter2");
    assert!(short.contains("CB803") && !short.contains("hunter2"), "{short}");
}

#[test]
fn a_session_that_is_deleted_answers_204_and_is_gone() {
    let project = project();
    let desk = TestServer::listening(project.path(), "127.0.0.1:0");
    let (_, answer) = initialize(&desk, &[("Host", desk.address()), BEARER]);
    let session = answer
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned))
        .unwrap();
    let headers = [("Host", desk.address()), BEARER, JSON, BOTH, ("Mcp-Session-Id", session.as_str())];
    let (status, answer) = ask(&desk, "DELETE", "/mcp", &headers, "");
    assert_eq!(status, 204, "{answer}");
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "prompts/list"}).to_string();
    assert_eq!(ask(&desk, "POST", "/mcp", &headers, &list).0, 404);
}
