//! Every prompt of the guide and every built-in prompt renders to the stored bytes: text, spans, messages, and a body for each
//! interface. A change of structure that is meant to change none of them cannot do so unnoticed.
//!
//! `CUEBOOK_BLESS=1` stores what is rendered now; look at the diff.

#![allow(clippy::unwrap_used, reason = "these are tests, though the lint sees only functions")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cuebook::chat::Api;
use cuebook::prompt::Type;
use cuebook::sha256::{Sha256, hex};
use cuebook::variables::{FixedClock, FixedNonces};
use cuebook::{Book, Context, Prepared, Rendered, Result, Variables};
use serde_json::{Map, Value as Json, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files that the chapters of the guide show, in the order of the book: ```` ```jinja2 file PATH ````.
fn files_of_the_guide() -> Vec<(String, String)> {
    let book = root().join("docs/src");
    let summary = std::fs::read_to_string(book.join("SUMMARY.md")).unwrap();
    let chapters = summary.split("](").filter_map(|piece| piece.split_once(')')).map(|(path, _)| path);
    let mut files = Vec::new();
    for chapter in chapters.filter(|path| path.starts_with("guide/")) {
        let text = std::fs::read_to_string(book.join(chapter)).unwrap();
        let mut open: Option<(String, String, String)> = None;
        for line in text.lines() {
            let ticks = line.chars().take_while(|letter| *letter == '`').count();
            match &mut open {
                Some((fence, path, body)) if line.trim_end() == fence => {
                    files.push((std::mem::take(path), std::mem::take(body)));
                    open = None;
                }
                Some((_, _, body)) => body.extend([line, "\n"]),
                None if ticks >= 3 => {
                    let path = line[ticks..].split_once(" file ").map_or("", |(_, path)| path.trim());
                    open = Some(("`".repeat(ticks), path.to_owned(), String::new()));
                }
                None => {}
            }
        }
    }
    files.retain(|(path, _)| !path.is_empty() && !path.contains(char::is_whitespace));
    files
}

/// The values of the guide's files of values, by name: the first one of a name counts.
fn values_of(files: &[(String, String)]) -> Map<String, Json> {
    let mut values = Map::new();
    for (_, text) in files.iter().filter(|(path, _)| path.ends_with(".json") && !path.contains('/')) {
        let Ok(Json::Object(members)) = serde_json::from_str(text) else { continue };
        for (name, value) in members {
            values.entry(name).or_insert(value);
        }
    }
    values
}

/// A value for each input that needs one.
fn inputs(prepared: &Prepared, values: &Map<String, Json>) -> Variables {
    let mut given = Variables::new();
    for name in prepared.known_names() {
        let declared = prepared.prompt().variable(name);
        if name == "system"
            || name == "session"
            || declared.is_some_and(|variable| variable.default.is_some())
        {
            continue;
        }
        let sample = declared.map(|variable| match variable.kind {
            Type::Integer | Type::Number => json!(3),
            Type::Boolean => json!(true),
            Type::List => json!(["one", "two"]),
            Type::Object => json!({"name": "one"}),
            _ => variable.choices.first().cloned().unwrap_or_else(|| json!(format!("a {name}"))),
        });
        if let Some(value) = values.get(name).cloned().filter(|_| declared.is_none()).or(sample) {
            given = given.set(name.clone(), value);
        }
    }
    given
}

fn hash(text: &str) -> String {
    format!("{} bytes, sha256 {}", text.len(), &hex(&Sha256::digest(text))[..32])
}

/// What a render gives, part by part.
fn parts(rendered: &Rendered) -> BTreeMap<String, String> {
    let mut parts = BTreeMap::from([
        ("text".to_owned(), hash(rendered.text())),
        ("rendered".to_owned(), hash(&rendered.to_json().to_string())),
    ]);
    let outcome = |result: Result<String>| match result {
        Ok(text) => hash(&text),
        Err(error) => format!("{}: {}", error.code(), error.diagnostic().message),
    };
    let messages = rendered.messages().map(|messages| {
        let messages: Vec<Json> = messages.iter().map(|message| message.to_json()).collect();
        Json::from(messages).to_string()
    });
    parts.insert("messages".to_owned(), outcome(messages));
    for api in Api::ALL {
        let body = rendered.wire_for(api).map(|wire| wire.body.to_string());
        parts.insert(format!("body for {}", api.as_str()), outcome(body));
    }
    parts
}

#[test]
fn prompts_of_the_guide_render_to_the_stored_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let files = files_of_the_guide();
    for (path, text) in files.iter().filter(|(path, _)| !path.starts_with('/') && !path.contains("..")) {
        let file = folder.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let values = values_of(&files);
    let book = Book::open(folder.path())
        .with_clock(FixedClock::at("2026-02-20T15:30:00+09:00[Asia/Tokyo]").unwrap())
        .with_nonces(FixedNonces("0123456789abcdef".to_owned()));
    let context = Arc::new(Context {
        without_hooks: true,
        workspace_path: Some("/project".into()),
        ..Context::default()
    });
    let with_model = Arc::new(Context { model: Some("gpt-4o".to_owned()), ..(*context).clone() });
    let mut found: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut texts = BTreeMap::new();
    for listing in book.list_prompts(None, None).unwrap() {
        let render = || {
            let prepared = book.prepare(&listing.id, &context)?;
            // Every interface needs a model.
            let has_model = prepared.prompt().model.as_ref().is_some_and(|model| !model.id.is_empty());
            let context = if has_model { &context } else { &with_model };
            prepared.render(&inputs(&prepared, &values), context)
        };
        let parts = match render() {
            Ok(rendered) => {
                texts.insert(listing.id.clone(), rendered.text().to_owned());
                parts(&rendered)
            }
            Err(error) => {
                let message = format!("{}: {}", error.code(), error.diagnostic().message);
                BTreeMap::from([("error".to_owned(), message)])
            }
        };
        found.insert(listing.id, parts);
    }
    assert!(texts.len() >= 15, "most of them render: {found:#?}");
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden.json");
    if std::env::var_os("CUEBOOK_BLESS").is_some() {
        std::fs::write(&stored, serde_json::to_string_pretty(&found).unwrap() + "\n").unwrap();
        return;
    }
    let expected: BTreeMap<String, BTreeMap<String, String>> =
        serde_json::from_str(&std::fs::read_to_string(stored).unwrap()).unwrap();
    let ids: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    let differs = |id: &&&String| expected.get(**id) != found.get(**id);
    let changed: Vec<_> = ids
        .iter()
        .filter(differs)
        .map(|id| (id, expected.get(*id), found.get(*id), texts.get(*id)))
        .collect();
    assert!(changed.is_empty(), "they render to something else: {changed:#?}");
}
