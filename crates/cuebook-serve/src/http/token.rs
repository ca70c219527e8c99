//! The secret that a request must carry.

use std::fmt;

use cuebook::error::ErrorKind;
use cuebook::sha256::hex;
use cuebook::{Code, Diagnostic, Error, Hint, Result};
use sha2::{Digest, Sha256};

/// A token. Only its hash is kept.
pub struct Token([u8; 32]);

/// The shortest token that is taken, in bytes. One that can be guessed is worse than none, because it looks like protection.
const SHORTEST: usize = 16;

impl Token {
    /// The token in an environment variable.
    pub fn from_env(name: &str) -> Result<Token> {
        let missing = |message: String, hint: Hint| {
            Error::new(ErrorKind::Usage, Diagnostic::new(Code::TokenMissing, message).hint(hint))
                .with("variable", name)
        };
        let set = format!("set it to a long random text: export {name}=$(openssl rand -hex 32)");
        let set = Hint::from(set).or(Hint::command_line("without --token-env the server makes a token"));
        let value = std::env::var(name).unwrap_or_default();
        let value = value.trim();
        match value {
            "" => Err(missing(format!("the environment variable `{name}` is empty or not set"), set)),
            _ if value.len() < SHORTEST => {
                Err(missing(format!("the token in `{name}` has less than {SHORTEST} characters"), set))
            }
            _ if !value.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Err(missing(format!("the token in `{name}` has characters that headers do not allow"), set))
            }
            _ => Ok(Token::new(value)),
        }
    }

    /// A new token of 256 random bits, and its text for the user, who sees it once.
    pub fn generate() -> Result<(Token, String)> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| {
            let message = format!("the system has no random bytes for a token: {error}");
            let hint = Hint::option("give a token in an environment variable", "--token-env NAME");
            Error::new(ErrorKind::Io, Diagnostic::new(Code::TokenMissing, message).hint(hint))
        })?;
        let text = hex(&bytes);
        Ok((Token::new(&text), text))
    }

    /// The token with this text.
    pub fn new(text: &str) -> Token {
        Token(Sha256::digest(text.as_bytes()).into())
    }

    /// Whether a text is the token. Takes as long whatever the text is like: hashes are compared, and all of their bytes.
    pub(super) fn is(&self, text: &str) -> bool {
        let given: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let differences = self.0.iter().zip(given).fold(0, |all, (ours, theirs)| all | (ours ^ theirs));
        std::hint::black_box(differences) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_token_has_256_bits_and_differs_each_time() {
        let ((token, text), (_, other)) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert!(token.is(&text) && !token.is(&other));
        assert_eq!(text.len(), 64);
        assert!(text.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }

    #[test]
    fn a_token_is_itself_and_nothing_else_and_is_not_shown() {
        let token = Token::new("correct-horse-battery");
        assert!(token.is("correct-horse-battery"));
        for other in ["", "correct-horse-batter", "correct-horse-battery ", "Correct-horse-battery"] {
            assert!(!token.is(other), "{other}");
        }
        assert_eq!(format!("{token:?}"), "Token(…)");
    }
}
