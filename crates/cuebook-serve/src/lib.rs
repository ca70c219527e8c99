//! Offers a project over the Model Context Protocol: its prompts, its knowledge as resources, and tools that execute, search, load
//! and sign items.
//!
//! [`Server`] is what clients speak with, [`serve_stdio`] and [`serve_http`] are the ways to reach it. The protocol is the
//! official SDK's; revisions up to 2026-07-28 are spoken. What the tools do is brought by the host, as [`Items`]; [`LocalItems`] is what it is on a
//! user's machine.
//!
//! Nothing here renders, searches or runs anything by itself, and nothing that takes time happens on the thread that speaks with
//! clients.

mod calls;
mod changes;
mod completion;
mod content;
mod faults;
mod hints;
mod http;
mod items;
mod knowledge;
mod lines;
mod local;
mod messages;
mod prompts;
mod questions;
mod request_slots;
mod runtime;
mod server;
mod skills;
mod stdio;
mod studio;
mod tasks;
mod tools;
mod uri;
mod work;

pub use http::address::listen;
#[cfg(feature = "suite")]
pub use http::serve_http_with;
pub use http::{Http, Token, serve_http};
pub use items::{Arguments, Failed, Items, Question, Watch};
pub use local::LocalItems;
pub use server::Server;
pub use stdio::serve_stdio;
pub use studio::{Studio, serve_studio};
