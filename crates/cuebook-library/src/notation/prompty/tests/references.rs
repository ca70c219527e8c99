//! `${env:…}` and `${file:…}`, and the addresses that a file chooses.

use std::path::Path;

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use super::super::reference::{MAX_FILES_DEEP, Reference};
use super::{LoadOptions, front, options};
use crate::error::{Code, Diagnostic, Error, Severity};
use crate::notation::prompty::{Definition, load_str};
use crate::source::Source;

/// A folder with a prompt's folder `app` in it, and files with paths relative to that.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("app");
    std::fs::create_dir(&home).unwrap();
    for (name, text) in files {
        let path = home.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn loaded(home: &Path, yaml: &str, options: &LoadOptions) -> Result<Json, Error> {
    load_str("app/p.prompty", &format!("---\n{yaml}\n---\n"), Some(home), options).map(|d| d.to_json())
}

fn metadata(home: &Path, yaml: &str) -> Json {
    loaded(home, &format!("metadata:\n  {yaml}"), &options(&[("V", "value"), ("N", "5")])).unwrap()["metadata"].clone()
}

/// What is wrong, with its kind.
fn refused(home: &Path, yaml: &str) -> (Vec<String>, String) {
    let error = loaded(home, yaml, &options(&[])).unwrap_err();
    let found = error.diagnostics().iter().map(ToString::to_string).collect();
    (found, error.field("kind").and_then(Json::as_str).unwrap().to_owned())
}

#[test]
fn a_reference_is_a_whole_value_with_a_known_protocol() {
    let env = |name, default| Some(Reference::Env { name, default });
    for (text, wanted) in [
        ("${env:A}", env("A", None)),
        ("${ENV:A}", env("A", None)),
        ("${env:A:}", env("A", Some(""))),
        ("${env:A:https://x:1/}", env("A", Some("https://x:1/"))),
        ("${env:A:${x}}", env("A", Some("${x}"))),
        ("${file:a/b.json}", Some(Reference::File("a/b.json"))),
        ("${File:c:\\x}", Some(Reference::File("c:\\x"))),
        ("${vault:x}", None),
        ("${env}", None),
        ("x ${env:A}", None),
        ("${env:A} y", None),
        ("${}", None),
        ("$", None),
        ("", None),
    ] {
        assert_eq!(Reference::of(text), wanted, "{text}");
    }
}

#[test]
fn variables_are_resolved_everywhere_and_only_once() {
    let home = folder(&[]);
    assert_eq!(
        metadata(
            home.path(),
            "a: ${env:V}\n  b: [x, '${env:V}', {c: '${env:V}'}]\n  d: ${env:NO:a:b}\n  e: '${env:NO:}'\n  f: x ${env:V} y\n  g: ${vault:x}"
        ),
        json!({"a": "value", "b": ["x", "value", {"c": "value"}], "d": "a:b", "e": "", "f": "x ${env:V} y", "g": "${vault:x}"})
    );
    let set = options(&[("X", "${file:secret.txt}"), ("T", "0.25"), ("B", "true")]);
    let home = folder(&[("secret.txt", "secret")]);
    let home = home.path().join("app");
    assert_eq!(
        loaded(&home, "name: ${env:X}", &set).unwrap()["name"],
        json!("${file:secret.txt}"),
        "what the environment says is never followed"
    );
    let typed = loaded(
        &home,
        "model: {id: m, options: {temperature: '${env:T}', allowMultipleToolCalls: '${env:B}'}}",
        &set,
    );
    assert_eq!(
        typed.unwrap()["model"]["options"],
        json!({"temperature": 0.25, "allowMultipleToolCalls": true})
    );
    let wrong = loaded(&home, "model: {id: m, options: {temperature: '${env:B}'}}", &set).unwrap_err();
    assert_eq!(
        wrong.diagnostic().to_string(),
        "app/p.prompty:2:39: `model.options.temperature` must be a number [CB319]"
    );
}

#[test]
fn every_unset_variable_is_reported_with_its_place() {
    let home = folder(&[]);
    let (found, kind) = refused(
        home.path(),
        "name: ${env:A}\ninputs:\n  - {name: x, kind: '${env:B}', default: '${env:C}'}\n  - 5\nmetadata: [1]",
    );
    assert_eq!(
        found,
        [
            "app/p.prompty:2:7: Environment variable 'A' not set [CB418]",
            "app/p.prompty:4:21: Environment variable 'B' not set [CB418]",
            "app/p.prompty:4:42: Environment variable 'C' not set [CB418]",
            "app/p.prompty:5:5: `inputs[1]` must be a map with a `name` [CB319]",
            "app/p.prompty:6:11: `metadata` must be a map [CB319]",
        ]
    );
    assert_eq!(kind, "env_var_not_set");
    assert_eq!(
        refused(home.path(), "name: '${env:}'").0,
        ["app/p.prompty:2:7: Environment variable '' not set [CB418]"]
    );
}

const CONNECTIONS: &str = "model:\n  id: ${env:ID:m}\n  connection:\n    kind: key\n    endpoint: ${env:URL:https://api.openai.com}\n    apiKey: ${env:KEY}\ntools:\n  - name: t\n    kind: openapi\n    specification: ${env:SPEC:s}\n    connection: {kind: key, apiKey: '${env:KEY}', other: '${file:none.json}'}";

#[test]
fn reading_leaves_connections_alone_and_loading_resolves_them() {
    let home = folder(&[("none.json", "{}")]);
    let home = home.path().join("app");
    let source = Source::new("app/p.prompty", format!("---\n{CONNECTIONS}\n---\n"));
    let set = options(&[("KEY", "secret")]);
    let read = Definition::read(&source, Some(&home), &set).unwrap().to_json();
    assert_eq!(read["model"]["id"], json!("m"));
    assert_eq!(read["model"]["connection"]["apiKey"], json!("${env:KEY}"));
    assert_eq!(read["tools"][0]["connection"]["apiKey"], json!("${env:KEY}"));
    assert_eq!(read["tools"][0]["specification"], json!("s"));
    assert!(!read.to_string().contains("secret"));
    let loaded = loaded(&home, CONNECTIONS, &set).unwrap();
    assert_eq!(
        loaded["model"]["connection"],
        json!({"kind": "key", "endpoint": "https://api.openai.com", "apiKey": "secret"})
    );
    assert_eq!(loaded["tools"][0]["connection"], json!({"kind": "key", "apiKey": "secret", "other": {}}));
    // Through a file the connection is one as well.
    std::fs::write(home.join("model.json"), "{\"id\": \"m\", \"connection\": {\"apiKey\": \"${env:KEY}\"}}")
        .unwrap();
    let source = Source::new("app/p.prompty", "---\nmodel: ${file:model.json}\n---\n");
    let read = Definition::read(&source, Some(&home), &options(&[])).unwrap().to_json();
    assert_eq!(read["model"], json!({"id": "m", "connection": {"apiKey": "${env:KEY}"}}));
}

#[test]
fn unresolved_references_of_connections_are_notes() {
    let home = folder(&[]);
    let home = home.path().join("app");
    let source = Source::new("app/p.prompty", format!("---\n{CONNECTIONS}\n---\n"));
    let definition = Definition::read(&source, Some(&home), &options(&[])).unwrap();
    let found = definition.unresolved(Some(&home), &options(&[]));
    assert!(found.iter().all(|note| note.severity == Severity::Note));
    assert_eq!(
        found.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            "app/p.prompty:7:13: Environment variable 'KEY' not set [CB418]",
            "app/p.prompty:12:37: Environment variable 'KEY' not set [CB418]",
            "app/p.prompty:12:58: the file `none.json` does not exist [CB419]",
        ]
    );
    std::fs::write(home.join("none.json"), "1").unwrap();
    assert!(definition.unresolved(Some(&home), &options(&[("KEY", "x")])).is_empty());
}

#[test]
fn files_are_parsed_by_their_extension_and_resolved_too() {
    let home = folder(&[
        ("a.json", "{\"x\": [1, \"${env:V}\", \"${file:sub/b.yaml}\"]}"),
        ("sub/b.yaml", "k: ${env:V}\nt: ${file:sub/c.txt}\n"),
        ("sub/d.YML", "- 1\n"),
        ("sub/c.txt", "plain ${env:V}\n"),
        ("e.txt", "${env:V}"),
        ("s.json", "\"${env:V}\""),
    ]);
    let home = home.path().join("app");
    assert_eq!(
        metadata(
            &home,
            "a: ${file:a.json}\n  d: ${file:./sub/d.YML}\n  e: ${file:e.txt}\n  s: ${file:s.json}"
        ),
        json!({
            "a": {"x": [1, "value", {"k": "value", "t": "plain ${env:V}\n"}]},
            "d": [1], "e": "${env:V}", "s": "value",
        })
    );
    let absolute = home.join("sub/c.txt");
    assert_eq!(
        metadata(&home, &format!("a: '${{file:{}}}'", absolute.display()))["a"],
        json!("plain ${env:V}\n")
    );
}

#[test]
fn files_outside_are_refused_whatever_leads_there() {
    let outer = folder(&[("../secret.json", "{}"), ("../other/x.json", "{\"ok\": true}"), ("in/y.txt", "y")]);
    let home = outer.path().join("app");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(outer.path().join("secret.json"), home.join("link.json")).unwrap();
        std::os::unix::fs::symlink(home.join("in"), home.join("inside")).unwrap();
        assert_eq!(
            metadata(&home, "a: ${file:inside/y.txt}")["a"],
            json!("y"),
            "links that stay inside are fine"
        );
    }
    let secret = outer.path().join("secret.json").display().to_string();
    let mut paths =
        vec!["../secret.json", "in/../../secret.json", "../nothing.json", "/etc/hostname", &secret];
    if cfg!(unix) {
        paths.push("link.json");
    }
    for path in paths {
        let (found, kind) = refused(&home, &format!("name: '${{file:{path}}}'"));
        assert_eq!(found, [format!("app/p.prompty:2:7: the file `{path}` is outside allowed roots [CB419]")]);
        assert_eq!(kind, "file_reference");
    }
    let allowed = LoadOptions { allowed_roots: vec![outer.path().join("other")], ..options(&[]) };
    let read = loaded(&home, "metadata: ${file:../other/x.json}", &allowed).unwrap();
    assert_eq!(read["metadata"], json!({"ok": true}));
    assert!(loaded(&home, "metadata: ${file:../secret.json}", &allowed).is_err());
}

#[test]
fn unusable_files_are_reported_with_path_and_place() {
    let home = folder(&[
        ("bad.json", "{\n  \"a\": }"),
        ("bad.yaml", "a: [\n"),
        ("loop.json", "[\"${file:loop.json}\"]"),
        ("one.json", "[\"${file:two.yaml}\"]"),
        ("two.yaml", "- ${file:one.json}\n"),
        ("deep.json", "{\"a\": \"${env:NO}\"}"),
        ("large.txt", &"x".repeat(1 << 21)),
    ]);
    let home = home.path().join("app");
    std::fs::write(home.join("latin.txt"), [0xff, 0xfe, 0x00]).unwrap();
    for (path, wanted, kind) in [
        ("none/x.json", "app/p.prompty:2:11: the file `none/x.json` does not exist", "file_not_found"),
        ("", "app/p.prompty:2:11: the reference names no file", "file_reference"),
        (
            ".",
            "app/p.prompty:2:11: the file `.` cannot be read: expected a file, found a folder",
            "file_reference",
        ),
        ("bad.json", "app/bad.json:2:8: not valid JSON: expected value", "file_reference"),
        ("bad.yaml", "app/bad.yaml:1:4: invalid YAML: `[` is not closed", "file_reference"),
        (
            "loop.json",
            "app/loop.json:1:2: the file `loop.json` refers to itself, directly or through other files",
            "file_reference",
        ),
        (
            "one.json",
            "app/two.yaml:1:3: the file `one.json` refers to itself, directly or through other files",
            "file_reference",
        ),
        ("deep.json", "app/deep.json:1:7: Environment variable 'NO' not set", "env_var_not_set"),
        (
            "large.txt",
            "app/p.prompty:2:11: the file `large.txt` cannot be read: the file has 2097152 bytes, but the limit is 1048576",
            "file_reference",
        ),
        (
            "latin.txt",
            "app/p.prompty:2:11: the file `latin.txt` cannot be read: byte 0 (0xff) is not UTF-8",
            "file_reference",
        ),
    ] {
        let (found, found_kind) = refused(&home, &format!("metadata: '${{file:{path}}}'"));
        let code = if kind == "env_var_not_set" { "CB418" } else { "CB419" };
        assert_eq!(found[0], format!("{wanted} [{code}]"), "{path}");
        assert_eq!(found_kind, kind, "{path}");
    }
    let error = loaded(&home, "metadata: ${file:bad.json}", &options(&[])).unwrap_err();
    let related = &error.diagnostic().related[0];
    assert_eq!((related.0.to_string().as_str(), related.1.as_str()), ("app/p.prompty:2:11", "named here"));
    let error = load_str("p", "---\nname: ${file:x}\n---\n", None, &options(&[])).unwrap_err();
    assert_eq!(error.code(), Code::FileReference);
    assert!(error.diagnostic().message.contains("this prompt has no folder"));
}

#[test]
fn files_cannot_multiply_each_other() {
    let mut files = Vec::new();
    for level in 0..12 {
        let next = format!("\"${{file:f{}.json}}\"", level + 1);
        files.push((format!("f{level}.json"), format!("[{next}, {next}, {next}]")));
    }
    files.push(("f12.json".to_owned(), "[1]".to_owned()));
    let borrowed: Vec<(&str, &str)> =
        files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let home = folder(&borrowed);
    let home = home.path().join("app");
    let (found, _) = refused(&home, "metadata: {a: '${file:f0.json}'}");
    assert!(found.iter().any(|text| text.contains(&format!("the limit is {MAX_FILES_DEEP}"))), "{found:?}");
    assert!(found.iter().any(|text| text.contains("too many files")), "{found:?}");
    assert!(found.len() < 20, "the same is told once: {found:?}");
    let deep = format!("{}\"${{file:g.json}}\"{}", "[".repeat(60), "]".repeat(60));
    let home = folder(&[("d.json", &deep), ("g.json", "[[[[[[[1]]]]]]]")]);
    let (found, _) = refused(&home.path().join("app"), "metadata: {a: '${file:d.json}'}");
    assert!(found[0].contains("nested too deeply: the limit is 64 levels, including files"), "{found:?}");
}

fn untrusted(yaml: &str, options: &LoadOptions) -> Vec<String> {
    let source = Source::new("p.prompty", format!("---\n{yaml}\n---\n"));
    let definition = Definition::read(&source, None, options).unwrap();
    let is_about_trust = |note: &&Diagnostic| note.code == Code::UntrustedEndpoint;
    definition.notes.iter().filter(is_about_trust).map(ToString::to_string).collect()
}

#[test]
fn an_unapproved_address_of_a_file_is_noted() {
    let connection = |fields: &str| format!("model: {{id: m, connection: {{{fields}}}}}");
    let evil = "https://evil.example";
    for fields in [
        "kind: key, endpoint: 'https://evil.example'",
        "kind: key, apiKey: '${env:KEY}', endpoint: 'https://evil.example'",
        "kind: key, apiKey: ' ', endpoint: 'https://evil.example'",
        "kind: foundry, apiKey: mine, endpoint: 'https://evil.example'",
        "kind: key, endpoint: '${env:NO:https://evil.example}'",
        "kind: oauth, tokenUrl: 'https://evil.example'",
    ] {
        let found = untrusted(&connection(fields), &options(&[]));
        assert_eq!(found.len(), 1, "{fields}");
        assert!(found[0].contains(&format!("the file chooses the address `{evil}`")), "{found:?}");
    }
    for fields in [
        "kind: reference, name: x, endpoint: 'https://evil.example'",
        "kind: key, apiKey: mine, endpoint: 'https://evil.example'",
        "kind: key, endpoint: '${env:YES:https://evil.example}'",
        "kind: key, endpoint: 'https://api.openai.com/v1'",
        "kind: key, endpoint: '${env:NO:https://mine.openai.azure.com}'",
        "kind: key, endpoint: ''",
        "kind: key",
    ] {
        assert_eq!(untrusted(&connection(fields), &options(&[("YES", "https://x")])), [""; 0], "{fields}");
    }
    let home = folder(&[
        ("model.json", "{\"connection\": \"${file:c.yaml}\"}"),
        ("c.yaml", "kind: key\nendpoint: https://evil.example\n"),
    ]);
    let home = home.path().join("app");
    let found =
        load_str("app/p.prompty", "---\nmodel: ${file:model.json}\n---\n", Some(&home), &options(&[]))
            .unwrap();
    let found = found.notes[0].place.as_ref().unwrap().to_string();
    assert_eq!(found, "app/c.yaml:2:11", "files beside the prompt are as much its author's");
    let host = LoadOptions { trusted_endpoints: vec![evil.to_owned()], ..options(&[]) };
    let fields = connection("kind: key, endpoint: 'https://evil.example/v1'");
    assert_eq!(untrusted(&fields, &host), [""; 0]);
    let variable = options(&[("PROMPTY_TRUSTED_ENDPOINTS", "https://a.example, https://evil.example")]);
    assert_eq!(untrusted(&fields, &variable), [""; 0]);
    assert_eq!(
        front(&fields).notes[0].place.as_ref().unwrap().to_string(),
        "p.prompty:2:50",
        "the note stands at the address"
    );
}
