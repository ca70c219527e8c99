//! What the tests share.

#[path = "../../../skip.rs"]
mod skip;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value as Json;

/// A Python with Jinja2 3.1.6, in a virtual environment below the target folder. Without Python the test is skipped; with
/// `CI=true` that is an error.
pub fn jinja2() -> Option<PathBuf> {
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let place = target.join("jinja2-3.1.6");
    let python = place.join("bin/python");
    let ready =
        || Command::new(&python).args(["-c", "import jinja2"]).status().is_ok_and(|status| status.success());
    let install = || {
        let made = Command::new("python3")
            .args(["-m", "venv"])
            .arg(&place)
            .status()
            .is_ok_and(|status| status.success());
        made && Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "jinja2==3.1.6"])
            .status()
            .is_ok_and(|status| status.success())
    };
    if ready() || install() && ready() {
        return Some(python);
    }
    skip::missing_peer("python3 with jinja2 3.1.6 is missing");
    None
}

/// What the library `transformers` gives for each chat template: a `text` or an `error`.
#[allow(dead_code, reason = "only the tests of chat templates use it")]
pub fn transformers(python: &Path, cases: &[Json]) -> Vec<Json> {
    let mut child = Command::new(python)
        .args(["-W", "ignore", "-c", include_str!("transformers.py")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python starts");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    let input = serde_json::to_string(&cases).expect("JSON");
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("python ends");
    writer.join().expect("the writer ends").expect("the cases are written");
    serde_json::from_slice(&output.stdout).expect("python writes JSON")
}

/// The chat templates among the conformance cases, each with the conversations that are recorded.
#[allow(dead_code, reason = "only the tests of chat templates use it")]
pub fn chat_cases() -> Vec<Json> {
    let named = std::env::var_os("CUEBOOK_CONFORMANCE").map(PathBuf::from);
    let folder = named
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance"));
    let file = folder.join("prompts/cases.json");
    if !file.is_file() {
        skip::missing_peer("the conformance cases are missing (CUEBOOK_CONFORMANCE)");
        return Vec::new();
    }
    let text = std::fs::read_to_string(file).expect("the cases can be read");
    let cases: Vec<Json> = serde_json::from_str(&text).expect("the cases are JSON");
    let is_chat = |case: &Json| {
        case["options"]["trim_blocks"].as_bool() == Some(true) && case["context"]["messages"].is_array()
    };
    cases.into_iter().filter(is_chat).collect()
}
