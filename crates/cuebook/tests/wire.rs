//! Bodies of requests, held against the types of the providers' own Python packages.
//!
//! The packages are installed into an environment below the target folder, once for each change of
//! `wire/requirements.txt`. Where that cannot be done the tests say so and pass; under `CI=true` they fail.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "support/python.rs"]
mod python;
#[path = "wire/rules.rs"]
mod rules;
#[path = "wire/speech.rs"]
mod speech;
#[path = "support/prompty.rs"]
mod spoken;
#[path = "wire/table.rs"]
mod table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use cuebook::ErrorKind;
use cuebook::chat::wire::Api;
use serde_json::{Value as Json, json};
use spoken::SentMessages;

/// The interpreter that has the packages.
static PYTHON: LazyLock<Result<PathBuf, String>> = LazyLock::new(environment);

fn environment() -> Result<PathBuf, String> {
    python::environment(
        "wire-python",
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/requirements.txt"),
    )
}

/// What the packages find wrong with each body, by name; `None` if there are no packages.
fn validate(bodies: &[(String, Api, Json)]) -> Option<BTreeMap<String, Vec<String>>> {
    let python = python::or_skip(&PYTHON, "the providers' packages")?;
    let cases: Json = bodies
        .iter()
        .map(|(name, api, body)| json!({"name": name, "api": api.as_str(), "body": body}))
        .collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/validate.py");
    let answer = python::ask(Command::new(python).arg(script), &cases.to_string());
    let verdicts: BTreeMap<String, Vec<String>> = serde_json::from_str(&answer).unwrap();
    assert_eq!(verdicts.len(), bodies.len(), "two bodies share a name");
    Some(verdicts)
}

#[test]
fn every_body_fits_its_provider_or_is_refused() {
    let mut bodies = Vec::new();
    let mut beyond = Vec::new();
    let mut wrong = Vec::new();
    let table = table::requests();
    for case in &table {
        for api in Api::ALL {
            let name = format!("{} as {api}", case.name);
            match (SentMessages::read(&case.input).body(api), case.refused.contains(&api.as_str())) {
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
        let mut body = SentMessages::read(&request).body(api).unwrap().body;
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
