//! A call of a tool of an MCP server over streamable HTTP.

use std::time::{Duration, Instant};

use cuebook::chat::reply::Sse;
use cuebook::hooks::{Http, HttpRequest, HttpResponse};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use cuebook_hooks::http::HttpClient;
use serde_json::Value as Json;

use super::Client;
use crate::fence::Fencing;
use crate::primitive::http::{Request, reason, refused};
use crate::primitive::outcome::Outcome;
use crate::primitive::sink::is_event_stream;

const SESSION: &str = "mcp-session-id";
/// How long the end of a session may take.
const GOODBYE: Duration = Duration::from_secs(5);

/// Calls a tool of the server at a URL.
pub(crate) fn call(request: &Request, mut client: Client<'_>, fence: Option<&Fencing>) -> Result<Outcome> {
    let http = crate::primitive::client(request.host_is_written, fence);
    let mut session = Session {
        http,
        request: &request.request,
        fence,
        id: None,
        until: Instant::now() + request.request.timeout,
    };
    let done = session.talk(&mut client);
    session.end(&client);
    done?;
    client.into_outcome().ok_or_else(|| failed("the MCP server did not answer the call".to_owned()))
}

struct Session<'s> {
    http: HttpClient,
    request: &'s HttpRequest,
    fence: Option<&'s Fencing>,
    id: Option<String>,
    until: Instant,
}

impl Session<'_> {
    fn talk(&mut self, client: &mut Client<'_>) -> Result<()> {
        while !client.is_done() {
            let messages = client.take();
            if messages.is_empty() {
                return Ok(());
            }
            for message in messages {
                self.post(&message, client)?;
            }
        }
        Ok(())
    }

    /// Sends one message and takes what the server answers.
    fn post(&mut self, message: &Json, client: &mut Client<'_>) -> Result<()> {
        let request = HttpRequest {
            method: "POST".into(),
            body: Some(message.to_string()),
            headers: self.headers(client),
            timeout: self.until.saturating_duration_since(Instant::now()),
            url: self.request.url.clone(),
        };
        let (mut sse, mut body) = (Sse::with_limit(client.most), Vec::new());
        let (most, before) = (client.most, client.step);
        let answer = self.http.stream(&request, &mut |answer, bytes| {
            if !is_event_stream(answer) {
                body.extend_from_slice(bytes);
                return body.len() <= most;
            }
            for event in sse.feed(bytes).into_iter().flatten() {
                if let Ok(message) = event.json() {
                    client.receive(&message);
                }
            }
            // A server may keep the stream open after its answer.
            client.step == before
        });
        let answer = answer.map_err(|refusal| refused(&refusal, 1, self.fence))?;
        if body.len() > most {
            return Err(failed(format!("the answer of the MCP server is longer than {most} bytes")));
        }
        let parsed: Option<Json> = serde_json::from_slice(&body).ok();
        // A server may say with a status what it also says in its answer to the request.
        let is_answer = |parsed: &Json| message.get("id").is_some_and(|id| parsed.get("id") == Some(id));
        if !(200..300).contains(&answer.status) && !parsed.as_ref().is_some_and(is_answer) {
            return Err(status(&answer));
        }
        if let Some(parsed) = parsed {
            client.receive(&parsed);
        }
        if self.id.is_none() {
            self.id = answer.headers.iter().find(|(name, _)| name == SESSION).map(|(_, id)| id.clone());
        }
        Ok(())
    }

    fn headers(&self, client: &Client<'_>) -> Vec<(String, String)> {
        let mut headers = self.request.headers.clone();
        headers.retain(|(name, _)| {
            !["accept", "content-type", SESSION, "mcp-protocol-version"]
                .contains(&name.to_ascii_lowercase().as_str())
        });
        let mut add = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        add("accept", "application/json, text/event-stream");
        add("content-type", "application/json");
        if let Some(revision) = client.revision() {
            add("mcp-protocol-version", revision);
        }
        if let Some(id) = &self.id {
            add(SESSION, id);
        }
        headers
    }

    /// Ends the session, if the server began one. It has answered already, so a failure changes nothing.
    fn end(&self, client: &Client<'_>) {
        if self.id.is_some() {
            let request = HttpRequest {
                method: "DELETE".into(),
                body: None,
                headers: self.headers(client),
                timeout: GOODBYE,
                url: self.request.url.clone(),
            };
            let _ = self.http.request(&request);
        }
    }
}

/// The error for an answer that says that the request failed.
fn status(answer: &HttpResponse) -> Error {
    let message = format!("the MCP server answers HTTP {} {}", answer.status, reason(answer.status));
    let hint = match answer.status {
        401 | 403 => {
            "give the tool's `config` an `auth`, as in auth: {type: bearer, token: ${NAME_OF_A_VARIABLE}}"
        }
        404 | 405 => "check the `url` of the tool: the server must speak MCP over streamable HTTP",
        _ => "check the log of the server",
    };
    Error::new(
        ErrorKind::Execute,
        Diagnostic::new(Code::HttpFailed, message.trim_end().to_owned()).hint(hint),
    )
}

fn failed(message: String) -> Error {
    Error::new(
        ErrorKind::Execute,
        Diagnostic::new(Code::HttpFailed, message).hint("check the log of the server"),
    )
}
