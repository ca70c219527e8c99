//! What the packages for Python and npm share.
//!
//! [`context`] reads the context of a render from an object, [`replies`] reads a provider's reply, and [`tokens`] counts tokens.

pub mod context;
pub mod replies;
pub mod tokens;
