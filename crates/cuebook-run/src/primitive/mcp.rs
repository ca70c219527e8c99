//! The client side of the Model Context Protocol: one call of one tool of another server.
//!
//! [`Client`] decides what to send and what an answer means; it does no input or output. `mcp/stdio` lets it talk with a process,
//! `mcp/http` with a URL. A failed call is followed by a look at the list of tools, so that an unknown name gets a suggestion.

mod http;

use cuebook::error::{did_you_mean, nearest};
use cuebook::{Code, Diagnostic, Error, ErrorKind};
use serde_json::{Map, Value as Json, json};

use super::outcome::Outcome;
use crate::subprocess::Conversation;
use crate::watch::Watch;

pub(crate) use http::call;

/// The revision that is offered. A server may answer with another one: a call of a tool is the same in all of them.
const REVISION: &str = "2025-11-25";

/// What a client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Initialize,
    Call,
    List,
    Done,
}

impl Step {
    /// The number of its request.
    fn id(self) -> u64 {
        match self {
            Step::Initialize => 1,
            Step::Call => 2,
            Step::List => 3,
            Step::Done => 0,
        }
    }
}

/// Calls a tool of a server.
pub(crate) struct Client<'c> {
    tool: String,
    arguments: Map<String, Json>,
    watch: &'c dyn Watch,
    step: Step,
    /// Messages that are ready to be sent.
    ready: Vec<Json>,
    /// What the server wrote after its last complete line.
    line: Vec<u8>,
    /// The most bytes of a line.
    most: usize,
    revision: Option<String>,
    outcome: Option<Outcome>,
    /// A failure of the call, while the list of tools is looked at.
    failed: Option<Outcome>,
}

impl<'c> Client<'c> {
    pub(crate) fn new(
        tool: String,
        arguments: Map<String, Json>,
        most: usize,
        watch: &'c dyn Watch,
    ) -> Client<'c> {
        let info = json!({"name": "cuebook", "version": env!("CARGO_PKG_VERSION")});
        let params = json!({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": info});
        let mut client = Client {
            tool,
            arguments,
            watch,
            step: Step::Initialize,
            ready: Vec::new(),
            line: Vec::new(),
            most,
            revision: None,
            outcome: None,
            failed: None,
        };
        client.request(Step::Initialize, "initialize", params);
        client
    }

    /// The messages that are ready to be sent.
    pub(crate) fn take(&mut self) -> Vec<Json> {
        std::mem::take(&mut self.ready)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.step == Step::Done
    }

    /// The revision that the server speaks.
    pub(crate) fn revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }

    /// What came of the call; none if the server never answered it.
    pub(crate) fn into_outcome(self) -> Option<Outcome> {
        self.outcome.or(self.failed)
    }

    fn request(&mut self, step: Step, method: &str, params: Json) {
        self.step = step;
        self.ready.push(json!({"jsonrpc": "2.0", "id": step.id(), "method": method, "params": params}));
    }

    /// Takes a message of the server.
    pub(crate) fn receive(&mut self, message: &Json) {
        // A server of an older revision may put several into a list.
        if let Json::Array(messages) = message {
            messages.iter().for_each(|message| self.receive(message));
            return;
        }
        match (message.get("method").and_then(Json::as_str), message.get("id")) {
            (Some(method), Some(id)) => self.answer(method, id),
            (Some("notifications/progress"), None) => {
                let reported = message["params"]["message"]
                    .as_str()
                    .map_or_else(|| format!("progress {}", message["params"]["progress"]), str::to_owned);
                self.watch.progress(&reported);
            }
            (None, Some(id)) if id.as_u64() == Some(self.step.id()) => match message.get("error") {
                Some(error) => self.refused(error),
                None => self.advance(&message["result"]),
            },
            _ => {}
        }
    }

    /// Answers a request of the server. The only one that every client knows is `ping`.
    fn answer(&mut self, method: &str, id: &Json) {
        self.ready.push(match method {
            "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
            _ => {
                let error = json!({"code": -32601, "message": format!("this client has no {method}")});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        });
    }

    /// Goes on after a result.
    fn advance(&mut self, result: &Json) {
        match self.step {
            Step::Initialize => {
                self.revision = result["protocolVersion"].as_str().map(str::to_owned);
                self.ready.push(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
                let meta = json!({"progressToken": 1});
                let params = json!({"name": self.tool, "arguments": self.arguments, "_meta": meta});
                self.request(Step::Call, "tools/call", params);
            }
            Step::Call if result["isError"] == json!(true) => {
                let text = texts(result);
                let message =
                    if text.is_empty() { "the server reported that the call failed" } else { &text };
                self.look_for_the_tool(failure(&self.tool, message, data(result)));
            }
            Step::Call => self.finish(Outcome { data: data(result), failure: None }),
            Step::List => self.compare(result),
            Step::Done => {}
        }
    }

    /// Goes on after an error of the protocol.
    fn refused(&mut self, error: &Json) {
        let message = error["message"].as_str().unwrap_or("the server gave no reason");
        let reported = failure(&self.tool, message, json!({"error": error}));
        match self.step {
            Step::Call => self.look_for_the_tool(reported),
            // The list was asked for only to explain the failure better.
            Step::List => self.compare(&Json::Null),
            _ => self.finish(reported),
        }
    }

    fn look_for_the_tool(&mut self, failed: Outcome) {
        self.failed = Some(failed);
        self.request(Step::List, "tools/list", json!({}));
    }

    /// Replaces the failure if the server has no such tool.
    fn compare(&mut self, list: &Json) {
        let tools = list["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        let is_complete = list.get("nextCursor").is_none_or(Json::is_null);
        if !names.is_empty() && is_complete && !names.contains(&self.tool.as_str()) {
            let message = format!("the server has no tool `{}`", self.tool);
            let near = did_you_mean(&nearest(&self.tool, names.iter().copied()));
            let hint = near.unwrap_or_else(|| format!("it has {}", names[..names.len().min(3)].join(", ")));
            let diagnostic = Diagnostic::new(Code::ToolFailed, message.clone()).hint(hint);
            let error = Error::new(ErrorKind::Execute, diagnostic);
            return self.finish(Outcome { data: Json::Null, failure: Some((message, error)) });
        }
        if let Some(failed) = self.failed.take() {
            self.finish(failed);
        }
    }

    fn finish(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
        self.step = Step::Done;
    }
}

impl Conversation for Client<'_> {
    fn hear(&mut self, output: &[u8]) {
        for byte in output {
            if *byte != b'\n' {
                self.line.push(*byte);
                continue;
            }
            let line = std::mem::take(&mut self.line);
            // A line that is no message is a remark that belongs on the standard error.
            if let Ok(message) = serde_json::from_slice::<Json>(&line) {
                self.receive(&message);
            }
        }
        if self.line.len() > self.most {
            let message = format!("the server's answer is longer than {} bytes", self.most);
            self.finish(failure(&self.tool, &message, Json::Null));
        }
    }

    fn reply(&mut self) -> Vec<u8> {
        self.take().iter().flat_map(|message| format!("{message}\n").into_bytes()).collect()
    }

    fn is_over(&self) -> bool {
        self.is_done()
    }
}

/// What the answer says under `data`: the result without what is the protocol's own.
fn data(result: &Json) -> Json {
    let mut data = result.clone();
    if let Json::Object(data) = &mut data {
        data.retain(|name, _| !matches!(name.as_str(), "_meta" | "isError" | "resultType"));
    }
    data
}

/// The texts of a result.
fn texts(result: &Json) -> String {
    let content = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    content.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn failure(tool: &str, message: &str, data: Json) -> Outcome {
    let shown: String = message.chars().take(2000).collect();
    let diagnostic = Diagnostic::new(Code::ToolFailed, format!("`{tool}` of the MCP server failed: {shown}"));
    Outcome { data, failure: Some((message.to_owned(), Error::new(ErrorKind::Execute, diagnostic))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Ignore;

    fn client() -> Client<'static> {
        let mut client = Client::new("look".into(), Map::new(), 1000, &Ignore);
        assert_eq!(client.take()[0]["method"], "initialize");
        client.receive(&json!({"id": 1, "result": {"protocolVersion": "2025-06-18"}}));
        let sent = client.take();
        assert_eq!(
            (&sent[0]["method"], &sent[1]["method"]),
            (&json!("notifications/initialized"), &json!("tools/call"))
        );
        client
    }

    #[test]
    fn a_ping_is_answered_and_other_requests_are_refused() {
        let mut client = client();
        client.hear(b"not a message\n{\"id\": \"p\", \"method\": \"ping\"}\n{\"id\": 9, \"method\": \"roots/list\"}\n");
        let sent = client.take();
        assert_eq!((&sent[0]["id"], &sent[0]["result"]), (&json!("p"), &json!({})));
        assert_eq!(sent[1]["error"]["code"], -32601);
        assert!(!client.is_done());
    }

    #[test]
    fn a_failed_call_of_an_unknown_tool_suggests_a_name() {
        let mut client = client();
        client.receive(&json!({"id": 2, "error": {"code": -32602, "message": "what?"}}));
        assert_eq!(client.take()[0]["method"], "tools/list");
        client.receive(&json!({"id": 3, "result": {"tools": [{"name": "looks"}, {"name": "other"}]}}));
        let (message, error) = client.into_outcome().unwrap().failure.unwrap();
        assert_eq!(message, "the server has no tool `look`");
        assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `looks`?"));
    }

    #[test]
    fn a_failed_call_of_a_known_tool_keeps_its_own_words() {
        let mut client = client();
        let content = json!([{"type": "text", "text": "no light"}]);
        client.receive(&json!({"id": 2, "result": {"content": content, "isError": true}}));
        client.receive(&json!({"id": 3, "result": {"tools": [{"name": "look"}]}}));
        let outcome = client.into_outcome().unwrap();
        assert_eq!(outcome.failure.unwrap().0, "no light");
        assert_eq!(outcome.data, json!({"content": content}));
    }

    #[test]
    fn an_endless_line_ends_the_conversation() {
        let mut client = client();
        client.hear(&[b'x'; 1001]);
        assert!(client.is_done());
        assert!(client.into_outcome().unwrap().failure.unwrap().0.contains("longer than 1000 bytes"));
    }
}
