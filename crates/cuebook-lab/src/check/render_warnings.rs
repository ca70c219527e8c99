//! What would surprise a reader of the result: an empty template ([CB336](crate::Code::EmptyTemplate)), a language that is missing
//! ([CB337](crate::Code::LanguageFallback)), lines that look like roles ([CB323](crate::Code::AlmostMarker)), and more text than the model
//! reads ([CB512](crate::Code::LargerThanWindow)). A render reports the same.

use crate::error::Diagnostic;
use crate::prepared::Prepared;

/// What a render would report, as far as it is known without one.
pub(super) fn check(prepared: &Prepared, _namespaces: &[String]) -> Vec<Diagnostic> {
    prepared.surprises_of_check()
}
