//! Requests of tools, to a server of the test's own.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};
use support::Fixture;

/// A server that answers each path in its own way, and remembers what it was asked.
fn serve() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (heard, own) = (asked.clone(), address.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                    break;
                }
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            let count = {
                let mut heard = heard.lock().unwrap();
                heard.push(format!("{head}\n{}", String::from_utf8_lossy(&body)));
                heard.len()
            };
            let answer = match path.as_str() {
                "/away" => {
                    // The same server by another name is another host.
                    let port = own.rsplit(':').next().unwrap();
                    format!("HTTP/1.1 302 Found\r\nlocation: http://localhost:{port}/there\r\ncontent-length: 0\r\n\r\n")
                }
                "/missing" => "HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnope".to_owned(),
                // Nothing at all, at first.
                "/shy" if count < 2 => String::new(),
                _ => "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n{\"ok\":true}".to_owned(),
            };
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (address, asked)
}

fn tool(world: &Fixture, name: &str, config: Json) {
    let yaml = format!(
        "version: 1.0.0\ntool_type: http\ncategory: demo\ndescription: D\nexecutor_id: rye/core/primitives/http_client\nconfig: {config}\n"
    );
    world.signed(&format!("tools/demo/{name}.yaml"), &yaml);
}

#[test]
fn a_request_gets_parameters_as_data() {
    let world = Fixture::new();
    let (address, asked) = serve();
    world.plain(".env", "TOKEN_OF_TEST=s3cret\n");
    tool(
        &world,
        "post",
        json!({
            "method": "POST", "url": format!("http://{address}/items/{{id}}?q={{q}}"),
            "auth": {"type": "bearer", "token": "${TOKEN_OF_TEST}"},
            "body": {"text": "{text}", "tags": "{tags}", "left_out": "{nothing}"},
        }),
    );
    world.allow();
    let parameters = json!({"id": "../admin", "q": "a&b=c", "text": "${TOKEN_OF_TEST}", "tags": ["x"], "url": "http://evil/"});
    let answer = world.tool("demo/post", parameters);
    assert_eq!(answer["status"], "success", "{answer}");
    assert_eq!(answer["data"]["status_code"], 200);
    assert_eq!(answer["data"]["body"], json!({"ok": true}));
    let heard = asked.lock().unwrap()[0].clone();
    assert!(heard.starts_with("POST /items/..%2Fadmin?q=a%26b%3Dc "), "{heard}");
    assert!(heard.to_lowercase().contains("authorization: bearer s3cret"), "{heard}");
    assert!(heard.ends_with(r#"{"text": "${TOKEN_OF_TEST}", "tags": ["x"]}"#), "{heard}");
    assert!(!answer.to_string().contains("s3cret"), "{answer}");
}

#[test]
fn a_secret_does_not_go_along_to_another_host() {
    let world = Fixture::new();
    let (address, asked) = serve();
    world.plain(".env", "TOKEN_OF_TEST=s3cret\n");
    let auth = json!({"type": "api_key", "key": "${TOKEN_OF_TEST}"});
    tool(&world, "away", json!({"url": format!("http://{address}/away"), "auth": auth}));
    world.allow();
    let answer = world.tool("demo/away", json!({}));
    assert_eq!(answer["data"]["status_code"], 200, "{answer}");
    let heard = asked.lock().unwrap().clone();
    assert!(heard[0].to_lowercase().contains("x-api-key: s3cret"));
    assert!(heard[1].starts_with("GET /there ") && !heard[1].contains("s3cret"), "{}", heard[1]);
}

#[test]
fn lost_requests_are_retried_and_statuses_are_answers() {
    let world = Fixture::new();
    let (address, asked) = serve();
    tool(
        &world,
        "shy",
        json!({"url": format!("http://{address}/shy"), "retry": {"max_attempts": 2, "backoff": "constant"}}),
    );
    let answer = world.tool("demo/shy", json!({}));
    assert_eq!(answer["status"], "success", "{answer}");
    assert_eq!(asked.lock().unwrap().len(), 2);
    tool(&world, "missing", json!({"url": format!("http://{address}/missing")}));
    let answer = world.tool("demo/missing", json!({}));
    assert_eq!((&answer["error"], &answer["data"]["body"]), (&json!("HTTP 404: Not Found"), &json!("nope")));
    assert_eq!(answer["metadata"]["error"]["code"], "CB711");
}

#[test]
fn callers_cannot_reach_local_hosts() {
    let world = Fixture::new();
    let (address, asked) = serve();
    tool(&world, "fetch", json!({"url": "{url}"}));
    tool(&world, "host", json!({"url": "http://{host}/x"}));
    for answer in [
        world.tool("demo/fetch", json!({"url": format!("http://{address}/x")})),
        world.tool("demo/host", json!({"host": "localhost"})),
    ] {
        assert_eq!(answer["metadata"]["error"]["code"], "CB711", "{answer}");
    }
    assert!(asked.lock().unwrap().is_empty());
}

#[test]
fn a_secret_that_is_not_set_is_named_and_nothing_is_sent() {
    let world = Fixture::new();
    let (address, asked) = serve();
    tool(
        &world,
        "bare",
        json!({"url": format!("http://{address}/x"), "auth": {"token": "${NO_SUCH_TOKEN}"}}),
    );
    let answer = world.tool("demo/bare", json!({}));
    assert_eq!(answer["error"], "the environment variable NO_SUCH_TOKEN is not set");
    assert!(asked.lock().unwrap().is_empty());
}
