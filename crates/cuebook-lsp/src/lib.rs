//! `cuebook lsp`: a language server over stdio, on the language service of `cuebook-lab`.
//!
//! It answers with what the service says and decides nothing. It reads files, runs no code of a project, and leaves Markdown outside
//! of a library alone. Messages are JSON values; the page on decisions about the protocol says why.
//! A message that cannot be read is answered with an error.

mod answers;
mod client;
mod frames;
mod position;
mod server;

pub use client::Client;
pub use server::serve;
