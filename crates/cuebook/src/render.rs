//! Render: from a prompt and a scope to attributed text.
//!
//! [`Rendered`] is what travels on; strings, segments and explanations are projections of it.

mod edit;
mod origin;
mod rendered;
mod segment;
mod speech;
mod strict;

pub(crate) use edit::differences;
pub use origin::{Origin, Shown};
pub(crate) use rendered::Editor;
pub use rendered::{Rendered, Span};
pub use segment::{Segment, SegmentKind};
pub(crate) use speech::{DEFAULT_PROVIDER, PARSER};
pub(crate) use strict::refuse_forgeries;
