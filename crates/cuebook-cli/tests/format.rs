//! The format of `render --json`: every output follows the JSON Schema in the reference.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cuebook_lab::BookExt as _;
use serde_json::{Value as Json, json};
use support::Project;

const SCHEMA: &str = include_str!("../../../docs/src/reference/rendered.schema.json");

/// What is wrong with a value, by the keywords that the schema uses. An unknown keyword is an error too.
fn wrong(root: &Json, schema: &Json, value: &Json, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (keyword, wanted) in schema.as_object().unwrap() {
        let fits = match keyword.as_str() {
            "$schema" | "title" | "description" | "$defs" | "properties" | "examples" => true,
            "$ref" => {
                let target = root.pointer(wanted.as_str().unwrap().trim_start_matches('#')).unwrap();
                found.extend(wrong(root, target, value, at));
                true
            }
            "const" => value == wanted,
            "enum" => wanted.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|value| Some(value) >= wanted.as_f64()),
            "maximum" => value.as_f64().is_none_or(|value| Some(value) <= wanted.as_f64()),
            "pattern" => {
                let pattern = regex::Regex::new(wanted.as_str().unwrap()).unwrap();
                value.as_str().is_none_or(|text| pattern.is_match(text))
            }
            "anyOf" => wanted.as_array().unwrap().iter().any(|one| wrong(root, one, value, at).is_empty()),
            "additionalProperties" if wanted == true => true,
            "additionalProperties" if wanted.is_object() => {
                for (name, member) in value.as_object().into_iter().flatten() {
                    if schema["properties"].get(name).is_none() {
                        found.extend(wrong(root, wanted, member, &format!("{at}.{name}")));
                    }
                }
                true
            }
            "type" => {
                let names = wanted.as_array().cloned().unwrap_or_else(|| vec![wanted.clone()]);
                names.iter().any(|name| is_of(value, name.as_str().unwrap()))
            }
            "required" => {
                let names = wanted.as_array().unwrap();
                names.iter().all(|name| value.get(name.as_str().unwrap()).is_some())
            }
            "additionalProperties" => {
                let known = schema["properties"].as_object().unwrap();
                value.as_object().is_none_or(|members| members.keys().all(|name| known.contains_key(name)))
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    found.extend(wrong(root, wanted, item, &format!("{at}[{index}]")));
                }
                true
            }
            "oneOf" => {
                let fits = |one: &&Json| wrong(root, one, value, at).is_empty();
                wanted.as_array().unwrap().iter().filter(fits).count() == 1
            }
            other => panic!("the test does not know the keyword {other}"),
        };
        if !fits {
            found.push(format!("{at}: {keyword} {wanted}: {value}"));
        }
    }
    for (name, schema) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
        if let Some(member) = value.get(name) {
            found.extend(wrong(root, schema, member, &format!("{at}.{name}")));
        }
    }
    found
}

fn is_of(value: &Json, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("the test does not know the type {other}"),
    }
}

fn check(name: &str, output: &Json) {
    let schema: Json = serde_json::from_str(SCHEMA).unwrap();
    let found = wrong(&schema, &schema, output, "$");
    assert!(found.is_empty(), "{name}: {found:#?}");
    let (text, mut end) = (output["text"].as_str().unwrap(), 0);
    for span in output["spans"].as_array().unwrap() {
        assert_eq!(span["start"], end, "{name}: spans have no gaps");
        end = span["end"].as_u64().unwrap();
    }
    assert_eq!(end, text.len() as u64, "{name}: spans cover the text");
}

const DIRECTIVE: &str = "# Weigh\n\n```xml\n<directive name=\"weigh\" version=\"1.0.0\">\n  <metadata>\n    <description>Weighs.</description>\n    <category>demo</category>\n    <author>tests</author>\n  </metadata>\n  <inputs><input name=\"word\" type=\"string\" required=\"true\">What</input></inputs>\n</directive>\n```\n\nWeigh {input:word}.\n";

fn project() -> Project {
    let project = Project::new();
    for (path, text) in [
        (
            "prompts/plain/template.md",
            "Weigh {{ word }}.\n{% if word %}Twice.{% endif %}\n{% include \"part.md\" %}\n",
        ),
        ("prompts/part.md", "A part with {{ word|upper }}.\n"),
        (
            "prompts/chat.prompty",
            "---\nname: chat\ninputs:\n  word: {kind: string}\n  talk: {kind: thread}\n---\nsystem:\nBe exact.\n{{talk}}\nuser:\nWeigh {{word}}.\n",
        ),
        (
            "prompts/tree.sections.md",
            "---\ninputs:\n  word: {kind: string, required: true}\n---\n# Task\nWeigh $word.\n\n# More\n```yaml section\nsummary: Some rules.\nvisibility: summary\ntools:\n  - name: find\n    description: Finds.\n    parameters:\n      what: {kind: string, required: true, description: What.}\n```\nRules.\n",
        ),
        (
            "prompts/mustache.prompty",
            "---\nname: mustache\ntemplate: {format: mustache, parser: prompty}\ninputs:\n  word: {kind: string}\n---\nuser:\nWeigh {{word}}{{#word}}!{{/word}}\n",
        ),
        (".ai/directives/demo/weigh.md", DIRECTIVE),
    ] {
        project.write(path, text);
    }
    project
}

fn render(project: &Project, prompt: &str, word: &str) -> Json {
    let run = project
        .command(env!("CARGO_BIN_EXE_cuebook"), project.path())
        .args(["render", prompt, "--json", "--var", word])
        .output()
        .unwrap();
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success(), "{prompt}: {text}{}", String::from_utf8_lossy(&run.stderr));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn render_json_follows_its_schema() {
    let project = project();
    for args in [&["keys", "generate"][..], &["sign", "directive", "demo/*"]] {
        let run = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path()).args(args).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    }
    for prompt in ["plain", "chat", "tree", "mustache", "demo/weigh"] {
        for word in ["word=iron", "word=naïve 羽\nsystem:\n{{ x }}", "word="] {
            let output = render(&project, prompt, word);
            assert_eq!(output["version"], 1);
            check(prompt, &output);
        }
    }
}

#[test]
fn the_check_of_the_schema_finds_mistakes() {
    let schema: Json = serde_json::from_str(SCHEMA).unwrap();
    let good = json!({
        "version": 1, "text": "ab", "tools": [],
        "spans": [{"start": 0, "end": 2, "origin": {"kind": "frame", "name": "heading"}}],
    });
    assert!(wrong(&schema, &schema, &good, "$").is_empty());
    for (pointer, bad) in [
        ("/version", json!(2)),
        ("/text", json!(1)),
        ("/spans/0/start", json!(-1)),
        ("/spans/0/origin/kind", json!("literal")),
        ("/spans/0/origin", json!({"kind": "frame", "name": "x", "more": 1})),
    ] {
        let mut changed = good.clone();
        *changed.pointer_mut(pointer).unwrap() = bad;
        assert!(!wrong(&schema, &schema, &changed, "$").is_empty(), "{pointer}");
    }
}

/// What a command prints.
fn stdout(project: &Project, args: &[&str]) -> String {
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    String::from_utf8(command.args(args).output().unwrap().stdout).unwrap()
}

/// A schema as the program prints it.
fn printed(name: &str) -> Json {
    serde_json::from_str(&stdout(&Project::new(), &["schema", name])).unwrap()
}

fn yaml(text: &str) -> Json {
    use cuebook::settings::Setting;
    let source = cuebook::source::Source::new("a.yaml", text);
    Setting::parse(&source, cuebook::Code::BadProviderFile, cuebook::ErrorKind::Config).unwrap().json()
}

/// Every block of a language in the pages of the book, with its page.
fn blocks(language: &str) -> Vec<(String, String)> {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src");
    let topics = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("topics");
    let mut found = Vec::new();
    for folder in [docs.join("guide"), docs.join("reference"), topics] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let mut rest = text.as_str();
            while let Some(at) = rest.find(&format!("\n```{language}\n")) {
                rest = &rest[at + language.len() + 5..];
                let end = rest.find("\n```").unwrap_or(rest.len());
                found.push((path.display().to_string(), rest[..end].to_owned()));
            }
        }
    }
    found
}

#[test]
fn the_schemas_accept_every_example() {
    let accepts = |name: &str, value: &Json, whose: &str| {
        let schema = printed(name);
        let found = wrong(&schema, &schema, value, "$");
        assert!(found.is_empty(), "{name}, {whose}: {found:#?}");
    };
    let providers = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../cuebook-run/providers");
    let mut count = 0;
    for entry in std::fs::read_dir(providers).unwrap() {
        let path = entry.unwrap().path();
        accepts("provider", &yaml(&std::fs::read_to_string(&path).unwrap()), &path.display().to_string());
        count += 1;
    }
    for (page, block) in blocks("toml") {
        // Some pages show a part of a file.
        let Ok(value) = toml::from_str::<toml::Table>(&block) else { continue };
        let own = ["library", "limits", "template", "hooks", "directives"];
        if value.keys().all(|key| own.contains(&key.as_str())) {
            accepts("cuebook", &serde_json::to_value(&value).unwrap(), &page);
            count += 1;
        }
    }
    for (page, block) in blocks("json") {
        let value: Json = serde_json::from_str(&block).unwrap_or_default();
        if value.get("pack_id").is_some_and(Json::is_string)
            && value.get("status").is_none()
            && value.get("source").is_none()
        {
            accepts("pack", &value, &page);
            count += 1;
        }
    }
    for (page, block) in ["markdown", "prompty", "text", "yaml"].iter().flat_map(|language| blocks(language))
    {
        let Some(front) = block.strip_prefix("---\n").and_then(|rest| rest.split("\n---").next()) else {
            continue;
        };
        // The front matter of a tree of sections has further keys, and older files have others.
        if front.contains("inputs:")
            && front.contains("name:")
            && !block.contains("\n# ")
            && !front.contains("sample:")
        {
            accepts("prompty", &yaml(front), &page);
            count += 1;
        }
    }
    assert!(count >= 5, "only {count} examples were read");
}

#[test]
fn schemas_refuse_unknown_keys_and_list_only_keys_in_use() {
    for name in ["prompty", "pack", "provider", "cuebook", "cases"] {
        let schema = printed(name);
        let keys: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        for key in keys {
            let wrong_key = format!("{key}x");
            let found = wrong(&schema, &schema, &json!({wrong_key: {}}), "$");
            assert!(!found.is_empty(), "{name} accepts {key}x");
        }
    }
    let schema = printed("cuebook");
    for (table, about) in schema["properties"].as_object().unwrap() {
        for (key, about) in about["properties"].as_object().unwrap() {
            let value = match (about["type"].as_str(), &about["enum"][0]) {
                (Some("string"), _) => "\"a\"".to_owned(),
                (Some("boolean"), _) => "true".to_owned(),
                (Some("array"), _) => "[]".to_owned(),
                (Some("integer"), _) => "100000000".to_owned(),
                (_, first) => first.to_string(),
            };
            let value = if key == "recursion" { "100".to_owned() } else { value };
            let source =
                cuebook::source::Source::new("cuebook.toml", format!("[{table}]\n{key} = {value}\n"));
            let read = cuebook::library::Config::read(&source);
            assert!(read.is_ok(), "{table}.{key}: {read:?}");
        }
    }
    let schema = printed("prompty");
    let named =
        |level: &Json| -> Vec<String> { level["properties"].as_object().unwrap().keys().cloned().collect() };
    let unknown = |front: String| {
        let project = Project::new();
        project.write("prompts/p.prompty", format!("---\n{front}\n---\nsystem:\nHi\n"));
        stdout(&project, &["check", "--json"]).contains("unknown key")
    };
    for key in named(&schema) {
        assert!(!unknown(format!("{key}: null")), "{key}");
    }
    let model = &schema["properties"]["model"]["anyOf"][1];
    for key in named(model) {
        assert!(!unknown(format!("model:\n  {key}: null")), "model.{key}");
    }
    for key in named(&model["properties"]["options"]) {
        assert!(!unknown(format!("model:\n  id: a\n  options:\n    {key}: null")), "model.options.{key}");
    }
    assert!(unknown("nam: a".to_owned()), "the check finds unknown keys");
}

/// Every word in the sources of a reader that can be a key.
fn words_of(sources: &[&str]) -> BTreeSet<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut open: Vec<PathBuf> = sources.iter().map(|source| crates.join(source)).collect();
    let is_key = |word: &&str| {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '$');
        (2..=30).contains(&word.len())
            && word.chars().all(fits)
            && !word.starts_with(|letter: char| letter.is_ascii_digit())
    };
    let mut words = BTreeSet::from(["noSuchKey".to_owned()]);
    while let Some(path) = open.pop() {
        match std::fs::read_dir(&path) {
            Ok(entries) => open.extend(entries.map(|entry| entry.unwrap().path())),
            Err(_) => {
                let text = std::fs::read_to_string(&path).unwrap();
                words.extend(text.split('"').filter(is_key).map(str::to_owned));
            }
        }
    }
    words
}

/// The keys that a schema has at a place.
fn keys_at(schema: &Json, pointer: &str) -> BTreeSet<String> {
    schema
        .pointer(pointer)
        .and_then(Json::as_object)
        .unwrap_or_else(|| panic!("{pointer}"))
        .keys()
        .cloned()
        .collect()
}

/// The keys of Prompty 1, by places of the schema.
const OLD: [(&str, &[&str]); 3] = [
    ("/properties", &["authors", "base", "id", "sample", "tags", "version"]),
    ("/properties/model/anyOf/1/properties", &["api", "configuration", "parameters"]),
    (
        "/properties/model/anyOf/1/properties/options/properties",
        &["frequency_penalty", "max_completion_tokens", "max_tokens", "presence_penalty", "stop", "top_p"],
    ),
];

/// Holds a schema against the reader of its files. At each place, given by a pointer into the schema and by texts with `KEY` in them,
/// every word of the reader's sources and of the schema is tried. `read` gives what the reader says of each text.
fn same_keys(
    name: &str,
    sources: &[&str],
    places: &[(&str, &[&str])],
    read: impl Fn(&[String]) -> Vec<String>,
) {
    let schema = printed(name);
    let mut words = words_of(sources);
    places.iter().for_each(|(pointer, _)| words.extend(keys_at(&schema, pointer)));
    let mut wrong = Vec::new();
    for (pointer, texts) in places {
        let tried: Vec<(&String, String)> = words
            .iter()
            .flat_map(|word| texts.iter().map(move |text| (word, text.replace("KEY", word))))
            .collect();
        let said = read(&tried.iter().map(|(_, text)| text.clone()).collect::<Vec<_>>());
        let is_known = |said: &str, word: &str| {
            !["key", "setting"].iter().any(|what| said.contains(&format!("unknown {what} `{word}`")))
        };
        let taken = tried.iter().zip(&said).filter(|((word, _), said)| is_known(said, word));
        let mut taken: BTreeSet<String> = taken.map(|((word, _), _)| (*word).clone()).collect();
        // Files of Prompty 1 have these keys, which are read and not offered.
        for old in OLD.iter().filter(|(at, _)| name == "prompty" && at == pointer).flat_map(|(_, keys)| *keys)
        {
            assert!(taken.remove(*old), "{old} is not read any more");
        }
        let listed = keys_at(&schema, pointer);
        if taken != listed {
            let (more, fewer): (Vec<_>, Vec<_>) =
                (taken.difference(&listed).collect(), listed.difference(&taken).collect());
            wrong.push(format!(
                "{name}{pointer}: only the reader has {more:?}, only the schema has {fewer:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What `check` says of files, for each of them.
fn checked(files: &[(String, String)]) -> Vec<String> {
    let (project, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (file, text) in files {
        let path = project.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let spaces = cuebook::items::Spaces::new(project.path(), Some(home.path()));
    let report = cuebook::Book::open(project.path()).with_spaces(spaces).check(&[], |_| {}).unwrap();
    let mut said: BTreeMap<&str, String> = BTreeMap::new();
    for finding in &report.findings {
        let text = said.entry(finding.file_name().unwrap_or_default()).or_default();
        *text += &format!("{}\n", finding.message);
    }
    files.iter().map(|(file, _)| said.get(file.as_str()).cloned().unwrap_or_default()).collect()
}

#[test]
fn the_schema_of_prompty_has_the_keys_of_its_reader() {
    let kinds = ["string", "array", "object", "union", "thread"]
        .map(|kind| format!("inputs:\n  - name: x\n    kind: {kind}\n    KEY: 1\n"));
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let template = "/properties/template/anyOf/1/properties";
    let (format, parser) =
        (format!("{template}/format/anyOf/1/properties"), format!("{template}/parser/anyOf/1/properties"));
    let places: [(&str, &[&str]); 7] = [
        ("/properties", &["KEY: 1\n"]),
        ("/properties/model/anyOf/1/properties", &["model:\n  KEY: 1\n"]),
        ("/properties/model/anyOf/1/properties/options/properties", &["model:\n  options:\n    KEY: 1\n"]),
        (template, &["template:\n  KEY: 1\n"]),
        (&format, &["template:\n  format:\n    KEY: 1\n"]),
        (&parser, &["template:\n  parser:\n    KEY: 1\n"]),
        ("/$defs/property/properties", &kinds),
    ];
    same_keys("prompty", &["cuebook-library/src/notation/prompty"], &places, |texts| {
        let file = |(number, text): (usize, &String)| {
            (format!("prompts/p{number}.prompty"), format!("---\n{text}---\nsystem:\nHi\n"))
        };
        checked(&texts.iter().enumerate().map(file).collect::<Vec<_>>())
    });
}

#[test]
fn the_schema_of_packs_has_the_keys_of_its_reader() {
    let provider = "/properties/variable_providers/items/properties";
    let (permissions, limits) =
        (format!("{provider}/permissions/properties"), format!("{provider}/limits/properties"));
    let places: [(&str, &[&str]); 5] = [
        ("/properties", &["{\"KEY\": 1}"]),
        ("/properties/replaces/properties", &["{\"replaces\": {\"KEY\": []}}"]),
        (provider, &["{\"variable_providers\": [{\"KEY\": 1}]}"]),
        (&permissions, &["{\"variable_providers\": [{\"permissions\": {\"KEY\": true}}]}"]),
        (&limits, &["{\"variable_providers\": [{\"limits\": {\"KEY\": 1}}]}"]),
    ];
    same_keys(
        "pack",
        &["cuebook-library/src/library/manifest.rs", "cuebook-library/src/library/manifest"],
        &places,
        |texts| {
            let file = |(number, text): (usize, &String)| {
                // The first key of a manifest that has none is its id.
                let text = text.replacen('{', &format!("{{\"pack_id\": \"p{number}\", "), 1);
                (format!("user_data/packs/p{number}/pack.json"), text)
            };
            checked(&texts.iter().enumerate().map(file).collect::<Vec<_>>())
        },
    );
}

#[test]
fn the_schema_of_providers_has_the_keys_of_its_reader() {
    let models = "/properties/models/additionalProperties/properties";
    let price = format!("{models}/price/properties");
    let places: [(&str, &[&str]); 6] = [
        ("/properties", &["KEY: 1\n"]),
        ("/properties/timeouts/properties", &["timeouts: {KEY: 1}\n"]),
        ("/properties/retry/properties", &["retry: {KEY: 1}\n"]),
        ("/properties/rate/properties", &["rate: {KEY: 1}\n"]),
        (models, &["models: {m: {KEY: 1}}\n"]),
        (&price, &["models: {m: {price: {KEY: 1}}}\n"]),
    ];
    same_keys("provider", &["cuebook-run/src/provider/file.rs"], &places, |texts| {
        let (project, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folder = home.path().join(".ai/config/providers");
        std::fs::create_dir_all(&folder).unwrap();
        for (number, text) in texts.iter().enumerate() {
            let name = format!("name: p{number}");
            let needed = [&name, "api: openai-chat", "base_url: https://a.example"];
            let needed = needed.iter().filter(|line| !text.starts_with(line.split(' ').next().unwrap()));
            let needed: String = needed.map(|line| format!("{line}\n")).collect();
            std::fs::write(folder.join(format!("p{number}.yaml")), format!("{needed}{text}")).unwrap();
        }
        let spaces = cuebook::items::Spaces::new(project.path(), Some(home.path()));
        let book = cuebook::Book::open(project.path()).with_spaces(spaces.clone());
        let providers =
            cuebook_run::provider::Providers::with_environment(&spaces, book.library().trust(), |_| None)
                .unwrap();
        let said: BTreeMap<&str, String> =
            providers.broken().map(|(name, error)| (name, format!("{error}"))).collect();
        (0..texts.len())
            .map(|number| said.get(format!("p{number}").as_str()).cloned().unwrap_or_default())
            .collect()
    });
}

#[test]
fn the_schema_of_settings_has_the_keys_of_its_reader() {
    let schema = printed("cuebook");
    let tables: Vec<(String, String)> = keys_at(&schema, "/properties")
        .into_iter()
        .map(|table| (format!("/properties/{table}/properties"), format!("[{table}]\nKEY = 1\n")))
        .collect();
    let texts: Vec<[&str; 1]> = tables.iter().map(|(_, text)| [text.as_str()]).collect();
    let mut places: Vec<(&str, &[&str])> =
        tables.iter().zip(&texts).map(|((pointer, _), text)| (pointer.as_str(), &text[..])).collect();
    places.push(("/properties", &["[KEY]\n"]));
    // The fields of what serde reads are in no quotes: an error names them.
    let read = |texts: &[String]| -> Vec<String> {
        let said = |text: &String| {
            toml::from_str::<cuebook::library::Config>(text).err().map(|error| error.message().to_owned())
        };
        texts
            .iter()
            .map(|text| said(text).unwrap_or_default().replace("unknown field", "unknown key"))
            .collect()
    };
    for (pointer, texts) in &places {
        let said = read(&[texts[0].replace("KEY", "noSuchKey")]).remove(0);
        let (_, listed) = said.split_once("expected ").unwrap();
        let listed: BTreeSet<String> = listed.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        assert_eq!(
            listed,
            keys_at(&schema, pointer),
            "cuebook{pointer}: keys of the reader, and keys of the schema"
        );
    }
    same_keys("cuebook", &[], &places, read);
}
