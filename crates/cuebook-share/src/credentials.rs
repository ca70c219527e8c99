//! The user's names and passwords for registries, from the environment and from nowhere else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};

/// The variable: `HOST=USER:PASSWORD`, with white space between several.
pub(crate) const VARIABLE: &str = "CUEBOOK_REGISTRY_AUTH";

/// Names and passwords, each for one host.
#[derive(Default)]
pub(crate) struct Credentials(Vec<(String, String)>);

impl Credentials {
    /// Those of the environment.
    pub fn from_environment() -> Result<Credentials> {
        match std::env::var(VARIABLE) {
            Ok(text) => Credentials::read(&text),
            Err(std::env::VarError::NotPresent) => Ok(Credentials::default()),
            Err(std::env::VarError::NotUnicode(_)) => Err(invalid("is not text")),
        }
    }

    fn read(text: &str) -> Result<Credentials> {
        let entry = |(index, entry): (usize, &str)| {
            // The entry itself is in no message: it is a password.
            let (host, login) = entry
                .split_once('=')
                .filter(|(host, login)| !host.is_empty() && login.contains(':'))
                .ok_or_else(|| {
                    invalid(&format!("has an entry without `HOST=USER:PASSWORD`: number {}", index + 1))
                })?;
            Ok((host.to_ascii_lowercase(), basic(login)))
        };
        text.split_whitespace().enumerate().map(entry).collect::<Result<_>>().map(Credentials)
    }

    /// The value of the header `Authorization` for a host, with its port. Other hosts get nothing.
    pub fn of(&self, host: &str) -> Option<&str> {
        let host = host.to_ascii_lowercase();
        self.0.iter().find(|(known, _)| *known == host).map(|(_, value)| value.as_str())
    }
}

/// The value of the header `Authorization` for `USER:PASSWORD`.
pub(crate) fn basic(login: &str) -> String {
    format!("Basic {}", STANDARD.encode(login))
}

fn invalid(problem: &str) -> Error {
    let diagnostic = Diagnostic::new(Code::RegistryAccess, format!("{VARIABLE} {problem}"));
    let hint = "write HOST=USER:PASSWORD for each registry, with spaces between them";
    Error::new(ErrorKind::Pack, diagnostic.hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_for_one_host_with_its_port() {
        let known = Credentials::read(" a.example=ada:x=y:z \n b.example:5000=bob:p ").unwrap();
        assert_eq!(known.of("A.example"), Some("Basic YWRhOng9eTp6"));
        assert_eq!(known.of("b.example:5000"), Some("Basic Ym9iOnA="));
        for host in ["b.example", "a.example:443", "x.a.example", ""] {
            assert_eq!(known.of(host), None, "{host}");
        }
    }

    #[test]
    fn an_error_does_not_show_a_password() {
        for text in ["a=ada:x secret", "=ada:secret", "a=secret"] {
            let error = Credentials::read(text).err().unwrap();
            assert_eq!(error.code(), Code::RegistryAccess);
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
