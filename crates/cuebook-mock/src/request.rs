//! A request that the server received.

use std::time::Instant;

use serde_json::Value as Json;

use crate::api::Api;

/// A request that the server was sent.
#[derive(Debug, Clone)]
pub struct Request {
    /// `POST`, as a rule.
    pub method: String,
    /// The path, with what stands behind a question mark.
    pub path: String,
    /// Its headers, in order.
    pub headers: Vec<(String, String)>,
    /// The body; `null` if it is no JSON.
    pub body: Json,
    /// Which interface was asked; `None` for a path that none has.
    pub api: Option<Api>,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// When its last byte came.
    pub at: Instant,
}

impl Request {
    /// A header, whatever the case of its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The model that is asked: in the body, or in Gemini's path.
    pub fn model(&self) -> Option<&str> {
        let in_path = || self.path.split_once("models/")?.1.split(':').next();
        self.body["model"].as_str().or_else(in_path)
    }
}
