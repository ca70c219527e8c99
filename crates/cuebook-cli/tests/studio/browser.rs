//! The page in Chromium, driven by `crates/cuebook-serve/studio/test/studio.mjs`, on the project in `project/` and a scripted model.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cuebook_mock::{Mock, Script};

use crate::server::{Studio, runs, write};
use crate::skip;

/// A file name that is no markup.
const PARTIAL: &str = "prompts/partials/<img src=x onerror=alert(4)>.md";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cuebook-serve/studio")
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/studio")
}

/// Chromium; as root on Debian it is installed.
fn chromium() -> Option<&'static str> {
    let found = || ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| runs(name));
    found().or_else(|| {
        let install = "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium";
        let is_done =
            Command::new("sh").args(["-c", install]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        is_done.is_ok_and(|status| status.success()).then(found)?
    })
}

/// The packages that drive the browser, installed below the target folder.
fn packages() -> Option<PathBuf> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("studio");
    std::fs::create_dir_all(&place).ok()?;
    let manifest = std::fs::read_to_string(folder().join("package.json")).ok()?;
    let manifest: serde_json::Value = serde_json::from_str(&manifest).ok()?;
    let needs = ["playwright-core", "axe-core"]
        .map(|name| format!("{name}@{}", manifest["devDependencies"][name].as_str().unwrap_or_default()));
    std::fs::write(place.join("package.json"), "{\"private\": true}\n").ok()?;
    let npm = Command::new("npm")
        .args([
            "install",
            "--no-audit",
            "--no-fund",
            "--no-package-lock",
            "--no-save",
            "--ignore-scripts",
            "--silent",
        ])
        .args(needs)
        .current_dir(&place)
        .stdout(Stdio::null())
        .status();
    npm.is_ok_and(|status| status.success()).then_some(place)
}

/// The files of a folder, with their names in it.
fn files(folder: &Path) -> Vec<(String, String)> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => {
                    let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                    found.push((name, std::fs::read_to_string(&path).unwrap()));
                }
            }
        }
    }
    found
}

#[test]
fn every_task_works_in_a_browser() {
    if !runs("node") {
        return skip::missing_peer("the studio is tested with node");
    }
    let Some(chromium) = chromium() else { return skip::missing_peer("the studio is tested in chromium") };
    let Some(packages) = packages() else { return skip::missing_peer("the packages of the studio's test") };
    let replies = std::fs::read_to_string(here().join("replies.json")).unwrap();
    let mock = Mock::start(Script::from_json(&serde_json::from_str(&replies).unwrap()).unwrap()).unwrap();
    let files = files(&here().join("project"));
    let mut project: Vec<(&str, &str)> =
        files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    project.push((PARTIAL, "Kind.\n"));
    let studio = Studio::of(
        &project,
        &[("OPENAI_BASE_URL", &mock.url()), ("OPENAI_API_KEY", "mock"), ("CUEBOOK_PROVIDER", "openai")],
    );
    // `diff` compares with the last commit.
    let root = studio.project.path();
    write(root, ".gitignore", ".ai\n");
    let commit =
        "git init -q . && git add -A && git -c user.name=t -c user.email=t@example.com commit -qm first";
    let is_committed = Command::new("sh").args(["-c", commit]).current_dir(root).status();
    assert!(is_committed.is_ok_and(|status| status.success()), "git is missing");
    let output = Command::new("node")
        .arg(folder().join("test/studio.mjs"))
        .arg(&studio.url)
        .arg(root)
        .env("STUDIO_PACKAGES", packages)
        .env("STUDIO_CHROMIUM", chromium)
        .env("STUDIO_PACK", here().join("tones"))
        .env("STUDIO_PICTURES", std::env::var_os("CUEBOOK_PICTURES").unwrap_or_default())
        .output()
        .unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    assert!(said.contains("all tasks passed"), "{said}");
    println!("{said}");
}
