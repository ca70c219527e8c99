//! A program without the feature `mustache` renders no Mustache, and says so.

use super::engine::{Compiled, Engine, Job};
use crate::error::{Error, ErrorKind, Result};

/// Mustache, which this program does not have.
#[derive(Debug)]
pub struct Mustache;

impl Engine for Mustache {
    fn compile(&self, job: Job<'_>) -> Result<Box<dyn Compiled>> {
        let error = Error::missing_feature(ErrorKind::Invoker, "render Mustache", "mustache");
        Err(error.map(|finding| finding.file(job.source.name())))
    }
}
