//! From what went wrong to an error that says so, and to what may help.

use std::time::Duration;

use cuebook::chat::reply::Answer;
use cuebook::redact::Secrets;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value as Json;

use super::classify::{Class, Fault, classify};
use super::file::ProviderFile;
use super::transport::{ReplyFailure, ReplyFailureKind, ReplyHead};
use super::{Category, Charge};

/// Characters of a server's own words in an error.
const LONGEST_WORDS: usize = 1000;

/// One attempt that failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub error: Error,
    pub class: Class,
    /// The headers of the reply, which may say when to come again.
    pub headers: Vec<(String, String)>,
    /// Whether a part of an answer was heard.
    pub said: bool,
    pub partial_text: String,
    /// Whether the provider may have answered all the same.
    pub indeterminate: bool,
    /// What it may have cost.
    pub charge: Charge,
    pub attempts: u32,
}

impl Failure {
    fn new(error: Error, class: Class) -> Box<Failure> {
        let error = error.with("category", class.category.as_str());
        Box::new(Failure {
            error,
            class,
            headers: Vec::new(),
            said: false,
            partial_text: String::new(),
            indeterminate: false,
            charge: Charge::Nothing,
            attempts: 1,
        })
    }

    /// Something is wrong before anything is sent.
    pub fn before(error: Error) -> Box<Failure> {
        Failure::new(error, Class { category: Category::Permanent, code: None, policy: None })
    }

    /// Says what may help, instead of what was said before.
    pub fn advise(&mut self, hint: impl Into<Hint>) {
        let error = Error::new(self.error.kind(), self.error.diagnostic().clone().hint(hint));
        self.error = FIELDS.iter().fold(error, |error, name| match self.error.field(name) {
            Some(value) => error.with(name, value.clone()),
            None => error,
        });
    }

    /// The server wants to be left alone for longer than anybody is to wait here.
    pub fn too_long(&mut self, wanted: Duration, most: Duration, now: Timestamp, file: &ProviderFile) {
        let seconds = |time: Duration| (time.as_secs_f64() * 10.0).ceil() / 10.0;
        let mut diagnostic = self.error.diagnostic().clone();
        // Of what takes days, people want to know the date.
        let days = SignedDuration::try_from(wanted).ok().filter(|wanted| wanted.as_hours() >= 24);
        let then = days.map(|wanted| now.checked_add(wanted).unwrap_or(Timestamp::MAX));
        let at = then.map_or(String::new(), |then| format!(" (at {})", then.strftime("%Y-%m-%dT%H:%M:%SZ")));
        diagnostic.message = format!(
            "{}; the server asks for a retry after {} seconds{at}, but the longest pause is {}",
            diagnostic.message,
            seconds(wanted),
            seconds(most)
        );
        diagnostic.hint =
            Some(format!("try again after that time, or raise `retry.max` in {}", file.file).into());
        let mut error = Error::new(self.error.kind(), diagnostic);
        for name in FIELDS {
            if let Some(value) = self.error.field(name) {
                error = error.with(name, value);
            }
        }
        self.error = error.with("retry_after_seconds", seconds(wanted));
    }

    /// Takes secrets out of everything that is reported.
    pub fn scrub(&mut self, secrets: &Secrets) {
        self.partial_text = secrets.scrub_text(&self.partial_text).into_owned();
        if let Charge::Broken { written, .. } = &mut self.charge {
            *written = secrets.scrub_text(written).into_owned();
        }
        let mut diagnostics = self.error.diagnostics().to_vec();
        for diagnostic in &mut diagnostics {
            diagnostic.message = secrets.scrub_text(&diagnostic.message).into_owned();
            let scrub = |text: &str| secrets.scrub_text(text).into_owned();
            diagnostic.hint = diagnostic.hint.take().map(|hint| hint.map(scrub));
        }
        let mut error = Error::all(self.error.kind(), diagnostics);
        for name in FIELDS {
            if let Some(value) = self.error.field(name) {
                let mut value = value.clone();
                secrets.scrub(&mut value);
                error = error.with(name, value);
            }
        }
        self.error = error;
    }
}

/// What errors of this module carry beside their words.
pub(crate) const FIELDS: [&str; 8] = [
    "provider",
    "status",
    "provider_message",
    "provider_type",
    "provider_code",
    "category",
    "wanted",
    "retry_after_seconds",
];

/// A reply that did not come, or not to its end.
pub(super) fn from_broken(broken: &ReplyFailure, file: &ProviderFile) -> Box<Failure> {
    let who = &file.name;
    let at = &file.base_url;
    let because = if broken.message.is_empty() { String::new() } else { format!(": {}", broken.message) };
    let seconds = |time: Duration| time.as_secs_f64();
    let (code, message, hint) = match broken.what {
        ReplyFailureKind::Stopped => {
            (Code::ThreadCancelled, format!("the request to {who} was stopped"), None)
        }
        ReplyFailureKind::Late => (
            Code::NoAnswer,
            format!("{who} did not answer in time"),
            Some(
                format!(
                    "allow more than {} seconds (`timeouts.total`), or give the thread more time",
                    seconds(file.timeouts.total)
                )
                .into(),
            ),
        ),
        ReplyFailureKind::Silent => (
            Code::NoAnswer,
            format!("{who} sent nothing for too long"),
            Some(
                "raise `timeouts.first_byte` or `timeouts.idle` in its file if its models need longer".into(),
            ),
        ),
        ReplyFailureKind::Refused => (
            Code::NoAnswer,
            format!("{who} cannot be reached: nothing listens at {at}"),
            Some(format!("start the server, or correct {}", file.address_source()).into()),
        ),
        ReplyFailureKind::Unreachable => (
            Code::NoAnswer,
            format!("{who} cannot be reached at {at}{because}"),
            Some(format!("check {} and the network", file.address_source()).into()),
        ),
        ReplyFailureKind::NoHost => (
            Code::NoAnswer,
            format!("{who} cannot be reached at {at}{because}"),
            Some(format!("fix {}", file.address_source()).into()),
        ),
        ReplyFailureKind::Cut => (
            Code::NoAnswer,
            format!("the connection to {who} broke{because}"),
            Some(
                format!(
                    "to retry even after part of an answer, write `retry: {{after_text: true}}` in {}",
                    file.file
                )
                .into(),
            ),
        ),
        ReplyFailureKind::Nonsense => (
            Code::NoAnswer,
            format!("{who} sent an invalid answer{because}"),
            Some(format!("check that {at} is the provider, and any proxy in between").into()),
        ),
        ReplyFailureKind::TooMuch => (
            Code::NoAnswer,
            format!("the answer of {who} is too large{because}"),
            Some(
                format!("ask for a shorter answer, or lower the model's `max_output` in {}", file.file)
                    .into(),
            ),
        ),
        ReplyFailureKind::Mismatch => (
            Code::ReplayMismatch,
            broken.message.clone(),
            Some(
                Hint::command_line("record again with --record, or send the recorded request")
                    .for_programs("record again, or send the recorded request"),
            ),
        ),
    };
    let class = match broken.what {
        ReplyFailureKind::Stopped => classify(&Fault { kind: Some("cancelled"), ..Fault::default() }),
        ReplyFailureKind::Mismatch | ReplyFailureKind::NoHost | ReplyFailureKind::TooMuch => {
            classify(&Fault::default())
        }
        // Nothing listens there, and a pause of seconds changes that only by chance. A thread can be resumed.
        ReplyFailureKind::Refused => {
            Class { policy: None, ..classify(&Fault { status: Some(0), ..Fault::default() }) }
        }
        ReplyFailureKind::Late | ReplyFailureKind::Silent => {
            classify(&Fault { kind: Some("timeout"), ..Fault::default() })
        }
        ReplyFailureKind::Unreachable | ReplyFailureKind::Cut | ReplyFailureKind::Nonsense => {
            classify(&Fault { status: Some(0), ..Fault::default() })
        }
    };
    let diagnostic = Diagnostic::new(code, message).hint_opt(hint);
    let mut failure = Failure::new(Error::new(ErrorKind::Reply, diagnostic).with("provider", who), class);
    failure.indeterminate = broken.sent;
    if broken.sent {
        failure.charge = Charge::Question;
    }
    failure
}

/// A reply whose status says that there is no answer.
pub(super) fn from_status(head: &ReplyHead, body: &[u8], file: &ProviderFile) -> Box<Failure> {
    let body: Json = match serde_json::from_slice(body) {
        Ok(json) => json,
        Err(_) => Json::String(String::from_utf8_lossy(body).trim().to_owned()),
    };
    let body = body.as_array().and_then(|list| list.first()).unwrap_or(&body);
    let error = body.get("error").unwrap_or(body);
    let text = |value: &Json| match value {
        Json::String(text) if !text.is_empty() => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let at = |key: &str| error.get(key).and_then(text);
    let said = at("message").or_else(|| at("detail")).or_else(|| text(error));
    let said = said.map(|said| said.chars().take(LONGEST_WORDS).collect::<String>());
    let kind = at("type").filter(|kind| kind != "error").or_else(|| at("status"));
    let code = at("code");
    let status = head.status;
    let class = classify(&Fault {
        status: Some(status),
        kind: kind.as_deref(),
        code: code.as_deref(),
        message: said.as_deref(),
    });
    let who = &file.name;
    let message = match (status, &said) {
        (300..=399, _) => format!("{who} redirects to another address (status {status})"),
        (_, Some(said)) => format!("{who} answered with status {status}: {said}"),
        (_, None) => format!("{who} answered with status {status} and no message"),
    };
    let hint = match (status, class.code) {
        (300..=399, _) => Some(format!(
            "Cuebook follows no redirects, because they would receive the key; fix {}",
            file.address_source()
        )),
        (_, Some("quota_exhausted")) => Some("the account has no credit left; add credit".into()),
        (401 | 403, _) => Some(match file.variables().next() {
            Some(key) => format!("check that {key} holds a valid key that may use this model"),
            None => format!("the server needs a key; name its variable under `key` in {}", file.file),
        }),
        (404, _) => Some(format!("check {} and the model's name", file.address_source())),
        (400 | 422, _) => Some(format!(
            "check that the model supports the request (tools, outputs and options), and check `api` and `models` in {}",
            file.file
        )),
        (413, _) => Some("the conversation is too long for the server".into()),
        (429, _) => Some("send fewer requests, or raise the account's limits".into()),
        (500.., _) => Some("the provider has a problem; try again later".into()),
        _ => None,
    };
    let diagnostic = Diagnostic::new(Code::NoAnswer, message).hint_opt(hint);
    let mut error = Error::new(ErrorKind::Reply, diagnostic).with("provider", who).with("status", status);
    for (name, value) in [("provider_message", said), ("provider_type", kind), ("provider_code", code)] {
        if let Some(value) = value {
            error = error.with(name, value);
        }
    }
    let mut failure = Failure::new(error, class);
    failure.headers.clone_from(&head.headers);
    failure
}

/// A reply of status 200 without an answer: a failure that its body reports, or a body of another kind.
pub(super) fn from_reply(error: &Error, head: &ReplyHead, file: &ProviderFile) -> Box<Failure> {
    let field = |name: &str| error.field(name).and_then(Json::as_str);
    let class = classify(&Fault {
        status: None,
        kind: field("provider_type"),
        code: field("provider_code"),
        message: field("provider_message"),
    });
    // Another interface than the file says stays another one.
    let class = match error.code() {
        Code::ProviderFailed => class,
        _ => Class { category: Category::Permanent, code: None, policy: None },
    };
    let failed = &error.diagnostic().message;
    let said = failed.strip_prefix("the provider failed: ").unwrap_or(failed);
    let mut diagnostic = error.diagnostic().clone();
    diagnostic.message = format!("{}: {said}", file.name);
    if diagnostic.hint.is_none() {
        diagnostic.hint = Some(match class.code {
            Some("quota_exhausted") => "the account has no credit left; add credit".into(),
            _ if error.code() == Code::ProviderFailed => Hint::option(
                "the provider has a problem; try again later, or use another model",
                "--model ID",
            ),
            _ => format!("check `base_url` and `api` in {}", file.file).into(),
        });
    }
    let mut reported = Error::new(error.kind(), diagnostic).with("provider", &file.name);
    for name in FIELDS {
        if let Some(value) = error.field(name) {
            reported = reported.with(name, value);
        }
    }
    let mut failure = Failure::new(reported, class);
    failure.headers.clone_from(&head.headers);
    // A reply came, and was probably charged for, even if it cannot be read.
    failure.indeterminate = error.code() != Code::ProviderFailed;
    if failure.indeterminate {
        failure.charge = Charge::Question;
    }
    failure
}

/// An answer in which nothing is said. Asked again, most models say something; what was read and thought was charged for.
pub(super) fn from_silence(answer: &Answer, file: &ProviderFile) -> Box<Failure> {
    let who = &file.name;
    let reason = answer.finish.as_deref().filter(|reason| !reason.is_empty());
    let reason = reason.map_or(String::new(), |reason| format!(" (it ended with `{reason}`)"));
    let message = format!("the answer of {who} is empty: no text and no calls{reason}");
    let hint = Hint::option(
        format!("check `api` in {}, describe the answer more clearly, or use another model", file.file),
        "--model ID",
    );
    let diagnostic = Diagnostic::new(Code::NoAnswer, message).hint(hint);
    let error = Error::new(ErrorKind::Reply, diagnostic).with("provider", who);
    let mut failure =
        Failure::new(error, classify(&Fault { kind: Some("server_error"), ..Fault::default() }));
    let written = answer.thinking.clone().unwrap_or_default();
    failure.charge = Charge::Broken { written, usage: answer.usage };
    failure
}
