//! Loading: a file from the fixtures or one that the vector describes, in a folder of its own, with its environment.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cuebook::dialect::prompty::{self, Definition, LoadOptions};
use cuebook::error::{Error, report};
use serde_json::Value as Json;

use super::Case;
use crate::compare;

pub fn load(case: &Case<'_>) -> Result<(), String> {
    let input = case.input();
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = lay_out(case, folder.path())?;
    let options = LoadOptions { environment: environment(&input["env"]), ..LoadOptions::default() };
    let expected = case.expected();
    let checks_inputs = input["inputs"].is_object()
        || expected["validated_inputs"].is_object()
        || expected["error"].as_str().and_then(kind_of_words) == Some("missing_required_input");
    let outcome = prompty::load(&path, &options).and_then(|definition| {
        let given = input["inputs"].as_object().cloned().unwrap_or_default();
        let inputs = checks_inputs.then(|| prompty::validate_inputs(&definition, &given)).transpose()?;
        Ok((definition, inputs))
    });
    let wanted_error =
        [&case.vector["expectedError"], &expected["expectedError"]].into_iter().find(|e| !e.is_null());
    match (outcome, wanted_error, expected["error"].as_str()) {
        (Err(error), Some(wanted), _) => {
            let field = wanted["field"].as_str();
            same_kind(&error, wanted["kind"].as_str().unwrap_or_default())
                .and_then(|()| same_field(&error, field))
        }
        (Err(error), None, Some(text)) => {
            let field = expected["error_field"].as_str();
            says(&error, text).and_then(|()| same_field(&error, field))
        }
        (Err(error), None, None) => Err(shown(&error)),
        (Ok(_), Some(wanted), _) => Err(format!("expected the error {wanted}")),
        (Ok(_), None, Some(text)) => Err(format!("expected the error {text:?}")),
        (Ok((_, Some(inputs))), None, None) if expected["validated_inputs"].is_object() => {
            compare::equals(&expected["validated_inputs"], &Json::Object(inputs))
        }
        (Ok((definition, _)), None, None) => fits(expected, &definition),
    }
}

fn environment(env: &Json) -> Arc<dyn prompty::Environment> {
    let env: HashMap<String, String> = env
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    Arc::new(move |name: &str| env.get(name).cloned())
}

/// Writes what the vector describes below a folder, and says which file is to be loaded.
fn lay_out(case: &Case<'_>, folder: &Path) -> Result<PathBuf, String> {
    let input = case.input();
    // One level down, so that a path that leads out of the prompt's folder still ends in ours.
    let home = folder.join("home").join(input["agent_subdir"].as_str().unwrap_or("prompt"));
    let io = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(&home).map_err(io)?;
    for (name, content) in input["files"].as_object().into_iter().flatten() {
        let target = home.join(name);
        std::fs::create_dir_all(target.parent().ok_or("a file without a folder")?).map_err(io)?;
        let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        std::fs::write(target, text).map_err(io)?;
    }
    let path = home.join("prompt.prompty");
    if let Some(fixture) = input["fixture"].as_str() {
        let fixtures = case.folder.join("fixtures");
        for entry in std::fs::read_dir(&fixtures).map_err(io)? {
            let entry = entry.map_err(io)?;
            std::fs::copy(entry.path(), home.join(entry.file_name())).map_err(io)?;
        }
        return Ok(home.join(fixture));
    }
    let text = match (&input["frontmatter_raw"], &input["frontmatter"]) {
        (Json::String(raw), _) => raw.clone(),
        (_, Json::Null) => input["instructions"].as_str().unwrap_or_default().to_owned(),
        (_, front_matter) => {
            let instructions = input["instructions"].as_str().unwrap_or_default();
            // JSON is YAML.
            let front_matter =
                serde_json::to_string_pretty(front_matter).map_err(|error| error.to_string())?;
            format!("---\n{front_matter}\n---\n{instructions}")
        }
    };
    std::fs::write(&path, text).map_err(io)?;
    Ok(path)
}

fn fits(expected: &Json, definition: &Definition) -> Result<(), String> {
    let mut actual = definition.to_json();
    let mut expected = expected.clone();
    for side in [&mut actual, &mut expected] {
        if let Some(text) = side["instructions"].as_str() {
            let stripped = text.trim_end_matches('\n').to_owned();
            side["instructions"] = stripped.into();
        }
        // What is empty is the same as what is not there.
        for (_, value) in side.as_object_mut().into_iter().flatten() {
            if *value == "" || value.as_array().is_some_and(Vec::is_empty) {
                *value = Json::Null;
            }
        }
    }
    compare::includes(&expected, &actual)
}

/// Our kind of an error that a vector names by the words of one runtime.
fn kind_of_words(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    [
        ("filenotfounderror", "file_not_found"),
        ("file not found", "file_not_found"),
        ("invalid frontmatter", "invalid_frontmatter"),
        ("missing required input", "missing_required_input"),
        ("invalid template", "invalid_template"),
    ]
    .into_iter()
    .find_map(|(words, kind)| text.contains(words).then_some(kind))
}

fn says(error: &Error, text: &str) -> Result<(), String> {
    if error.diagnostics().iter().any(|diagnostic| diagnostic.message.contains(text)) {
        return Ok(());
    }
    match kind_of_words(text) {
        Some(kind) => same_kind(error, kind),
        None => Err(format!("expected an error that says {text:?}, got {}", shown(error))),
    }
}

fn same_kind(error: &Error, kind: &str) -> Result<(), String> {
    if error.field("kind").and_then(Json::as_str) == Some(kind) {
        return Ok(());
    }
    Err(format!("expected an error of the kind {kind}, got {:?}: {}", error.field("kind"), shown(error)))
}

fn same_field(error: &Error, field: Option<&str>) -> Result<(), String> {
    match field {
        Some(field) if error.field("field").and_then(Json::as_str) != Some(field) => {
            Err(format!("expected the field {field}, got {:?}", error.field("field")))
        }
        _ => Ok(()),
    }
}

fn shown(error: &Error) -> String {
    report(error.diagnostics(), false)
}
