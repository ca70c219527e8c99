//! Changes of packages, also by processes that die at any step.

#![allow(clippy::unwrap_used, reason = "these are tests, though the lint sees only functions")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cuebook::Book;
use cuebook::items::Spaces;
use cuebook::trust::SigningKey;

use super::*;
use crate::lock::LOCK_FILE;

/// The points at which a process can die.
const STEPS: [&str; 5] = ["begun", "noted", "moved", "locked", "finished"];

/// Ends the process at the point that the test wants.
pub(super) fn step(name: &str) {
    if std::env::var("CUEBOOK_SHARE_DIE_AT").is_ok_and(|wanted| wanted == name) {
        std::process::abort();
    }
}

struct Setup {
    _folder: tempfile::TempDir,
    root: PathBuf,
    sources: PathBuf,
}

impl Setup {
    fn new() -> Setup {
        let folder = tempfile::tempdir().unwrap();
        let (root, sources) = (folder.path().join("project"), folder.path().join("sources"));
        fs::create_dir(&root).unwrap();
        let setup = Setup { _folder: folder, root, sources };
        setup.publish("1.0.0");
        setup
    }

    /// Writes a version of the pack and of the skill.
    fn publish(&self, version: &str) {
        let manifest =
            format!("{{\"pack_id\": \"courtesy\", \"version\": \"{version}\", \"prompts\": [\"apology\"]}}");
        self.write("pack/pack.json", &manifest);
        self.write("pack/prompts/apology/template.md", &format!("Sorry, in version {version}.\n"));
        let skill = format!(
            "---\nname: review\ndescription: Reviews code\nmetadata:\n  version: {version}\n---\nLook.\n"
        );
        self.write("skill/SKILL.md", &skill);
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.sources.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn book(&self) -> Book {
        book(&self.root)
    }

    fn source(&self, name: &str) -> Source {
        Source::Path(self.sources.join(name))
    }

    /// Every file of the project that is not hidden, with its text.
    fn files(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        collect(&self.root, &self.root, &mut found);
        found
    }
}

fn book(root: &Path) -> Book {
    Book::open(root).with_paths(true).with_spaces(Spaces::of_project(root))
}

fn collect(root: &Path, folder: &Path, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with('.') {
            continue;
        }
        match path.is_dir() {
            true => collect(root, &path, found),
            false => {
                let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
}

fn change(book: &Book, task: &str, source: &Source) -> Result<()> {
    let mut packages = Packages::open(book)?;
    let name = if source.to_string().ends_with("pack") { "courtesy" } else { "review" };
    match task {
        "add" => {
            let change = packages.add(source, None)?;
            packages.commit(change, &[])
        }
        "update" => {
            let locked = packages.lock().find(name)?.clone();
            let change = packages.update(&locked, None)?.unwrap();
            packages.commit(change, &[])
        }
        _ => {
            let locked = packages.lock().find(name)?.clone();
            packages.remove(&locked)
        }
    }
}

/// What a process does that is about to die. Run alone, it does nothing.
#[test]
fn a_process_of_another_test() {
    let Ok(task) = std::env::var("CUEBOOK_SHARE_TASK") else { return };
    let (root, source) =
        (std::env::var("CUEBOOK_SHARE_ROOT").unwrap(), std::env::var("CUEBOOK_SHARE_SOURCE").unwrap());
    change(&book(Path::new(&root)), &task, &Source::Path(source.into())).unwrap();
}

#[test]
fn a_death_at_any_step_leaves_the_old_state_or_the_new_one() {
    let (mut old, mut new) = (0, 0);
    for name in ["pack", "skill"] {
        for task in ["add", "update", "remove"] {
            let fresh = Setup::new();
            if task != "add" {
                change(&fresh.book(), "add", &fresh.source(name)).unwrap();
                fresh.publish("2.0.0");
            }
            change(&fresh.book(), task, &fresh.source(name)).unwrap();
            let wanted = fresh.files();
            for at in STEPS {
                let setup = Setup::new();
                if task != "add" {
                    change(&setup.book(), "add", &setup.source(name)).unwrap();
                    setup.publish("2.0.0");
                }
                let before = setup.files();
                let died = Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", "packages::tests::a_process_of_another_test"])
                    .env("CUEBOOK_SHARE_TASK", task)
                    .env("CUEBOOK_SHARE_DIE_AT", at)
                    .env("CUEBOOK_SHARE_ROOT", &setup.root)
                    .env("CUEBOOK_SHARE_SOURCE", setup.sources.join(name))
                    .output()
                    .unwrap();
                assert!(!died.status.success(), "{name} {task} {at}: the process did not die");
                // The next process finishes the change, also one that only looks.
                let book = setup.book();
                let packages = Packages::look(&book).unwrap();
                let states = packages.states().unwrap();
                assert!(
                    states.iter().all(|(_, state)| *state == PackageState::Same),
                    "{name} {task} {at}: {states:?}"
                );
                drop(packages);
                let found = setup.files();
                if found == before {
                    old += 1;
                    change(&book, task, &setup.source(name)).unwrap();
                } else {
                    new += 1;
                }
                let done = setup.files();
                let elsewhere = |files: BTreeMap<String, String>| -> Vec<(String, String)> {
                    let from = fresh.sources.to_string_lossy().into_owned();
                    let to = setup.sources.to_string_lossy().into_owned();
                    files.into_iter().map(|(name, text)| (name, text.replace(&from, &to))).collect()
                };
                assert_eq!(
                    done.into_iter().collect::<Vec<_>>(),
                    elsewhere(wanted.clone()),
                    "{name} {task} {at}"
                );
            }
        }
    }
    // Before the folder moved, the old state stays; after that, the new one comes.
    assert_eq!((old, new), (12, 18));
}

#[test]
fn a_lock_that_another_program_changed_meanwhile_stays() {
    let setup = Setup::new();
    let book = setup.book();
    change(&book, "add", &setup.source("pack")).unwrap();
    let text = fs::read_to_string(setup.root.join(LOCK_FILE)).unwrap();
    let package = Packages::look(&book).unwrap().lock().find("courtesy").unwrap().clone();
    let pending = Pending {
        kind: package.kind,
        name: package.name.clone(),
        files: Some(package.files),
        before: Some("another text".to_owned()),
        after: "the new text".to_owned(),
    };
    pending.write(&book).unwrap();
    drop(Packages::open(&book).unwrap());
    assert_eq!(fs::read_to_string(setup.root.join(LOCK_FILE)).unwrap(), text);
    fs::write(setup.root.join("user_data/.packages.pending"), "{").unwrap();
    let error = Packages::open(&book).err().unwrap();
    assert_eq!(error.code(), Code::BadPackageLock);
}

#[test]
fn a_publishers_key_is_accepted_once_and_then_kept() {
    let setup = Setup::new();
    let book = setup.book();
    let [ada, eve] = [1, 2].map(|byte| SigningKey::from_seed(&[byte; 32]).unwrap());
    for name in ["pack", "skill"] {
        let (folder, source) = (setup.sources.join(name), setup.source(name));
        publisher::sign(&book, &folder, &ada).unwrap();
        let mut packages = Packages::open(&book).unwrap();
        let change = packages.add(&source, None).unwrap();
        assert!(matches!(&change.key, KeyState::New(key) if key.fingerprint() == ada.fingerprint()));
        packages.commit(change, &[]).unwrap();
        let package = packages.lock().packages().last().unwrap().clone();
        assert_eq!(package.key.as_deref(), Some(ada.fingerprint()));
        assert!(packages.update(&package, None).unwrap().is_none());
        let refused = |wanted: &str| {
            let error = packages.update(&package, None).err().unwrap();
            assert_eq!(error.code(), Code::PublisherKey);
            assert!(error.to_string().contains(wanted), "{error}");
        };
        // A change without a new signature, another key, and no key.
        setup.publish("2.0.0");
        refused("does not fit the package");
        publisher::sign(&book, &folder, &eve).unwrap();
        refused("but its key was");
        fs::remove_file(folder.join(cuebook::trust::PUBLISHER_FILE)).unwrap();
        refused("is no longer signed");
        publisher::sign(&book, &folder, &ada).unwrap();
        let change = packages.update(&package, None).unwrap().unwrap();
        assert!(matches!(&change.key, KeyState::Known(key) if key.fingerprint() == ada.fingerprint()));
        setup.publish("1.0.0");
        fs::remove_file(folder.join(cuebook::trust::PUBLISHER_FILE)).unwrap();
    }
}

#[test]
fn a_signature_is_for_one_name_and_one_kind() {
    let setup = Setup::new();
    let (book, key) = (setup.book(), SigningKey::from_seed(&[3; 32]).unwrap());
    let folder = setup.sources.join("pack");
    publisher::sign(&book, &folder, &key).unwrap();
    let content = ContentDigest::of(&folder, "pack", 1 << 20).unwrap();
    let check = |kind, name| publisher::key_of(&folder, "pack", kind, name, &content);
    assert!(check(PackageKind::Pack, "courtesy").unwrap().is_some());
    assert!(check(PackageKind::Skill, "courtesy").is_err());
    assert!(check(PackageKind::Pack, "other").is_err());
}
