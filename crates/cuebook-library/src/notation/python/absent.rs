//! A program without the feature `python` reads no Python, and says so.

use std::ops::Range;
use std::sync::Arc;

use super::Module;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::Source;

pub(super) fn module(source: &Arc<Source>) -> Result<Module> {
    let message = "this program cannot read Python, because it was built without the feature `python`";
    let diagnostic = Diagnostic::new(Code::Unreadable, message).file(source.name());
    let hint = "enable the feature `python` of the crate `cuebook`";
    Err(Error::new(ErrorKind::PromptRead, diagnostic.hint(hint)))
}

/// The text as it is.
pub fn without(source: &Arc<Source>, _: &[&str]) -> String {
    source.text().to_owned()
}

/// No comments are found.
pub fn comments(_: &str) -> Vec<Range<usize>> {
    Vec::new()
}
