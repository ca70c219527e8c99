//! Keys of sections and prompts.

use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};

/// The longest key, in bytes.
pub const MAX_KEY: usize = 64;

/// Refuses what is no key: lower-case letters, digits, dots, dashes and underscores, beginning with a letter or a digit.
pub fn check_key(what: &str, key: &str) -> Result<()> {
    let is_first = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let fits = key.len() <= MAX_KEY
        && key.bytes().next().is_some_and(is_first)
        && key.bytes().all(|byte| is_first(byte) || b"._-".contains(&byte));
    if fits {
        return Ok(());
    }
    let message = match key.trim().is_empty() {
        true => format!("{what} must be a non-empty string."),
        false => format!("{what} must match ^[a-z0-9][a-z0-9._-]{{0,63}}$."),
    };
    let meant = key.trim().to_lowercase();
    let diagnostic = Diagnostic::new(Code::BadSection, message);
    let diagnostic = match meant != key && check_key(what, &meant).is_ok() {
        true => diagnostic.hint(format!("write `{meant}`")),
        false => diagnostic.hint("write a key such as `context` or `step-1`"),
    };
    Err(Error::new(ErrorKind::PromptValidation, diagnostic).with("key", key))
}
