//! What is done with items: they are loaded, found by words, and signed.

pub mod load;
mod outline;
pub mod search;
pub mod sign;
