//! Builds the npm package below the target folder, compiles its test suite against the types of the package, and runs it.

#![allow(clippy::unwrap_used, reason = "a test that fails to unwrap has failed")]

#[path = "../../skip.rs"]
mod skip;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the suite needs from the registry of npm, each in a major version that supports Node 20. The package itself needs nothing.
const NEEDED: [&str; 14] = [
    "typescript@7",
    "@types/node@>=20",
    "zod@4",
    "vitest@4",
    "jest@30",
    "esbuild@0.28",
    "openai@6",
    "@anthropic-ai/sdk@1",
    "@google/genai@2",
    "ai@6",
    "@modelcontextprotocol/sdk@1",
    "apache-arrow@21",
    "express@5",
    "@types/express@5",
];

/// The folder of the profile that this test was built with, such as `target/debug`.
fn profile() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned()
}

fn run(command: &mut Command) -> Result<String, String> {
    let done = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    if done.status.success() { Ok(text) } else { Err(format!("{command:?} failed\n{text}")) }
}

/// Whether there is a Node that is new enough.
fn has_node() -> Result<(), String> {
    let version = run(Command::new("node").arg("--version"))?;
    let major = version.trim().strip_prefix('v').and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    match major {
        Some(20..) => Ok(()),
        _ => Err(format!("node is {}, and not 20 or newer", version.trim())),
    }
}

/// Installs the packages of others, once for each list of them.
fn install(folder: &Path) -> Result<(), String> {
    let ready = folder.join("ready");
    let wanted = NEEDED.join("\n");
    if fs::read_to_string(&ready).is_ok_and(|known| known == wanted) {
        return Ok(());
    }
    let _ = fs::remove_dir_all(folder.join("node_modules"));
    fs::write(folder.join("package.json"), "{\"private\": true}\n").unwrap();
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-package-lock", "--no-audit", "--no-fund", "--silent"]).args(NEEDED);
    run(npm.current_dir(folder))?;
    fs::write(ready, wanted).unwrap();
    Ok(())
}

/// The command, which other tests of the workspace have built, or which is built now.
fn command() {
    if !profile().join(format!("cuebook{}", std::env::consts::EXE_SUFFIX)).exists() {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build
            .args(["build", "--quiet", "-p", "cuebook-cli", "--target-dir"])
            .arg(profile().parent().unwrap());
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        run(&mut build).unwrap();
    }
}

fn copy_folder(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn the_package_builds_and_its_tests_pass() {
    let krate = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = profile().parent().unwrap().join("node");
    fs::create_dir_all(&folder).unwrap();
    if let Err(why) = has_node() {
        return skip::missing_peer(format!("there is no node that can be used: {why}"));
    }
    if let Err(why) = install(&folder) {
        return skip::missing_peer(format!("npm cannot install what the tests need: {why}"));
    }
    command();
    let modules = folder.join("node_modules");
    let mut build = Command::new("node");
    build.arg(krate.join("build.mjs")).arg("--native").arg(profile()).arg("--modules").arg(&modules);
    run(build.arg("--out").arg(modules.join("cuebook"))).unwrap();
    let tests = folder.join("tests");
    copy_folder(&krate.join("tests/node"), &tests);
    let mut chapter = Command::new("node");
    chapter.arg(tests.join("chapter.mjs")).arg(krate.join("../../docs/src/guide/typescript.md"));
    run(chapter.arg(tests.join("chapter.test.ts"))).unwrap();
    run(Command::new("node").arg(modules.join("typescript/bin/tsc")).arg("-p").arg(&tests)).unwrap();
    let mut files: Vec<PathBuf> =
        fs::read_dir(tests.join("out")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.to_string_lossy().ends_with(".test.js"));
    files.sort();
    assert!(files.len() >= 8, "{files:?}");
    let mut node = Command::new("node");
    node.args(["--test", "--test-timeout=120000", "--test-reporter", "dot"]).args(files).current_dir(&tests);
    run(node.env("CUEBOOK_REPOSITORY", krate.join("../.."))).unwrap();
}
