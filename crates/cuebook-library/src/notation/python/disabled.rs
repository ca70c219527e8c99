//! A program without the feature `python` reads no Python, and says so.

use std::ops::Range;
use std::sync::Arc;

use super::Module;
use crate::error::{Error, ErrorKind, Result};
use crate::source::Source;

pub(super) fn module(source: &Arc<Source>) -> Result<Module> {
    let error = Error::missing_feature(ErrorKind::PromptRead, "read Python", "python");
    Err(error.map(|finding| finding.file(source.name())))
}

/// The text as it is.
pub fn without(source: &Arc<Source>, _: &[&str]) -> String {
    source.text().to_owned()
}

/// No comments are found.
pub fn comments(_: &str) -> Vec<Range<usize>> {
    Vec::new()
}
