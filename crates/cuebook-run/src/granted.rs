//! What a project's files give to its tools, as far as the user granted it: the `.env`, and an interpreter in the project.

use std::path::{Path, PathBuf};

use cuebook::Result;
use cuebook::items::Spaces;
use cuebook::trust::{Granted, Grants, ProjectProgram, Request, env_file_request, project_program};

use crate::interpreter::Interpreter;

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
    pub(crate) fn allows(&mut self, program: &Interpreter) -> Result<bool> {
        Ok(self.runnable(program)?.is_some())
    }

    /// The file to start for a program (see [`Granting::require`]); none if it needs a grant and has none.
    pub(crate) fn runnable(&mut self, program: &Interpreter) -> Result<Option<Runnable>> {
        let Some(file) = program.file.clone() else { return Ok(Some(Runnable::Missing)) };
        match of_project(self.spaces, program)? {
            Some(found) if !self.has(&found.request)? => Ok(None),
            found => Ok(Some(Runnable::new(file, found))),
        }
    }

    /// An error if a tool would start a program of the project that the user has not granted. The result is the file to
    /// start: a private copy of the granted bytes, because the file in the project can change at any time. A program of an
    /// environment runs from its folder, without which it finds none of its libraries.
    pub(crate) fn require(spaces: &Spaces, program: &Interpreter) -> Result<Runnable> {
        let Some(file) = program.file.clone() else { return Ok(Runnable::Missing) };
        let found = of_project(spaces, program)?;
        if let Some(found) = &found {
            Grants::of(spaces)?.require(&found.request)?;
        }
        Ok(Runnable::new(file, found))
    }

    fn has(&mut self, request: &Request) -> Result<bool> {
        let grants = match &self.grants {
            Some(grants) => grants,
            None => self.grants.insert(Grants::of(self.spaces)?),
        };
        let state = grants.state(request);
        if state != Granted::Yes {
            let warning = request.ignored(state);
            let hint = warning.hint.as_deref().unwrap_or_default();
            self.warnings.push(format!("{} [{}] ({hint})", warning.message, warning.code));
        }
        Ok(state == Granted::Yes)
    }
}

/// What a tool starts.
#[derive(Debug)]
pub(crate) enum Runnable {
    /// Nothing: the program does not exist.
    Missing,
    /// A file outside the project, or of a granted environment.
    File(PathBuf),
    /// A copy with this name of bytes that the user granted.
    Copy(PathBuf, Vec<u8>),
}

impl Runnable {
    fn new(file: PathBuf, of_project: Option<ProjectProgram>) -> Runnable {
        match of_project.and_then(|program| program.bytes) {
            Some(bytes) => Runnable::Copy(file.file_name().map(PathBuf::from).unwrap_or_default(), bytes),
            None => Runnable::File(file),
        }
    }
}

/// The program if it lies in the project, by its name or by where its folder or its links lead.
fn of_project(spaces: &Spaces, program: &Interpreter) -> Result<Option<ProjectProgram>> {
    let Some(file) = &program.file else { return Ok(None) };
    match project_program(spaces.project(), Path::new(&program.path))? {
        Some(found) => Ok(Some(found)),
        None => project_program(spaces.project(), file),
    }
}
