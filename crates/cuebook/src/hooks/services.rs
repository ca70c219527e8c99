//! What hooks may ask of the world outside, if the program that uses Cuebook offers it: HTTP and a language model.

use std::fmt;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::{Refusal, Values};

/// The longest that one request takes unless the hook says less.
const LONGEST: Duration = Duration::from_secs(60);

/// An HTTP request.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpRequest {
    /// `GET`, `POST`, …
    pub method: String,
    /// The address.
    pub url: String,
    /// Headers, in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<String>,
    /// How long it may take.
    pub timeout: Duration,
}

impl HttpRequest {
    /// The request that a hook describes by arguments.
    pub fn from_arguments(arguments: &Values) -> Result<HttpRequest, Refusal> {
        let url = text(arguments, "url")?.ok_or_else(|| Refusal::usage("`url` is missing"))?;
        let mut headers = Vec::new();
        match arguments.get("headers") {
            None | Some(Json::Null) => {}
            Some(Json::Object(object)) => {
                for (name, value) in object {
                    let Json::String(value) = value else {
                        return Err(Refusal::usage(format!("the header `{name}` must be a string")));
                    };
                    headers.push((name.clone(), value.clone()));
                }
            }
            Some(_) => return Err(Refusal::usage("`headers` must be a dict")),
        }
        let mut body = text(arguments, "body")?;
        if let Some(json) = arguments.get("json").filter(|json| !json.is_null()) {
            if body.is_some() {
                return Err(Refusal::usage("pass either `body` or `json`, not both"));
            }
            body = Some(json.to_string());
            if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                headers.push(("content-type".into(), "application/json".into()));
            }
        }
        let default = if body.is_some() { "POST" } else { "GET" };
        let method = text(arguments, "method")?.unwrap_or_else(|| default.into()).to_uppercase();
        Ok(HttpRequest { method, url, headers, body, timeout: timeout(arguments)? })
    }
}

/// The answer to an HTTP request, whatever its status.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// The address that answered, behind all redirects.
    pub url: String,
    /// Headers, by name in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl HttpResponse {
    pub(super) fn to_json(&self) -> Json {
        let headers: Values = self.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        json!({"status": self.status, "url": self.url, "headers": headers, "body": self.body})
    }
}

/// A request to a language model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// What is asked.
    pub prompt: String,
    /// Instructions.
    pub system: Option<String>,
    /// The model, if the hook minds.
    pub model: Option<String>,
    /// The longest answer, in tokens.
    pub max_tokens: Option<u64>,
    /// How long it may take.
    pub timeout: Duration,
}

impl ModelRequest {
    /// The request that a hook describes by arguments.
    pub fn from_arguments(arguments: &Values) -> Result<ModelRequest, Refusal> {
        let max_tokens = match arguments.get("max_tokens") {
            None | Some(Json::Null) => None,
            Some(value) => {
                Some(value.as_u64().ok_or_else(|| Refusal::usage("`max_tokens` must be a whole number"))?)
            }
        };
        Ok(ModelRequest {
            prompt: text(arguments, "prompt")?.ok_or_else(|| Refusal::usage("`prompt` is missing"))?,
            system: text(arguments, "system")?,
            model: text(arguments, "model")?,
            max_tokens,
            timeout: timeout(arguments)?,
        })
    }

    /// The request as programs see it.
    pub fn to_json(&self) -> Json {
        json!({"prompt": self.prompt, "system": self.system, "model": self.model, "max_tokens": self.max_tokens})
    }
}

fn text(arguments: &Values, name: &str) -> Result<Option<String>, Refusal> {
    match arguments.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Refusal::usage(format!("`{name}` must be a string"))),
    }
}

fn timeout(arguments: &Values) -> Result<Duration, Refusal> {
    match arguments.get("timeout") {
        None | Some(Json::Null) => Ok(LONGEST),
        Some(value) => value
            .as_f64()
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .map(|timeout| timeout.min(LONGEST))
            .ok_or_else(|| Refusal::usage("`timeout` must be a number of seconds")),
    }
}

/// Makes HTTP requests for hooks that may make them.
pub trait Http: Send + Sync + fmt::Debug {
    /// Makes a request. An answer with a bad status is an answer.
    fn request(&self, request: &HttpRequest) -> Result<HttpResponse, Refusal>;
}

/// Answers for hooks that may ask a language model.
pub trait Model: Send + Sync + fmt::Debug {
    /// Asks, and gives the answer's text.
    fn ask(&self, request: &ModelRequest) -> Result<String, Refusal>;
}
