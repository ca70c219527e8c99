//! The peer: Rye OS in Python, in its last version, which runs directives in threads. It has the same provider that it comes with,
//! at another address.

use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use crate::command::Result;
use crate::python::{Packages, Script};

const PACKAGES: Packages = Packages {
    exact: &[("ryeos", "0.1.30"), ("ryeos-core", "0.1.46"), ("ryeos-engine", "0.1.27"), ("lillux", "0.2.1")],
    also: &[],
    minor: 11,
};

/// What it is called in tables.
pub const NAME: &str = "ryeos 0.1.30";

/// A peer that can be started, with a project and a user's space of its own.
pub struct Peer {
    python: std::path::PathBuf,
    project: TempDir,
    user: TempDir,
}

impl Peer {
    /// A peer; the error says why it cannot be had.
    pub fn new() -> Result<Peer> {
        let python = PACKAGES.environment()?;
        let folder = super::folder().map_err(|error| error.to_string())?;
        let folder = || tempfile::tempdir_in(&folder).map_err(|error| error.to_string());
        Ok(Peer { python, project: folder()?, user: folder()? })
    }

    /// How long so many threads of a directive took, one after another, in one process that is warm.
    pub fn times(&self, server: &str, directive: &str, count: usize) -> Result<Vec<Duration>> {
        let mut script = Script::start(&self.python, include_str!("peer.py"))?;
        let load = json!({
            "user": self.user.path(), "project": self.project.path(), "server": server, "text": directive,
        });
        let answer = script.ask(&json!({"load": load}))?;
        if answer["data"]["outputs"]["greeting"] != "Hello" {
            return Err(format!("it answered {answer}"));
        }
        let one = |_| script.time("thread").map(|nanos| Duration::from_nanos(nanos as u64));
        (0..count).map(one).collect()
    }
}
