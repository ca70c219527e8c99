//! A book as JavaScript holds it.

use std::sync::Arc;

use napi_derive::napi;

use crate::project::Project;

/// The prompts of a project.
#[napi]
pub struct NativeBook {
    pub(crate) project: Arc<Project>,
}
