//! Asks a provider over HTTP.
//!
//! One call of [`HttpProvider::ask`] is one answer: it sends the request, listens, and sends it again where that may help and harms
//! no one. A request is sent again if the provider had too much to do or the way to it failed, and as long as nothing of an answer came: after the
//! first words a second request would cost twice and say them twice, so the failure is reported instead, with the words, unless the
//! file of the provider says otherwise (`retry.after_text`).
//!
//! The key is read from the environment when a request is made, and is part of the request and nothing else. Whatever a server
//! says about a failure is searched for it before it becomes part of an error.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cuebook::chat::reply::Answer;
use cuebook::chat::wire::{self, Api};
use cuebook::redact::{REDACTED, Secrets};
use cuebook::{Code, Diagnostic, Error, ErrorKind};
use serde_json::{Map, Number, Value as Json, json};

use super::budget::Budget;
use super::choice::{Chosen, variable, why_unset};
use super::classify::Policy;
use super::exchange::{self, Method};
use super::failure::{FIELDS, Failure, from_broken};
use super::file::{self, ProviderFile};
use super::pause::{self, Clock, RealClock};
use super::record::{Recorder, Recording};
use super::secret;
use super::stream::StreamReader;
use super::transport::{Client, MAX_BODY, Outgoing, ReplyFailure, ReplyFailureKind, Transport};
use super::{Charge, Listener, Provider, ProviderFailure, ProviderRequest, RetryDecision, RetryNotice, Stop};

/// The longest pause that a server may ask for, in seconds, unless the file of the provider says otherwise.
const LONGEST_PAUSE: f64 = 60.0;
/// Bytes of a body for one token: budgets of tokens need no exact count.
const BYTES_OF_A_TOKEN: u64 = 4;
/// The stack of a thread that does nothing but ask a listener.
const WATCHER_STACK: usize = 64 << 10;
/// How often such a listener is asked.
const WATCHER_SLICE: Duration = Duration::from_millis(50);

/// A model of a provider that is asked over HTTP.
#[derive(Debug, Clone)]
pub struct HttpProvider {
    chosen: Chosen,
    pub(super) carrier: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    environment: fn(&str) -> Option<String>,
    budget: Option<Arc<Budget>>,
}

impl HttpProvider {
    /// Asks this model over the network.
    pub fn new(client: &Client, chosen: Chosen) -> HttpProvider {
        HttpProvider::over(Arc::new(client.clone()), chosen)
    }

    /// Has a recording answer in the place of the provider. No key is needed, and nothing is sent.
    pub fn replaying(recording: Arc<Recording>, chosen: Chosen) -> HttpProvider {
        HttpProvider::over(recording, chosen)
    }

    /// Asks the network, and writes down what is said.
    pub fn recording(client: &Client, recorder: &Arc<Recorder>, chosen: Chosen) -> HttpProvider {
        HttpProvider::over(Arc::new(recorder.around(client)), chosen)
    }

    fn over(carrier: Arc<dyn Transport>, chosen: Chosen) -> HttpProvider {
        HttpProvider { chosen, carrier, clock: Arc::new(RealClock), environment: variable, budget: None }
    }

    /// The same within a budget of requests and tokens, which others may share.
    pub fn with_budget(mut self, budget: Arc<Budget>) -> HttpProvider {
        self.budget = Some(budget);
        self
    }

    /// The same by another clock, for tests.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> HttpProvider {
        self.clock = clock;
        self
    }

    /// The same in another environment than that of this process.
    pub fn with_environment(mut self, environment: fn(&str) -> Option<String>) -> HttpProvider {
        self.environment = environment;
        self
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Who is asked.
    pub fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    /// Says whether it can be asked at all: whether the keys that its file names are there.
    ///
    /// # Errors
    ///
    /// `CB721` with the variable that is not set.
    pub fn check(&self) -> Result<(), Error> {
        let (_, mut secrets) = self.headers()?;
        self.options(&mut secrets).map(drop)
    }

    pub(super) fn file(&self) -> &ProviderFile {
        &self.chosen.provider
    }

    /// The headers of a request, and the secrets among them.
    pub(super) fn headers(&self) -> Result<(Vec<(String, String)>, Secrets), Error> {
        let mut headers = Vec::new();
        let mut secrets = Secrets::new();
        let mut note = |value: &str| secrets.field("api_key", &mut json!(value));
        if !self.carrier.is_real() {
            return Ok((headers, secrets));
        }
        for (name, written) in &self.file().headers {
            let value = expanded(written, |name| self.secret(name))?;
            // A server may repeat the secret without what stands around it.
            for variable in file::variables_of(written) {
                note(&self.secret(variable)?);
            }
            if ProviderFile::is_secret_header(name, written) {
                note(&value);
            }
            headers.push((name.clone(), value));
        }
        if self.chosen.profile.api == Api::Anthropic
            && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("anthropic-version"))
        {
            headers.push(("anthropic-version".into(), "2023-06-01".into()));
        }
        if let Some(name) = &self.file().key {
            let key = self.secret(name)?;
            note(&key);
            headers.push(match self.chosen.profile.api {
                Api::Anthropic => ("x-api-key".into(), key),
                Api::Gemini => ("x-goog-api-key".into(), key),
                _ => ("authorization".into(), format!("Bearer {key}")),
            });
        }
        Ok((headers, secrets))
    }

    /// A secret of the environment.
    fn secret(&self, name: &str) -> Result<String, Error> {
        let Some(value) = (self.environment)(name) else {
            let provider = &self.file().name;
            let why = why_unset(name);
            let message = format!("the key of {provider} is missing: {name} {why}");
            let hint =
                format!("set {name}, or choose another provider; {} names the variable", self.file().file);
            let diagnostic = Diagnostic::new(Code::KeyMissing, message).hint(hint);
            return Err(Error::new(ErrorKind::Config, diagnostic)
                .with("variable", name)
                .with("provider", provider));
        };
        let value = value.trim().to_owned();
        // A text that a header cannot hold is reported without the value.
        if ureq::http::HeaderValue::from_str(&value).is_err() {
            let message = format!("the value of {name} has a character that keys do not have");
            let hint = "check for a line end or a quotation mark in the value";
            let diagnostic = Diagnostic::new(Code::KeyMissing, message).hint(hint);
            return Err(Error::new(ErrorKind::Config, diagnostic).with("variable", name));
        }
        Ok(value)
    }

    /// The further fields of a body, with variables of the environment in their places, and the secrets among them.
    pub(super) fn options(&self, secrets: &mut Secrets) -> Result<Map<String, Json>, Error> {
        let mut options = self.chosen.profile.options.clone();
        for value in options.values_mut() {
            for variable in secret::variables_in(value) {
                secrets.field("api_key", &mut json!(self.option(variable)?));
            }
            secret::each_text(value, &mut |text| {
                *text = expanded(text, |name| self.option(name))?;
                Ok(())
            })?;
        }
        secret::note(&options, secrets);
        Ok(options)
    }

    /// A secret of the environment for a body. A replay does not need it, and it is not on the recording.
    fn option(&self, name: &str) -> Result<String, Error> {
        match self.secret(name) {
            Err(_) if !self.carrier.is_real() => Ok(REDACTED.to_owned()),
            secret => secret,
        }
    }

    /// The question of a request: its body as it is sent, not streamed, with variables of the environment in the place of their
    /// values. What asks the same has the same question.
    ///
    /// # Errors
    ///
    /// What keeps the request from being written.
    pub fn question(&self, ask: &ProviderRequest<'_>) -> Result<Vec<u8>, Error> {
        self.body(ask, &self.chosen.profile.options, false)
    }

    /// The body of a request that is not streamed, as it is sent: with the values of variables of the environment.
    ///
    /// # Errors
    ///
    /// What keeps the request from being written, or a variable that is not set.
    pub fn whole_body(&self, ask: &ProviderRequest<'_>) -> Result<Vec<u8>, Error> {
        let options = self.options(&mut Secrets::new())?;
        self.body(ask, &options, false)
    }

    /// The body of a request, and the path that it is sent to.
    fn request(
        &self,
        ask: &ProviderRequest<'_>,
        more: &Map<String, Json>,
    ) -> Result<(String, Vec<u8>), Error> {
        let profile = &self.chosen.profile;
        let body = self.body(ask, more, profile.stream)?;
        Ok((profile.api.path(&self.chosen.model, profile.stream), body))
    }

    fn body(
        &self,
        ask: &ProviderRequest<'_>,
        more: &Map<String, Json>,
        stream: bool,
    ) -> Result<Vec<u8>, Error> {
        let profile = &self.chosen.profile;
        let mut model = ask.model.clone();
        model.id.clone_from(&self.chosen.model);
        let options = &mut model.options;
        let given = options.max_output_tokens.as_ref().and_then(Number::as_u64);
        let mut most = [given, ask.most_tokens].into_iter().flatten().min();
        // Anthropic requires the number; others use their own default.
        if profile.api == Api::Anthropic {
            most = most.or(Some(self.chosen.max_output));
        }
        options.max_output_tokens = most.map(|most| Number::from(most.min(self.chosen.max_output).max(1)));
        for (key, value) in more {
            options.additional_properties.entry(key.clone()).or_insert_with(|| value.clone());
        }
        options.additional_properties.remove("stream");
        let talks_of_stream = profile.api != Api::Gemini;
        if stream && talks_of_stream {
            options.additional_properties.insert("stream".into(), json!(true));
        }
        let request =
            wire::Request { model: &model, messages: ask.messages, tools: ask.tools, outputs: ask.outputs };
        Ok(wire::payload(profile.api, &request)?.bytes)
    }

    fn once(
        &self,
        out: &Outgoing<'_>,
        outputs: bool,
        listener: &dyn Listener,
    ) -> Result<Answer, Box<Failure>> {
        let mut ear = StreamReader::new(out.api, outputs, listener, &out.secrets);
        let carried = self.carrier.provider_state(out, &mut ear);
        if let Some(budget) = &self.budget {
            budget.learn(ear.headers(), self.clock.today());
        }
        ear.finish(carried, self.file())
    }

    /// Whether, and after which pause, to ask again.
    pub(super) fn again(
        &self,
        failure: &mut Failure,
        attempt: u32,
        end: Option<Instant>,
    ) -> Option<Duration> {
        let retry = &self.file().retry;
        let wanted =
            pause::wanted(&failure.headers, self.clock.today()).filter(|_| failure.class.retryable());
        let most = Duration::from_secs_f64(retry.max.unwrap_or(LONGEST_PAUSE));
        if let Some(wanted) = wanted.filter(|wanted| *wanted > most) {
            // An earlier request would only be refused again, and some servers count that.
            failure.too_long(wanted, most, self.clock.today(), self.file());
            return None;
        }
        let may = attempt + 1 < retry.attempts && (!failure.said || retry.after_text);
        let policy = failure.class.policy.filter(|_| may)?;
        if !self.carrier.is_real() {
            return Some(Duration::ZERO);
        }
        let pause = match (policy, wanted) {
            // At least as long as the server wants, and not all at the same moment.
            (_, Some(wanted)) => wanted.mul_f64(1.0 + 0.1 * self.clock.chance()),
            (policy, None) => {
                let (Policy::Exponential { base, max } | Policy::Header { base, max, .. }) = policy;
                let policy =
                    Policy::Exponential { base: retry.base.unwrap_or(base), max: retry.max.unwrap_or(max) };
                Duration::from_secs_f64(policy.delay(attempt) * (0.5 + 0.5 * self.clock.chance()))
            }
        };
        // A pause beyond the end would only make the failure late.
        let fits = end.is_none_or(|end| self.clock.now().checked_add(pause).is_some_and(|then| then < end));
        fits.then_some(pause)
    }

    fn attempts(
        &self,
        ask: &ProviderRequest<'_>,
        listener: &dyn Listener,
        stop: &Stop,
        secrets: &mut Secrets,
    ) -> Result<Answer, Box<ProviderFailure>> {
        let prepared = self.headers().and_then(|(headers, found)| {
            *secrets = found;
            let options = self.options(secrets)?;
            self.request(ask, &options).map(|(path, body)| (headers, options, path, body))
        });
        let (headers, options, path, body) = prepared.map_err(|error| unheard(*Failure::before(error)))?;
        let timeouts = self.file().timeouts;
        let mut out = Outgoing {
            api: self.chosen.profile.api,
            base_url: &self.file().base_url,
            path,
            headers,
            secrets: secrets.clone(),
            body,
            timeouts,
            stop: stop.clone(),
            end: None,
            method: Method::Post,
            content_type: exchange::JSON,
            limit: MAX_BODY,
        };
        let mut attempt = 0;
        loop {
            if stop.is_set() || !self.wait_for_budget(out.body.len(), stop) {
                return Err(self.stopped());
            }
            let total = self.clock.now().checked_add(timeouts.total);
            out.end = [ask.deadline, total].into_iter().flatten().min();
            let mut failure = match self.once(&out, !ask.outputs.is_empty(), listener) {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            failure.scrub(secrets);
            let Some(pause) = self.again(&mut failure, attempt, ask.deadline) else {
                failure.attempts = attempt + 1;
                return Err(unheard(*failure));
            };
            attempt += 1;
            let again = RetryNotice { attempt, pause, why: &failure.error, charge: &failure.charge };
            match listener.retry(&again) {
                RetryDecision::Same => {}
                RetryDecision::Shorter(most) => {
                    let shorter = ProviderRequest { most_tokens: Some(most), ..*ask };
                    let request = self.request(&shorter, &options);
                    out.body = request.map_err(|error| unheard(*Failure::before(error)))?.1;
                }
                RetryDecision::Stop => {
                    // It knows what this attempt may have cost.
                    failure.charge = Charge::Nothing;
                    failure.attempts = attempt;
                    return Err(unheard(*failure));
                }
            }
            if !pause.is_zero() && !self.clock.sleep(pause, stop) {
                return Err(self.stopped());
            }
        }
    }

    /// Waits until the budget has room for a request; says whether there was no request to stop.
    fn wait_for_budget(&self, bytes: usize, stop: &Stop) -> bool {
        let Some(budget) = self.budget.as_ref().filter(|_| self.carrier.is_real()) else { return true };
        while let Some(pause) = budget.take(bytes as u64 / BYTES_OF_A_TOKEN, self.clock.today()) {
            if !self.clock.sleep(pause, stop) {
                return false;
            }
        }
        true
    }

    /// A request to stop while nothing is under way: that costs nothing.
    pub(super) fn stopped(&self) -> Box<ProviderFailure> {
        unheard(*from_broken(&ReplyFailure::new(ReplyFailureKind::Stopped, ""), self.file()))
    }
}

impl Provider for HttpProvider {
    fn ask(
        &self,
        ask: &ProviderRequest<'_>,
        listener: &dyn Listener,
    ) -> Result<Answer, Box<ProviderFailure>> {
        let mut secrets = Secrets::new();
        if let Some(stop) = listener.stop() {
            return self.attempts(ask, listener, &stop, &mut secrets);
        }
        // Sockets cannot ask a listener that is only borrowed, so a thread asks it for them.
        let flag = Arc::new(AtomicBool::new(false));
        let done = Arc::new(AtomicBool::new(false));
        std::thread::scope(|scope| {
            let stop = Stop::flag(flag.clone());
            let asker = {
                let done = done.clone();
                let asking = move || {
                    while !done.load(Ordering::SeqCst) {
                        if listener.cancelled() {
                            flag.store(true, Ordering::SeqCst);
                            return;
                        }
                        std::thread::park_timeout(WATCHER_SLICE);
                    }
                };
                std::thread::Builder::new()
                    .name("listen".into())
                    .stack_size(WATCHER_STACK)
                    .spawn_scoped(scope, asking)
            };
            /// Also if asking panics: the scope waits for its thread.
            struct Done(Arc<AtomicBool>, Option<std::thread::Thread>);
            impl Drop for Done {
                fn drop(&mut self) {
                    self.0.store(true, Ordering::SeqCst);
                    if let Some(thread) = &self.1 {
                        thread.unpark();
                    }
                }
            }
            let _done = Done(done, asker.as_ref().ok().map(|asker| asker.thread().clone()));
            self.attempts(ask, listener, &stop, &mut secrets)
        })
    }
}

pub(super) fn unheard(failure: Failure) -> Box<ProviderFailure> {
    let mut error = failure.error;
    if failure.attempts > 1 {
        let mut diagnostic = error.diagnostic().clone();
        diagnostic.message = format!("{} (after {} attempts)", diagnostic.message, failure.attempts);
        let kept: Vec<_> =
            FIELDS.iter().filter_map(|name| Some((*name, error.field(name)?.clone()))).collect();
        error = Error::new(error.kind(), diagnostic).with("attempts", failure.attempts);
        for (name, value) in kept {
            error = error.with(name, value);
        }
    }
    Box::new(ProviderFailure {
        error,
        category: failure.class.category,
        partial_text: failure.partial_text,
        indeterminate: failure.indeterminate,
        charge: failure.charge,
    })
}

/// A text of a file with variables of the environment in their places.
fn expanded(written: &str, secret: impl Fn(&str) -> Result<String, Error>) -> Result<String, Error> {
    let mut value = String::new();
    let mut rest = written;
    while let Some((before, behind)) = rest.split_once(file::VARIABLE) {
        // A file is read only if all of them are whole.
        let Some((name, after)) = behind.split_once('}') else { break };
        value.push_str(before);
        value.push_str(&secret(name)?);
        rest = after;
    }
    value.push_str(rest);
    Ok(value)
}
