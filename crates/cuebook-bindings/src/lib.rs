//! What the packages for Python and npm share.
//!
//! [`context`] reads the context of a render from an object, [`reads`] answers questions about a render, [`replies`] reads a provider's
//! reply, and `tokens` counts tokens.

pub mod context;
pub mod reads;
pub mod replies;
#[cfg(feature = "full")]
pub mod tokens;
