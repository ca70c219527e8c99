//! Verify: what may be believed and what may run.
//!
//! Code that comes with a pack runs only after a person has looked at it and approved it, and the approval is for the
//! bytes that they saw. An item is used only if a trusted key signed it, as this item and no other: [`Trust`] verifies, and
//! [`sign_for`] signs.

pub(crate) mod approval;
pub(crate) mod approved;
#[cfg(test)]
mod binding_tests;
mod declared;
#[cfg_attr(not(feature = "items"), path = "trust/disabled.rs")]
mod ed25519;
mod fence;
mod grant;
mod hashed;
mod key;
mod line;
mod package;
mod project;
mod purpose;
mod seen;
mod settings;
mod sign;
mod stamps;
mod store;
#[cfg(test)]
mod tests;
mod verify;

pub use approval::{Approval, ContentDigest, PackFile};
pub use fence::tool_requests;
pub(crate) use grant::{GRANTS, file_of, resolved};
pub use grant::{Grant, Granted, Grants, Power, Request};
pub use key::{PublicKey, SigningKey};
pub use package::{PUBLISHER_FILE, package_signer, sign_package};
pub use project::{
    ProjectProgram, env_file_request, environment_of, holds_secrets, interpreter_request, is_inside,
    project_program,
};
pub use purpose::Purpose;
pub use settings::{NarrowSignatures, ProjectKeys, TrustSettings};
#[doc(hidden)]
pub use sign::signature_of;
pub use sign::{sign_as_rye, sign_for, without_signature};
pub use store::{TrustEntry, TrustedKey};
pub use verify::{Trust, Verified, message_with_path};
