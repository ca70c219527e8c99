//! The specification of dotprompt: files of YAML, each case as a real `.prompt` file in a library.

use std::path::{Path, PathBuf};

use cuebook::chat::{ANNOTATIONS, Message, Part, Role};
use cuebook::dialect::dotprompt::Front;
use cuebook::source::Source;
use cuebook::{Book, Context, UnknownVariables, Variables};
use serde_json::{Map, Value as Json, json};

use crate::board::{Board, only};
use crate::compare::equals;

/// Runs every case of every file below the folder, one table per file.
pub fn run(folder: &Path) -> Board {
    let mut board = Board::new("dotprompt", &[]);
    let mut files = Vec::new();
    find(folder, &mut files);
    files.sort();
    assert!(!files.is_empty(), "{} holds no cases", folder.display());
    for path in files {
        let table = path.strip_prefix(folder).unwrap().with_extension("");
        let table = table.to_str().unwrap().to_owned();
        for suite in read(&path).as_array().into_iter().flatten() {
            for test in suite["tests"].as_array().into_iter().flatten() {
                let name =
                    format!("{}: {}", suite["name"].as_str().unwrap(), test["desc"].as_str().unwrap_or(""));
                let outcome = std::panic::catch_unwind(|| check(suite, test));
                board.note(&table, &name, outcome.unwrap_or_else(|_| Err("the runner gave up on it".into())));
            }
        }
    }
    board
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.extension().and_then(|end| end.to_str()) {
            _ if path.is_dir() => find(&path, files),
            Some("yaml" | "yml") => files.push(path),
            _ => {}
        }
    }
}

/// A file of cases: a list, which stands below a key here, because values are read as names with values.
fn read(path: &Path) -> Json {
    let text = format!("cases:\n{}", std::fs::read_to_string(path).unwrap());
    let object = Variables::read_object(&Source::new("cases.yaml", text));
    object.unwrap_or_else(|error| panic!("{}: {error}", path.display()))["cases"].clone()
}

fn check(suite: &Json, test: &Json) -> Result<(), String> {
    only(suite, &["name", "template", "partials", "resolverPartials", "schemas", "data", "tests"])?;
    only(test, &["desc", "data", "options", "expect"])?;
    let folder = tempfile::tempdir().unwrap();
    let write = |path: String, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let template = suite["template"].as_str().unwrap();
    write("prompts/case.prompt".into(), template);
    for partials in ["partials", "resolverPartials"] {
        for (name, text) in suite[partials].as_object().into_iter().flatten() {
            write(format!("prompts/_{name}.prompt"), text.as_str().unwrap());
        }
    }
    for (name, schema) in suite["schemas"].as_object().into_iter().flatten() {
        write(format!("prompts/schemas/{name}.json"), &schema.to_string());
    }
    let mut values = Map::new();
    values.extend(object(&test["options"]["input"]["default"]));
    for data in [&suite["data"], &test["data"]] {
        only(data, &["input", "context", "messages"])?;
        values.extend(object(&data["input"]));
        values.extend(object(&data["context"]).into_iter().map(|(name, value)| (format!("@{name}"), value)));
        if !data["messages"].is_null() {
            values.insert("@history".into(), data["messages"].clone());
        }
    }
    let context = Context { unknown: UnknownVariables::Ignore, ..Context::default() };
    let book = Book::open(folder.path());
    let rendered =
        book.render("case", &Variables::from_json(&values), &context).map_err(|e| e.to_string())?;
    let messages: Json =
        rendered.messages().map_err(|error| error.to_string())?.iter().map(message).collect();
    let expected = &test["expect"];
    equals(&expected["messages"], &messages).map_err(|why| format!("messages: {why}"))?;
    metadata(template, suite, test)
}

fn object(value: &Json) -> Map<String, Json> {
    value.as_object().cloned().unwrap_or_default()
}

/// A message in the words of dotprompt.
fn message(message: &Message) -> Json {
    let role = match &message.role {
        Role::Assistant => "model",
        role => role.as_str(),
    };
    let mut annotations = object(message.metadata.get(ANNOTATIONS).unwrap_or(&Json::Null));
    let sections = annotations.shift_remove("sections").unwrap_or_default();
    let sections = sections.as_array().cloned().unwrap_or_default();
    let mut content = Vec::new();
    for index in 0..=message.parts.len() {
        let here = sections.iter().filter(|section| section["part"] == index);
        content.extend(
            here.map(|section| json!({"metadata": {"pending": true, "purpose": section["purpose"]}})),
        );
        content.extend(message.parts.get(index).map(part));
    }
    let mut object = json!({"role": role, "content": content});
    if !annotations.is_empty() {
        object["metadata"] = Json::Object(annotations);
    }
    object
}

fn part(part: &Part) -> Json {
    match part {
        Part::Text { value, .. } => json!({"text": value}),
        Part::Image(media) | Part::Audio(media) | Part::File(media) => {
            let mut object = json!({"url": media.source});
            if let Some(kind) = &media.media_type {
                object["contentType"] = json!(kind);
            }
            json!({"media": object})
        }
    }
}

/// The front matter against what is expected of it, with the options of the caller before it.
fn metadata(template: &str, suite: &Json, test: &Json) -> Result<(), String> {
    let front = Front::read(&Source::new("case.prompt", template)).map_err(|error| error.to_string())?;
    let names = |name: &str| Ok(suite["schemas"].get(name).cloned());
    let Json::Object(mut found) = front.to_json(&names).map_err(|error| error.to_string())? else {
        return Err("the front matter is no object".into());
    };
    found.extend(object(&test["options"]));
    let raw = found.shift_remove("raw").unwrap_or_default();
    let mut expected = object(&test["expect"]);
    expected.shift_remove("messages");
    if let Some(wanted) = expected.shift_remove("raw") {
        equals(&wanted, &raw).map_err(|why| format!("raw: {why}"))?;
    }
    for key in ["ext", "config"] {
        expected.entry(key).or_insert_with(|| json!({}));
    }
    equals(&Json::Object(expected), &Json::Object(found)).map_err(|why| format!("metadata: {why}"))
}
