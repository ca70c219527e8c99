//! A program without the feature `items` has no keys, and says so.

use std::convert::Infallible;

use crate::error::{Error, ErrorKind, Result};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verifying(Infallible);

impl Verifying {
    pub(super) fn from_pem(_pem: &str) -> Result<Option<Verifying>> {
        Err(missing())
    }

    pub(super) fn is_weak(&self) -> bool {
        match self.0 {}
    }

    pub(super) fn to_pem(&self) -> Option<String> {
        match self.0 {}
    }

    pub(super) fn verify(&self, _message: &[u8], _signature: &[u8; 64]) -> bool {
        match self.0 {}
    }
}

#[derive(Clone)]
pub(super) struct Signing(Infallible);

impl Signing {
    pub(super) fn from_seed(_seed: &[u8; 32]) -> Result<Signing> {
        Err(missing())
    }

    pub(super) fn from_pem(_pem: &str) -> Result<Option<Signing>> {
        Err(missing())
    }

    pub(super) fn verifying(&self) -> Verifying {
        match self.0 {}
    }

    pub(super) fn with_pem<T>(&self, _take: impl FnOnce(&[u8]) -> T) -> Option<T> {
        match self.0 {}
    }

    pub(super) fn sign(&self, _message: &[u8]) -> [u8; 64] {
        match self.0 {}
    }
}

/// What no line is read for: nothing can check it.
pub(super) fn encode(_signature: &[u8; 64]) -> String {
    String::new()
}

pub(super) fn decode(_text: &str) -> Option<[u8; 64]> {
    None
}

fn missing() -> Error {
    Error::missing_feature(ErrorKind::Integrity, "check or make signatures", "items")
}
