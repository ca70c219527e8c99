//! The address of a request, and where a redirect leads from it.
//!
//! A URL is read once, by the parser that the connection is made with, so that no spelling can mean one host to the check
//! and another to the connection.

use std::fmt::Write;

use ureq::http::Uri;

use super::host::Host;

/// An absolute URL of HTTP, without userinfo and fragment.
#[derive(Debug, Clone)]
pub(super) struct Url {
    pub(super) uri: Uri,
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) secure: bool,
}

impl Url {
    pub(super) fn parse(text: &str) -> Result<Url, String> {
        let uri: Uri = encoded(text).parse().map_err(|error| format!("the URL cannot be read: {error}"))?;
        Url::of(uri)
    }

    pub(super) fn of(uri: Uri) -> Result<Url, String> {
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(other) => return Err(format!("`{other}` is not supported, only http and https")),
            None => return Err("the URL must start with http:// or https://".into()),
        };
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        if authority.contains('@') {
            // Not repeated here: it is a password.
            return Err(
                "a name and a password in the URL are not supported; use the header Authorization".into()
            );
        }
        let host = uri.host().unwrap_or_default();
        if host.is_empty() {
            return Err("the URL names no host".into());
        }
        // The parser takes a port that it cannot read for no port.
        let port = match authority.strip_prefix(host).unwrap_or_default() {
            "" | ":" => {
                if secure {
                    443
                } else {
                    80
                }
            }
            port => port[1..].parse().map_err(|_| format!("`{}` is not a port", &port[1..]))?,
        };
        let host = Host::new(host);
        Ok(Url { uri, host, port, secure })
    }

    /// Where a redirect to `location` leads (RFC 3986, section 5.2).
    pub(super) fn join(&self, location: &str) -> Result<Url, String> {
        let location = location.split('#').next().unwrap_or_default();
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        let (path, query) = match location.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (location, None),
        };
        if has_scheme(location) {
            return Url::parse(location);
        }
        if location.starts_with("//") {
            return Url::parse(&format!("{scheme}:{location}"));
        }
        let mut joined = format!("{scheme}://{authority}");
        if path.is_empty() {
            joined.push_str(self.uri.path());
        } else if path.starts_with('/') {
            joined.push_str(&without_dots(path));
        } else {
            let folder = self.uri.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            joined.push_str(&without_dots(&format!("{folder}/{path}")));
        }
        let kept = if path.is_empty() { self.uri.query() } else { None };
        if let Some(query) = query.or(kept) {
            joined.push('?');
            joined.push_str(query);
        }
        Url::parse(&joined)
    }

    /// If what was meant for this host may be sent to the other: it is the same, or the same with encryption.
    pub(super) fn may_send_secrets_to(&self, other: &Url) -> bool {
        let upgraded = (self.secure, self.port, other.secure, other.port) == (false, 80, true, 443);
        self.host == other.host && ((self.port == other.port && self.secure == other.secure) || upgraded)
    }

    /// The host with its port, as it is listed in the settings.
    pub(super) fn host_and_port(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// Spaces and characters beyond ASCII as browsers send them; people write them and servers redirect to them.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte == b' ' || !byte.is_ascii() {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02X}");
        } else {
            out.push(char::from(byte));
        }
    }
    out
}

fn has_scheme(location: &str) -> bool {
    location.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    })
}

fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut parts = path.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        match part {
            "." | ".." => {
                if part == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            _ => kept.push(part),
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_resolved_against_the_url_that_it_came_from() {
        let base = Url::parse("http://a.example:8080/b/c/d;p?q").unwrap();
        for (location, wanted) in [
            ("g", "http://a.example:8080/b/c/g"),
            ("./g", "http://a.example:8080/b/c/g"),
            ("g/", "http://a.example:8080/b/c/g/"),
            ("/g", "http://a.example:8080/g"),
            ("//g.example/x", "http://g.example/x"),
            ("?y", "http://a.example:8080/b/c/d;p?y"),
            ("g?y", "http://a.example:8080/b/c/g?y"),
            ("g#s", "http://a.example:8080/b/c/g"),
            ("", "http://a.example:8080/b/c/d;p?q"),
            ("..", "http://a.example:8080/b/"),
            ("../g", "http://a.example:8080/b/g"),
            ("../../../../g", "http://a.example:8080/g"),
            ("/./g/../h", "http://a.example:8080/h"),
            ("g?y=/../x", "http://a.example:8080/b/c/g?y=/../x"),
            ("?u=http://z.example/", "http://a.example:8080/b/c/d;p?u=http://z.example/"),
            ("HTTPS://z.example/é ü", "https://z.example/%C3%A9%20%C3%BC"),
        ] {
            assert_eq!(base.join(location).unwrap().uri.to_string(), wanted, "{location}");
        }
        for location in
            ["ftp://a.example/", "javascript:alert(1)", "file:///etc/passwd", "http://u:p@h/", "http://"]
        {
            assert!(base.join(location).is_err(), "{location}");
        }
    }

    #[test]
    fn urls_that_are_not_plain_http_are_refused() {
        for url in [
            "",
            "/path",
            "example.com/path",
            "file:///etc/passwd",
            "ftp://example.com/",
            "unix:/run/docker.sock",
            "http://",
            "http:///path",
            "http://:80/",
            "http://user@example.com/",
            "http://user:secret@example.com/",
            "http://example.com:99999/",
            "http://example.com:-1/",
            "http://example.com:8x/",
            "http://[::1/",
            "http://exa\\mple.com/",
            "http://example.com/\r\nX: y",
            "http://example.com/\t",
        ] {
            let refused = Url::parse(url).map(|url| url.uri).unwrap_err();
            assert!(!refused.contains("secret"), "{url}: {refused}");
        }
    }

    #[test]
    fn the_port_follows_from_the_scheme() {
        for (url, wanted) in [
            ("http://example.com", "example.com:80"),
            ("https://Example.com/", "example.com:443"),
            ("https://example.com:/", "example.com:443"),
            ("http://[::1]/", "[::1]:80"),
            ("http://[::1]:8080/", "[::1]:8080"),
        ] {
            assert_eq!(Url::parse(url).unwrap().host_and_port(), wanted, "{url}");
        }
    }

    #[test]
    fn secrets_stay_with_their_host() {
        for (from, to, wanted) in [
            ("http://a.example/", "http://A.example./x", true),
            ("http://a.example/", "https://a.example/", true),
            ("http://a.example:8080/", "https://a.example/", false),
            ("https://a.example/", "https://a.example:8443/", false),
            ("https://a.example/", "http://a.example/", false),
            ("https://a.example/", "https://b.example/", false),
            ("https://a.example/", "https://www.a.example/", false),
        ] {
            assert_eq!(
                Url::parse(from).unwrap().may_send_secrets_to(&Url::parse(to).unwrap()),
                wanted,
                "{from} {to}"
            );
        }
    }
}
