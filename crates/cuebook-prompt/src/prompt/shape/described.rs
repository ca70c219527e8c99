//! Rust types that say what their values look like.

use std::sync::Arc;

use super::Record;
use crate::error::Result;

/// A Rust type that says what its values look like: what a section is filled with, what a tool takes, what a model answers.
///
/// With the feature `schemas` every type that derives `schemars::JsonSchema` is described. Without it a type can say it in its own
/// words:
///
/// ```
/// use std::sync::Arc;
///
/// use cuebook::prompt::{Described, Field, Record, Shape};
///
/// struct Search;
///
/// impl Described for Search {
///     fn record() -> cuebook::Result<Arc<Record>> {
///         Ok(Arc::new(Record::new("Search").field(Field::new("query", Shape::Text))))
///     }
/// }
///
/// assert_eq!(Record::of::<Search>()?.fields[0].name, "query");
/// # Ok::<(), cuebook::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what its values look like",
    note = "enable the feature `schemas` of the crate `cuebook` and derive `schemars::JsonSchema`, or implement `Described`"
)]
pub trait Described {
    /// What its values look like.
    ///
    /// # Errors
    ///
    /// If a record cannot say it: the type holds itself, or has no named fields.
    fn record() -> Result<Arc<Record>>;
}

#[cfg(feature = "schemas")]
impl<T: schemars::JsonSchema> Described for T {
    fn record() -> Result<Arc<Record>> {
        let schema = schemars::SchemaGenerator::default().into_root_schema_for::<T>();
        Record::from_json_schema(schema.as_value()).map(Arc::new)
    }
}
