//! HTTP requests of hooks that may make them.
//!
//! A hook runs without a network and has its requests made here, where it cannot reach around the rules: public hosts may be
//! asked, and what lies on this machine or in a private network only if the user lists it (see `host.rs`). A name is looked
//! up once for a connection, all that it leads to is checked, and the connection goes to what was checked; a name that
//! changes its mind between check and use wins nothing. Redirects are followed here and not by the HTTP library, because
//! each of them is a new request under the same rules.

mod host;
mod url;

use std::error::Error;
use std::fmt;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use cuebook::hooks::{Http, HttpRequest, HttpResponse, Refusal};
use cuebook::limits::HEAD_BYTES;
use ureq::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use ureq::http::{Method, Request, Response, StatusCode, Uri};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Body};

use host::{AllowedHosts, Host, not_public};
use url::Url;

/// How many redirects are followed.
const REDIRECTS: usize = 5;
/// The longest body of an answer, unpacked.
const LONGEST_BODY: u64 = 4 << 20;
const METHODS: [Method; 7] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

/// Headers that say where a message begins, ends and goes. A hook that chose them could make a server see another request
/// than the one that was checked.
const OURS: [HeaderName; 10] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Headers that go along to another host. Any other may hold a secret: keys of services have headers of many names, not
/// only `Authorization` and `Cookie`.
const HARMLESS: [HeaderName; 8] = [
    header::ACCEPT,
    header::ACCEPT_CHARSET,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::CONTENT_LANGUAGE,
    header::CONTENT_TYPE,
    header::RANGE,
    header::USER_AGENT,
];

/// Makes HTTP requests to public hosts, and to those others that are listed.
///
/// ```
/// use cuebook_hooks::http::HttpClient;
///
/// let client = HttpClient::new(vec!["localhost:8080".into(), "[::1]:80".into(), "intranet.example".into()]);
/// # let _ = client;
/// ```
#[derive(Debug)]
pub struct HttpClient {
    agent: Agent,
}

impl HttpClient {
    /// A client that may ask public hosts and these: `host` for all its ports or `host:port`, by name or by address.
    pub fn new(allowed_hosts: Vec<String>) -> HttpClient {
        HttpClient::guarded(AllowedHosts::new(&allowed_hosts))
    }

    /// A client that may ask every host: for those whose code the user has vouched for.
    pub fn of_every_host() -> HttpClient {
        HttpClient::guarded(AllowedHosts::every())
    }

    /// A client that may ask these hosts and no others, each as in [`HttpClient::new`]; `*` stands for every public host.
    pub fn of_hosts(hosts: &[String]) -> HttpClient {
        HttpClient::guarded(AllowedHosts::only(hosts))
    }

    fn guarded(allowed: AllowedHosts) -> HttpClient {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("cuebook/", env!("CARGO_PKG_VERSION")))
            // Not even the proxy of the environment: it would look up the names and make the connections in our place, and
            // from its place in the network, so that nothing checked here would hold.
            .proxy(None)
            .build();
        let guard = CheckedResolver { allowed, names: DefaultResolver::default() };
        HttpClient { agent: Agent::with_parts(config, DefaultConnector::default(), guard) }
    }

    fn send(&self, message: &Message, timeout: Duration) -> Result<Response<Body>, ureq::Error> {
        // Some servers insist on a length, even of nothing.
        let has_body = [Method::POST, Method::PUT, Method::PATCH].contains(&message.method);
        let body = message.body.as_deref().or(has_body.then_some(""));
        let mut request = Request::new(());
        *request.method_mut() = message.method.clone();
        *request.uri_mut() = message.url.uri.clone();
        *request.headers_mut() = message.headers.clone();
        let request = self.agent.configure_request(request).timeout_global(Some(timeout)).build();
        match body {
            Some(body) => self.agent.run(request.map(|()| body)),
            None => self.agent.run(request),
        }
    }
}

impl HttpClient {
    /// Makes a request and hands the body of its answer to `take` as it arrives, of any length. Reading stops as soon as `take`
    /// says `false`. The answer itself has no body.
    ///
    /// # Errors
    ///
    /// As [`Http::request`].
    pub fn stream(
        &self,
        request: &HttpRequest,
        take: &mut dyn FnMut(&HttpResponse, &[u8]) -> bool,
    ) -> Result<HttpResponse, Refusal> {
        let (message, mut response) = self.follow(request)?;
        let url = &message.url;
        let status = response.status().as_u16();
        let answer = HttpResponse {
            status,
            url: url.uri.to_string(),
            headers: headers(&response),
            body: String::new(),
        };
        if has_body(&message, response.status()) {
            let mut body = response.body_mut().with_config().limit(u64::MAX).reader();
            let mut buffer = vec![0; 64 << 10];
            loop {
                let count = match body.read(&mut buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    read => read.map_err(|error| explain(url, request.timeout, error.into()))?,
                };
                if count == 0 || !take(&answer, &buffer[..count]) {
                    break;
                }
            }
        }
        Ok(answer)
    }

    /// Sends a request and follows redirects.
    fn follow(&self, request: &HttpRequest) -> Result<(Message, Response<Body>), Refusal> {
        let started = Instant::now();
        let mut message = Message::new(request)?;
        for _ in 0..=REDIRECTS {
            let explain = |error| explain(&message.url, request.timeout, error);
            // The time is for all redirects together.
            let left = request.timeout.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Err(explain(ureq::Error::Timeout(ureq::Timeout::Global)));
            }
            let response = self.send(&message, left).map_err(explain)?;
            match message.redirected(&response)? {
                Some(next) => message = next,
                None => return Ok((message, response)),
            }
        }
        let message = format!("http_request: {} redirected more than {REDIRECTS} times", message.url.host);
        Err(Refusal::new("OSError", message))
    }
}

impl Http for HttpClient {
    fn request(&self, request: &HttpRequest) -> Result<HttpResponse, Refusal> {
        let (message, response) = self.follow(request)?;
        answer(&message, response, request.timeout)
    }
}

/// Whether an answer has a body. What has none may still say how the body would be packed, and the unpacker fails on nothing.
fn has_body(message: &Message, status: StatusCode) -> bool {
    message.method != Method::HEAD && ![StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&status)
}

/// A request to one host, checked but for the host's address.
#[derive(Debug, Clone)]
struct Message {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<String>,
}

impl Message {
    fn new(request: &HttpRequest) -> Result<Message, Refusal> {
        let asked = request.method.to_ascii_uppercase();
        let Some(method) = METHODS.into_iter().find(|method| method.as_str() == asked) else {
            let names = METHODS.map(|method| method.to_string()).join(", ");
            return Err(invalid(format!("the method {:?} is not supported, only {names}", request.method)));
        };
        let url = Url::parse(&request.url).map_err(invalid)?;
        let mut headers = HeaderMap::new();
        let mut length = 0;
        for (name, value) in &request.headers {
            let Ok(key) = HeaderName::from_bytes(name.as_bytes()) else {
                return Err(invalid(format!("{name:?} is not the name of a header")));
            };
            if OURS.contains(&key) {
                return Err(invalid(format!("the header `{key}` is set by Cuebook and cannot be chosen")));
            }
            // The value is not repeated, it may be a secret.
            let Ok(value) = HeaderValue::from_str(value) else {
                return Err(invalid(format!("the header `{key}` has a character that headers do not allow")));
            };
            length += name.len() + value.len();
            if length > HEAD_BYTES || headers.try_append(key, value).is_err() {
                return Err(invalid(format!("the headers are longer than {HEAD_BYTES} bytes")));
            }
        }
        Ok(Message { method, url, headers, body: request.body.clone() })
    }

    /// The message that a redirect asks for, if the answer is one. Method and body change as the Fetch standard says.
    fn redirected(&self, response: &Response<Body>) -> Result<Option<Message>, Refusal> {
        let status = response.status();
        if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(None);
        }
        let Some(location) = response.headers().get(header::LOCATION) else { return Ok(None) };
        let from = &self.url.host;
        let refuse = |why: &str| {
            Refusal::permission(format!("http_request: a redirect of {from} is not followed: {why}"))
        };
        let location = std::str::from_utf8(location.as_bytes()).map_err(|_| refuse("it is not UTF-8"))?;
        let url = self.url.join(location).map_err(|why| refuse(&why))?;
        if self.url.secure && !url.secure {
            return Err(refuse("it leads from https to http"));
        }
        let mut next = Message { url, ..self.clone() };
        let becomes_get = match status {
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            StatusCode::SEE_OTHER => self.method != Method::HEAD,
            _ => false,
        };
        if becomes_get {
            next.method = Method::GET;
            next.body = None;
            next.headers.remove(header::CONTENT_TYPE);
            next.headers.remove(header::CONTENT_LANGUAGE);
        }
        if !self.url.may_send_secrets_to(&next.url) {
            let kept = next.headers.iter().filter(|(name, _)| HARMLESS.contains(name));
            next.headers = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        }
        Ok(Some(next))
    }
}

fn answer(
    message: &Message,
    mut response: Response<Body>,
    timeout: Duration,
) -> Result<HttpResponse, Refusal> {
    let url = &message.url;
    let status = response.status();
    let mut bytes = Vec::new();
    if has_body(message, status) {
        // The limit of the library counts packed bytes.
        let unpacked = response.body_mut().with_config().limit(u64::MAX).reader();
        let read = unpacked.take(LONGEST_BODY + 1).read_to_end(&mut bytes);
        read.map_err(|error| explain(url, timeout, error.into()))?;
    }
    if bytes.len() as u64 > LONGEST_BODY {
        let message = format!("http_request: the answer of {} has more than {LONGEST_BODY} bytes", url.host);
        return Err(Refusal::new("OSError", message));
    }
    let body = String::from_utf8(bytes)
        .map_err(|_| invalid(format!("the answer of {} is not text in UTF-8", url.host)))?;
    Ok(HttpResponse { status: status.as_u16(), url: url.uri.to_string(), headers: headers(&response), body })
}

fn headers(response: &Response<Body>) -> Vec<(String, String)> {
    // Not UTF-8 is Latin-1, which is what headers once were.
    let text = |value: &HeaderValue| match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => text.to_owned(),
        Err(_) => value.as_bytes().iter().copied().map(char::from).collect(),
    };
    let headers = response.headers();
    let joined = |name| headers.get_all(name).iter().map(text).collect::<Vec<_>>().join(", ");
    headers.keys().map(|name| (name.to_string(), joined(name))).collect()
}

/// Looks up names, and refuses those that lead where hooks may not go.
#[derive(Debug)]
struct CheckedResolver {
    allowed: AllowedHosts,
    names: DefaultResolver,
}

impl Resolver for CheckedResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let url = Url::of(uri.clone()).map_err(ureq::Error::BadUri)?;
        if let Some(refusal) = self.allowed.refusal(&url.host, url.port) {
            let refusal = Refusal::permission(format!("http_request: {refusal}"));
            return Err(ureq::Error::Other(Box::new(RefusedAddress(refusal))));
        }
        let addresses = self.names.resolve(uri, config, timeout)?;
        if self.allowed.contain(&url.host, url.port) {
            return Ok(addresses);
        }
        // One bad address is enough: a public host has no business with others.
        for address in &addresses {
            if let Some(what) = not_public(address.ip()) {
                let message = format!(
                    "http_request: {} is {what} ({}); list \"{}\" in hooks.http_hosts of cuebook.toml to allow it",
                    url.host,
                    address.ip(),
                    url.host_and_port(),
                );
                return Err(ureq::Error::Other(Box::new(RefusedAddress(Refusal::permission(message)))));
            }
        }
        Ok(addresses)
    }
}

/// The hosts that a tool may connect to.
#[derive(Debug, Clone)]
pub struct Hosts(AllowedHosts);

impl Hosts {
    /// These hosts and no others: `host` for all its ports or `host:port`; `*` stands for every public host.
    pub fn only(hosts: &[String]) -> Hosts {
        Hosts(AllowedHosts::only(hosts))
    }

    /// Connects to a host, if that is allowed. What its name leads to is looked up once, checked, and connected to.
    ///
    /// # Errors
    ///
    /// The kind `PermissionDenied` if the host is not allowed.
    pub fn connect(&self, host: &str, port: u16, timeout: Duration) -> io::Result<TcpStream> {
        let denied = |why: String| io::Error::new(io::ErrorKind::PermissionDenied, why);
        let named = Host::new(host);
        if let Some(refusal) = self.0.refusal(&named, port) {
            return Err(denied(refusal));
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let addresses: Vec<SocketAddr> = (bare, port).to_socket_addrs()?.collect();
        if !self.0.contain(&named, port)
            && let Some(what) = addresses.iter().find_map(|address| not_public(address.ip()))
        {
            return Err(denied(format!("{named} is {what}")));
        }
        let mut failed = io::Error::new(io::ErrorKind::NotFound, format!("{named} has no address"));
        for address in addresses {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => return Ok(stream),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

/// Carries a refusal through the HTTP library.
#[derive(Debug)]
struct RefusedAddress(Refusal);

impl fmt::Display for RefusedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl Error for RefusedAddress {}

fn invalid(message: impl fmt::Display) -> Refusal {
    Refusal::new("ValueError", format!("http_request: {message}"))
}

/// Messages name the host and not the URL, whose query may hold a secret.
fn explain(url: &Url, timeout: Duration, error: ureq::Error) -> Refusal {
    let host = &url.host;
    let (exception, why) = match error {
        ureq::Error::Other(other) => match other.downcast::<RefusedAddress>() {
            Ok(refused) => return refused.0,
            Err(other) => ("OSError", other.to_string()),
        },
        ureq::Error::Timeout(_) => ("TimeoutError", format!("no complete answer within {timeout:?}")),
        ureq::Error::Io(error) => ("ConnectionError", error.to_string()),
        error @ (ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed
        | ureq::Error::Tls(_)
        | ureq::Error::Rustls(_)) => ("ConnectionError", error.to_string()),
        error => ("OSError", error.to_string()),
    };
    Refusal::new(exception, format!("http_request: {host}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, url: &str, headers: &[(&str, &str)]) -> HttpRequest {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        HttpRequest {
            method: method.into(),
            url: url.into(),
            headers,
            body: None,
            timeout: Duration::from_secs(10),
        }
    }

    fn redirect(message: &Message, status: u16, location: &str) -> Result<Option<Message>, Refusal> {
        let response = Response::builder().status(status).header("location", location);
        message.redirected(&response.body(Body::builder().data("")).unwrap())
    }

    #[test]
    fn only_the_usual_methods_are_sent() {
        for method in ["get", "HEAD", "Post", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            assert!(Message::new(&request(method, "http://a.example", &[])).is_ok(), "{method}");
        }
        for method in ["", "TRACE", "CONNECT", "GET / HTTP/1.1\r\n", "ГЕТ"] {
            let refusal = Message::new(&request(method, "http://a.example", &[])).unwrap_err();
            assert_eq!(refusal.exception, "ValueError", "{method}");
        }
    }

    #[test]
    fn headers_that_would_change_the_request_are_refused() {
        let long = "x".repeat(HEAD_BYTES + 1);
        for (name, value) in [
            ("X", "a\r\nY: b"),
            ("X", "a\nb"),
            ("X", "a\0b"),
            ("X\r\nY", "a"),
            ("X: Y", "a"),
            ("", "a"),
            ("Ü", "a"),
            ("Host", "internal"),
            ("content-length", "3"),
            ("Transfer-Encoding", "chunked"),
            ("Connection", "upgrade"),
            ("X", &long),
            (&long, "x"),
        ] {
            let refusal = Message::new(&request("GET", "http://a.example", &[(name, value)])).unwrap_err();
            assert_eq!(refusal.exception, "ValueError", "{name}");
        }
        assert!(Message::new(&request("GET", "http://a.example", &[("X", "größe\t1")])).is_ok());
    }

    #[test]
    fn a_redirect_changes_the_method_as_browsers_do() {
        for (status, method, wanted) in [
            (301, "POST", "GET"),
            (302, "POST", "GET"),
            (302, "PUT", "PUT"),
            (303, "PUT", "GET"),
            (303, "HEAD", "HEAD"),
            (307, "POST", "POST"),
            (308, "DELETE", "DELETE"),
        ] {
            let mut message =
                Message::new(&request(method, "http://a.example/x", &[("Content-Type", "a/b")])).unwrap();
            message.body = Some("body".into());
            let next = redirect(&message, status, "/y").unwrap().unwrap();
            assert_eq!(next.method, wanted, "{status} {method}");
            let dropped = method != wanted;
            assert_eq!(next.body.is_none(), dropped, "{status} {method}");
            assert_eq!(next.headers.is_empty(), dropped, "{status} {method}");
        }
        let message = Message::new(&request("GET", "http://a.example", &[])).unwrap();
        for status in [200, 201, 300, 304, 305, 404] {
            assert!(redirect(&message, status, "/y").unwrap().is_none(), "{status}");
        }
    }

    #[test]
    fn a_redirect_to_another_host_takes_no_secrets_along() {
        let given = [("Authorization", "s"), ("Cookie", "s"), ("X-Api-Key", "s"), ("Accept", "a")];
        let message = Message::new(&request("GET", "https://a.example", &given)).unwrap();
        assert_eq!(redirect(&message, 302, "/y").unwrap().unwrap().headers.len(), 4);
        let next = redirect(&message, 302, "https://b.example/").unwrap().unwrap();
        assert_eq!(next.headers.keys().collect::<Vec<_>>(), ["accept"]);
    }

    #[test]
    fn a_redirect_does_not_leave_encryption_nor_http() {
        let message = Message::new(&request("GET", "https://a.example", &[])).unwrap();
        for location in ["http://a.example/", "ftp://a.example/", "file:///etc/passwd", "//u:p@a.example/"] {
            let refusal = redirect(&message, 302, location).unwrap_err();
            assert_eq!(refusal.exception, "PermissionError", "{location}");
        }
    }
}
