//! What a machine offers to run hooks with, for people who ask before they need it.

use cuebook::Result;
use cuebook::library::Library;

use crate::python::Interpreter;
use crate::sandbox::{self, Launcher, Report};

/// The Python and the fence that hooks of a project would run with.
#[derive(Debug)]
#[non_exhaustive]
pub struct Examination {
    /// The Python, or why it is missing.
    pub python: Result<Interpreter>,
    /// What the fence is made of.
    pub report: Report,
}

impl Examination {
    /// Looks for the Python that the project's settings name, and puts up a fence around nothing.
    pub fn of(library: &Library, launcher: &Launcher) -> Result<Examination> {
        let config = library.config()?;
        let python = Interpreter::granted(&config.hooks, library.spaces());
        let report = sandbox::probe(launcher).unwrap_or_else(|error| Report::nothing(&error.to_string()));
        Ok(Examination { python, report })
    }
}
