//! What a project's files give to its tools, as far as the user granted it: the `.env`, and an interpreter in the project.

use std::path::Path;

use cuebook::Result;
use cuebook::items::Spaces;
use cuebook::trust::{Granted, Grants, Request, env_file_request, interpreter_request};

/// The grants of a project for one call, and what the call did without.
pub(crate) struct Granting<'s> {
    spaces: &'s Spaces,
    grants: Option<Grants>,
    /// What was ignored, and why.
    pub(crate) warnings: Vec<String>,
}

impl<'s> Granting<'s> {
    pub(crate) fn new(spaces: &'s Spaces) -> Granting<'s> {
        Granting { spaces, grants: None, warnings: Vec::new() }
    }

    /// The text of the project's `.env`, if the user granted it.
    pub(crate) fn env_file(&mut self) -> Result<Option<String>> {
        let Some((request, text)) = env_file_request(self.spaces.project())? else { return Ok(None) };
        Ok(self.has(&request)?.then_some(text))
    }

    /// Whether a program may be the interpreter of a tool: one outside the project, or one that the user granted.
    pub(crate) fn allows(&mut self, program: &Path) -> Result<bool> {
        match interpreter_request(self.spaces.project(), program)? {
            Some(request) => self.has(&request),
            None => Ok(true),
        }
    }

    /// An error if a tool would start a program of the project that the user has not granted.
    pub(crate) fn require(spaces: &Spaces, program: &Path) -> Result<()> {
        match interpreter_request(spaces.project(), program)? {
            Some(request) => Grants::of(spaces)?.require(&request),
            None => Ok(()),
        }
    }

    fn has(&mut self, request: &Request) -> Result<bool> {
        let grants = match &self.grants {
            Some(grants) => grants,
            None => self.grants.insert(Grants::of(self.spaces)?),
        };
        let state = grants.state(request);
        if state != Granted::Yes {
            let warning = request.ignored(state);
            let hint = warning.hint.unwrap_or_default();
            self.warnings.push(format!("{} [{}] ({hint})", warning.message, warning.code));
        }
        Ok(state == Granted::Yes)
    }
}
