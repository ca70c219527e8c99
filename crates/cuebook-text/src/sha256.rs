//! SHA-256. With the feature `sha2` the crate of that name computes it, which uses the processor's instructions; without it the
//! few lines in `portable` do.

#[cfg(any(test, not(feature = "sha2")))]
mod portable;

#[cfg(not(feature = "sha2"))]
use portable::Portable as Inner;
#[cfg(feature = "sha2")]
use sha2::{Digest as _, Sha256 as Inner};

/// The SHA-256 of bytes that come one after the other.
#[derive(Clone, Default)]
pub struct Sha256(Inner);

impl Sha256 {
    /// The hash of nothing yet.
    pub fn new() -> Sha256 {
        Sha256::default()
    }

    /// The hash of some bytes.
    ///
    /// ```
    /// # use cuebook_text::sha256::{Sha256, hex};
    /// let hash = hex(&Sha256::digest("abc"));
    /// assert_eq!(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    /// ```
    pub fn digest(bytes: impl AsRef<[u8]>) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(bytes);
        hasher.finalize()
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.update(bytes.as_ref());
    }

    /// The hash of all bytes.
    #[allow(
        clippy::useless_conversion,
        reason = "the hasher of the feature returns an array type of its own"
    )]
    pub fn finalize(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

impl std::fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sha256")
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}
