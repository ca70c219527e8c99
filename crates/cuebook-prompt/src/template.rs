//! Template engines: a template and a scope in, attributed text out.
//!
//! Every engine writes into one [`sink::Sink`] and tells it, for each piece, whether the author wrote it or a value did.
//! That is the only place where the difference is known for certain; no later stage may look at the text to guess it. An
//! engine that cannot tell says "value".

#[doc(hidden)]
pub mod address;
pub mod dollar;
pub mod engine;
#[cfg(feature = "dotprompt")]
pub mod handlebars;
mod include_depth;
pub mod input;
pub mod jinja;
#[doc(hidden)]
pub mod merged_units;
#[doc(hidden)]
pub mod meter;
#[cfg_attr(not(feature = "mustache"), path = "template/disabled.rs")]
pub mod mustache;
pub mod page;
pub mod parts;
pub mod python;
pub mod set_names;
pub mod sink;
pub mod unit;
