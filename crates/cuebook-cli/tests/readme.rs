//! The README's session and its picture.

mod support;

use std::path::Path;

use support::transcript::{self, Setup};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn the_readme_session_is_true() {
    transcript::run_file(&Path::new(ROOT).join("README.md"));
}

#[test]
fn the_readme_is_short() {
    let length = std::fs::metadata(Path::new(ROOT).join("README.md")).unwrap().len();
    assert!(length <= 9 << 10, "README.md has {length} bytes");
}

#[test]
fn the_pictures_of_the_book_are_current() {
    let Some(()) = support::python_or_skip() else { return };
    let mut check = std::process::Command::new("python3");
    check.arg(Path::new(ROOT).join("docs/pictures/make.py"));
    check.args(["--check", "--cuebook", env!("CARGO_BIN_EXE_cuebook")]);
    let output = check.output().unwrap();
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{why}\nrun: cargo build && python3 docs/pictures/make.py");
}

#[test]
fn the_readme_picture_is_what_the_program_draws() {
    let readme = std::fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let mut stage = Setup::new();
    stage.run(&readme);
    let drawn = stage.run(
        "```console\n$ cuebook explain letter --var company='Fjord Books' --var name=Ada \
         --var 'items:=[{\"title\": \"tea\"}, {\"title\": \"jam\"}]' --svg\n```\n",
    );
    let path = Path::new(ROOT).join("docs/src/images/origins.svg");
    if std::env::var_os("CUEBOOK_BLESS").is_some() {
        std::fs::write(&path, &drawn.printed).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    assert_eq!(kept, drawn.printed, "run this test with CUEBOOK_BLESS=1 to draw the picture again");
}
