//! The address of a provider, checked.

use std::net::IpAddr;

use ureq::http::Uri;

/// An address that requests can be sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    text: String,
    open: bool,
    host: String,
}

impl Address {
    /// Reads an address; says what is wrong with it.
    pub fn parse(text: &str) -> Result<Address, String> {
        let uri: Uri = text.parse().map_err(|_| "is not an address".to_owned())?;
        let open = match uri.scheme_str() {
            Some("https") => false,
            Some("http") => true,
            _ => return Err("must start with https:// or http://".to_owned()),
        };
        let Some(authority) = uri.authority().filter(|authority| !authority.host().is_empty()) else {
            return Err("names no host".to_owned());
        };
        // Names and passwords in addresses end up in messages and logs.
        if authority.as_str().contains('@') {
            return Err("must not contain a name or a password".to_owned());
        }
        if uri.query().is_some() || text.contains('#') {
            return Err("must end with its path".to_owned());
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Address { text: text.trim_end_matches('/').to_owned(), open, host })
    }

    /// The address, without a slash at its end.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a secret may be sent there: what is encrypted, or stays on this machine or in its own network.
    pub fn may_hear_secrets(&self) -> bool {
        if !self.open || self.host == "localhost" {
            return true;
        }
        match self.host.parse() {
            Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_private(),
            Ok(IpAddr::V6(address)) => address.is_loopback() || address.is_unique_local(),
            Err(_) => false,
        }
    }
}
