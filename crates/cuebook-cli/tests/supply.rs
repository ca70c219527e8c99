//! Where dependencies come from: only the registry, with a checksum, under licences that we accept, and none that we banned.
//! `deny.toml` has the same rules for `cargo deny`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Crates of which several versions are linked. A new pair is a decision: update one of the two, or add it here.
const SEVERAL: [&str; 17] = [
    "base64",
    "bit-vec",
    "bitflags",
    "const-oid",
    "der",
    "fallible-iterator",
    "foldhash",
    "getrandom",
    "hashbrown",
    "itertools",
    "phf",
    "phf_shared",
    "rand",
    "rand_chacha",
    "rand_core",
    "spki",
    "syn",
];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The packages that are built on Linux, as cargo describes them.
fn packages() -> Vec<Json> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let args = ["metadata", "--offline", "--locked", "--format-version", "1", "--filter-platform"];
    let output =
        Command::new(cargo).args(args).arg("x86_64-unknown-linux-gnu").current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: Json = serde_json::from_slice(&output.stdout).unwrap();
    serde_json::from_value(metadata["packages"].take()).unwrap()
}

/// The list of texts behind a key of a section of `deny.toml`.
fn rules(section: &str, key: &str) -> BTreeSet<String> {
    let deny: toml::Table = std::fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap();
    let list = deny[section].as_table().unwrap()[key].as_array().unwrap();
    let name = |rule: &toml::Value| rule.get("name").unwrap_or(rule).as_str().unwrap().to_owned();
    list.iter().map(name).collect()
}

/// Whether an expression of SPDX can be met with the licences that are allowed.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let expression = expression.replace('/', " OR ");
    // Parts in brackets stand first or last in what crates write, so that it is enough to split at the outermost AND.
    let mut depth = 0;
    let mut parts = vec![String::new()];
    for word in expression.replace('(', " ( ").replace(')', " ) ").split_whitespace() {
        match word {
            "(" => depth += 1,
            ")" => depth -= 1,
            "AND" if depth == 0 => parts.push(String::new()),
            word => {
                let part = parts.last_mut().unwrap();
                part.push_str(if part.is_empty() { "" } else { " " });
                part.push_str(word);
            }
        }
    }
    let one_of = |part: &String| part.split(" OR ").any(|licence| allowed.contains(licence.trim()));
    parts.iter().all(one_of)
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let allowed = rules("licenses", "allow");
    for package in packages().iter().filter(|package| !package["source"].is_null()) {
        let (name, licence) = (package["name"].as_str().unwrap(), package["license"].as_str());
        assert!(licence.is_some_and(|licence| is_allowed(licence, &allowed)), "{name}: {licence:?}");
    }
    assert!(!is_allowed("GPL-3.0-only", &allowed) && !is_allowed("MIT AND GPL-3.0-only", &allowed));
    assert!(is_allowed("(MIT OR GPL-2.0-only) AND Unicode-3.0", &allowed));
}

#[test]
fn every_dependency_comes_from_the_registry_with_a_checksum() {
    for lock in ["Cargo.lock", "fuzz/Cargo.lock"] {
        let Ok(text) = std::fs::read_to_string(root().join(lock)) else { continue };
        let lock: toml::Table = text.parse().unwrap();
        for package in lock["package"].as_array().unwrap() {
            let name = package["name"].as_str().unwrap();
            match package.get("source").and_then(toml::Value::as_str) {
                None => assert!(name.starts_with("cuebook"), "{name} has no source"),
                Some(source) => {
                    assert_eq!(source, REGISTRY, "{name}");
                    assert!(package.get("checksum").is_some(), "{name} has no checksum");
                }
            }
        }
    }
}

#[test]
fn no_dependency_is_banned_and_no_new_one_is_there_twice() {
    let banned = rules("bans", "deny");
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages() {
        let name = package["name"].as_str().unwrap().to_owned();
        assert!(!banned.contains(&name), "{name} is banned");
        versions.entry(name).or_default().insert(package["version"].as_str().unwrap().to_owned());
    }
    let new =
        versions.iter().find(|(name, versions)| versions.len() > 1 && !SEVERAL.contains(&name.as_str()));
    assert_eq!(new, None, "update one of them, or add the name to SEVERAL");
}

/// Who embeds the library pays for what they use: `docs/src/reference/features.md` has the number.
#[test]
fn the_default_features_of_the_library_need_few_crates() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let args = ["tree", "--offline", "--locked", "-p", "cuebook", "-e", "normal", "--prefix", "none"];
    let output = Command::new(cargo)
        .args(args)
        .args(["--target", "x86_64-unknown-linux-gnu"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let crates: BTreeSet<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(crates.contains("cuebook-template"), "{text}");
    assert!(crates.len() <= 45, "{} crates: {crates:?}", crates.len());
    let page = std::fs::read_to_string(root().join("docs/src/reference/features.md")).unwrap();
    let row = page.lines().find(|line| line.contains("`cargo tree -p cuebook -e normal`")).unwrap();
    assert!(row.contains(&format!("| {} |", crates.len())), "{row}");
}

#[test]
fn the_render_path_links_no_system_crates_for_wasm() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let words =
        ["tree", "--offline", "--locked", "--prefix", "none", "-e", "normal", "--no-default-features"];
    let target = ["--target", "wasm32-unknown-unknown", "-p", "cuebook-prompt", "-p", "cuebook-template"];
    let output = Command::new(cargo).args(words).args(target).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let names: BTreeSet<&str> = printed.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains("cuebook-template") && names.contains("cuebook-text"), "{printed}");
    for system in ["mio", "nix", "rayon", "ring", "rusqlite", "rustix", "seccompiler", "tokio", "ureq"] {
        assert!(!names.contains(system), "{system} is linked:\n{printed}");
    }
}
