//! Decides who is answered, before anything else looks at a request.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, ORIGIN, VARY,
    WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use cuebook::error::ErrorKind;
use cuebook::{Code, Diagnostic, Error, Result};
use serde_json::json;

use super::connections::Connection;
use super::{Token, is_own};

/// Whom a server answers.
pub(crate) struct Guard {
    pub(crate) token: Token,
    /// Origins that were allowed, in their normal form.
    pub(crate) origins: Vec<String>,
    pub(crate) address: SocketAddr,
}

/// Headers that a web page may send and read.
const SENT: &str = "authorization, content-type, accept, last-event-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name";
const READ: &str = "mcp-session-id, www-authenticate";

/// An origin in its normal form: a scheme, a host, and a port if it is not the usual one.
pub(crate) fn origin(text: &str) -> Result<String> {
    normal(text).ok_or_else(|| {
        let diagnostic = Diagnostic::new(Code::BadOrigin, format!("`{text}` is not an origin")).hint(
            "write scheme, host and port as a browser does: https://app.example.com, http://localhost:6274",
        );
        Error::new(ErrorKind::Usage, diagnostic).with("origin", text)
    })
}

fn normal(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let (scheme, rest) = lower.split_once("://")?;
    let usual = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return None,
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let authority: axum::http::uri::Authority = rest.parse().ok()?;
    let has_good_port = rest.len() == authority.host().len() || authority.port_u16().is_some();
    let is_plain = !authority.host().is_empty() && has_good_port && !rest.contains(['@', '*']);
    is_plain.then(|| format!("{scheme}://{}", rest.strip_suffix(usual).unwrap_or(rest)))
}

impl Guard {
    /// The origins that are answered: those that were allowed, and this server's own.
    pub(crate) fn all_origins(&self) -> Vec<String> {
        let port = self.address.port();
        let own = ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("http://{host}:{port}"));
        self.origins.iter().cloned().chain(own).collect()
    }

    fn allows(&self, origin: &str) -> bool {
        normal(origin).is_some_and(|origin| {
            self.all_origins().iter().filter_map(|known| normal(known)).any(|known| known == origin)
        })
    }

    /// The refusal of a request of a page that this server serves itself, if so: it comes from this page, and has the token unless it
    /// asks for a part of the page.
    pub(crate) fn refuse_page(&self, headers: &HeaderMap, is_asset: bool) -> Option<Response> {
        const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
        let is_foreign = headers.get(SITE).is_some_and(|site| site != "same-origin" && site != "none");
        match self.refuse(headers, is_asset) {
            Some(refusal) => Some(refusal.response()),
            None if is_foreign && !is_asset => Some(Refusal::Origin.response()),
            None => None,
        }
    }

    /// Why a request is not answered, if so.
    fn refuse(&self, headers: &HeaderMap, is_preflight: bool) -> Option<Refusal> {
        // On this machine, a name that is not this machine's is a web page's attempt to get in by way of the name system. Elsewhere a
        // server may have any name, and the token keeps strangers out.
        if self.address.ip().is_loopback() {
            let mut hosts = headers.get_all(HOST).iter();
            let host = hosts.next().and_then(|host| host.to_str().ok());
            let name = host.and_then(|host| host.parse::<axum::http::uri::Authority>().ok());
            if hosts.next().is_some() || !name.is_some_and(|name| is_own(self.address, name.host())) {
                return Some(Refusal::Host);
            }
        }
        for origin in headers.get_all(ORIGIN) {
            if !origin.to_str().is_ok_and(|origin| self.allows(origin)) {
                return Some(Refusal::Origin);
            }
        }
        // A browser asks for permission without showing the token.
        let has_token = bearer(headers).is_some_and(|given| self.token.is(given));
        (!is_preflight && !has_token).then_some(Refusal::Token)
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (scheme, token) = all.next()?.to_str().ok()?.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && all.next().is_none()).then(|| token.trim())
}

/// Why a client gets no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Host,
    Origin,
    Token,
}

impl Refusal {
    fn response(self) -> Response {
        let (status, message) = match self {
            Refusal::Host => {
                (StatusCode::FORBIDDEN, "this server does not answer to the name in the Host header")
            }
            Refusal::Origin => {
                (StatusCode::FORBIDDEN, "this server does not answer web pages of that origin")
            }
            Refusal::Token => {
                (StatusCode::UNAUTHORIZED, "this server needs a token: Authorization: Bearer …")
            }
        };
        let mut response = plain(status, message);
        if self == Refusal::Token {
            let realm = HeaderValue::from_static("Bearer realm=\"cuebook\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, realm);
        }
        response
    }
}

/// A refusal as JSON-RPC; the connection is closed after it, so that nothing more of the request is read.
pub(crate) fn plain(status: StatusCode, message: &str) -> Response {
    let body = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": message}});
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Lets a request through, or does not.
pub(crate) async fn check(guard: Arc<Guard>, request: Request, next: Next) -> Response {
    const PREFLIGHT: HeaderName = HeaderName::from_static("access-control-request-method");
    let origin = request.headers().get(ORIGIN).cloned();
    let is_preflight =
        request.method() == Method::OPTIONS && origin.is_some() && request.headers().contains_key(PREFLIGHT);
    let refusal = guard.refuse(request.headers(), is_preflight);
    let mut response = match refusal {
        Some(refusal) => refusal.response(),
        None if is_preflight => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            let headers = response.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(SENT));
            response
        }
        None => {
            if let Some(connection) = request.extensions().get::<Arc<Connection>>() {
                connection.admit();
            }
            next.run(request).await
        }
    };
    // Pages that are answered may also read the answer, even if it says that there is no token.
    if let (Some(origin), None | Some(Refusal::Token)) = (origin, refusal) {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(READ));
        headers.append(VARY, HeaderValue::from_static("origin"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(address: &str, origins: &[&str]) -> Guard {
        Guard {
            token: Token::new(TOKEN),
            origins: origins.iter().map(|text| origin(text).unwrap()).collect(),
            address: address.parse().unwrap(),
        }
    }

    const TOKEN: &str = "correct-horse-battery";
    const BEARER: (HeaderName, &str) = (AUTHORIZATION, "Bearer correct-horse-battery");

    fn headers(all: &[(HeaderName, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn an_origin_has_a_normal_form() {
        for (text, normal) in [
            ("https://App.Example.com", "https://app.example.com"),
            ("https://app.example.com:443/", "https://app.example.com"),
            ("http://localhost:6274", "http://localhost:6274"),
            ("http://[::1]:80", "http://[::1]"),
        ] {
            assert_eq!(origin(text).unwrap(), normal);
        }
        for wrong in [
            "",
            "*",
            "null",
            "localhost",
            "ftp://x",
            "https://",
            "https://x/path",
            "https://u@x",
            "https://*.x",
            "https://x:y",
        ] {
            assert_eq!(origin(wrong).unwrap_err().code(), Code::BadOrigin, "{wrong}");
        }
    }

    #[test]
    fn on_this_machine_the_host_must_be_this_machine_s() {
        let guard = guard("127.0.0.1:8321", &[]);
        for host in ["127.0.0.1:8321", "localhost:8321", "LOCALHOST", "[::1]:8321"] {
            assert_eq!(guard.refuse(&headers(&[(HOST, host), BEARER]), false), None, "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8321",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "192.168.0.7",
        ] {
            assert_eq!(guard.refuse(&headers(&[(HOST, host), BEARER]), false), Some(Refusal::Host), "{host}");
        }
        assert_eq!(guard.refuse(&headers(&[BEARER]), false), Some(Refusal::Host));
    }

    #[test]
    fn pages_are_answered_only_if_they_were_allowed() {
        let guard = guard("127.0.0.1:8321", &["https://app.example.com"]);
        let refuse = |origin| guard.refuse(&headers(&[(HOST, "localhost"), (ORIGIN, origin), BEARER]), false);
        for origin in ["https://app.example.com", "http://localhost:8321", "http://127.0.0.1:8321"] {
            assert_eq!(refuse(origin), None, "{origin}");
        }
        for origin in [
            "https://evil.example",
            "http://app.example.com",
            "https://app.example.com:8443",
            "http://localhost:3000",
            "null",
            "https://app.example.com.evil.example",
        ] {
            assert_eq!(refuse(origin), Some(Refusal::Origin), "{origin}");
        }
    }

    #[test]
    fn on_this_machine_the_token_is_needed_too() {
        let guard = guard("127.0.0.1:8321", &[]);
        assert_eq!(guard.refuse(&headers(&[(HOST, "localhost")]), false), Some(Refusal::Token));
        assert_eq!(guard.refuse(&headers(&[(HOST, "localhost"), BEARER]), false), None);
    }

    #[test]
    fn a_token_must_be_the_right_one_and_a_browser_may_ask_without() {
        let guard = guard("0.0.0.0:8321", &["https://app.example.com"]);
        let refuse =
            |value: &str| guard.refuse(&headers(&[(HOST, "tools.example"), (AUTHORIZATION, value)]), false);
        assert_eq!(refuse("Bearer correct-horse-battery"), None);
        assert_eq!(refuse("bearer correct-horse-battery"), None);
        for wrong in ["Bearer wrong", "correct-horse-battery", "Basic correct-horse-battery", "Bearer"] {
            assert_eq!(refuse(wrong), Some(Refusal::Token), "{wrong}");
        }
        let page = headers(&[(ORIGIN, "https://app.example.com")]);
        assert_eq!(guard.refuse(&page, false), Some(Refusal::Token));
        assert_eq!(guard.refuse(&page, true), None);
        let twice = headers(&[BEARER, (AUTHORIZATION, "Bearer x")]);
        assert_eq!(guard.refuse(&twice, false), Some(Refusal::Token));
    }
}
