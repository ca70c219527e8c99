//! The HTTP client of the exporter: a blocking one, since the exporter has a thread of its own and nothing else here
//! needs an asynchronous runtime.

use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};

/// More of an answer is not read; it says in a few bytes what was refused.
const LONGEST_ANSWER: u64 = 1024 * 1024;

#[derive(Debug)]
pub(super) struct Client(ureq::Agent);

impl Client {
    pub(super) fn new(timeout: Duration) -> Client {
        // The exporter decides what a status means; and the owner of a collector that moves must say so, since
        // headers with a key go along.
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            .max_redirects(0)
            .build();
        Client(config.new_agent())
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let response = self.0.run(Request::from_parts(head, body.to_vec()))?;
        let (head, mut body) = response.into_parts();
        let answer = body.with_config().limit(LONGEST_ANSWER).read_to_vec()?;
        Ok(Response::from_parts(head, Bytes::from(answer)))
    }
}
