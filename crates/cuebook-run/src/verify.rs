//! Who verifies that an item is what its signer signed.

use cuebook::Result;
use cuebook::items::Item;
use cuebook::trust::Trust;

/// What is known of an item that was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifiedHash {
    /// SHA-256 of what was signed, in hexadecimal digits.
    pub hash: String,
}

/// Verifies items.
pub trait Verify: Send + Sync {
    /// Says what is known of an item, or why it must not be used.
    fn verify(&self, item: &Item) -> Result<VerifiedHash>;
}

impl Verify for Trust {
    fn verify(&self, item: &Item) -> Result<VerifiedHash> {
        let verified = Trust::verify(self, item)?;
        if verified.is_new
            && let Err(error) = self.record(item.located.space, &[&verified])
        {
            // An item whose signing time cannot be recorded is valid all the same.
            tracing::warn!(%error, "the signing time of an item was not recorded");
        }
        Ok(VerifiedHash { hash: verified.hash })
    }
}
