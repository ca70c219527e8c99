//! Rich inputs: conversations, pictures, documents and sounds have no place in a text, so the text gets a nonce instead.
//!
//! A nonce is made anew for each input and render, from the system's secure source, and kept with the render: the code that makes
//! messages of the text finds the values there. It is what the text shows, not how the value is found: a value is found
//! where an emission of that very input wrote its nonce (see [`crate::chat`]), so that a value which holds a nonce of its
//! own stays text.

use std::fmt;

use serde_json::Value as Json;

use super::{Scope, random_bytes};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::prompt::{Prompt, Rich};

/// Gives the random part of a nonce. Injected, so that a render can be repeated.
pub trait NonceSource: Send + Sync + fmt::Debug {
    /// Digits that cannot be guessed, different for each call.
    fn digits(&self) -> Result<String>;
}

/// The system's source of random bytes: eight of them, as sixteen hexadecimal digits.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemNonces;

impl NonceSource for SystemNonces {
    fn digits(&self) -> Result<String> {
        let mut bytes = [0; 8];
        random_bytes(&mut bytes).map_err(|error| {
            let message = format!("the system provides no random bytes for a nonce: {error}");
            Error::new(ErrorKind::Io, Diagnostic::new(Code::RenderFailed, message))
        })?;
        Ok(crate::sha256::hex(&bytes))
    }
}

/// Nonces with digits that are known beforehand: the same ones for every render.
#[derive(Debug, Clone)]
pub struct FixedNonces(pub String);

impl NonceSource for FixedNonces {
    fn digits(&self) -> Result<String> {
        Ok(self.0.clone())
    }
}

/// A rich input of one render.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RichInput {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Rich,
    /// The roles that a conversation may have besides `user`, `assistant` and `tool`.
    pub roles: Vec<String>,
    /// What the text shows in its stead.
    pub nonce: String,
    /// Its value; `None` without one.
    pub value: Option<Json>,
}

/// The rich inputs of one render.
#[derive(Debug, Clone, Default)]
#[doc(hidden)]
pub struct RichInputs(Vec<RichInput>);

impl RichInputs {
    /// Makes a nonce for each rich input that a prompt declares, also for those without a value.
    #[doc(hidden)]
    pub fn new(prompt: &Prompt, scope: &Scope, source: &dyn NonceSource) -> Result<RichInputs> {
        let rich = prompt.variables.iter().filter_map(|variable| Some((variable, variable.rich?)));
        let inputs = rich.map(|(variable, kind)| {
            let name = variable.name.clone();
            let nonce = format!("__PROMPTY_THREAD_{}_{name}__", source.digits()?);
            let value = scope.get(&name).map(|(_, value)| value).filter(|value| !value.is_null());
            let roles = variable.roles.clone();
            Ok(RichInput { name, kind, roles, nonce, value })
        });
        inputs.collect::<Result<_>>().map(RichInputs)
    }

    /// The inputs, in the order of their declaration.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &RichInput> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_has_sixteen_digits_and_no_two_are_alike() {
        let (one, two) = (SystemNonces.digits().unwrap(), SystemNonces.digits().unwrap());
        assert_eq!(one.len(), 16);
        assert!(one.bytes().all(|digit| digit.is_ascii_hexdigit() && !digit.is_ascii_uppercase()));
        assert_ne!(one, two);
    }
}
