//! Requests: `method`, `url`, `headers`, `body`, `auth`, `timeout` and `retry` of a configuration.
//!
//! Redirects, limits and what may go along to another host are those of the client that hooks have. A host that a tool's
//! author wrote down may be any; a host that comes from a caller's parameter must be a public one, so that a tool that
//! fetches given addresses must not fetch from inside a network. Secrets come from the environment, into a header,
//! and are never part of an answer or of a message.

use std::time::{Duration, Instant};

use cuebook::hooks::{Http, HttpRequest, Refusal};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use serde_json::Value as Json;

use super::outcome::{self, Outcome};
use super::sink::Sink;
use crate::anchor::bad_runtime;
use crate::chain::Element;
use crate::config::{Encoding, Piece, Values, pieces, text_of};
use crate::fence::Fencing;
use crate::watch::Watch;

/// A request with what to do when it does not get through.
pub(crate) struct Request {
    pub(crate) request: HttpRequest,
    /// Whether the author of the tool wrote the host.
    pub(crate) host_is_written: bool,
    attempts: u32,
    exponential: bool,
}

/// How often a request is tried at most.
const MAX_ATTEMPTS: u32 = 10;
/// The pause between two of them doubles up to half of two to this power, which is 32 seconds.
const MAX_DOUBLINGS: u32 = 6;

impl Request {
    pub(crate) fn new(values: &Values<'_>, element: &Element) -> Result<Request> {
        let config = values.config;
        let wrong = |message: String, hint: &str| bad_runtime(Some(element), message, hint);
        let text = |name: &str| config.get(name).and_then(Json::as_str);
        let Some(url) = text("url") else {
            return Err(wrong("the tool names no URL".into(), "give `config` a `url`"));
        };
        if let Some(mode) = text("mode").filter(|mode| !matches!(*mode, "sync" | "stream")) {
            return Err(wrong(format!("`mode` is {mode:?}"), "write sync or stream"));
        }
        let method = values.text(text("method").unwrap_or("GET"), Encoding::Plain).to_uppercase();
        let mut headers: Vec<(String, String)> = Vec::new();
        if let Some(Json::Object(map)) = config.get("headers") {
            headers.extend(
                map.iter().map(|(name, value)| (name.clone(), text_of(&values.fill(value, Encoding::Plain)))),
            );
        }
        let has = |headers: &[(String, String)], wanted: &str| {
            headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted))
        };
        let body = match config.get("body") {
            Some(body) if matches!(method.as_str(), "POST" | "PUT" | "PATCH") && !body.is_null() => {
                let body = values.body(body);
                if !body.is_string() && !has(&headers, "content-type") {
                    headers.push(("content-type".into(), "application/json".into()));
                }
                Some(text_of(&body))
            }
            _ => None,
        };
        if let Some(auth) = config.get("auth").filter(|auth| !auth.is_null()) {
            headers.push(authorization(auth, values).map_err(|(message, hint)| wrong(message, hint))?);
        }
        let number = |value: Option<&Json>| {
            value
                .map(|value| values.fill(value, Encoding::Plain))
                .and_then(|value| value.as_f64().or_else(|| value.as_str()?.parse().ok()))
        };
        let timeout = number(config.get("timeout")).unwrap_or(30.0);
        if !(timeout > 0.0 && timeout < 1e6) {
            return Err(wrong("`timeout` must be a number of seconds".into(), "write, say, 30"));
        }
        let retry = config.get("retry");
        let attempts = number(retry.and_then(|retry| retry.get("max_attempts"))).unwrap_or(1.0);
        let backoff = retry.and_then(|retry| retry.get("backoff")?.as_str());
        Ok(Request {
            host_is_written: host_is_written(url),
            request: HttpRequest {
                method,
                url: values.text(url, Encoding::Url),
                headers,
                body,
                timeout: Duration::from_secs_f64(timeout),
            },
            attempts: (attempts as u32).clamp(1, MAX_ATTEMPTS),
            exponential: backoff.is_none_or(|backoff| backoff == "exponential"),
        })
    }
}

/// Whether everything before the path of a URL is the author's own.
fn host_is_written(url: &str) -> bool {
    for piece in pieces(url) {
        match piece {
            Piece::Text(text) => {
                let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
                if rest.contains(['/', '?', '#']) {
                    return true;
                }
            }
            Piece::Variable { .. } => {}
            Piece::Name { .. } => return false,
        }
    }
    true
}

/// The header that says who asks. The secret comes from the environment; a parameter cannot give it.
fn authorization(auth: &Json, values: &Values<'_>) -> Result<(String, String), (String, &'static str)> {
    let text = |name: &str| auth.get(name).and_then(Json::as_str);
    let template = text("token").or_else(|| text("key")).or_else(|| text("value"));
    let hint = "write token: ${NAME_OF_A_VARIABLE}";
    let Some(template) = template else { return Err(("`auth` has no `token` or `key`".into(), hint)) };
    let nothing = serde_json::Map::new();
    let inner = Values { context: &nothing, parameters: &nothing, config: &nothing, env: values.env };
    let secret = inner.text(template, Encoding::Plain);
    if secret.is_empty() {
        let names: Vec<&str> = pieces(template)
            .into_iter()
            .filter_map(|piece| match piece {
                Piece::Variable { name, .. } => Some(name),
                _ => None,
            })
            .collect();
        return Err((
            format!("the environment variable {} is not set", names.join(", ")),
            "set it and try again",
        ));
    }
    match text("type") {
        None | Some("bearer") => Ok(("authorization".into(), format!("Bearer {secret}"))),
        Some("api_key") => Ok((text("header").unwrap_or("X-API-Key").to_owned(), secret)),
        Some(other) => Err((format!("invalid `auth.type`: {other:?}"), "write bearer or api_key")),
    }
}

/// Sends a request, again if it does not get through.
pub(crate) fn send(request: &Request, fence: Option<&Fencing>, watch: &dyn Watch) -> Result<Outcome> {
    let client = super::client(request.host_is_written, fence);
    let mut attempt = 0;
    loop {
        attempt += 1;
        let refusal = match client.request(&request.request) {
            Ok(response) => {
                let reason = reason(response.status);
                return Ok(outcome::of_response(response.status, reason, &response.body, &response.headers));
            }
            Err(refusal) => refusal,
        };
        // Only what failed on the way is tried again: whatever was refused will be refused again.
        let on_the_way = matches!(refusal.exception, "ConnectionError" | "TimeoutError");
        if !on_the_way || attempt >= request.attempts {
            return Err(refused(&refusal, attempt, fence));
        }
        let pause = if request.exponential {
            Duration::from_secs(1 << attempt.min(MAX_DOUBLINGS)) / 2
        } else {
            Duration::from_secs(1)
        };
        watch.progress(&format!("attempt {attempt} failed; retry in {pause:?}"));
        let until = Instant::now() + pause;
        while Instant::now() < until {
            if watch.cancelled() {
                return Err(cancelled());
            }
            std::thread::sleep(Duration::from_millis(25));
        }
    }
}

/// Sends a request once, and hands its answer to a sink as it arrives. What failed is not tried again: a part of it may be
/// in the sink already.
pub(crate) fn stream(
    request: &Request,
    mut sink: Sink,
    fence: Option<&Fencing>,
    watch: &dyn Watch,
) -> Result<Outcome> {
    let client = super::client(request.host_is_written, fence);
    // What a server says with an error is for the answer, not for the sink.
    let mut body = Vec::new();
    let answer = client.stream(&request.request, &mut |answer, bytes| {
        if watch.cancelled() {
            return false;
        }
        if (200..300).contains(&answer.status) {
            return sink.take(answer, bytes, watch);
        }
        body.extend_from_slice(&bytes[..bytes.len().min(MAX_ERROR.saturating_sub(body.len()))]);
        body.len() < MAX_ERROR
    });
    let answer = answer.map_err(|refusal| refused(&refusal, 1, fence))?;
    if watch.cancelled() {
        return Err(cancelled());
    }
    if !(200..300).contains(&answer.status) {
        let body = String::from_utf8_lossy(&body);
        return Ok(outcome::of_response(answer.status, reason(answer.status), &body, &answer.headers));
    }
    let mut outcome = outcome::of_response(answer.status, "", "", &answer.headers);
    if let Json::Object(data) = &mut outcome.data {
        data.shift_remove("body");
        data.extend(sink.finish()?);
    }
    Ok(outcome)
}

/// The most bytes of an error's body that are kept.
const MAX_ERROR: usize = 64 << 10;

/// The error for a request that was refused or did not get through.
pub(crate) fn refused(refusal: &Refusal, attempts: u32, fence: Option<&Fencing>) -> Error {
    let message = refusal.message.trim_start_matches("http_request: ").to_owned();
    if fence.is_some() && refusal.exception == "PermissionError" {
        let hint = Hint::run(
            "add the host to `hosts` in the tool's `config`, sign the tool, and grant it",
            "cuebook allow",
        );
        return Error::new(ErrorKind::Execute, Diagnostic::new(Code::HostRefused, message).hint(hint));
    }
    let tried = if attempts > 1 { format!(" ({attempts} attempts)") } else { String::new() };
    let diagnostic = Diagnostic::new(Code::HttpFailed, format!("{message}{tried}"))
        .hint("check the tool's `url` and the network");
    Error::new(ErrorKind::Execute, diagnostic)
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Execute, Diagnostic::new(Code::HttpFailed, "the request was cancelled"))
}

/// The usual words for a status.
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}
