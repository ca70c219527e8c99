//! Fill: from a prompt and the caller's variables to a [`Scope`].
//!
//! Values come in layers; a later layer wins by name. The scope looks a name up when the template asks for it and copies
//! nothing, so that a hundred thousand variables cost as much as they are used. Values are data: nothing here looks into
//! them, and nothing expands them.

mod changes;
mod context;
mod late;
mod layer;
mod random;
mod rich;
mod scope;
mod serialize;
mod system;
mod unknown;
mod validate;
mod values;
mod visibility;
mod workspace;

pub use changes::{Changes, Values};
pub use context::{Agent, Clock, Context, FixedClock, HookTexts, SystemClock};
#[doc(hidden)]
pub use late::LateScope;
pub use layer::{Layer, Supplier};
#[doc(hidden)]
pub use random::random_bytes;
#[doc(hidden)]
pub use rich::RichInputs;
pub use rich::{FixedNonces, NonceSource, RichInput, SystemNonces};
#[doc(hidden)]
pub use scope::FUNCTIONS;
pub use scope::Scope;
pub use scope::{Declared, Provided, SESSION, SYSTEM};
#[doc(hidden)]
pub use system::DEFAULT_LANGUAGE;
pub use system::{SYSTEM_NAMES, WORKSPACE_NAMES};
pub use unknown::UnknownVariables;
pub use validate::{Problem, validate};
#[doc(hidden)]
pub use validate::{refuse_invalid, validate_included, validation_error};
pub use values::Variables;
pub use visibility::VisibilityOverrides;
