//! The key of a question: a hash of all that is asked.
//!
//! It covers the provider and the whole body of the request: prompt, inputs, model, parameters, outputs. So a prompt that changes
//! asks only those rows again whose question it changes, and rows with the same question share one answer.

use std::fmt;

use cuebook::sha256::hex;
use cuebook_run::provider::Chosen;
use sha2::{Digest, Sha256};

/// The key of a question.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 16]);

impl Key {
    /// The key of a question to a provider.
    pub(crate) fn of(chosen: &Chosen, question: &[u8]) -> Key {
        let mut hasher = Sha256::new();
        for part in [chosen.provider.name.as_str(), chosen.profile.api.as_str()] {
            hasher.update(part.as_bytes());
            hasher.update(b"\n");
        }
        hasher.update(question);
        let mut key = [0; 16];
        key.copy_from_slice(&hasher.finalize()[..16]);
        Key(key)
    }

    /// The key that is written so.
    pub(crate) fn read(text: &str) -> Option<Key> {
        let mut key = [0; 16];
        if text.len() != 32 || !text.is_ascii() {
            return None;
        }
        for (byte, at) in key.iter_mut().zip((0..32).step_by(2)) {
            *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
        }
        Some(Key(key))
    }

    pub(crate) fn bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A short hash of what a row renders to, for comparisons.
pub(crate) fn short_hash(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    parts.iter().for_each(|part| hasher.update(part));
    hex(&hasher.finalize()[..8])
}
