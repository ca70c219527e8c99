//! The part of the npm package that is written in Rust. Node loads it as `cuebook.node`.
//!
//! It has three classes and no more: `Host` (one for each loaded copy of the package), `NativeBook` and `NativeTable`. Values and
//! documents cross the border as JSON texts, which costs less than walking through objects, and columns of tables as bytes. What people
//! use is written in TypeScript, in `package`.

mod batch;
mod book;
mod calls;
mod context;
mod converse;
mod errors;
mod functions;
mod host;
mod items;
mod lab;
mod operations;
mod port;
mod project;
mod reads;
mod renders;
mod runs;
mod tables;
mod weak;
mod workers;

use napi_derive::napi;

/// The version of the package.
#[napi]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// The names nearest to a misspelt one, best first.
#[napi]
#[must_use]
pub fn nearest(wanted: String, names: Vec<String>) -> Vec<String> {
    cuebook::error::nearest(&wanted, names.iter().map(String::as_str))
}

/// The names of the wire formats.
#[napi]
#[must_use]
pub fn wires() -> Vec<String> {
    cuebook::chat::wire::Api::ALL.iter().map(|api| api.as_str().to_owned()).collect()
}
