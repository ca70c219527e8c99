//! Builds the wheel, installs it in a virtual environment below the target folder, and runs the package's pytest suite.

#![allow(clippy::unwrap_used, reason = "a test that fails to unwrap has failed")]

#[path = "../../skip.rs"]
mod skip;

use std::path::{Path, PathBuf};
use std::process::Command;

/// What the suite needs from PyPI. The package itself needs nothing.
const NEEDED: [&str; 19] = [
    "maturin>=1.9,<2",
    "pytest>=8",
    "mypy>=1.11",
    "pyright>=1.1.390",
    "pydantic>=2",
    "numpy",
    "pyarrow",
    "fastapi",
    "httpx",
    "langchain-core",
    "pydantic-ai-slim",
    "pandas>=2.2",
    "polars",
    "duckdb",
    "ray[data]>=2.60",
    "openai",
    "anthropic",
    "google-genai",
    "ipython",
];

fn target() -> PathBuf {
    // The test's own program lies in target/PROFILE/deps.
    let program = std::env::current_exe().unwrap();
    program.ancestors().nth(3).unwrap().to_owned()
}

fn run(command: &mut Command) -> Result<(), String> {
    let done = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{command:?} failed\n{}{}",
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr)
        )),
    }
}

/// A virtual environment with the tools; `None` without Python or without a network.
fn environment(folder: &Path) -> Option<PathBuf> {
    let bin = folder.join(if cfg!(windows) { "Scripts" } else { "bin" });
    let ready = folder.join("ready");
    let wanted = NEEDED.join("\n");
    if std::fs::read_to_string(&ready).is_ok_and(|known| known == wanted) {
        return Some(bin);
    }
    if let Err(why) = run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder)) {
        skip::missing_peer(format!("python3 cannot make a virtual environment: {why}"));
        return None;
    }
    let mut install = Command::new(bin.join("python"));
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(NEEDED);
    if let Err(why) = run(&mut install) {
        skip::missing_peer(format!("pip cannot install what the tests need: {why}"));
        return None;
    }
    std::fs::write(ready, wanted).unwrap();
    Some(bin)
}

#[test]
fn the_wheel_installs_and_its_tests_pass() {
    let krate = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = target();
    let folder = target.join("python");
    let Some(bin) = environment(&folder.join("environment")) else { return };
    let wheels = folder.join("wheels");
    let _ = std::fs::remove_dir_all(&wheels);
    // The same folder and profile as this test: what is compiled already is used again.
    let mut build = Command::new(bin.join("maturin"));
    build
        .args(["build", "--quiet", "--profile", "dev", "--target-dir"])
        .arg(&target)
        .arg("--out")
        .arg(&wheels);
    run(build.current_dir(krate)).unwrap();
    let wheel = std::fs::read_dir(&wheels).unwrap().next().unwrap().unwrap().path();
    let name = wheel.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.contains("-cp310-abi3-"), "{name} is not for CPython 3.10 and later");
    let mut install = Command::new(bin.join("python"));
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
        "--no-deps",
    ]);
    run(install.arg("--force-reinstall").arg(&wheel)).unwrap();
    let mut pytest = Command::new(bin.join("python"));
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg(krate.join("tests/python"));
    run(pytest.current_dir(krate.join("tests/python")).env("PYTHONDONTWRITEBYTECODE", "1")).unwrap();
}
