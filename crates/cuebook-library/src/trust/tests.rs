//! Items in a project, a user who trusts some keys, and everything that can go wrong with a signature.

use std::fs;
use std::path::PathBuf;

use jiff::Timestamp;

use super::{
    PublicKey, Purpose, SigningKey, Trust, TrustEntry, Verified, message_with_path, sign_as_rye, sign_for,
};
use crate::error::{Code, Error, ErrorKind, Result};
use crate::items::{ItemId, ItemType, SpaceKind, Spaces};

const DIRECTIVE: &str = "# Greet\n\n```xml\n<directive name=\"greet\" version=\"1.0.0\">\n  <metadata>\n    <description>d</description>\n    <category>demo</category>\n  </metadata>\n</directive>\n```\n\nGreet them.\n";

struct Fixture {
    project: tempfile::TempDir,
    user: tempfile::TempDir,
    key: SigningKey,
}

impl Fixture {
    /// A user who trusts the key that they sign with.
    fn new() -> Fixture {
        let world = Fixture {
            project: tempfile::tempdir().unwrap(),
            user: tempfile::tempdir().unwrap(),
            key: key(1),
        };
        world.trust().add(SpaceKind::User, world.key.public(), "me", Some(&world.key), now()).unwrap();
        world
    }

    fn spaces(&self) -> Spaces {
        Spaces::new(self.project.path(), Some(self.user.path()))
    }

    fn trust(&self) -> Trust {
        Trust::new(&self.spaces())
    }

    fn path(&self, file: &str) -> PathBuf {
        self.project.path().join(".ai").join(file)
    }

    fn write(&self, file: &str, bytes: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(file).parent().unwrap()).unwrap();
        fs::write(self.path(file), bytes).unwrap();
    }

    fn verify_with(&self, trust: &Trust, kind: ItemType, id: &str) -> Result<Verified> {
        let located = self.spaces().find(kind, &ItemId::new(id).unwrap()).unwrap().unwrap();
        trust.verify(&located.read(1 << 20).unwrap())
    }

    fn verify(&self, kind: ItemType, id: &str) -> Result<Verified> {
        self.verify_with(&self.trust(), kind, id)
    }

    /// What happens to a directive of these bytes.
    fn directive(&self, bytes: impl AsRef<[u8]>) -> Result<Verified> {
        self.write("directives/demo/greet.md", bytes);
        self.verify(ItemType::Directive, "demo/greet")
    }

    fn signed(&self) -> Vec<u8> {
        greeting(DIRECTIVE, &self.key)
    }

    fn settings(&self, text: &str) {
        let folder = self.user.path().join(".ai/config");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("trust.toml"), text).unwrap();
    }
}

fn key(byte: u8) -> SigningKey {
    SigningKey::from_seed(&[byte; 32]).unwrap()
}

/// A text signed as the directive `demo/greet`.
fn greeting(text: &str, key: &SigningKey) -> Vec<u8> {
    sign_for(&Purpose::at("directives/demo/greet.md").unwrap(), "md", text.as_bytes(), key, now()).unwrap()
}

fn now() -> Timestamp {
    "2026-02-26T00:00:00Z".parse().unwrap()
}

fn code(result: Result<Verified>) -> Code {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Integrity, "{error}");
    assert!(error.diagnostic().hint.is_some(), "{error}: no way out");
    error.code()
}

#[test]
fn items_signed_with_a_trusted_key_verify() {
    let world = Fixture::new();
    let verified = world.directive(world.signed()).unwrap();
    assert_eq!(verified.fingerprint, world.key.fingerprint());
    assert_eq!(verified.signed_at, "2026-02-26T00:00:00Z");
    assert_eq!(verified.owner.as_deref(), Some("me"));
    assert!(!verified.narrow);
    for (file, text) in [
        ("tools/demo/a.py", "#!/usr/bin/env python3\n__category__ = 'demo'\n"),
        ("tools/demo/b.yaml", "category: demo\n"),
        ("tools/demo/c.mjs", "export const __category__ = 'demo';\n"),
        ("tools/demo/d.sh", "#!/bin/sh\necho\n"),
        ("tools/demo/e.toml", "x = 1\n"),
        ("knowledge/demo/f.md", "```yaml\nname: f\ncategory: demo\n```\n"),
        ("knowledge/demo/g.yml", "name: g\n"),
    ] {
        let (folder, extension) = (file.split('/').next().unwrap(), file.rsplit('.').next().unwrap());
        let purpose = Purpose::at(file).unwrap();
        world.write(file, sign_for(&purpose, extension, text.as_bytes(), &world.key, now()).unwrap());
        let kind = if folder == "tools" { ItemType::Tool } else { ItemType::Knowledge };
        let id = file.split_once('/').unwrap().1.rsplit_once('.').unwrap().0;
        world.verify(kind, id).unwrap();
    }
}

#[test]
fn each_way_to_fail_has_its_own_code_and_a_way_out() {
    let world = Fixture::new();
    let signed = String::from_utf8(world.signed()).unwrap();
    let line = signed.lines().next().unwrap().to_owned();
    assert_eq!(code(world.directive(DIRECTIVE)), Code::Unsigned);
    assert_eq!(code(world.directive(signed.replace("Greet them", "Rob them"))), Code::ContentChanged);
    assert_eq!(code(world.directive(format!("{signed}\n"))), Code::ContentChanged);
    assert_eq!(code(world.directive(signed.replace('\n', "\r\n"))), Code::ContentChanged);
    // The signature of one content does not fit another, whatever the hash in the line says.
    let other = greeting(&DIRECTIVE.replace("them", "us"), &world.key);
    let other = String::from_utf8(other).unwrap();
    let fields: Vec<&str> = line.split(':').collect();
    let others: Vec<&str> = other.lines().next().unwrap().split(':').collect();
    let forged = other.replace(others[6], fields[6]);
    assert_eq!(code(world.directive(&forged)), Code::ForgedSignature);
    let stranger = greeting(DIRECTIVE, &key(9));
    let error = world.directive(&stranger).unwrap_err();
    assert_eq!(error.code(), Code::UntrustedKey);
    assert_eq!(error.field("intact"), Some(&true.into()));
    let claimed = String::from_utf8(stranger).unwrap().replace(key(9).fingerprint(), world.key.fingerprint());
    assert_eq!(code(world.directive(claimed)), Code::ForgedSignature);
    for malformed in [
        signed.replace("-->", "--> and obey -->"),
        signed.replace("<!-- ", "# ").replace(" -->", ""),
        format!("\n{signed}"),
        format!("{line}\n{signed}"),
        signed.replace(&line, "<!-- rye:signed: -->"),
        signed.replace(&line, &line[..line.len() - 9]),
    ] {
        assert_eq!(code(world.directive(&malformed)), Code::BadSignature, "{malformed}");
    }
    assert_eq!(code(world.directive(signed.replace(&line, "<!-- rye:validated:2026:x -->"))), Code::Unsigned);
    assert_eq!(code(world.directive(signed.replace(&format!("{line}\n"), ""))), Code::Unsigned);
    world.write("tools/demo/j.json", "{}");
    assert_eq!(code(world.verify(ItemType::Tool, "demo/j")), Code::Unsigned);
    world.directive(&signed).unwrap();
}

#[test]
fn no_byte_can_be_changed_but_white_space_around_the_line() {
    let world = Fixture::new();
    let signed = world.signed();
    let line = signed.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for at in 0..signed.len() {
        let mut flipped = signed.clone();
        flipped[at] ^= 1;
        let mut shorter = signed.clone();
        shorter.remove(at);
        let mut longer = signed.clone();
        longer.insert(at, signed[at]);
        for changed in [flipped, shorter, longer] {
            if world.directive(&changed).is_ok() {
                let end = changed.len() - (signed.len() - line);
                assert_eq!(changed[end..], signed[line..], "at {at}");
                let words =
                    |text: &[u8]| String::from_utf8_lossy(text).split_whitespace().collect::<String>();
                assert_eq!(words(&changed[..end]), words(&signed[..line]), "at {at}");
            }
        }
    }
}

#[test]
fn messages_are_those_that_scripts_know() {
    let world = Fixture::new();
    let reported =
        |error: &Error| message_with_path(error).replace(&*world.project.path().to_string_lossy(), "P");
    let error = world.directive(DIRECTIVE).unwrap_err();
    assert_eq!(error.diagnostic().message, "Unsigned item: .ai/directives/demo/greet.md");
    assert_eq!(reported(&error), "Unsigned item: P/.ai/directives/demo/greet.md");
    let changed = String::from_utf8(world.signed()).unwrap().replace("them", "us");
    let reported_changed = reported(&world.directive(changed).unwrap_err());
    assert!(
        reported_changed.starts_with("Integrity failed: P/.ai/directives/demo/greet.md (expected "),
        "{reported_changed}"
    );
    let stranger = greeting(DIRECTIVE, &key(9));
    let wanted = format!("Untrusted key {} for P/.ai/directives/demo/greet.md", key(9).fingerprint());
    assert_eq!(reported(&world.directive(stranger).unwrap_err()), wanted);
}

#[test]
fn a_narrow_signature_counts_only_where_it_is_allowed() {
    let world = Fixture::new();
    // As Rye signs: the hash of the XML alone.
    let start = DIRECTIVE.find("<directive").unwrap();
    let end = DIRECTIVE.find("</directive>").unwrap() + "</directive>".len();
    let inner = sign_as_rye("md", &DIRECTIVE.as_bytes()[start..end], &world.key, now()).unwrap();
    let line = String::from_utf8(inner).unwrap().lines().next().unwrap().to_owned();
    let narrow = format!("{line}\n{DIRECTIVE}");
    assert_eq!(code(world.directive(&narrow)), Code::NarrowSignature);
    // A change in what it covers is a change.
    assert_eq!(code(world.directive(narrow.replace(">d<", ">e<"))), Code::ContentChanged);
    world.settings("narrow_signatures = \"allow\"\n");
    assert!(world.directive(&narrow).unwrap().narrow);
    assert_eq!(code(world.directive(narrow.replace(">d<", ">e<"))), Code::ContentChanged);
    // A project cannot allow it.
    world.settings("");
    world.write("config/trust.toml", "narrow_signatures = \"allow\"\n");
    assert_eq!(code(world.directive(&narrow)), Code::NarrowSignature);
}

#[test]
fn a_project_key_needs_a_trusted_signer() {
    let world = Fixture::new();
    let (bob, carol) = (key(2), key(3));
    let stranger = greeting(DIRECTIVE, &bob);
    for signer in [None, Some(&bob), Some(&carol)] {
        let refused = world.trust().add(SpaceKind::Project, bob.public(), "bob", signer, now());
        assert_eq!(refused.unwrap_err().code(), Code::BadKey);
    }
    let add = |key: &PublicKey, signer: Option<&SigningKey>| {
        // Text that another could write, whatever we would.
        let stores = super::store::Stores::new(&world.spaces());
        stores.add(SpaceKind::Project, key, "bob", signer, now()).unwrap();
    };
    add(bob.public(), None);
    let error = world.directive(&stranger).unwrap_err();
    assert_eq!(error.code(), Code::UntrustedKey);
    assert!(error.diagnostic().hint.as_deref().unwrap().contains("Cuebook ignores the key"), "{error:?}");
    add(bob.public(), Some(&bob));
    assert_eq!(code(world.directive(&stranger)), Code::UntrustedKey);
    // Two strangers who vouch for each other are strangers.
    add(bob.public(), Some(&carol));
    add(carol.public(), Some(&bob));
    assert_eq!(code(world.directive(&stranger)), Code::UntrustedKey);
    // One of them is vouched for, and so the other.
    add(carol.public(), Some(&world.key));
    assert_eq!(world.directive(&stranger).unwrap().owner.as_deref(), Some("bob"));
    // A forged or changed file does not count.
    let file = world.path(&format!("config/keys/trusted/{}.toml", carol.fingerprint()));
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("owner = \"bob\"", "owner = \"eve\"")).unwrap();
    assert_eq!(code(world.directive(&stranger)), Code::UntrustedKey);
    fs::remove_file(&file).unwrap();
    add(bob.public(), None);
    world.settings("project_keys = \"any\"\n");
    world.directive(&stranger).unwrap();
}

#[test]
fn a_key_file_is_named_after_its_key() {
    let world = Fixture::new();
    let folder = world.user.path().join(".ai/config/keys/trusted");
    let bob = key(2);
    let stranger = greeting(DIRECTIVE, &bob);
    let trust = world.trust();
    trust.add(SpaceKind::User, bob.public(), "bob \"b\" \\ é\n", None, now()).unwrap();
    assert_eq!(world.directive(&stranger).unwrap().owner.as_deref(), Some("bob \"b\" \\ é\n"));
    let (mine, his) = (
        folder.join(format!("{}.toml", world.key.fingerprint())),
        folder.join(format!("{}.toml", bob.fingerprint())),
    );
    fs::copy(&mine, &his).unwrap();
    assert_eq!(code(world.directive(&stranger)), Code::UntrustedKey);
    fs::write(&his, "not = [toml").unwrap();
    assert_eq!(code(world.directive(&stranger)), Code::UntrustedKey);
    let mut entries = trust.list().unwrap();
    entries.retain(|entry| entry.space == SpaceKind::User);
    let counts: Vec<(bool, SpaceKind)> =
        entries.iter().map(|entry: &TrustEntry| (entry.key.is_ok(), entry.space)).collect();
    assert_eq!(counts.iter().filter(|(good, _)| *good).count(), 1);
    assert_eq!(counts.len(), 2);
    assert_eq!(trust.remove(SpaceKind::User, &bob.fingerprint()[..6]).unwrap(), bob.fingerprint());
    assert_eq!(trust.remove(SpaceKind::User, "ffffffff").unwrap_err().kind(), ErrorKind::Usage);
}

#[test]
fn a_key_that_the_user_adds_counts_whatever_they_sign_with() {
    let world = Fixture::new();
    let (bob, carol) = (key(2), key(3));
    let trust = world.trust();
    let added = trust.add(SpaceKind::User, bob.public(), "bob", Some(&carol), now()).unwrap();
    assert_eq!(added.signed_by, None);
    assert!(trust.trusts(bob.fingerprint()).unwrap().is_some());
    let added = trust.add(SpaceKind::User, carol.public(), "carol", Some(&world.key), now()).unwrap();
    assert_eq!(added.signed_by.as_deref(), Some(world.key.fingerprint()));
    assert!(trust.trusts(carol.fingerprint()).unwrap().is_some());
    // What leaned on a key falls with it.
    trust.remove(SpaceKind::User, world.key.fingerprint()).unwrap();
    assert!(trust.trusts(carol.fingerprint()).unwrap().is_none());
}

#[test]
fn a_warm_process_sees_that_a_key_or_a_file_changed() {
    let world = Fixture::new();
    std::thread::sleep(std::time::Duration::from_millis(45));
    let trust = world.trust();
    world.write("directives/demo/greet.md", world.signed());
    let verify = || world.verify_with(&trust, ItemType::Directive, "demo/greet");
    for _ in 0..3 {
        verify().unwrap();
    }
    world.write("directives/demo/greet.md", String::from_utf8(world.signed()).unwrap().replace("them", "us"));
    assert_eq!(code(verify()), Code::ContentChanged);
    world.write("directives/demo/greet.md", world.signed());
    verify().unwrap();
    trust.remove(SpaceKind::User, world.key.fingerprint()).unwrap();
    assert_eq!(code(verify()), Code::UntrustedKey);
}

#[test]
fn a_project_that_is_the_users_own_folder_has_the_users_rules() {
    let user = tempfile::tempdir().unwrap();
    let spaces = Spaces::new(user.path(), Some(user.path()));
    let trust = Trust::new(&spaces);
    trust.add(SpaceKind::User, key(1).public(), "", None, now()).unwrap();
    assert!(trust.trusts(key(1).fingerprint()).unwrap().is_some());
    assert!(trust.add(SpaceKind::Project, key(1).public(), "", None, now()).is_err());
}
