//! The peer: Rye OS in Python, as it was when directives were executed in the process that was asked.
//!
//! Later versions answer directives in another way. Those of its packages that
//! do not name the versions of the others are named here.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::command::Result;
use crate::python::{Packages, Script};

const PACKAGES: Packages = Packages {
    exact: &[
        ("ryeos-engine", "0.1.0"),
        ("ryeos-mcp", "0.1.0"),
        ("ryeos-core", "0.1.1"),
        ("ryeos", VERSION),
        ("lillux", "0.1.0"),
    ],
    // Its server does not start with the second edition.
    also: &["mcp<2"],
    minor: 11,
};

/// What it is called in tables.
pub const NAME: &str = "ryeos 0.1";
/// The version of the package that the others belong to.
pub const VERSION: &str = "0.1.5";

/// A peer that can be started, with a project and a user's space of its own.
pub struct Peer {
    python: PathBuf,
    project: TempDir,
    user: TempDir,
}

impl Peer {
    /// A peer; the error says why it cannot be had.
    pub fn new() -> Result<Peer> {
        let python = PACKAGES.environment()?;
        let folder = || tempfile::tempdir().map_err(|error| error.to_string());
        Ok(Peer { python, project: folder()?, user: folder()? })
    }

    /// The folder of its project.
    pub fn project(&self) -> &Path {
        self.project.path()
    }

    /// A process that has written and signed a directive, which it must do by itself because its hashes leave out a part of the
    /// text, and measures executions of it; and what the first one answered.
    pub fn script(&self, text: &str, arguments: &Json) -> Result<(Script, Json)> {
        let mut script = Script::start(&self.python, include_str!("rye.py"))?;
        let load = json!({"user": self.user.path(), "text": text, "arguments": arguments});
        let answer = script.ask(&json!({"load": load}))?;
        Ok((script, answer))
    }

    /// Its server.
    pub fn server(&self) -> Command {
        let mut command = Command::new(&self.python);
        command
            .args(["-I", "-c", "from rye_mcp.server import main; main()"])
            .env("USER_SPACE", self.user.path());
        command
    }
}
