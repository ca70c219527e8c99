//! Render: from a prompt and a scope to attributed text.
//!
//! [`Rendered`] is what travels on; strings, segments and explanations are projections of it.

mod edit;
mod origin;
mod rendered;
mod request;
pub mod sections;
mod segment;
mod speech;
mod strict;

pub use edit::differences;
pub use origin::{Origin, Shown};
pub(crate) use rendered::Editor;
pub use rendered::{Rendered, Span};
pub(crate) use request::ExtraTokens;
pub use request::{OUTPUT_WHY, Provider, RequestTool, TOOLS_WHY, audience, request_output, request_tools};
pub use segment::{Segment, SegmentKind};
pub use speech::{DEFAULT_PROVIDER, MARKS, PARSER};
pub(crate) use strict::refuse_forgeries;
