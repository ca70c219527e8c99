//! Includes across dialects: one prompt shows another, each in its own notation, and every byte still knows who wrote it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod border;
mod circles;
mod lines;
mod names;
mod project;
mod set_values;
mod signed;
mod values;
mod whole;
