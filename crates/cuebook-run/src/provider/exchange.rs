//! Requests to a provider that ask no model: files that are sent, and jobs that are asked about.
//!
//! They carry the same key, wait for the same budget, and are repeated after the same failures as questions.

use std::io::{self, Write};

use cuebook::Error;
use cuebook::redact::Secrets;

use super::failure::{Failure, from_broken, from_status};
use super::http::{HttpProvider, unheard};
use super::transport::{MAX_FAILURE, Outgoing, ReplyFailure, ReplyFailureKind, ReplyHead, ReplyListener};
use super::{ProviderFailure, Stop};

/// The content of a request with a JSON body.
pub(super) const JSON: &str = "application/json";
/// Bytes of a file of results: as many as providers let a file of questions have, and room for the answers.
const MAX_FILE: u64 = 4 << 30;

/// What is done at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// It is read.
    Get,
    /// It is given something.
    Post,
}

/// A request that asks no model.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'a> {
    /// What is done.
    pub method: Method,
    /// The path below the provider's address, as in `/batches`.
    pub path: &'a str,
    /// What kind of content it has, as in `application/json`.
    pub content_type: &'a str,
    /// Its content.
    pub body: &'a [u8],
}

impl<'a> Exchange<'a> {
    /// Reads what is at a path.
    pub fn get(path: &'a str) -> Exchange<'a> {
        Exchange { method: Method::Get, path, content_type: JSON, body: &[] }
    }

    /// Sends JSON to a path.
    pub fn post(path: &'a str, body: &'a [u8]) -> Exchange<'a> {
        Exchange { method: Method::Post, path, content_type: JSON, body }
    }
}

/// Writes a reply where it belongs, and keeps what is said about a failure.
struct Saved<'w> {
    to: &'w mut dyn Write,
    head: ReplyHead,
    failure: Vec<u8>,
    broken: Option<io::Error>,
}

impl ReplyListener for Saved<'_> {
    fn head(&mut self, head: &ReplyHead) {
        self.head = head.clone();
    }

    fn bytes(&mut self, bytes: &[u8]) -> bool {
        if !(200..300).contains(&self.head.status) {
            let room = MAX_FAILURE.saturating_sub(self.failure.len()).min(bytes.len());
            self.failure.extend_from_slice(&bytes[..room]);
        } else if let Err(error) = self.to.write_all(bytes) {
            self.broken = Some(error);
        }
        self.broken.is_some()
    }
}

impl HttpProvider {
    /// Sends a request and writes the reply into `to`. It is sent again where that may help. What fails in the middle of a reply is
    /// reported, because a part of it is written already, and so is a failure that leaves open whether a `POST` has arrived.
    ///
    /// # Errors
    ///
    /// That the provider refused it or did not answer, or a missing key.
    pub fn exchange(
        &self,
        exchange: &Exchange<'_>,
        to: &mut dyn Write,
        stop: &Stop,
    ) -> Result<(), Box<ProviderFailure>> {
        let prepared = self.headers().and_then(|headers| Ok((headers, self.whole_secrets()?)));
        let ((headers, secrets), more) = prepared.map_err(|error| unheard(*Failure::before(error)))?;
        let file = self.file();
        let mut all = secrets.clone();
        more.values().for_each(|value| all.field("api_key", &mut serde_json::json!(value)));
        let out = Outgoing {
            api: self.chosen().profile.api,
            base_url: &file.base_url,
            path: exchange.path.to_owned(),
            headers,
            secrets,
            body: exchange.body.to_vec(),
            timeouts: file.timeouts,
            stop: stop.clone(),
            end: self.clock().now().checked_add(file.timeouts.total),
            method: exchange.method,
            content_type: exchange.content_type,
            limit: MAX_FILE,
        };
        let mut attempt = 0;
        loop {
            if stop.is_set() {
                return Err(self.stopped());
            }
            let mut saved = Saved { to, head: ReplyHead::default(), failure: Vec::new(), broken: None };
            let carried = self.carrier.provider_state(&out, &mut saved);
            let refused = saved.head.status != 0 && !(200..300).contains(&saved.head.status);
            let began = saved.head.status != 0 && !refused;
            let mut failure = match (carried, saved.broken) {
                _ if refused => from_status(&saved.head, &saved.failure, file),
                (_, Some(error)) => {
                    let message = format!("its reply cannot be written: {error}");
                    from_broken(&ReplyFailure::new(ReplyFailureKind::TooMuch, message), file)
                }
                (Err(broken), None) => from_broken(&broken, file),
                (Ok(()), None) => return Ok(()),
            };
            failure.said = began;
            failure.scrub(&all);
            // What may have arrived is not sent again: it may have begun something that costs money.
            let may_have_arrived = exchange.method == Method::Post && !refused;
            let pause = self.again(&mut failure, attempt, None).filter(|_| !may_have_arrived);
            let Some(pause) = pause else {
                failure.attempts = attempt + 1;
                return Err(unheard(*failure));
            };
            attempt += 1;
            if !pause.is_zero() && !self.clock().sleep(pause, stop) {
                return Err(self.stopped());
            }
        }
    }

    /// The secrets of the options of its bodies, which a server may repeat.
    fn whole_secrets(&self) -> Result<Secrets, Error> {
        let mut secrets = Secrets::new();
        self.options(&mut secrets).map(|_| secrets)
    }
}
