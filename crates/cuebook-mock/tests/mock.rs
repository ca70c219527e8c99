//! The server does what its script says.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

use std::io::{Read, Write};
use std::net::TcpStream;

use cuebook_mock::{Api, Mock, Reply, Script};
use serde_json::{Value as Json, json};

fn path(api: Api, stream: bool) -> String {
    match api {
        Api::OpenAiChat => "/v1/chat/completions".into(),
        Api::OpenAiResponses => "/v1/responses".into(),
        Api::Anthropic => "/v1/messages".into(),
        Api::Gemini if stream => "/models/m:streamGenerateContent?alt=sse".into(),
        Api::Gemini => "/models/m:generateContent".into(),
    }
}

fn write(connection: &mut TcpStream, path: &str, body: &Json, close: bool) {
    let body = body.to_string();
    let close = if close { "connection: close\r\n" } else { "" };
    let length = body.len();
    write!(connection, "POST {path} HTTP/1.1\r\nhost: x\r\n{close}content-length: {length}\r\n\r\n{body}")
        .unwrap();
}

fn connect(mock: &Mock) -> TcpStream {
    TcpStream::connect(mock.url().trim_start_matches("http://")).unwrap()
}

/// Head and body of the one reply to one request.
fn ask(mock: &Mock, path: &str, body: &Json) -> (String, Vec<u8>) {
    let mut connection = connect(mock);
    write(&mut connection, path, body, true);
    let mut all = Vec::new();
    connection.read_to_end(&mut all).unwrap();
    let end = all.windows(4).position(|four| four == b"\r\n\r\n").map_or(all.len(), |at| at + 4);
    (String::from_utf8(all[..end].to_vec()).unwrap(), all[end..].to_vec())
}

/// The body behind chunks.
fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        whole.extend_from_slice(&body[end + 2..end + 2 + size]);
        body = &body[end + 2 + size + 2..];
        if size == 0 {
            break;
        }
    }
    whole
}

#[test]
fn every_interface_says_the_same_whole_and_as_a_stream() {
    for api in Api::ALL {
        let reply =
            Reply::text("Grüße").thinking("hm").and_call("c1", "look", json!({"at": "α"})).usage(7, 3);
        let mock = Mock::start(Script::new().times(2, reply)).unwrap();
        let (head, body) = ask(&mock, &path(api, false), &json!({"model": "m"}));
        assert!(head.starts_with("HTTP/1.1 200 OK\r\ncontent-type: application/json"), "{head}");
        let whole: Json = serde_json::from_slice(&body).unwrap();
        let text = whole.to_string();
        for word in ["Grüße", "hm", "c1", "look", "α"] {
            assert!(text.contains(word), "{api:?} {word} {text}");
        }
        let asked = json!({"model": "m", "stream": true, "stream_options": {"include_usage": true}});
        let (head, body) = ask(&mock, &path(api, true), &asked);
        assert!(head.contains("text/event-stream"), "{head}");
        let text = String::from_utf8(unchunked(&body)).unwrap();
        assert!(text.contains("Grüß") && text.contains("look"), "{api:?} {text}");
        let requests = mock.requests();
        assert_eq!(requests.len(), 2);
        assert_eq!((requests[0].api, requests[0].stream), (Some(api), false));
        assert_eq!((requests[1].stream, requests[1].model()), (true, Some("m")));
    }
}

#[test]
fn pieces_cut_characters() {
    let mock = Mock::start(Script::new().reply(Reply::text("ääää").pieces(1))).unwrap();
    let (_, body) = ask(&mock, &path(Api::OpenAiChat, true), &json!({"stream": true}));
    assert!(body.starts_with(b"1\r\nd\r\n1\r\na\r\n"));
    assert!(String::from_utf8(unchunked(&body)).unwrap().contains("ääää"));
}

#[test]
fn a_connection_serves_several_requests() {
    let mock = Mock::start(Script::new().text("a").text("b")).unwrap();
    let mut connection = connect(&mock);
    for close in [false, true] {
        write(&mut connection, &path(Api::Anthropic, false), &json!({}), close);
        let mut part = [0; 1];
        connection.read_exact(&mut part).unwrap();
        if close {
            let mut rest = String::new();
            connection.read_to_string(&mut rest).unwrap();
            assert!(rest.contains("\"text\":\"b\""), "{rest}");
        } else {
            let mut head = Vec::new();
            while !head.ends_with(b"}}") {
                connection.read_exact(&mut part).unwrap();
                head.push(part[0]);
            }
        }
    }
    assert_eq!((mock.connections(), mock.requests().len(), mock.left()), (1, 2, 0));
}

#[test]
fn replies_break_where_the_script_says() {
    let script = Script::new()
        .reply(Reply::text("long enough").close_after(20))
        .reply(Reply::text("long enough").truncate(20))
        .reply(Reply::hang_up())
        .status(429, json!({"error": {"message": "no"}}))
        .header("retry-after", "7");
    let mock = Mock::start(script).unwrap();
    let at = path(Api::OpenAiChat, false);
    let length = |head: &str| head.split("content-length: ").nth(1).unwrap().trim().parse::<usize>().unwrap();
    let (head, body) = ask(&mock, &at, &json!({}));
    assert!(body.len() == 20 && length(&head) > 20, "{head}");
    let (head, body) = ask(&mock, &at, &json!({}));
    assert_eq!((body.len(), length(&head)), (20, 20));
    assert_eq!(ask(&mock, &at, &json!({})).0, "");
    let (head, _) = ask(&mock, &at, &json!({}));
    assert!(head.starts_with("HTTP/1.1 429 Too Many Requests") && head.contains("retry-after: 7"), "{head}");
    // The script is at its end.
    assert!(ask(&mock, &at, &json!({})).0.starts_with("HTTP/1.1 400"));
    assert!(ask(&mock, "/elsewhere", &json!({})).0.starts_with("HTTP/1.1 400"));
}

#[test]
fn a_server_that_stalls_stops_when_it_is_dropped() {
    let reply = Reply::text("x").first_byte_after(std::time::Duration::from_secs(3600));
    let mock = Mock::start(Script::answer(move |_| reply.clone())).unwrap();
    let mut connection = connect(&mock);
    write(&mut connection, &path(Api::Gemini, true), &json!({}), false);
    assert!(mock.wait_for_requests(1, std::time::Duration::from_secs(20)));
    drop(mock);
    let mut rest = Vec::new();
    // Closed or reset, but not kept waiting.
    let _ = connection.read_to_end(&mut rest);
    assert!(rest.is_empty());
}

#[test]
fn a_script_in_json_is_strict() {
    let script =
        json!([{"text": "a", "usage": {"input": 1, "output": 2}}, {"status": 500, "body": {"error": "x"}}]);
    assert!(Script::from_json(&script).is_ok());
    let wrong = Script::from_json(&json!([{"txt": "a"}])).unwrap_err();
    assert_eq!(wrong, "reply 1: unknown key `txt`");
}
