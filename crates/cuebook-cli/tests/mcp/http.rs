//! `cuebook mcp --http`: which requests are answered, and slow clients that lock out no others.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::support::Project;
use crate::{ask, hello};

/// A server that listens. It is stopped when this is dropped.
pub struct Listening {
    child: Child,
    address: String,
    /// What it printed before it was ready, with its token if it made one.
    said: String,
}

impl Listening {
    pub fn start(mut command: Command) -> Listening {
        // The last line that it prints before it is ready.
        let has_token = command.get_args().any(|arg| arg == "--token-env");
        let last = if has_token { "listening at" } else { "--token-env NAME" };
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut said = String::new();
        let mut address = None;
        for line in lines.by_ref() {
            said.push_str(&line);
            said.push('\n');
            let found = line.split_once("http://").and_then(|(_, rest)| rest.split_once("/mcp"));
            address = address.or(found.map(|(found, _)| found.to_owned()));
            if line.contains(last) {
                break;
            }
        }
        // A client that prints more must not block.
        std::thread::spawn(move || lines.for_each(drop));
        Listening { child, address: address.unwrap_or_else(|| panic!("{said}")), said }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    fn token(&self) -> &str {
        let (_, rest) = self.said.split_once("Authorization: Bearer ").unwrap();
        rest.lines().next().unwrap()
    }

    /// A session for a client with a token: the headers of its requests.
    pub fn session(&self, token: &str) -> [(&'static str, String); 2] {
        let token = bearer(token);
        let (status, began) = self.post(&hello(), &[("Authorization", &token)]);
        assert_eq!(status, 200, "{began}");
        let session = began
            .lines()
            .find_map(|line| line.to_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned));
        [("Authorization", token), ("Mcp-Session-Id", session.unwrap())]
    }

    pub fn post(&self, body: &Json, headers: &[(&str, &str)]) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let body = body.to_string();
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
            self.address,
            body.len()
        );
        headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.unwrap_or_else(|| panic!("{answer:?}")), answer)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[test]
fn a_request_without_the_token_is_refused_on_this_machine_too() {
    let project = Project::new();
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    command.args(["mcp", "--http", "127.0.0.1:0"]);
    let server = Listening::start(command);
    let token = server.token().to_owned();
    assert!(token.len() == 64 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{}", server.said);
    assert_eq!(server.post(&hello(), &[("Authorization", &bearer(&token))]).0, 200);
    let shell = json!({"item_type": "tool", "item_id": "rye/bash/bash", "parameters": {"command": "id"}});
    let shell = ask(1, "tools/call", json!({"name": "rye_execute", "arguments": shell}));
    for body in [hello(), shell] {
        for wrong in [&[][..], &[("Authorization", bearer(&"0".repeat(64)))]] {
            let headers: Vec<(&str, &str)> =
                wrong.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let (status, answer) = server.post(&body, &headers);
            assert_eq!(status, 401, "{answer}");
            assert!(!answer.contains(&token) && !answer.contains("uid="), "{answer}");
        }
    }
    // The line for a client's settings is JSON that works.
    let (_, settings) = server.said.split_once("settings: ").unwrap();
    let settings: Json = serde_json::from_str(settings.lines().next().unwrap()).unwrap();
    assert_eq!(settings["url"], format!("http://{}/mcp", server.address));
    assert_eq!(settings["headers"]["Authorization"], bearer(&token));
}

#[cfg(unix)]
#[test]
fn half_sent_requests_do_not_shut_out_a_client_with_the_token() {
    let project = Project::new();
    let mut command = project.command("sh", project.path());
    let script = "ulimit -n 128 && exec \"$0\" mcp --http 127.0.0.1:0";
    command.args(["-c", script, env!("CARGO_BIN_EXE_cuebook")]);
    let server = Listening::start(command);
    // A session that began before them goes on as well.
    let [(_, token), (_, session)] = server.session(server.token());
    let mut half: Vec<TcpStream> = Vec::new();
    for _ in 0..600 {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        // The server may have closed it already, which is what it should do with the oldest.
        let _ = stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: ");
        half.push(stream);
    }
    for _ in 0..3 {
        assert_eq!(server.post(&hello(), &[("Authorization", &token)]).0, 200);
        let list = ask(5, "prompts/list", json!({}));
        let (status, listed) = server.post(&list, &[("Authorization", &token), ("Mcp-Session-Id", &session)]);
        assert_eq!(status, 200, "{listed}");
        assert!(listed.contains("general_system"), "{listed}");
    }
    // The oldest of them were closed to make room.
    half[0].set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert!(matches!(half[0].read(&mut [0; 1]), Ok(0) | Err(_)));
}
