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
    pub fn may_receive_secrets(&self) -> bool {
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

/// The address in a provider file: fixed, or one that an environment variable replaces, as in
/// `${env:OPENAI_BASE_URL:https://api.openai.com/v1}`. What follows the variable is appended to its value too, because SDKs differ in
/// whether the variable holds the version of the interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BaseUrl {
    /// The address without the variable.
    pub default: Address,
    /// The variable.
    pub variable: Option<String>,
    rest: String,
}

impl BaseUrl {
    /// Reads what a file holds; says what is wrong with it.
    pub fn parse(text: &str) -> Result<BaseUrl, String> {
        let Some(behind) = text.strip_prefix(super::file::VARIABLE) else {
            return Ok(BaseUrl { default: Address::parse(text)?, variable: None, rest: String::new() });
        };
        let parts = behind
            .split_once('}')
            .and_then(|(inner, rest)| inner.split_once(':').map(|(name, default)| (name, default, rest)));
        let Some((name, default, rest)) = parts.filter(|(name, ..)| super::file::is_variable(name)) else {
            return Err(
                "needs a variable and a default, as in ${env:NAME:https://api.example.com/v1}".to_owned()
            );
        };
        let default = Address::parse(&format!("{default}{rest}"))?;
        Ok(BaseUrl { default, variable: Some(name.to_owned()), rest: rest.trim_end_matches('/').to_owned() })
    }

    /// The address that a value of the variable gives.
    pub fn with(&self, value: &str) -> Result<Address, String> {
        let value = value.trim().trim_end_matches('/');
        let whole =
            if value.ends_with(&self.rest) { value.to_owned() } else { format!("{value}{}", self.rest) };
        Address::parse(&whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_replaces_the_default_and_keeps_what_follows() {
        let base = BaseUrl::parse("${env:SOME_URL:https://api.example.com}/v1").unwrap();
        assert_eq!(base.default.text(), "https://api.example.com/v1");
        for value in ["http://localhost:8080", "http://localhost:8080/", " http://localhost:8080/v1/ "] {
            assert_eq!(base.with(value).unwrap().text(), "http://localhost:8080/v1", "{value}");
        }
        assert!(base.with("localhost:8080").is_err());
        for wrong in
            ["${env:SOME_URL}", "${env:SOME_URL:}", "${env:1:https://a.example}", "${env:A:https://a.example"]
        {
            assert!(BaseUrl::parse(wrong).is_err(), "{wrong}");
        }
    }
}
