//! What the tests share.

#[path = "../../../skip.rs"]
mod skip;

use std::path::PathBuf;
use std::process::Command;

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
