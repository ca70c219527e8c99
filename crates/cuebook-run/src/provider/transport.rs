//! Who carries a request to a provider, and its reply back: the network, or a recording.

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cuebook::chat::wire::Api;
use cuebook::redact::Secrets;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result, files};
use ureq::Agent;
use ureq::http::{HeaderValue, Request};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::transport::{ConnectProxyConnector, Connector, RustlsConnector};

use super::Stop;
use super::exchange::Method;
use super::file::Timeouts;
use super::socket::{
    LookupFailure, Names, SendObserver, Sockets, WaitFailure, WaitLimits, WaitOutcome, set_end, set_silence,
    watched,
};

/// Bytes of one reply to a question.
pub(super) const MAX_BODY: u64 = 64 << 20;
/// Bytes of the buffer for what comes, which must hold the head of a reply. A thousand requests wait at once, each with its own.
const INPUT: usize = 16 << 10;
/// Bytes of the buffer for what is sent, which must hold the longest header.
const OUTPUT: usize = 8 << 10;
/// Bytes of what a server says about a failure.
pub(super) const MAX_FAILURE: usize = 64 << 10;
/// How long a server may take to end a reply whose last event has come, and how many bytes that may have.
const FAREWELL: Duration = Duration::from_secs(1);
const MAX_AFTER_END: usize = 64 << 10;

/// A request, ready to be sent.
pub(super) struct Outgoing<'a> {
    pub api: Api,
    /// The address of the provider.
    pub base_url: &'a str,
    /// What follows it.
    pub path: String,
    /// Headers, with secrets among them.
    pub headers: Vec<(String, String)>,
    /// What must stay private.
    pub secrets: Secrets,
    /// The body as it is sent: while a request waits for its answer, a thousand others may, and trees are large.
    pub body: Vec<u8>,
    pub timeouts: Timeouts,
    pub stop: Stop,
    pub end: Option<Instant>,
    pub method: Method,
    pub content_type: &'a str,
    /// The most bytes that a reply may have.
    pub limit: u64,
}

/// How a reply begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ReplyHead {
    pub status: u16,
    pub headers: Vec<(String, String)>,
}

impl ReplyHead {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// What is heard of a reply. Says whether the reply has come to its end, so that no more needs to come.
pub(super) trait ReplyListener {
    fn head(&mut self, head: &ReplyHead);
    fn bytes(&mut self, bytes: &[u8]) -> bool;
}

/// That a reply did not come, or not to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReplyFailure {
    pub what: ReplyFailureKind,
    /// What the system says about it.
    pub message: String,
    /// Whether the request was sent whole, so that it may have been answered.
    pub sent: bool,
}

impl ReplyFailure {
    /// What usually is known of such a failure.
    pub fn new(what: ReplyFailureKind, message: impl Into<String>) -> ReplyFailure {
        ReplyFailure { what, message: message.into(), sent: what.is_behind_request() }
    }
}

/// What happened to a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyFailureKind {
    /// There was a request to stop.
    Stopped,
    /// The time of the request, or of its sender, was over.
    Late,
    /// The server said nothing for too long.
    Silent,
    /// Nothing was sent: there is no connection.
    Unreachable,
    /// Nothing was sent: the machine is there, and no program listens at the port.
    Refused,
    /// Nothing was sent, and nothing will be: there is no host of this name.
    NoHost,
    /// The connection broke.
    Cut,
    /// What came is no HTTP, or too much.
    Nonsense,
    /// The answer is larger than an answer may be.
    TooMuch,
    /// A recording does not fit.
    Mismatch,
}

impl ReplyFailureKind {
    pub const ALL: [(ReplyFailureKind, &'static str); 10] = [
        (ReplyFailureKind::Stopped, "stopped"),
        (ReplyFailureKind::Late, "late"),
        (ReplyFailureKind::Silent, "silent"),
        (ReplyFailureKind::Unreachable, "unreachable"),
        (ReplyFailureKind::Refused, "refused"),
        (ReplyFailureKind::NoHost, "no_host"),
        (ReplyFailureKind::Cut, "cut"),
        (ReplyFailureKind::Nonsense, "nonsense"),
        (ReplyFailureKind::TooMuch, "too_much"),
        (ReplyFailureKind::Mismatch, "mismatch"),
    ];

    /// Whether this usually happens to a request that was sent whole.
    pub fn is_behind_request(self) -> bool {
        matches!(
            self,
            ReplyFailureKind::Late
                | ReplyFailureKind::Silent
                | ReplyFailureKind::Cut
                | ReplyFailureKind::Nonsense
                | ReplyFailureKind::TooMuch
        )
    }

    pub fn as_str(self) -> &'static str {
        ReplyFailureKind::ALL.iter().find(|(what, _)| *what == self).map_or("", |(_, name)| name)
    }
}

/// Carries requests.
pub(super) trait Transport: fmt::Debug + Send + Sync {
    /// Sends a request, and passes on what comes back.
    fn provider_state(&self, out: &Outgoing<'_>, hear: &mut dyn ReplyListener) -> Result<(), ReplyFailure>;

    /// Whether a key is needed, and pauses are made.
    fn is_real(&self) -> bool {
        true
    }
}

/// Sends requests over the network. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Client {
    agent: Arc<Agent>,
}

impl Default for Client {
    fn default() -> Client {
        Client::new()
    }
}

/// The variable that names a file of authorities, as other programs know it.
const AUTHORITIES: &str = "SSL_CERT_FILE";
/// The largest such file.
const LARGEST_AUTHORITIES: u64 = 16 << 20;

impl Client {
    /// A client without connections yet, which trusts the authorities that the web trusts. Where `SSL_CERT_FILE` names a file (the
    /// way into the world may be a gateway with an authority of its own), it trusts those in the file instead.
    ///
    /// # Errors
    ///
    /// `CB719` if that file cannot be used.
    pub fn from_environment() -> Result<Client> {
        match std::env::var_os(AUTHORITIES).filter(|path| !path.is_empty()) {
            Some(path) => Client::trusting(Path::new(&path)),
            None => Ok(Client::new()),
        }
    }

    /// A client that trusts the authorities in a file of PEM and no others.
    ///
    /// # Errors
    ///
    /// `CB719` if the file cannot be read or holds no certificate.
    pub fn trusting(path: &Path) -> Result<Client> {
        let name = path.to_string_lossy();
        let bytes = files::read_bytes(path, &name, LARGEST_AUTHORITIES)?;
        let wrong = |message: String| {
            let diagnostic = Diagnostic::new(Code::BadProviderFile, message)
                .file(&*name)
                .hint(format!("{AUTHORITIES} names a file with certificates of authorities in PEM"));
            Error::new(ErrorKind::Config, diagnostic)
        };
        let mut authorities = Vec::new();
        for item in parse_pem(&bytes) {
            match item {
                Ok(PemItem::Certificate(certificate)) => authorities.push(certificate),
                Ok(_) => {}
                Err(error) => return Err(wrong(format!("a certificate cannot be read: {error}"))),
            }
        }
        if authorities.is_empty() {
            return Err(wrong("there is no certificate in the file".to_owned()));
        }
        Ok(Client::with(RootCerts::Specific(Arc::new(authorities))))
    }

    /// A client without connections yet, which trusts the authorities that the web trusts.
    pub fn new() -> Client {
        Client::with(RootCerts::WebPki)
    }

    fn with(authorities: RootCerts) -> Client {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .tls_config(TlsConfig::builder().root_certs(authorities).build())
            // With a key in its headers a request goes where it was sent, and nowhere else.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("cuebook/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .input_buffer_size(INPUT)
            .output_buffer_size(OUTPUT)
            .max_response_header_size(INPUT)
            .max_idle_connections(128)
            .max_idle_connections_per_host(128)
            .max_idle_age(Duration::from_secs(55))
            .build();
        let connector =
            ().chain(ConnectProxyConnector::default()).chain(Sockets).chain(RustlsConnector::default());
        let connector = connector.chain(SendObserver);
        Client { agent: Arc::new(Agent::with_parts(config, connector, Names)) }
    }

    fn send(&self, out: &Outgoing<'_>, hear: &mut dyn ReplyListener) -> Result<(), ureq::Error> {
        let address = format!("{}{}", out.base_url, out.path);
        let mut request = match out.method {
            Method::Post => Request::post(address).header("content-type", out.content_type),
            Method::Get => Request::get(address),
        };
        for (name, value) in &out.headers {
            let mut value = HeaderValue::from_str(value).map_err(|error| ureq::Error::Http(error.into()))?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let response = match out.method {
            Method::Post => self.agent.run(request.body(out.body.as_slice())?)?,
            Method::Get => self.agent.run(request.body(())?)?,
        };
        set_silence(out.timeouts.idle);
        let (parts, body) = response.into_parts();
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
        let status = parts.status.as_u16();
        hear.head(&ReplyHead { status, headers });
        let failed = !parts.status.is_success();
        let mut reader = body.into_with_config().limit(out.limit).reader();
        let mut buffer = vec![0; INPUT / 2];
        let (mut heard, mut ended) = (0, None);
        loop {
            let amount = match reader.read(&mut buffer) {
                Ok(amount) => amount,
                // It is all there: how the connection ends does not matter any more.
                Err(_) if ended.is_some() => return Ok(()),
                Err(error) => return Err(ureq::Error::from(error)),
            };
            heard += amount;
            if amount == 0 || (failed && heard > MAX_FAILURE) {
                return Ok(());
            }
            // What follows is the end of the reply: what was counted, and what lets the connection serve again. A server that
            // goes on for longer is not listened to.
            let is_over = hear.bytes(&buffer[..amount]);
            match ended {
                Some(end) if heard - end > MAX_AFTER_END => return Ok(()),
                None if is_over => {
                    ended = Some(heard);
                    set_end(Instant::now() + FAREWELL);
                }
                _ => {}
            }
        }
    }
}

impl Transport for Client {
    fn provider_state(&self, out: &Outgoing<'_>, hear: &mut dyn ReplyListener) -> Result<(), ReplyFailure> {
        let watch = WaitLimits {
            stop: out.stop.clone(),
            end: out.end,
            connect: out.timeouts.connect,
            silence: out.timeouts.first_byte,
        };
        let WaitOutcome { done, why, sent } = watched(watch, || self.send(out, hear));
        done.map_err(|error| {
            let message = match &error {
                ureq::Error::Io(error) => error.to_string(),
                other => other.to_string(),
            };
            let what = match (why, &error) {
                (Some(WaitFailure::Stopped), _) => ReplyFailureKind::Stopped,
                (Some(WaitFailure::Late), _) => ReplyFailureKind::Late,
                (Some(WaitFailure::Silent), _) => ReplyFailureKind::Silent,
                (Some(WaitFailure::NoConnection), _) => ReplyFailureKind::Unreachable,
                (None, ureq::Error::HostNotFound) => ReplyFailureKind::NoHost,
                (None, ureq::Error::ConnectionFailed) => ReplyFailureKind::Unreachable,
                (None, ureq::Error::Io(error)) => cut(error),
                (None, _) => ReplyFailureKind::Nonsense,
            };
            ReplyFailure { what, message, sent }
        })
    }
}

/// What a failure of a connection means: whether the server can have heard anything.
fn cut(error: &std::io::Error) -> ReplyFailureKind {
    use std::io::ErrorKind;
    if let Some(unnamed) = error.get_ref().and_then(|inner| inner.downcast_ref::<LookupFailure>()) {
        return if unnamed.passes { ReplyFailureKind::Unreachable } else { ReplyFailureKind::NoHost };
    }
    match error.kind() {
        ErrorKind::ConnectionRefused => ReplyFailureKind::Refused,
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::AddrNotAvailable => {
            ReplyFailureKind::Unreachable
        }
        ErrorKind::InvalidData => ReplyFailureKind::Nonsense,
        _ => ReplyFailureKind::Cut,
    }
}
