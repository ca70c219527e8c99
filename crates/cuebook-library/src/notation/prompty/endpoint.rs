//! Whether a file chooses where the host's keys are sent.
//!
//! A file that brings its own key may send it wherever it likes. A file that does not gets the host's, so an address that
//! the file chose must be one that is known: otherwise anyone who can change the file can collect keys. It is a note, because
//! reading and rendering send nothing.

use super::LoadOptions;
use super::reference::{Reference, Resolver};
use crate::error::{Code, Diagnostic};
use crate::json::quoted;
use crate::node::Node;

/// Origins of the well-known providers.
const TRUSTED: [&str; 6] = [
    "https://api.openai.com",
    "https://api.anthropic.com",
    "https://*.openai.azure.com",
    "https://*.services.ai.azure.com",
    "https://*.cognitiveservices.azure.com",
    "https://login.microsoftonline.com",
];

/// Further origins of the host, separated by commas or spaces.
const VARIABLE: &str = "PROMPTY_TRUSTED_ENDPOINTS";

/// A note for each address in `model.connection` that the file chose and that is not trusted. The front matter is
/// taken as it was written, before references are followed.
pub(super) fn check(root: &Node, resolver: &mut Resolver<'_>, options: &LoadOptions) -> Vec<Diagnostic> {
    let connection = root
        .get("model")
        .and_then(|model| follow(model, resolver).get("connection").cloned())
        .map(|connection| follow(&connection, resolver));
    let Some(connection) = connection else { return Vec::new() };
    let text = |key: &str| connection.get(key).and_then(Node::text).unwrap_or_default();
    let has_own_key =
        text("kind") == "key" && !text("apiKey").trim().is_empty() && Reference::of(text("apiKey")).is_none();
    if text("kind") == "reference" || has_own_key {
        return Vec::new();
    }
    let variable = options.environment.of_connection(VARIABLE).unwrap_or_default();
    let of_variable = variable.split([',', ';', ' ', '\n']).filter(|origin| !origin.is_empty());
    let of_host = options.trusted_endpoints.iter().map(String::as_str);
    let trusted: Vec<&str> = TRUSTED.into_iter().chain(of_host).chain(of_variable).collect();
    let mut notes = Vec::new();
    for key in ["endpoint", "tokenUrl"] {
        let Some(node) = connection.get(key) else { continue };
        let Some(text) = node.text() else { continue };
        let chosen = match Reference::of(text) {
            Some(Reference::Env { name, .. }) if options.environment.of_connection(name).is_some() => {
                continue;
            }
            Some(Reference::Env { default, .. }) => default.unwrap_or_default(),
            // The file that it stands in is as much the author's as this one.
            Some(Reference::File(_)) | None => text,
        };
        if chosen.trim().is_empty() || trusted.iter().any(|trusted| admits(trusted, chosen)) {
            continue;
        }
        let message = format!("the file chooses the address {}: your key would go there", quoted(chosen));
        let hint = "name the address in the environment (${env:NAME}), use `kind: reference`, or allow the address in \
                    your program";
        notes.push(Diagnostic::new(Code::UntrustedEndpoint, message).at(node.place.clone()).hint(hint));
    }
    notes
}

/// What a file holds that a value refers to, as it was written; the value itself if it refers to none. What stands in a
/// file of its own is chosen by that file. If it cannot be read, the resolver of the references says so.
pub(super) fn follow(node: &Node, resolver: &mut Resolver<'_>) -> Node {
    match node.text().and_then(Reference::of) {
        Some(Reference::File(path)) => {
            resolver.open(path).map_or_else(|_| node.clone(), |opened| opened.node)
        }
        _ => node.clone(),
    }
}

/// Scheme, host and port of an address; `None` if it is not plainly one.
fn origin(address: &str) -> Option<(String, String, u16)> {
    let (scheme, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    // A name before the host, or a backslash, is how an address is made to look like another.
    if authority.is_empty()
        || authority.contains(|c: char| c == '@' || c == '\\' || c.is_whitespace() || c.is_control())
    {
        return None;
    }
    let scheme = scheme.to_ascii_lowercase();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !authority.ends_with(']') => (host, port.parse().ok()?),
        _ => match scheme.as_str() {
            "https" => (authority, 443),
            "http" => (authority, 80),
            _ => return None,
        },
    };
    Some((scheme, host.trim_end_matches('.').to_ascii_lowercase(), port))
}

/// Whether a trusted origin, which may begin with `*.`, is that of an address.
fn admits(trusted: &str, address: &str) -> bool {
    let trusted = trusted.trim();
    let with_scheme = if trusted.contains("://") { trusted.to_owned() } else { format!("https://{trusted}") };
    let (Some(trusted), Some(address)) = (origin(&with_scheme), origin(address)) else { return false };
    let host = match trusted.1.strip_prefix("*.") {
        Some(suffix) => {
            !suffix.is_empty()
                && address.1.strip_suffix(suffix).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        }
        None => trusted.1 == address.1,
    };
    host && trusted.0 == address.0 && trusted.2 == address.2
}

#[cfg(test)]
mod tests {
    use super::admits;

    #[test]
    fn an_origin_is_scheme_host_and_port_and_nothing_less() {
        for (trusted, address) in [
            ("https://api.openai.com", "https://api.openai.com/v1"),
            ("https://api.openai.com", "HTTPS://API.OpenAI.com:443/v1?x#y"),
            ("api.example.com", "https://api.example.com"),
            ("https://*.openai.azure.com", "https://mine.openai.azure.com/"),
            ("https://*.openai.azure.com", "https://a.b.openai.azure.com"),
            ("http://localhost:8080", "http://localhost:8080/v1"),
        ] {
            assert!(admits(trusted, address), "{trusted} {address}");
        }
        for (trusted, address) in [
            ("https://api.openai.com", "http://api.openai.com"),
            ("https://api.openai.com", "https://api.openai.com:8443"),
            ("https://api.openai.com", "https://api.openai.com.evil.com"),
            ("https://api.openai.com", "https://api.openai.com@evil.com"),
            ("https://api.openai.com", "https://evil.com\\@api.openai.com"),
            ("https://api.openai.com", "https://evil.com/https://api.openai.com"),
            ("https://*.openai.azure.com", "https://openai.azure.com"),
            ("https://*.openai.azure.com", "https://.openai.azure.com"),
            ("https://*.openai.azure.com", "https://evilopenai.azure.com"),
            ("https://*.", "https://evil.com"),
            ("*", "https://evil.com"),
            ("https://api.openai.com", "api.openai.com"),
            ("https://api.openai.com", ""),
        ] {
            assert!(!admits(trusted, address), "{trusted} {address}");
        }
    }
}
