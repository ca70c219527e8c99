//! Ed25519 keys in PEM, and signatures in base64.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{
    DecodePrivateKey, DecodePublicKey, EncodePrivateKey, EncodePublicKey, KeypairBytes,
};
use ed25519_dalek::{Signature, Signer as _};

use crate::error::Result;

/// A key that checks signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verifying(ed25519_dalek::VerifyingKey);

impl Verifying {
    /// The key of a PEM; `None` if it is none.
    pub(super) fn from_pem(pem: &str) -> Result<Option<Verifying>> {
        Ok(ed25519_dalek::VerifyingKey::from_public_key_pem(pem).ok().map(Verifying))
    }

    pub(super) fn is_weak(&self) -> bool {
        self.0.is_weak()
    }

    pub(super) fn to_pem(&self) -> Option<String> {
        self.0.to_public_key_pem(LineEnding::LF).ok()
    }

    pub(super) fn verify(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.0.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }
}

/// A key that makes signatures.
#[derive(Clone)]
pub(super) struct Signing(ed25519_dalek::SigningKey);

impl Signing {
    pub(super) fn from_seed(seed: &[u8; 32]) -> Result<Signing> {
        Ok(Signing(ed25519_dalek::SigningKey::from_bytes(seed)))
    }

    /// The key of a PEM; `None` if it is none.
    pub(super) fn from_pem(pem: &str) -> Result<Option<Signing>> {
        Ok(ed25519_dalek::SigningKey::from_pkcs8_pem(pem).ok().map(Signing))
    }

    pub(super) fn verifying(&self) -> Verifying {
        Verifying(self.0.verifying_key())
    }

    /// Hands out the key as PEM, and wipes it afterwards.
    pub(super) fn with_pem<T>(&self, take: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let pair = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
        pair.to_pkcs8_pem(LineEnding::LF).ok().map(|pem| take(pem.as_bytes()))
    }

    pub(super) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

/// A signature as a line has it.
pub(super) fn encode(signature: &[u8; 64]) -> String {
    URL_SAFE.encode(signature)
}

pub(super) fn decode(text: &str) -> Option<[u8; 64]> {
    URL_SAFE.decode(text).ok().and_then(|bytes| bytes.try_into().ok())
}
