//! JSON Schemas of the files that people write: `cuebook schema NAME` prints them, and editors complete from them.
//!
//! A test holds each against the reader of its files: every key that a schema names is read, and every example is accepted.

use serde_json::Value as Json;

/// The schemas by their names, each with the files that it is for.
pub const ALL: [(&str, &str, &str); 5] = [
    (
        "prompty",
        "the front matter of `.prompty` files",
        include_str!("../../../docs/src/reference/prompty.schema.json"),
    ),
    ("pack", "`pack.json`", include_str!("../../../docs/src/reference/pack.schema.json")),
    ("provider", "provider files", include_str!("../../../docs/src/reference/provider.schema.json")),
    ("cuebook", "`cuebook.toml`", include_str!("../../../docs/src/reference/cuebook.schema.json")),
    ("cases", "the settings of test cases", include_str!("../../../docs/src/reference/cases.schema.json")),
];

/// The text of a schema.
pub fn text(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(known, ..)| *known == name).map(|(_, _, text)| *text)
}

/// A schema.
pub fn schema(name: &str) -> Option<Json> {
    // The texts are part of the program; a test reads each of them.
    text(name).and_then(|text| serde_json::from_str(text).ok())
}

/// The schema of a file, by its path.
pub(crate) fn of_file(path: &std::path::Path) -> Option<Json> {
    let name = path.file_name()?.to_str()?;
    match name {
        "pack.json" => schema("pack"),
        "cuebook.toml" => schema("cuebook"),
        _ if name.ends_with(".prompty") => schema("prompty"),
        _ if is_provider(path) => schema("provider"),
        _ => None,
    }
}

/// Whether a path is that of a file of a provider: `.ai/config/providers/NAME.yaml`.
pub(crate) fn is_provider(path: &std::path::Path) -> bool {
    let is_yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    is_yaml && path.parent().is_some_and(|folder| folder.ends_with(".ai/config/providers"))
}

/// The part of a schema that is for what keys lead to. A key of a list leads to its items.
pub(crate) fn at<'s>(schema: &'s Json, keys: &[String]) -> Option<&'s Json> {
    let mut level = schema;
    for key in keys {
        level = step(schema, level, key)?;
    }
    Some(level)
}

/// What one key leads to.
fn step<'s>(root: &'s Json, level: &'s Json, key: &str) -> Option<&'s Json> {
    if let Some(found) = options(root, level).iter().find_map(|one| one["properties"].get(key)) {
        return Some(found);
    }
    // A name that the author chooses.
    let named = options(root, level).into_iter().find_map(|one| one.get("additionalProperties"));
    named.filter(|found| found.is_object())
}

/// What a value of a schema can be, with references followed: alternatives, and the items of lists.
fn options<'s>(root: &'s Json, level: &'s Json) -> Vec<&'s Json> {
    let mut found: Vec<&'s Json> = Vec::new();
    let mut waiting = vec![level];
    while let Some(next) = waiting.pop() {
        if found.len() > 64 || found.iter().any(|known| std::ptr::eq(*known, next)) {
            continue;
        }
        found.push(next);
        let reference = next["$ref"].as_str().and_then(|path| root.pointer(path.strip_prefix('#')?));
        waiting.extend(reference);
        waiting.extend(next["anyOf"].as_array().into_iter().flatten());
        waiting.extend(next.get("items"));
    }
    found
}

/// The keys that can stand at a level, each with its description.
pub(crate) fn keys(root: &Json, level: &Json) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for one in options(root, level) {
        for (key, about) in one["properties"].as_object().into_iter().flatten() {
            if found.iter().all(|(known, _)| known != key) {
                found.push((key.clone(), about["description"].as_str().unwrap_or_default().to_owned()));
            }
        }
    }
    found
}

/// The words that a value can be.
pub(crate) fn words(root: &Json, level: &Json) -> Vec<String> {
    let mut found = Vec::new();
    for one in options(root, level) {
        let listed = ["enum", "examples"].iter().flat_map(|key| one[*key].as_array().into_iter().flatten());
        found.extend(listed.filter_map(Json::as_str).map(str::to_owned));
        if one["type"] == "boolean" {
            found.extend(["true".to_owned(), "false".to_owned()]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_can_be_read_and_describes_every_key() {
        fn described(level: &Json, path: &str) {
            for (key, about) in level["properties"].as_object().into_iter().flatten() {
                assert!(about["description"].is_string(), "{path}.{key} has no description");
                described(about, &format!("{path}.{key}"));
            }
            for part in ["anyOf", "$defs"] {
                match &level[part] {
                    Json::Array(items) => items.iter().for_each(|one| described(one, path)),
                    Json::Object(items) => items.values().for_each(|one| described(one, path)),
                    _ => {}
                }
            }
        }
        for (name, ..) in ALL {
            described(&schema(name).unwrap(), name);
        }
    }

    #[test]
    fn the_settings_of_cases_are_those_of_their_reader() {
        use crate::cases::settings::{FACTS, NAMES};
        let schema = schema("cases").unwrap();
        let keys = |level: &Json| keys(&schema, level).into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        assert_eq!(keys(&schema), NAMES);
        assert_eq!(keys(&schema["properties"]["context"]), FACTS);
    }

    #[test]
    fn keys_lead_through_lists_names_and_references() {
        let schema = schema("prompty").unwrap();
        let names = |keys: &[&str]| {
            let path: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
            let level = at(&schema, &path).unwrap();
            super::keys(&schema, level).into_iter().map(|(key, _)| key).collect::<Vec<_>>()
        };
        assert!(names(&[]).contains(&"inputs".to_owned()));
        assert!(names(&["inputs"]).contains(&"kind".to_owned()));
        assert!(names(&["inputs", "user"]).contains(&"default".to_owned()));
        assert!(names(&["model", "options"]).contains(&"temperature".to_owned()));
        let kind = at(&schema, &["inputs".to_owned(), "kind".to_owned()]).unwrap();
        assert!(words(&schema, kind).contains(&"string".to_owned()));
    }
}
