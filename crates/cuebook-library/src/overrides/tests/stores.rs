//! The operations of a store.

use std::fs;
use std::path::Path;

use super::*;
use crate::error::{Code, ErrorKind, Severity};
use crate::overrides::entry::{NewTaskStep, ToolExampleChange};
use crate::overrides::{
    Counts, Overrides, Resolved, Store, Target, TaskExampleChange, TaskExampleOverride, ToolExampleOverride,
};
use crate::prompt::Visibility;

const FILE: &str = "support/triage/latest.json";

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    (folder, store)
}

fn body<'r>(resolved: &'r Resolved, at: &str) -> Option<&'r str> {
    resolved.sections.get(&path(at)).and_then(|section| section.body.as_deref())
}

fn task_override(at: &str, change: TaskExampleChange) -> TaskExampleOverride {
    TaskExampleOverride { path: path(at), change, place: None }
}

fn task_append(objective: &str) -> TaskExampleOverride {
    let steps =
        vec![NewTaskStep { tool_name: "search".into(), description: "d".into(), ..NewTaskStep::default() }];
    let (objective, outcome) = (objective.to_owned(), "done".to_owned());
    task_override("examples", TaskExampleChange::Append { objective, outcome, steps })
}

#[test]
fn without_a_file_nothing_is_overridden_and_nothing_is_made() {
    let (folder, store) = store();
    let resolved = store.resolve(&descriptor(), "latest").unwrap();
    assert!(resolved.is_empty() && resolved.stale.is_empty());
    assert!(store.read("support", "triage", "latest").unwrap().is_none());
    assert!(!store.delete("support", "triage", "latest").unwrap());
    assert!(store.list().unwrap().is_empty());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let nowhere = Store::open(folder.path().join("not/there"));
    assert!(nowhere.resolve(&descriptor(), "latest").unwrap().is_empty());
    assert!(nowhere.list().unwrap().is_empty());
}

#[test]
fn a_seeded_file_equals_the_original_and_is_kept() {
    let (folder, store) = store();
    let resolved = store.seed(&descriptor(), "latest", &originals()).unwrap();
    assert_eq!(body(&resolved, "intro/tone"), Some("Be kind."));
    assert_eq!(resolved.tools["search"].description.as_deref(), Some("Search."));
    assert_eq!(resolved.tools["search"].param_descriptions["query"], "Keywords.");
    store.store(&descriptor(), "latest", section("intro", "Hi $name!")).unwrap();
    let before = fs::read(folder.path().join(FILE)).unwrap();
    let again = store.seed(&descriptor(), "latest", &originals()).unwrap();
    assert_eq!(body(&again, "intro"), Some("Hi $name!"));
    assert_eq!(fs::read(folder.path().join(FILE)).unwrap(), before);
}

#[test]
fn a_seed_needs_every_original() {
    let (folder, store) = store();
    let mut some = originals();
    some.tools.clear();
    let error = store.seed(&descriptor(), "latest", &some).unwrap_err();
    assert_eq!(error.to_string(), "PromptOverridesError: the tool `search` has no original [CB210]");
    assert!(!folder.path().join(FILE).exists());
}

#[test]
fn a_stale_override_is_skipped_reported_and_kept() {
    let (folder, store) = store();
    store.seed(&descriptor(), "latest", &originals()).unwrap();
    let mut now = descriptor();
    now.sections[0].content_hash = text_hash("Hello, dear $name.");
    now.sections.remove(1);
    now.tools[0].contract_hash = text_hash("other");
    let resolved = store.resolve(&now, "latest").unwrap();
    assert_eq!(resolved.sections.keys().collect::<Vec<_>>(), [&path("rules")]);
    assert!(resolved.tools.is_empty());
    let reported: Vec<String> = resolved.stale.iter().map(|stale| stale.diagnostic().to_string()).collect();
    let file = folder.path().join(FILE).display().to_string();
    assert_eq!(
        reported,
        [
            format!(
                "{file}:5:5: the override of the section `intro` is stale: the original has changed since [CB211]"
            ),
            format!(
                "{file}:12:5: the override of the section `intro/tone` has no original, or the original cannot be overridden [CB211]"
            ),
            format!(
                "{file}:31:5: the override of the tool `search` is stale: the original has changed since [CB211]"
            ),
        ]
    );
    let stale = &resolved.stale[0];
    assert_eq!(stale.what, Target::Section(path("intro")));
    assert_eq!(stale.expected.as_deref(), Some(&*text_hash("Hello $name.")));
    assert_eq!(stale.found.as_deref(), Some(&*text_hash("Hello, dear $name.")));
    assert_eq!(stale.diagnostic().severity, Severity::Warning);
    assert!(stale.diagnostic().hint.unwrap().ends_with(&text_hash("Hello, dear $name.")));
    assert_eq!(resolved.stale[1].found, None);

    // A store of something else loses no work.
    store.store(&now, "latest", section("rules", "Obey, please.")).unwrap();
    let kept = store.resolve(&descriptor(), "latest").unwrap();
    assert_eq!((body(&kept, "intro"), body(&kept, "rules")), (Some("Hello $name."), Some("Obey, please.")));
    assert!(kept.stale.is_empty());
}

#[test]
fn a_section_that_was_renamed_is_pointed_at() {
    let (_folder, store) = store();
    store.store(&descriptor(), "latest", section("intro/tone", "x")).unwrap();
    let mut now = descriptor();
    now.sections[1].path = path("intro/tones");
    let resolved = store.resolve(&now, "latest").unwrap();
    assert_eq!(resolved.stale[0].nearest[0], "intro/tones");
    assert!(resolved.stale[0].diagnostic().hint.unwrap().starts_with("did you mean `intro/tones`"));
}

#[test]
fn summary_and_visibility_are_kept_with_and_without_a_body() {
    let (_folder, store) = store();
    let only = SectionOverride {
        body: None,
        summary: Some("In short.".into()),
        visibility: Some(Visibility::Summary),
        ..section("rules", "")
    };
    let resolved = store.store(&descriptor(), "latest", only).unwrap();
    let again = store.resolve(&descriptor(), "latest").unwrap();
    for resolved in [resolved, again] {
        let found = &resolved.sections[&path("rules")];
        assert_eq!(
            (&found.body, found.summary.as_deref(), found.visibility),
            (&None, Some("In short."), Some(Visibility::Summary))
        );
    }
    let nothing = SectionOverride { body: None, ..section("rules", "") };
    let error = store.store(&descriptor(), "latest", nothing).unwrap_err();
    assert_eq!(error.diagnostic().message, "the override of the section `rules` changes nothing");
}

#[test]
fn an_override_of_another_text_is_not_stored() {
    let (folder, store) = store();
    let wrong = SectionOverride { expected_hash: text_hash("?"), ..section("intro", "x") };
    let error = store.store(&descriptor(), "latest", wrong).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Overrides, Code::BadOverride));
    assert_eq!(error.diagnostic().severity, Severity::Error);
    assert_eq!(
        error.diagnostic().message,
        format!(
            "the section `intro` has the hash {}, but its override was made for {}",
            text_hash("Hello $name."),
            text_hash("?")
        )
    );
    assert!(store.store(&descriptor(), "latest", section("intros", "x")).is_err());
    assert!(
        store.store(&descriptor(), "latest", ToolOverride { name: "other".into(), ..tool("x") }).is_err()
    );
    assert!(
        store
            .store(&descriptor(), "latest", TaskExampleOverride { path: path("rules"), ..task_append("x") })
            .is_err()
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was made for it");
}

#[test]
fn an_upsert_replaces_everything_even_a_broken_file() {
    let (folder, store) = store();
    store.seed(&descriptor(), "latest", &originals()).unwrap();
    fs::write(folder.path().join(FILE), "{").unwrap();
    assert_eq!(store.resolve(&descriptor(), "latest").unwrap_err().code(), Code::BadOverride);
    assert!(store.store(&descriptor(), "latest", tool("x")).is_err());
    assert_eq!(fs::read_to_string(folder.path().join(FILE)).unwrap(), "{", "only an upsert writes over it");
    let overrides = Overrides {
        ns: "support".into(),
        key: "triage".into(),
        tag: " latest ".into(),
        sections: vec![section("rules", "Please.")],
        tools: vec![tool("Find.")],
        ..Overrides::default()
    };
    let resolved = store.upsert(&descriptor(), &overrides).unwrap();
    assert_eq!(
        (body(&resolved, "rules"), resolved.sections.len(), resolved.tools.len()),
        (Some("Please."), 1, 1)
    );
    assert_eq!(store.resolve(&descriptor(), "latest").unwrap().sections.len(), 1);

    let twice =
        Overrides { sections: vec![section("rules", "a"), section("rules", "b")], ..overrides.clone() };
    let error = store.upsert(&descriptor(), &twice).unwrap_err();
    assert_eq!(error.diagnostic().message, "two overrides are for the same section or tool");
    let other = Overrides { key: "other".into(), ..overrides };
    let error = store.upsert(&descriptor(), &other).unwrap_err();
    assert_eq!(
        error.diagnostic().message,
        "the overrides are for the key `other`, but the prompt has the key `triage`"
    );
}

#[test]
fn examples_of_tools_are_checked_one_by_one() {
    let (_folder, store) = store();
    let about = |change| ToolExampleOverride { change, place: None };
    let hash = |at: &str| tool_example_hash(&tool_example(at));
    let overridden = ToolOverride {
        examples: vec![
            about(ToolExampleChange::Remove { index: 0, expected_hash: hash("cats") }),
            about(ToolExampleChange::Modify {
                index: 1,
                expected_hash: hash("dogs"),
                description: Some("big dogs".into()),
                input: None,
                output: None,
            }),
            about(ToolExampleChange::Append { description: "birds".into(), input: None, output: None }),
        ],
        ..tool("Find.")
    };
    store.store(&descriptor(), "latest", overridden.clone()).unwrap();
    let mut now = descriptor();
    now.tools[0].example_hashes[1] = hash("wolves");
    now.tools[0].example_hashes.truncate(2);
    let resolved = store.resolve(&now, "latest").unwrap();
    assert_eq!(resolved.tools["search"].examples.len(), 2, "the other two still fit");
    assert_eq!(resolved.stale.len(), 1);
    assert_eq!(resolved.stale[0].what, Target::ToolExample { tool: "search".into(), index: 1 });
    assert!(resolved.stale[0].place.as_ref().unwrap().line() > 1);
    let error = store.store(&now, "latest", overridden).unwrap_err();
    assert!(error.diagnostic().message.starts_with("example 1 of the tool `search` has the hash"), "{error}");
}

#[test]
fn examples_of_tasks_are_found_by_path_wherever_they_stand() {
    let (folder, store) = store();
    let hash = |objective: &str| task_example_hash(&task(objective));
    let remove = |index, at: &str| {
        let change = TaskExampleChange::Remove { index, expected_hash: hash(at) };
        task_override(&format!("examples/{at}"), change)
    };
    store.store(&descriptor(), "latest", remove(7, "two")).unwrap();
    let written = fs::read_to_string(folder.path().join(FILE)).unwrap();
    assert!(written.contains("\"index\": 1"), "the index is the one that it has: {written}");
    store.store(&descriptor(), "latest", task_append("four")).unwrap();
    store.store(&descriptor(), "latest", task_append("five")).unwrap();
    store.store(&descriptor(), "latest", remove(1, "two")).unwrap();

    let mut now = descriptor();
    now.task_examples[1].index = 2;
    now.task_examples[2].index = 1;
    let resolved = store.resolve(&now, "latest").unwrap();
    assert_eq!(resolved.task_examples.len(), 3, "one is replaced, and those that are added stay");
    let found = resolved.task_example(&path("examples/two")).unwrap();
    assert!(matches!(found.change, TaskExampleChange::Remove { index: 2, .. }));
    assert_eq!(resolved.task_examples_of(&path("examples")).count(), 3);
    assert_eq!(resolved.task_examples_of(&path("rules")).count(), 0);

    now.task_examples[1].hash = hash("deux");
    let resolved = store.resolve(&now, "latest").unwrap();
    assert_eq!(resolved.stale[0].what, Target::TaskExample(path("examples/two")));
    now.task_examples.clear();
    let resolved = store.resolve(&now, "latest").unwrap();
    assert_eq!((resolved.stale.len(), resolved.is_empty()), (3, true));
    assert_eq!(resolved.stale[1].what, Target::TaskExamples(path("examples")));
}

#[test]
fn tags_are_files_of_their_own() {
    let (folder, store) = store();
    store.store(&descriptor(), "stable", section("intro", "a")).unwrap();
    store.store(&descriptor(), " v2 ", section("intro", "b")).unwrap();
    assert_eq!(body(&store.resolve(&descriptor(), "stable").unwrap(), "intro"), Some("a"));
    assert_eq!(body(&store.resolve(&descriptor(), "v2").unwrap(), "intro"), Some("b"));
    assert!(store.resolve(&descriptor(), "latest").unwrap().is_empty());
    assert!(store.delete("support", "triage", "stable").unwrap());
    assert!(!store.delete("support", "triage", "stable").unwrap());
    assert!(store.resolve(&descriptor(), "stable").unwrap().is_empty());
    assert!(folder.path().join("support/triage/v2.json").exists());
    for tag in ["", "../../x", "A"] {
        assert_eq!(store.resolve(&descriptor(), tag).unwrap_err().kind(), ErrorKind::Overrides);
        assert!(store.delete("support", "triage", tag).is_err());
    }
}

#[test]
fn a_list_has_every_file_and_marks_broken_ones() {
    let (folder, store) = store();
    store.seed(&descriptor(), "latest", &originals()).unwrap();
    store.store(&descriptor(), "latest", task_append("four")).unwrap();
    let deep = Descriptor { ns: "agents/code".into(), ..descriptor() };
    store.store(&deep, "v1", section("intro", "x")).unwrap();
    fs::write(folder.path().join("support/triage/broken.json"), "[]").unwrap();
    fs::write(folder.path().join("lost.json"), "{}").unwrap();
    fs::write(folder.path().join("support/notes.txt"), "").unwrap();
    let list = store.list().unwrap();
    let names: Vec<(&str, &str, &str)> =
        list.iter().map(|file| (&*file.ns, &*file.key, &*file.tag)).collect();
    assert_eq!(
        names,
        [
            ("agents/code", "triage", "v1"),
            ("", "", "lost"),
            ("support", "triage", "broken"),
            ("support", "triage", "latest")
        ]
    );
    let counts = Counts { sections: 3, tools: 1, task_examples: 1 };
    assert_eq!(*list[3].counts.as_ref().unwrap(), counts);
    let text = fs::read_to_string(folder.path().join(FILE)).unwrap();
    assert_eq!(list[3].sha256.as_deref(), Some(&*text_hash(&text)));
    assert!(list[3].modified.unwrap().elapsed().unwrap().as_secs() < 600);
    assert!(list[1].counts.as_ref().unwrap_err().to_string().contains("no prompt uses this file"));
    assert_eq!(list[2].counts.as_ref().unwrap_err().code(), Code::BadOverride);
    assert!(list[2].sha256.is_some());
}

#[test]
fn a_changed_file_is_seen_at_once() {
    let (folder, store) = store();
    store.store(&descriptor(), "latest", section("intro", "aaa")).unwrap();
    let file = folder.path().join(FILE);
    for round in 0..50 {
        let text = format!("b{round:02}");
        let old = fs::read_to_string(&file).unwrap();
        let at = old.find("\"body\": \"").unwrap() + 9;
        // In place and with the same length, so that only times can tell.
        fs::write(&file, format!("{}{text}{}", &old[..at], &old[at + 3..])).unwrap();
        assert_eq!(body(&store.resolve(&descriptor(), "latest").unwrap(), "intro"), Some(&*text));
    }
}

#[test]
fn a_project_keeps_its_overrides_in_one_place() {
    let folder = tempfile::tempdir().unwrap();
    let ours = folder.path().join(".cuebook/overrides");
    let wink = folder.path().join(".weakincentives/prompts/overrides");
    let root = || Store::of_project(folder.path()).unwrap().root().to_owned();
    assert_eq!(root(), ours);
    fs::create_dir_all(&wink).unwrap();
    assert_eq!(root(), wink, "a project of WINK goes on as it is");
    let store = Store::of_project(folder.path()).unwrap();
    store.store(&descriptor(), "latest", section("intro", "x")).unwrap();
    assert_eq!(store.list().unwrap()[0].name, format!(".weakincentives/prompts/overrides/{FILE}"));
    fs::create_dir_all(&ours).unwrap();
    let error = Store::of_project(folder.path()).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Overrides, Code::BadOverride));
    fs::remove_dir_all(&wink).unwrap();
    assert_eq!(root(), ours);
}

/// Sections `s0`, `s1`, … for writers that each have their own.
fn many(count: usize) -> Descriptor {
    let entry = |index: usize| SectionEntry {
        path: vec![format!("s{index}")],
        number: index.to_string(),
        content_hash: text_hash("x"),
    };
    Descriptor { sections: (0..count).map(entry).collect(), ..descriptor() }
}

fn write_own(root: &Path, writer: usize, each: usize) {
    // A store of its own, as a process has.
    let store = Store::open(root);
    for index in writer * each..(writer + 1) * each {
        let own = SectionOverride {
            path: vec![format!("s{index}")],
            expected_hash: text_hash("x"),
            body: Some(format!("text {index}")),
            ..SectionOverride::default()
        };
        store.store(&many(100), "latest", own).unwrap();
    }
}

#[test]
fn concurrent_writers_lose_nothing() {
    let (folder, store) = store();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let root = folder.path().to_owned();
            scope.spawn(move || write_own(&root, writer, 10));
        }
        let mut seen = 0;
        while seen < 40 {
            let now = store.resolve(&many(100), "latest").unwrap().sections.len();
            assert!(now >= seen, "an override was lost: {now} after {seen}");
            seen = now;
        }
    });
}

#[test]
fn processes_that_write_at_the_same_time_lose_nothing() {
    const WRITER: &str = "CUEBOOK_TEST_OVERRIDES_WRITER";
    // This test is also the program that it starts.
    if let Ok(task) = std::env::var(WRITER) {
        let (writer, root) = task.split_once(' ').unwrap();
        return write_own(Path::new(root), writer.parse().unwrap(), 10);
    }
    let (folder, store) = store();
    let name = "overrides::tests::stores::processes_that_write_at_the_same_time_lose_nothing";
    let children: Vec<_> = (0..4)
        .map(|writer| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", name])
                .env(WRITER, format!("{writer} {}", folder.path().display()))
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let resolved = store.resolve(&many(100), "latest").unwrap();
    assert_eq!(resolved.sections.len(), 40);
    assert_eq!(resolved.sections[&path("s39")].body.as_deref(), Some("text 39"));
}
