//! A signature is for one item: copies, files of another kind and older versions are refused.

use std::fs;
use std::path::PathBuf;

use jiff::Timestamp;

use super::{Purpose, SigningKey, Trust, Verified, sign_as_rye, sign_for};
use crate::error::{Code, ErrorKind, Result};
use crate::items::{ItemId, ItemType, SpaceKind, Spaces};

struct Fixture {
    project: tempfile::TempDir,
    user: tempfile::TempDir,
    key: SigningKey,
}

impl Fixture {
    fn new() -> Fixture {
        let key = SigningKey::from_seed(&[1; 32]).unwrap();
        let world =
            Fixture { project: tempfile::tempdir().unwrap(), user: tempfile::tempdir().unwrap(), key };
        world.trust().add(SpaceKind::User, world.key.public(), "me", Some(&world.key), at(0)).unwrap();
        world
    }

    fn trust(&self) -> Trust {
        Trust::new(&self.spaces())
    }

    fn spaces(&self) -> Spaces {
        Spaces::new(self.project.path(), Some(self.user.path()))
    }

    fn path(&self, file: &str) -> PathBuf {
        self.project.path().join(".ai").join(file)
    }

    fn write(&self, file: &str, bytes: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(file).parent().unwrap()).unwrap();
        fs::write(self.path(file), bytes).unwrap();
    }

    fn sign(&self, file: &str, text: &str, time: Timestamp) -> Vec<u8> {
        let purpose = Purpose::at(file).unwrap();
        sign_for(&purpose, extension(file), text.as_bytes(), &self.key, time).unwrap()
    }

    /// Verifies the item that a file below `.ai` is.
    fn verify(&self, file: &str) -> Result<Verified> {
        let (folder, below) = file.split_once('/').unwrap();
        let kind = ItemType::ALL.into_iter().find(|kind| kind.folder() == folder).unwrap();
        let id = ItemId::new(below.rsplit_once('.').unwrap().0).unwrap();
        let located = self.spaces().find(kind, &id).unwrap().unwrap();
        assert_eq!(located.path().unwrap(), self.path(file));
        self.trust().verify(&located.read(1 << 20).unwrap())
    }

    fn refused(&self, file: &str) -> Code {
        let error = self.verify(file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Integrity, "{error}");
        assert!(error.diagnostic().hint.is_some(), "{error}: no way out");
        error.code()
    }
}

fn extension(file: &str) -> &str {
    file.rsplit('.').next().unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_770_000_000 + second).unwrap()
}

/// An item in every format, which does not declare its place.
const ITEMS: [(&str, &str); 14] = [
    ("directives/a/x.md", "```xml\n<directive name=\"x\" version=\"1.0.0\">\n</directive>\n```\nB\n"),
    ("knowledge/a/x.md", "---\ntitle: T\n---\nText\n"),
    ("knowledge/a/y.md", "```yaml\nname: y\n```\nText\n"),
    ("knowledge/a/x.yaml", "title: T\n"),
    ("knowledge/a/x.yml", "title: T\n"),
    ("tools/a/x.py", "__category__ = 'a'\n"),
    ("tools/a/x.yaml", "category: a\n"),
    ("tools/a/x.yml", "name: x\n"),
    ("tools/a/x.js", "const __category__ = 'a';\n"),
    ("tools/a/x.ts", "export const x = 1;\n"),
    ("tools/a/x.mjs", "export const x = 1;\n"),
    ("tools/a/x.cjs", "const x = 1;\n"),
    ("tools/a/x.sh", "# __category__ = \"a\"\necho\n"),
    ("tools/a/x.toml", "x = 1\n"),
];

#[test]
fn a_copied_or_renamed_item_is_refused_in_every_format() {
    for (file, text) in ITEMS {
        let world = Fixture::new();
        let signed = world.sign(file, text, at(0));
        world.write(file, &signed);
        world.verify(file).unwrap();
        let (folder, extension) = (file.split('/').next().unwrap(), extension(file));
        for copy in [
            format!("{folder}/a/z.{extension}"),
            format!("{folder}/b/x.{extension}"),
            format!("{folder}/x.{extension}"),
        ] {
            world.write(&copy, &signed);
            assert_eq!(world.refused(&copy), Code::ItemMoved, "{file} as {copy}");
        }
    }
}

#[test]
fn an_item_of_one_type_or_format_is_none_of_another() {
    for (file, copy) in [
        ("directives/a/x.md", "knowledge/a/x.md"),
        ("knowledge/a/x.md", "directives/a/x.md"),
        ("tools/a/x.yaml", "knowledge/a/x.yaml"),
        ("tools/a/x.yaml", "tools/a/x.toml"),
        ("tools/a/x.sh", "tools/a/x.py"),
    ] {
        let world = Fixture::new();
        let (_, text) = ITEMS.iter().find(|(name, _)| *name == file).unwrap();
        world.write(copy, world.sign(file, text, at(0)));
        assert_eq!(world.refused(copy), Code::ItemMoved, "{file} as {copy}");
    }
}

#[test]
fn the_purpose_and_the_time_of_a_line_are_signed() {
    let world = Fixture::new();
    let signed = String::from_utf8(world.sign("tools/a/x.py", "x = 1\n", at(0))).unwrap();
    for (from, to, file) in [
        ("tool/a/x.py", "tool/a/y.py", "tools/a/y.py"),
        ("2026-", "2027-", "tools/a/x.py"),
        ("|cuebook@tool/a/x.py", "", "tools/a/x.py"),
    ] {
        let changed = signed.replace(from, to);
        assert_ne!(changed, signed);
        world.write(file, changed);
        assert_eq!(world.refused(file), Code::ForgedSignature, "{from}");
    }
}

#[test]
fn a_line_of_rye_counts_only_if_the_item_declares_its_place() {
    let world = Fixture::new();
    let verify = |file: &str, text: &str| {
        let signed = sign_as_rye(extension(file), text.as_bytes(), &world.key, at(0)).unwrap();
        world.write(file, signed);
        let result = world.verify(file).map_err(|error| error.code());
        fs::remove_file(world.path(file)).unwrap();
        result.map(|_| ())
    };
    let directive = |category: &str| {
        format!(
            "```xml\n<directive name=\"x\" version=\"1.0.0\"><metadata>{category}</metadata></directive>\n```\n"
        )
    };
    let declared = directive("<category>a</category>");
    for (file, text) in [
        ("directives/a/x.md", declared.as_str()),
        ("knowledge/a/x.md", "---\nname: x\ncategory: a\n---\nT\n"),
        ("knowledge/a/x.md", "```yaml\nid: a/x\n```\nT\n"),
        ("knowledge/a/x.yaml", "id: x\ncategory: a\n"),
        ("tools/a/x.py", "__tool_id__ = 'a/x'\n"),
        ("tools/a/x.js", "const __tool_id__ = 'x';\nconst __category__ = 'a';\n"),
        ("tools/a/x.ts", "export const __tool_id__ = 'a/x';\n"),
        ("tools/a/x.sh", "# __tool_id__ = \"a/x\"\necho\n"),
        ("tools/a/x.yaml", "name: x\ncategory: a\n"),
        ("tools/a/x.toml", "tool_id = 'a/x'\n"),
    ] {
        // Front matter is what Rye leaves out, so ours is a signature of the whole file.
        assert_eq!(verify(file, text), Ok(()), "{file}");
        let (before, last) = file.rsplit_once('/').unwrap();
        for moved in [format!("{before}/z.{}", extension(last)), file.replace("/a/", "/b/")] {
            let code = verify(&moved, text).unwrap_err();
            assert!(matches!(code, Code::ItemMoved | Code::UnboundSignature), "{file} as {moved}: {code}");
        }
    }
    for (file, text) in ITEMS {
        assert_eq!(verify(file, text), Err(Code::UnboundSignature), "{file}");
    }
}

#[test]
fn a_signed_item_is_no_key_and_a_signed_key_no_item() {
    let world = Fixture::new();
    let stranger = SigningKey::from_seed(&[7; 32]).unwrap();
    let (pem, fingerprint) = (stranger.public().pem(), stranger.public().fingerprint());
    let key = format!("fingerprint = \"{fingerprint}\"\n[public_key]\npem = \"\"\"\n{pem}\"\"\"\n");
    let tool = format!("tool_id = \"a/x\"\nversion = \"1.0.0\"\n{key}");
    let trusted = format!("config/keys/trusted/{fingerprint}.toml");
    let shell = format!("# __tool_id__ = \"a/x\"\n{key}");
    for signed in [
        world.sign("tools/a/x.toml", &tool, at(0)),
        sign_as_rye("toml", tool.as_bytes(), &world.key, at(0)).unwrap(),
        sign_as_rye("sh", shell.as_bytes(), &world.key, at(0)).unwrap(),
        sign_as_rye("toml", key.as_bytes(), &world.key, at(0)).unwrap(),
        sign_for(&Purpose::at(&trusted).unwrap(), "toml", key.as_bytes(), &world.key, at(0)).unwrap(),
    ] {
        world.write(&trusted, &signed);
        assert!(world.trust().trusts(fingerprint).unwrap().is_none(), "{}", String::from_utf8_lossy(&signed));
    }
    fs::remove_file(world.path(&trusted)).unwrap();
    world.trust().add(SpaceKind::Project, stranger.public(), "them", Some(&world.key), at(0)).unwrap();
    assert!(world.trust().trusts(fingerprint).unwrap().is_some());
    world.write("tools/a/x.toml", fs::read(world.path(&trusted)).unwrap());
    assert_eq!(world.refused("tools/a/x.toml"), Code::UnboundSignature);
}

#[test]
fn a_settings_file_is_signed_as_that_file() {
    let world = Fixture::new();
    let text = "name: acme\ntool_id: a/x\n";
    let signed = world.sign("config/providers/acme.yaml", text, at(0));
    let verify = |below: &str, bytes: &[u8]| {
        world.trust().verify_config(below, below, bytes).map_err(|error| error.code())
    };
    assert!(verify("providers/acme.yaml", &signed).is_ok());
    assert_eq!(verify("providers/other.yaml", &signed), Err(Code::ItemMoved));
    assert_eq!(verify("agent/hooks.yaml", &signed), Err(Code::ItemMoved));
    assert_eq!(
        verify("providers/acme.yaml", &world.sign("tools/a/x.yaml", text, at(0))),
        Err(Code::ItemMoved)
    );
    let rye = sign_as_rye("yaml", text.as_bytes(), &world.key, at(0)).unwrap();
    assert_eq!(verify("providers/acme.yaml", &rye), Err(Code::UnboundSignature));
    world.write("tools/a/x.yaml", &signed);
    assert_eq!(world.refused("tools/a/x.yaml"), Code::ItemMoved);
}

#[test]
fn an_older_signed_version_that_is_put_back_is_refused() {
    let world = Fixture::new();
    let file = "tools/a/x.py";
    let (old, new) =
        (world.sign(file, "__tool_id__ = 'a/x'\nv = 1\n", at(0)), world.sign(file, "v = 2\n", at(60)));
    let use_it = || -> Result<()> {
        let verified = world.verify(file)?;
        world.trust().record(SpaceKind::Project, &[&verified])
    };
    world.write(file, &old);
    use_it().unwrap();
    world.write(file, &new);
    use_it().unwrap();
    assert!(!world.verify(file).unwrap().is_new, "it was recorded");
    world.write(file, &old);
    assert_eq!(world.refused(file), Code::OlderVersion);
    // Neither another format of the item nor a line whose time is not signed is a way around it.
    fs::remove_file(world.path(file)).unwrap();
    world.write("tools/a/x.yaml", world.sign("tools/a/x.yaml", "v: 1\n", at(30)));
    assert_eq!(world.refused("tools/a/x.yaml"), Code::OlderVersion);
    fs::remove_file(world.path("tools/a/x.yaml")).unwrap();
    world.write(file, sign_as_rye("py", b"__tool_id__ = 'a/x'\n", &world.key, at(90)).unwrap());
    assert_eq!(world.refused(file), Code::OlderVersion);
    // The user can take the older version.
    world.write(file, &old);
    let located = world.spaces().find(ItemType::Tool, &ItemId::new("a/x").unwrap()).unwrap().unwrap();
    world.trust().accept_older(&located.read(1 << 20).unwrap()).unwrap();
    use_it().unwrap();
}
