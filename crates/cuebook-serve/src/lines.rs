//! Messages over a pair of streams, one JSON document per line.
//!
//! Whatever comes in, the connection stays open and the sender gets the reason: a line that is not JSON (`-32700`), one
//! that is too long or no message (`-32600`), parameters of a wrong shape (`-32602`). The SDK's own transport drops the first two
//! without a word. Unknown notifications are ignored, as the protocol wants it.

use std::io;
use std::sync::Arc;

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, GetMeta, JsonRpcError, JsonRpcMessage, ProtocolVersion,
    RequestId, ServerJsonRpcMessage,
};
use rmcp::service::RoleServer;
use rmcp::transport::Transport;
use serde_json::{Value as Json, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::server::not_understood;

/// The longest line that is read, in bytes. Pictures travel in lines.
pub(crate) const LONGEST: usize = 32 << 20;
/// A buffer that a long line has left behind is not kept.
const KEPT: usize = 64 << 10;

/// Both directions of a connection.
pub(crate) struct Lines<R, W> {
    read: BufReader<R>,
    write: Arc<Mutex<W>>,
    line: Vec<u8>,
    longest: usize,
    /// Whether the rest of a line that is too long is being skipped.
    skipping: bool,
    /// Whether the client has said how it wants to speak. The SDK ends the connection if it hears anything but requests before.
    begun: bool,
    /// An error on its way out. Its task is kept here because waiting for it may be broken off, and half a line must not be.
    refusing: Option<JoinHandle<()>>,
}

/// What a line is.
#[derive(Debug)]
enum Line {
    Message(Box<ClientJsonRpcMessage>),
    Nothing,
    Wrong(ErrorData, Option<RequestId>),
}

/// What reading gave.
enum Read {
    Line,
    TooLong,
    End,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(crate) fn new(read: R, write: W) -> Lines<R, W> {
        Lines {
            read: BufReader::new(read),
            write: Arc::new(Mutex::new(write)),
            line: Vec::new(),
            longest: LONGEST,
            skipping: false,
            begun: false,
            refusing: None,
        }
    }

    /// Reads the next line. May be broken off at any point and asked again: what was read so far is kept.
    async fn read_line(&mut self) -> Read {
        loop {
            let Ok(bytes) = self.read.fill_buf().await else { return Read::End };
            if bytes.is_empty() {
                // A last line without an end is a line.
                let rest = !self.line.is_empty() && !self.skipping;
                return if rest { Read::Line } else { Read::End };
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let take = end.map_or(bytes.len(), |end| end + 1);
            let fits = self.line.len() + take <= self.longest;
            if fits && !self.skipping {
                self.line.extend_from_slice(&bytes[..take]);
            }
            self.read.consume(take);
            if self.skipping {
                self.skipping = end.is_none();
            } else if !fits {
                self.line = Vec::new();
                self.skipping = end.is_none();
                return Read::TooLong;
            } else if end.is_some() {
                return Read::Line;
            }
        }
    }

    fn refuse(&mut self, error: ErrorData, id: Option<RequestId>) {
        let mut message = json!(JsonRpcError::new(id, error));
        // JSON-RPC wants a `null` where there is no id to name.
        if let Some(object) = message.as_object_mut() {
            object.entry("id").or_insert(Json::Null);
        }
        let write = self.write.clone();
        self.refusing = Some(tokio::spawn(async move {
            // If the reader is gone, the next read says so.
            let _ = send(&write, &message).await;
        }));
    }
}

async fn send<W: AsyncWrite + Unpin>(write: &Mutex<W>, message: &impl serde::Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut write = write.lock().await;
    write.write_all(&line).await?;
    write.flush().await
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let write = self.write.clone();
        async move { send(&write, &message).await }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(task) = &mut self.refusing {
                let _ = task.await;
                self.refusing = None;
            }
            let line = match self.read_line().await {
                Read::Line => parse(&self.line),
                Read::TooLong => {
                    let message = format!("a line has more than {} MiB", self.longest >> 20);
                    Line::Wrong(ErrorData::invalid_request(message, None), None)
                }
                Read::End => return None,
            };
            self.line.clear();
            self.line.shrink_to(KEPT);
            match line {
                Line::Nothing => {}
                Line::Wrong(error, id) => self.refuse(error, id),
                Line::Message(message) if self.begun => return Some(*message),
                Line::Message(message) => {
                    if let ClientJsonRpcMessage::Request(request) = &*message {
                        self.begun = begins(&request.request);
                        return Some(*message);
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.write.lock().await.flush().await
    }
}

/// Whether a request settles how the two speak: by the handshake, or by naming its revision.
fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::DiscoverRequest(_) => false,
        request => {
            let meta = request.get_meta();
            let version = meta.protocol_version();
            version.is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version))
                && meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
        }
    }
}

fn parse(line: &[u8]) -> Line {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Line::Nothing;
    }
    match serde_json::from_slice::<ClientJsonRpcMessage>(line) {
        // A request whose id is of an odd type looks like a notification.
        Ok(JsonRpcMessage::Notification(_)) if has_id(line) => explain(line),
        Ok(message) => Line::Message(Box::new(message)),
        Err(_) => explain(line),
    }
}

fn has_id(line: &[u8]) -> bool {
    serde_json::from_slice::<Json>(line).is_ok_and(|message| message.get("id").is_some())
}

/// What is wrong with a line that is no message.
fn explain(line: &[u8]) -> Line {
    let message: Json = match serde_json::from_slice(line) {
        Ok(message) => message,
        Err(error) => {
            return Line::Wrong(ErrorData::parse_error(format!("a line is not JSON: {error}"), None), None);
        }
    };
    let wrong = |what: &'static str, id| Line::Wrong(ErrorData::invalid_request(what, None), id);
    let Some(object) = message.as_object() else {
        return match message {
            Json::Array(_) => wrong("the protocol has no batches: send one message per line", None),
            _ => wrong("a message must be a JSON object", None),
        };
    };
    let id: Option<RequestId> = object.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    if object.contains_key("id") && id.is_none() {
        return wrong("an id must be a string or a whole number", None);
    }
    if object.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
        return wrong("a message must have \"jsonrpc\": \"2.0\"", id);
    }
    let is_answer = object.contains_key("result") || object.contains_key("error");
    match (object.get("method"), id) {
        // An answer to no request, and a notification that cannot be read, are ignored.
        (None, _) if is_answer => Line::Nothing,
        (Some(Json::String(_)), None) => Line::Nothing,
        (Some(Json::String(method)), id) => Line::Wrong(not_understood(method), id),
        (_, id) => wrong("a message must name its method", id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> (i32, Json) {
        match parse(line.as_bytes()) {
            Line::Wrong(error, id) => (error.code.0, json!(id)),
            Line::Message(message) => panic!("{line} is {message:?}"),
            Line::Nothing => panic!("{line} is nothing"),
        }
    }

    #[test]
    fn invalid_messages_are_refused_with_their_id() {
        for (line, code, id) in [
            ("{", -32700, Json::Null),
            ("hello", -32700, Json::Null),
            ("\u{0}", -32700, Json::Null),
            ("[]", -32600, Json::Null),
            ("5", -32600, Json::Null),
            ("{}", -32600, Json::Null),
            (r#"{"jsonrpc": "2.0", "id": 7}"#, -32600, json!(7)),
            (r#"{"jsonrpc": "1.0", "id": "a", "method": "ping"}"#, -32600, json!("a")),
            (r#"{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}"#, -32600, Json::Null),
            (r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#, -32600, Json::Null),
            (r#"{"jsonrpc": "2.0", "id": {"a": 1}, "method": "tools/list"}"#, -32600, Json::Null),
            (r#"{"jsonrpc": "2.0", "id": [1], "method": "nothing/like/it"}"#, -32600, Json::Null),
            (r#"{"jsonrpc": "2.0", "id": true, "method": "notifications/initialized"}"#, -32600, Json::Null),
            (r#"{"jsonrpc": "2.0", "id": 1, "method": 5}"#, -32600, json!(1)),
            (r#"{"jsonrpc": "2.0", "id": 1, "method": "unknown/method", "params": [1]}"#, -32601, json!(1)),
            (r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": [1]}"#, -32602, json!(1)),
        ] {
            assert_eq!(refused(line), (code, id), "{line}");
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(refused(&deep).0, -32700);
        assert!(matches!(parse(b"\xff\xfe{}"), Line::Wrong(error, None) if error.code.0 == -32700));
    }

    #[test]
    fn messages_get_through_and_what_needs_no_answer_gets_none() {
        for line in [
            r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#,
            "\u{feff}{\"jsonrpc\": \"2.0\", \"id\": \"x\", \"method\": \"prompts/list\"}\r\n",
            r#"{"jsonrpc": "2.0", "id": -3, "method": "unknown/method", "params": {"a": 1}}"#,
            r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#,
        ] {
            assert!(matches!(parse(line.as_bytes()), Line::Message(_)), "{line}");
        }
        for line in ["", "  \r\n", r#"{"jsonrpc": "2.0", "error": 5}"#] {
            let parsed = parse(line.as_bytes());
            assert!(matches!(parsed, Line::Nothing), "{line}: {parsed:?}");
        }
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_skipped_and_the_next_one_read() {
        let ping = br#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#;
        let mut input = vec![b'x'; 5000];
        input.push(b'\n');
        input.extend_from_slice(ping);
        let (mut far, near) = tokio::io::duplex(1 << 16);
        let mut lines = Lines::new(&input[..], near);
        lines.longest = 1000;
        assert!(matches!(lines.receive().await, Some(ClientJsonRpcMessage::Request(_))));
        assert!(lines.receive().await.is_none());
        drop(lines);
        let mut said = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut far, &mut said).await.unwrap();
        assert!(said.contains("-32600") && said.contains("\"id\":null"), "{said}");
    }
}
