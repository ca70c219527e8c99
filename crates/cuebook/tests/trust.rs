//! Signatures, held against another implementation of Ed25519 and against files that others have signed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "support/python.rs"]
mod python;

use python::skip;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use cuebook::Code;
use cuebook::items::{ItemId, ItemType, SpaceKind, Spaces};
use cuebook::trust::{PublicKey, Purpose, SigningKey, Trust, sign_as_rye, sign_for};
use jiff::Timestamp;
use serde_json::{Value as Json, json};

static PYTHON: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
    let requirements = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trust/requirements.txt");
    python::environment("trust-python", &requirements)
});

/// An item of each way to write a comment: its type, its name, its extension and its text.
const ITEMS: [(ItemType, &str, &str, &str); 7] = [
    (
        ItemType::Directive,
        "d",
        "md",
        "# T\n\n```xml\n<directive name=\"d\"><metadata><category/></metadata></directive>\n```\n\nbödy\n",
    ),
    (ItemType::Knowledge, "k", "md", "```yaml\nid: k\n```\ntext without an end"),
    (ItemType::Knowledge, "y", "yaml", "id: y\n"),
    (ItemType::Tool, "p", "py", "#!/usr/bin/env python3\n__tool_id__ = 'p'\nprint('é')\n"),
    (ItemType::Tool, "t", "ts", "export const __tool_id__ = 't';\n"),
    (ItemType::Tool, "s", "sh", "#!/bin/sh\n# __tool_id__ = \"s\"\necho\n"),
    (ItemType::Tool, "e", "toml", "tool_id = 'e'"),
];

struct Fixture {
    project: tempfile::TempDir,
    user: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Fixture {
        Fixture { project: tempfile::tempdir().unwrap(), user: tempfile::tempdir().unwrap() }
    }

    fn spaces(&self) -> Spaces {
        Spaces::new(self.project.path(), Some(self.user.path()))
    }

    fn verify(&self, kind: ItemType, name: &str, extension: &str, text: &str) -> cuebook::Result<String> {
        let folder = self.project.path().join(".ai").join(kind.folder());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{name}.{extension}")), text).unwrap();
        let located = self.spaces().find(kind, &ItemId::new(name).unwrap()).unwrap().unwrap();
        Trust::new(&self.spaces())
            .verify(&located.read(1 << 20).unwrap())
            .map(|verified| verified.fingerprint)
    }
}

#[test]
fn signatures_agree_with_another_implementation() {
    let Some(python) = python::or_skip(&PYTHON, "the package `cryptography`") else { return };
    let world = Fixture::new();
    let key = SigningKey::generate().unwrap();
    key.save(&world.spaces(), false).unwrap();
    let saved = world.user.path().join(".ai/config/keys/signing/private_key.pem");
    let mut check = Vec::new();
    for (kind, name, extension, text) in ITEMS {
        let now = Timestamp::now();
        let signed = String::from_utf8(sign_as_rye(extension, text.as_bytes(), &key, now).unwrap()).unwrap();
        let purpose = Purpose::item(kind, &ItemId::new(name).unwrap(), extension);
        let bound = sign_for(&purpose, extension, text.as_bytes(), &key, now).unwrap();
        let bound = String::from_utf8(bound).unwrap();
        let later = bound.replace("rye:signed:2", "rye:signed:3");
        let changed = signed.replace("rye:signed:2", "rye:signed:1").replacen('e', "a", 40);
        for (name, text) in [
            (name.to_owned(), signed),
            (format!("bound {name}"), bound),
            (format!("later {name}"), later),
            (format!("changed {name}"), changed),
        ] {
            let pem = key.public().pem();
            check.push(json!({"name": name, "extension": extension, "text": text, "public_pem": pem}));
        }
    }
    let sign: Vec<Json> = ITEMS
        .iter()
        .map(|(_, name, extension, text)| json!({"name": name, "extension": extension, "text": text}))
        .collect();
    let question = json!({"check": check, "sign": sign, "private_pem": fs::read_to_string(saved).unwrap()});
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trust/peer.py");
    let answer: Json =
        serde_json::from_str(&python::ask(Command::new(python).arg(script), &question.to_string())).unwrap();
    assert_eq!(answer["loaded"], key.fingerprint(), "it reads our private key");
    for (_, name, ..) in ITEMS {
        assert_eq!(answer["checked"][name], key.fingerprint(), "{name}");
        assert_eq!(answer["checked"][format!("bound {name}")], key.fingerprint(), "{name}");
        assert_eq!(answer["checked"][format!("later {name}")], Json::Null, "{name}");
        assert_eq!(answer["checked"][format!("changed {name}")], Json::Null, "{name}");
    }
    // And the reverse.
    let theirs = PublicKey::from_pem(answer["public_pem"].as_str().unwrap()).unwrap();
    assert_eq!(theirs.pem(), answer["public_pem"]);
    let private = SigningKey::from_pem(answer["private_pem"].as_str().unwrap()).unwrap();
    assert_eq!(private.public(), &theirs);
    let trust = Trust::new(&world.spaces());
    for (kind, name, extension, _) in ITEMS {
        let text = answer["signed"][name].as_str().unwrap();
        let error = world.verify(kind, name, extension, text).unwrap_err();
        assert_eq!(error.code(), Code::UntrustedKey, "{error}");
    }
    trust.add(SpaceKind::User, &theirs, "them", None, Timestamp::now()).unwrap();
    for (kind, name, extension, _) in ITEMS {
        let text = answer["signed"][name].as_str().unwrap();
        assert_eq!(world.verify(kind, name, extension, text).unwrap(), theirs.fingerprint());
    }
}

/// The folder with the real signed files. Where it is missing the test says so and passes; under `CI=true` it fails.
fn seeds() -> Option<PathBuf> {
    let cases = match std::env::var_os("CUEBOOK_CONFORMANCE") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance"),
    };
    let folder = cases.join("../seeds");
    if folder.is_dir() {
        return Some(folder);
    }
    skip::missing_peer(format_args!("{} does not exist (CUEBOOK_CONFORMANCE)", folder.display()));
    None
}

#[test]
fn a_file_of_an_unknown_key_is_intact_but_untrusted() {
    let Some(folder) = seeds() else { return };
    let world = Fixture::new();
    let trust = Trust::new(&world.spaces());
    let mut found = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        if !text.starts_with("<!-- rye:signed:") {
            continue;
        }
        found += 1;
        let error = trust.verify_file(&path, "seed.txt", text.as_bytes()).unwrap_err();
        assert_eq!(error.code(), Code::UntrustedKey, "{error}");
        assert_eq!(error.field("intact"), Some(&json!(true)));
        let changed = text.replacen("the", "teh", 1);
        let error = trust.verify_file(&path, "seed.txt", changed.as_bytes()).unwrap_err();
        assert_eq!(error.code(), Code::ContentChanged, "{error}");
    }
    assert_eq!(found, 2);
}
