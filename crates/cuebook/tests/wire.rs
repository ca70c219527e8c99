//! Bodies of requests, held against the types of the providers' own Python packages.
//!
//! The packages are installed into an environment below the target folder, once for each change of
//! `wire/requirements.txt`. Where that cannot be done the tests say so and pass; under `CI=true` they fail.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "wire/rules.rs"]
mod rules;
#[path = "wire/speech.rs"]
mod speech;
#[path = "support/prompty.rs"]
mod spoken;
#[path = "wire/table.rs"]
mod table;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use cuebook::ErrorKind;
use cuebook::chat::wire::Api;
use serde_json::{Value as Json, json};
use spoken::Spoken;

/// The interpreter that has the packages.
static PYTHON: LazyLock<Result<PathBuf, String>> = LazyLock::new(environment);

fn environment() -> Result<PathBuf, String> {
    let requirements = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/requirements.txt");
    let wanted = std::fs::read_to_string(&requirements).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wire-python");
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
    run(pip.arg(&requirements))?;
    std::fs::write(&marker, wanted).unwrap();
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{command:?}: {}", said.trim())) }
}

/// What the packages find wrong with each body, by name; `None` if there are no packages.
fn validate(bodies: &[(String, Api, Json)]) -> Option<BTreeMap<String, Vec<String>>> {
    let python = match &*PYTHON {
        Ok(python) => python,
        Err(why) => {
            let message = format!("skipped, because the providers' packages cannot be had: {why}");
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{message}");
            println!("{message}");
            return None;
        }
    };
    let cases: Json = bodies
        .iter()
        .map(|(name, api, body)| json!({"name": name, "api": api.as_str(), "body": body}))
        .collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/validate.py");
    let mut child = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(cases.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let verdicts: BTreeMap<String, Vec<String>> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(verdicts.len(), bodies.len(), "two bodies share a name");
    Some(verdicts)
}

#[test]
fn every_body_is_what_its_provider_accepts_and_the_rest_is_refused() {
    let mut bodies = Vec::new();
    let mut beyond = Vec::new();
    let mut wrong = Vec::new();
    let table = table::requests();
    for case in &table {
        for api in Api::ALL {
            let name = format!("{} as {api}", case.name);
            match (Spoken::read(&case.input).body(api), case.refused.contains(&api.as_str())) {
                (Ok(wire), false) => {
                    if case.beyond.contains(&api.as_str()) {
                        if wire.notes.is_empty() {
                            wrong.push(format!("{name}: goes beyond the provider's types without a note"));
                        }
                        beyond.push(name.clone());
                    }
                    bodies.push((name, api, wire.body));
                }
                (Err(error), true) if error.kind() == ErrorKind::Wire => {
                    if error.diagnostic().hint.is_none() {
                        wrong.push(format!("{name}: refused without a way out: {error}"));
                    }
                }
                (Err(error), _) => wrong.push(format!("{name}: {error}")),
                (Ok(wire), true) => wrong.push(format!("{name}: should be refused, got {}", wire.body)),
            }
        }
    }
    assert!(table.len() >= 30 && bodies.len() >= 100, "{} of {} requests", bodies.len(), table.len());
    if let Some(verdicts) = validate(&bodies) {
        for (name, errors) in verdicts {
            match (errors.is_empty(), beyond.contains(&name)) {
                (false, false) => wrong.push(format!("{name}: {}", errors.join("; "))),
                (true, true) => wrong.push(format!("{name}: is within the provider's types after all")),
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn a_broken_body_is_noticed() {
    let mut bodies = Vec::new();
    for (index, (api, path, value)) in table::faults().into_iter().enumerate() {
        let request = table::everything(api);
        let mut body = Spoken::read(&request).body(api).unwrap().body;
        bodies.push((format!("{index} {api} as it should be"), api, body.clone()));
        let (parent, key) = path.rsplit_once('/').unwrap();
        let parent = body.pointer_mut(parent).unwrap_or_else(|| panic!("{api}: no {path}"));
        match (parent, value) {
            (Json::Object(object), Json::Null) => {
                assert!(object.remove(key).is_some(), "{api}: no {path}");
            }
            (Json::Object(object), value) => drop(object.insert(key.to_owned(), value)),
            (Json::Array(list), value) => list[key.parse::<usize>().unwrap()] = value,
            (other, _) => panic!("{api}: {path} is in {other}"),
        }
        bodies.push((format!("{index} {api} broken at {path}"), api, body));
    }
    let Some(verdicts) = validate(&bodies) else { return };
    let wrong: Vec<_> =
        verdicts.iter().filter(|(name, errors)| errors.is_empty() == name.contains("broken")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
