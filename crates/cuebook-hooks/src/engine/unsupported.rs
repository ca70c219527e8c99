//! Stands in for the engine where there is no way to run a worker yet.

use cuebook::error::{Code, Diagnostic, Error, ErrorKind, Result};
use cuebook::hooks::{Answer, Call, HookContext, Script, ScriptEngine};
use cuebook::items::Spaces;
use cuebook::library::HooksConfig;

use crate::sandbox::{Launcher, Protection, Report};

/// Refuses to run hooks and variable providers: there is no worker for this system yet.
#[derive(Debug)]
pub struct PythonHooks;

impl PythonHooks {
    /// Takes the same settings as where hooks run.
    pub fn new(_: Launcher, _: HooksConfig, _: Spaces) -> PythonHooks {
        PythonHooks
    }

    /// There is no protection that could be left out.
    pub fn without(self, _: impl IntoIterator<Item = Protection>) -> PythonHooks {
        self
    }

    /// No worker was ever started.
    pub fn report(&self) -> Option<Report> {
        None
    }

    /// No worker waits.
    pub fn idle_workers(&self) -> usize {
        0
    }
}

impl ScriptEngine for PythonHooks {
    fn run(&self, _: &Script, _: Call<'_>, _: &HookContext<'_>) -> Result<Answer> {
        let diagnostic =
            Diagnostic::new(Code::HooksUnavailable, "hooks in Python do not run on this system yet")
                .hint("use Linux or macOS, or the Windows Subsystem for Linux");
        Err(Error::new(ErrorKind::Hook, diagnostic))
    }
}
