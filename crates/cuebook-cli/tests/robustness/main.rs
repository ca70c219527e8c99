//! Hostile files, templates and surroundings: none makes the command panic, hang, use up the memory, or
//! write half a result, and each is reported by name, place and way out.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "../../../skip.rs"]
mod skip;

#[path = "../robust_support/mod.rs"]
mod robust_support;

mod files;
mod packs;
mod streams_and_folders;
mod templates;

use std::fs;
use std::process::Command;

use robust_support::{Project, Run};

const TEMPLATE: &str = "prompts/p/template.md";

/// Root reads and writes everything, so there is nothing to see for it.
fn is_root() -> bool {
    let root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if root {
        skip::on_this_machine("root may read and write every file");
    }
    root
}

fn pipe(project: &Project, path: &str) {
    let path = project.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// The same failure for people and for scripts.
#[track_caller]
fn fails(project: &Project, args: &[&str], said: &str) -> Run {
    let run = project.run(args);
    run.says(said);
    let json = project.run(&[args, &["--json"]].concat()).error();
    let code = json["code"].as_str().unwrap();
    assert!(said.starts_with(&format!("error[{code}]: ")), "{json}");
    run
}
