//! The peer: the real package in Python.

use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use crate::command::Result;
use crate::python::{Packages, Script};

/// The package.
pub const PACKAGE: &str = "weakincentives";
/// Its version.
pub const VERSION: &str = "0.27.0";
const PACKAGES: Packages = Packages { exact: &[(PACKAGE, VERSION)], also: &[], minor: 13 };

/// The script of the peer, and the line of it that names the package.
const SCRIPT: &str = include_str!("peer.py");
const IMPORT: &str = "from weakincentives.prompt import";

/// The interpreter that has the package.
pub fn python() -> Result<PathBuf> {
    PACKAGES.environment()
}

/// A running peer.
pub struct Peer {
    script: Script,
}

/// What the peer made of a prompt.
pub struct PeerRender {
    pub text: String,
    pub tools: Vec<String>,
}

impl Peer {
    /// Starts it; the error says why it cannot be had.
    pub fn start() -> Result<Peer> {
        Ok(Peer { script: Script::start(&python()?, SCRIPT)? })
    }

    /// The same script with our package: only the import is changed.
    pub fn ours(python: &Path) -> Result<Peer> {
        Ok(Peer { script: Script::start(python, &SCRIPT.replace(IMPORT, "from cuebook.wink import"))? })
    }

    /// Gives it a prompt, and the values to go with it.
    pub fn load(&mut self, sections: &Json) -> Result<PeerRender> {
        let answer = self.script.ask(&json!({"load": sections}))?;
        let text = answer["text"].as_str().ok_or("the peer answered without a text")?;
        let tools = answer["tools"].as_array().into_iter().flatten();
        let tools = tools.filter_map(Json::as_str).map(str::to_owned).collect();
        Ok(PeerRender { text: text.to_owned(), tools })
    }

    /// Nanoseconds of one `bind` with new parameters and one `render`.
    pub fn bind_and_render(&mut self) -> Result<f64> {
        self.script.time("bind_and_render")
    }

    /// Nanoseconds of one `render` with what was bound before.
    pub fn render(&mut self) -> Result<f64> {
        self.script.time("render")
    }
}
