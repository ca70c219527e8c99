//! Verify: what may be believed and what may run.
//!
//! Code that comes with a pack runs only after somebody has looked at it and said so, and what they said holds for the
//! bytes that they saw. An item is used only if somebody whose key is trusted has signed it: [`Trust`] says whether that is
//! so, and [`sign_bytes`] signs.

pub(crate) mod approval;
pub(crate) mod approved;
mod declared;
mod grant;
mod hashed;
mod key;
mod line;
mod project;
mod settings;
mod sign;
mod store;
#[cfg(test)]
mod tests;
mod verify;

pub(crate) use approval::hex;
pub use approval::{Approval, ContentDigest, PackFile};
pub(crate) use grant::{GRANTS, file_of, resolved};
pub use grant::{Grant, Granted, Grants, Power, Request};
pub use key::{PublicKey, SigningKey};
pub use project::{env_file_request, holds_secrets, interpreter_request, is_inside};
pub use settings::{NarrowSignatures, ProjectKeys, TrustSettings};
pub use sign::sign_bytes;
pub(crate) use sign::signature_of;
pub use store::{TrustEntry, TrustedKey};
pub use verify::{Trust, Verified, told_with_path};
