//! Verify: what may be believed and what may run.
//!
//! Code that comes with a pack runs only after somebody has looked at it and said so, and what they said holds for the
//! bytes that they saw.

pub(crate) mod approval;

pub(crate) use approval::hex;
pub use approval::{Approval, ContentDigest, PackFile};
