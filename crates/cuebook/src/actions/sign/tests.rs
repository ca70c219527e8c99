//! Signing single items and many.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Value as Json, json};

use super::{SignRequest, Signed, answer, sign};
use crate::items::{ItemId, ItemType, SpaceKind, Spaces};
use crate::trust::{SigningKey, Trust};

const KNOWLEDGE: &str =
    "```yaml\nname: NAME\ntitle: T\nversion: 1.0.0\nentry_type: note\ncategory: demo\n```\ntext\n";

struct Fixture {
    project: tempfile::TempDir,
    user: tempfile::TempDir,
    spaces: Spaces,
    trust: Trust,
}

impl Fixture {
    /// A user with a key that they trust.
    fn new() -> Fixture {
        let world = Fixture::without_key();
        let key = SigningKey::from_seed(&[1; 32]).unwrap();
        key.save(&world.spaces, false).unwrap();
        world.trust.add(SpaceKind::User, key.public(), "me", None, Timestamp::UNIX_EPOCH).unwrap();
        world
    }

    fn without_key() -> Fixture {
        let (project, user) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let spaces = Spaces::new(project.path(), Some(user.path()));
        let trust = Trust::new(&spaces);
        Fixture { project, user, spaces, trust }
    }

    fn write(&self, file: &str, text: &str) {
        write(self.project.path(), file, text);
    }

    fn knowledge(&self, name: &str) {
        self.write(&format!("knowledge/demo/{name}.md"), &KNOWLEDGE.replace("NAME", name));
    }

    fn ask(&self, request: Json) -> Json {
        answer(&self.spaces, &self.trust, &request, Timestamp::UNIX_EPOCH, &mut |_, _| {})
    }

    fn verifies(&self, kind: ItemType, id: &str) -> bool {
        let located = self.spaces.find(kind, &ItemId::new(id).unwrap()).unwrap().unwrap();
        self.trust.verify(&located.read(1 << 20).unwrap()).is_ok()
    }
}

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(".ai").join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn signed_items_verify_and_signing_again_changes_nothing() {
    let world = Fixture::new();
    world.knowledge("facts");
    let request = json!({"item_type": "knowledge", "item_id": "demo/facts"});
    let answer = world.ask(request.clone());
    assert_eq!((&answer["status"], &answer["location"]), (&json!("signed"), &json!("project")), "{answer}");
    assert_eq!(answer["warnings"], json!([]));
    assert!(world.verifies(ItemType::Knowledge, "demo/facts"));
    let bytes = fs::read(answer["path"].as_str().unwrap()).unwrap();
    assert_eq!(world.ask(request)["signature"], answer["signature"]);
    assert_eq!(fs::read(answer["path"].as_str().unwrap()).unwrap(), bytes);
}

#[cfg(unix)]
#[test]
fn a_signed_tool_can_still_be_run_and_loses_its_lockfile() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = Fixture::new();
    let tool = "#!/bin/sh\n# __version__ = \"1.0.0\"\n# __tool_type__ = \"shell\"\n# __category__ = \"demo\"\n# __tool_description__ = \"d\"\necho\n";
    world.write("tools/demo/run.sh", tool);
    world.write("lockfiles/demo/run@1.0.0.lock.json", "{}");
    let path = world.project.path().join(".ai/tools/demo/run.sh");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let answer = world.ask(json!({"item_type": "tool", "item_id": "demo/run"}));
    assert_eq!(answer["status"], "signed", "{answer}");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
    assert!(fs::read_to_string(&path).unwrap().starts_with("#!/bin/sh\n# rye:signed:"));
    assert!(!world.project.path().join(".ai/lockfiles/demo/run@1.0.0.lock.json").exists());
    // A link out of the space is not followed into another owner's file.
    let outside = world.project.path().join("outside.md");
    fs::write(&outside, KNOWLEDGE.replace("NAME", "link")).unwrap();
    fs::create_dir_all(world.project.path().join(".ai/knowledge/demo")).unwrap();
    std::os::unix::fs::symlink(&outside, world.project.path().join(".ai/knowledge/demo/link.md")).unwrap();
    let answer = world.ask(json!({"item_type": "knowledge", "item_id": "demo/link"}));
    assert_eq!(answer["status"], "error", "{answer}");
    assert!(!fs::read_to_string(&outside).unwrap().contains("rye:signed"));
}

#[test]
fn many_are_signed_by_a_pattern_and_each_failure_is_reported() {
    let world = Fixture::new();
    for name in ["one", "two"] {
        world.knowledge(name);
    }
    world.write("knowledge/demo/deep/three.md", &KNOWLEDGE.replace("NAME", "three"));
    world.write("knowledge/node_modules/x/readme.md", "no item of ours");
    let mut reported = Vec::new();
    let request = SignRequest::new(ItemType::Knowledge, "*");
    let signed = sign(&world.spaces, &world.trust, &request, Timestamp::UNIX_EPOCH, &mut |done, of| {
        reported.push((done, of))
    });
    let Signed::Items(items) = signed.unwrap() else { panic!("a pattern signs many") };
    let (id, error) = &items.failed[0];
    assert_eq!((id.as_str(), error.code()), ("demo/deep/three", crate::error::Code::BadKnowledge));
    let answer = items.to_json();
    assert_eq!(answer["signed"], json!(["demo/one", "demo/two"]));
    assert_eq!(answer["summary"], "Signed 2/3 items, 1 failed");
    assert_eq!((&answer["total"], &answer["status"]), (&json!(3), &json!("completed")));
    let issue = "Field 'category' value 'demo' must match path category 'demo/deep'";
    assert_eq!(
        answer["failed"],
        json!([{"item": "demo/deep/three", "error": "Validation failed", "details": [issue]}])
    );
    assert_eq!(reported, [(0, 3), (1, 3), (2, 3), (3, 3)]);
    let folder = world.ask(json!({"item_type": "knowledge", "item_id": "demo/t*"}));
    assert_eq!(folder["signed"], json!(["demo/two"]));
    let none = world.ask(json!({"item_type": "tool", "item_id": "zzz*"}));
    assert_eq!(none["status"], "error");
    assert!(none["searched_in"].as_str().unwrap().ends_with(".ai/tools"));
}

#[test]
fn an_unsignable_item_is_refused_with_the_reason() {
    let world = Fixture::new();
    let error = |request: Json| world.ask(request)["error"].as_str().unwrap_or_default().to_owned();
    assert_eq!(error(json!({"item_type": "banana", "item_id": "x"})), "Unknown item type: banana");
    assert_eq!(
        world.ask(json!({"item_type": "directive", "item_id": "demo/zzz"})),
        json!({"status": "error", "error": "Directive not found: demo/zzz", "hint": "Create file at .ai/directives/demo/zzz.md"})
    );
    assert!(error(json!({"item_type": "tool", "item_id": "../x"})).contains("invalid item id"));
    assert!(error(json!({"item_type": "tool", "item_id": "x", "source": "system"})).contains("system"));
    world.write("tools/demo/e.py", " \n");
    assert_eq!(error(json!({"item_type": "tool", "item_id": "demo/e"})), "Tool file is empty");
    world.write("tools/demo/s.sh", "echo\n");
    let wanted = "No parser registered for extension: .sh";
    assert_eq!(error(json!({"item_type": "tool", "item_id": "demo/s"})), wanted);
    world.write("tools/demo/b.py", "def (:\n");
    let broken = world.ask(json!({"item_type": "tool", "item_id": "demo/b"}));
    assert_eq!(broken["error"], "Failed to parse tool file");
    assert!(!broken["details"].as_array().unwrap().is_empty());
    world.write("directives/demo/n.md", "no fence\n");
    let broken = world.ask(json!({"item_type": "directive", "item_id": "demo/n"}));
    assert_eq!(broken["error"], "Invalid directive structure");
    let world = Fixture::without_key();
    world.knowledge("facts");
    let answer = world.ask(json!({"item_type": "knowledge", "item_id": "demo/facts"}));
    assert!(answer["hint"].as_str().unwrap().contains("cuebook keys generate"), "{answer}");
    // A key that its owner does not trust signs, and says so.
    SigningKey::from_seed(&[2; 32]).unwrap().save(&world.spaces, false).unwrap();
    let answer = world.ask(json!({"item_type": "knowledge", "item_id": "demo/facts"}));
    assert_eq!(answer["warnings"].as_array().unwrap().len(), 1);
    assert!(world.user.path().exists());
}
