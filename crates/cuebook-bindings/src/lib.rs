//! What the packages for Python and npm share.
//!
//! [`context`] reads the circumstances of a render from an object, [`replies`] says what a provider answered, and [`tokens`] counts.

pub mod context;
pub mod replies;
pub mod tokens;
