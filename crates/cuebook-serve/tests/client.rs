//! The official client of the protocol (Python, from PyPI) speaks with the server: both revisions, both ways.

#![allow(clippy::unwrap_used, reason = "these are tests")]

#[path = "../../cuebook/tests/support/python.rs"]
#[allow(dead_code, reason = "shared with other tests, which use more of it")]
mod python;
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use support::{TEST_SERVER, TOKEN, TestServer, project};

static PYTHON: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client"));
    python::environment("mcp-client", &folder.join("requirements.txt"))
});

/// Runs the driver and expects that it found everything in order.
fn drive(mode: &str, project: &Path, target: &[&str]) {
    let Some(python) = python::or_skip(&PYTHON, "the protocol's Python client") else { return };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client/drive.py");
    let output = Command::new(python).arg(script).arg(mode).arg(project).args(target).output().unwrap();
    let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{mode} {target:?}:\n{said}\n{wrong}");
    assert!(said.contains("cancellation: ok"), "{said}");
}

#[test]
fn the_client_finds_everything_in_order_over_stdio() {
    let project = project();
    for mode in ["legacy", "2026-07-28", "auto"] {
        drive(mode, project.path(), &["stdio", TEST_SERVER]);
    }
}

#[test]
fn the_client_finds_everything_in_order_over_http() {
    let project = project();
    let desk = TestServer::listening(project.path(), "127.0.0.1:0");
    for mode in ["legacy", "2026-07-28"] {
        drive(mode, project.path(), &["http", &desk.url, TOKEN]);
    }
}
