//! Python packages that tests hold our work against.
//!
//! They are installed into an environment below the target folder, once for each change of what is required. Where that
//! cannot be done the tests say so and pass; under `CI=true` they fail.

#[path = "../../../skip.rs"]
#[allow(clippy::duplicate_mod, reason = "other helpers of the same tests include it too")]
pub mod skip;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The interpreter of an environment that has the required packages.
pub fn environment(name: &str, requirements: &Path) -> Result<PathBuf, String> {
    let wanted = std::fs::read_to_string(requirements).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    // Written last, so an installation that was broken off is not taken for one.
    let marker = folder.join("installed.txt");
    if std::fs::read_to_string(&marker).is_ok_and(|installed| installed == wanted) && python.exists() {
        return Ok(python);
    }
    let _ = std::fs::remove_dir_all(&folder);
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
    run(pip.arg(requirements))?;
    std::fs::write(&marker, wanted).unwrap();
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{command:?}: {}", said.trim())) }
}

/// The interpreter, or a visible skip.
pub fn or_skip<'p>(python: &'p Result<PathBuf, String>, packages: &str) -> Option<&'p Path> {
    match python {
        Ok(python) => Some(python),
        Err(why) => {
            skip::missing_peer(format_args!("{packages} cannot be installed: {why}"));
            None
        }
    }
}

/// What a program answers to its standard input.
pub fn ask(command: &mut Command, question: &str) -> String {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(question.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
