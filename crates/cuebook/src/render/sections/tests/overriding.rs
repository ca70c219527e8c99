//! Overrides: other words for bodies, summaries, visibilities, tools and examples.

use serde_json::json;

use super::*;
use crate::overrides::{Override, Resolved, SectionOverride, Store, TaskExample, TaskStep, ToolOverride};

fn by(of: &str) -> SectionOverride {
    SectionOverride { path: path(of), ..SectionOverride::default() }
}

fn resolved(sections: impl IntoIterator<Item = SectionOverride>) -> Resolved {
    let sections = sections.into_iter().map(|section| (section.path.clone(), section)).collect();
    Resolved { sections, ..Resolved::default() }
}

fn text(tree: &Tree, overrides: &Resolved, bound: &[BoundParams]) -> String {
    tree.render(&Setting::new(bound).overrides(overrides)).unwrap().text().to_owned()
}

#[test]
fn a_body_a_summary_and_a_visibility_each_replace_their_own() {
    let section = Section::of::<Task>("a", "A", "old $goal").unwrap().map(|section| section.summary("short"));
    let tree = tree([section.into()]);
    let bound = task("x", false);
    let body = SectionOverride { body: Some("  new $goal\n".into()), ..by("a") };
    assert_eq!(text(&tree, &resolved([body.clone()]), &bound), "# A\n\nnew x");
    let summary = SectionOverride {
        summary: Some("brief $goal".into()),
        visibility: Some(Visibility::Summary),
        ..body.clone()
    };
    let shown = text(&tree, &resolved([summary]), &bound);
    assert!(shown.starts_with("# A\n\nbrief x\n\n---\n[This section is summarized."), "{shown}");
    let shown = SectionOverride { visibility: Some(Visibility::Summary), ..body };
    assert!(text(&tree, &resolved([shown]), &bound).starts_with("# A\n\nshort\n"), "a body is no summary");
}

#[test]
fn the_session_decides_before_an_override() {
    let tree = tree([plain("a", []).summary("short")]);
    let overrides = resolved([SectionOverride { visibility: Some(Visibility::Summary), ..by("a") }]);
    let mut session = VisibilityOverrides::new();
    session.set(&path("a"), Visibility::Full);
    let setting = Setting::new(&[]).overrides(&overrides);
    assert_eq!(tree.decided_by(0, &setting), Some(DecidedBy::Override));
    assert_eq!(tree.render(&setting.session(&session)).unwrap().text(), "# a\n\na");
}

#[test]
fn a_closed_section_ignores_overrides() {
    let tree = tree([plain("a", []).locked()]);
    let overrides = resolved([SectionOverride {
        body: Some("new".into()),
        visibility: Some(Visibility::Summary),
        ..by("a")
    }]);
    assert_eq!(text(&tree, &overrides, &[]), "# a\n\na");
    assert!(tree.descriptor().sections.is_empty());
}

#[test]
fn an_override_has_the_engine_of_its_section_and_its_own_errors() {
    let jinja = Section::of::<Task>("a", "A", "{{ goal }}").unwrap().map(|section| section.engine("jinja2"));
    let tree = tree([jinja.into(), Section::of::<Task>("b", "B", "$goal").unwrap().into()]);
    let new = |of: &str, body: &str| resolved([SectionOverride { body: Some(body.into()), ..by(of) }]);
    let bound = task("x", false);
    assert_eq!(text(&tree, &new("a", "{{ goal | upper }} $goal"), &bound), "# A\n\nX $goal\n\n# B\n\nx");
    let overrides = new("b", "$nope");
    let error = tree.render(&Setting::new(&bound).overrides(&overrides)).unwrap_err();
    assert_eq!(
        (message(&error), error.diagnostic().file_name()),
        ("Missing placeholder during render.", Some("override of b"))
    );
    let rendered_with = new("b", "see $goal");
    let rendered = tree.render(&Setting::new(&bound).overrides(&rendered_with)).unwrap();
    assert!(rendered.spans().all(|span| span.section.is_some()));
}

#[derive(Serialize, JsonSchema)]
struct Search {
    /// What to look for.
    query: String,
}

fn searching() -> Tree {
    let tool = SectionTool::new("search", "Search.").unwrap().takes::<Search>().unwrap();
    let tool = tool.example("old", json!({"query": "a"}), json!(null)).unwrap();
    tree([plain("a", []).tool(tool)])
}

#[test]
fn an_overridden_description_changes_the_schema_only() {
    let tree = searching();
    let tool = ToolOverride {
        name: "search".into(),
        description: Some("Look.".into()),
        param_descriptions: [("query".to_owned(), "Words.".to_owned())].into_iter().collect(),
        ..ToolOverride::default()
    };
    let mut overrides = Resolved::default();
    overrides.tools.insert("search".into(), tool);
    let rendered = tree.render(&Setting::new(&[]).overrides(&overrides)).unwrap();
    assert_eq!(rendered.tools[0].description, "Look.");
    let text = rendered.text();
    assert!(text.contains("- search: Search.\n") && !text.contains("Look."), "{text}");
    assert_eq!(rendered.tools_json()[0]["parameters"]["properties"]["query"]["description"], "Words.");
    overrides.tools[0].description = Some("é".into());
    let error = tree.render(&Setting::new(&[]).overrides(&overrides)).unwrap_err();
    assert_eq!(
        (message(&error), error.field("tool").unwrap()),
        ("Tool description must be ASCII.", &json!("search"))
    );
}

/// Writes overrides into a store of files, and resolves them again.
pub(super) fn stored(tree: &Tree, file: serde_json::Value) -> Resolved {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let at = folder.path().join("tests/sections/latest.json");
    std::fs::create_dir_all(at.parent().unwrap()).unwrap();
    std::fs::write(at, file.to_string()).unwrap();
    store.resolve(tree.descriptor(), "latest").unwrap()
}

pub(super) fn file(tools: serde_json::Value, examples: serde_json::Value) -> serde_json::Value {
    json!({
        "version": 2, "ns": "tests", "prompt_key": "sections", "tag": "latest",
        "sections": {}, "tools": tools, "task_example_overrides": examples,
    })
}

#[test]
fn examples_of_a_tool_are_changed_by_a_file() {
    let tree = searching();
    let entry = &tree.descriptor().tools[0];
    let overrides = stored(
        &tree,
        file(
            json!({"search": {
                "expected_contract_hash": entry.contract_hash,
                "example_overrides": [
                    {"action": "modify", "index": 0, "expected_hash": entry.example_hashes[0], "description": "changed"},
                    {"action": "append", "index": -1, "description": "new", "input_json": "{\"query\": \"b\"}"},
                ],
            }}),
            json!([]),
        ),
    );
    assert!(overrides.stale.is_empty(), "{:?}", overrides.stale);
    let text = text(&tree, &overrides, &[]);
    assert!(text.contains("description: changed\n") && text.contains("description: new\n"), "{text}");
    assert!(text.contains("{\"query\": \"b\"}") && !text.contains("description: old"), "{text}");
}

#[test]
fn a_seeded_store_resolves_to_the_same_prompt() {
    let tree = searching();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path());
    let seeded = store.seed(tree.descriptor(), "latest", &tree.originals()).unwrap();
    assert_eq!(seeded.sections[&path("a")].body.as_deref(), Some("a"));
    let plain = tree.render(&Setting::new(&[])).unwrap();
    let rendered = tree.render(&Setting::new(&[]).overrides(&seeded)).unwrap();
    assert_eq!(rendered.text(), plain.text());
    let hash = tree.descriptor().sections[0].content_hash.clone();
    let new = SectionOverride { expected_hash: hash, body: Some("new".into()), ..by("a") };
    let stored = store.store(tree.descriptor(), "latest", Override::from(new)).unwrap();
    assert!(text(&tree, &stored, &[]).starts_with("# a\n\nnew\n"));
    let changed = super::tree([Section::new("a", "a", "another text")]);
    let resolved = store.resolve(changed.descriptor(), "latest").unwrap();
    assert!(resolved.sections.is_empty() && !resolved.stale.is_empty(), "the original is another one");
}

#[test]
fn examples_of_tasks_are_changed_removed_and_added_by_a_file() {
    let example = |key: &str| {
        let input = json!({"query": key});
        let step = TaskStep { tool: "search".into(), description: "look".into(), input, output: json!(null) };
        let example =
            TaskExample { objective: format!("Find {key}"), outcome: json!("ok"), steps: vec![step] };
        Section::task_example(key, None, example).unwrap()
    };
    let tool = SectionTool::new("search", "Search.").unwrap().takes::<Search>().unwrap();
    let examples = Section::task_examples("te", "Examples", [example("one"), example("two")]);
    let tree = builder([plain("a", []).tool(tool), examples]).headings(Headings::Numbered).build().unwrap();
    let hash = |index: usize| tree.descriptor().task_examples[index].hash.clone();
    let step = json!({"tool_name": "search", "description": "find", "input_json": "{\"query\": \"z\"}"});
    let overrides = stored(
        &tree,
        file(
            json!({}),
            json!([
                {"path": ["te", "one"], "index": 0, "expected_hash": hash(0), "action": "remove"},
                {"path": ["te", "two"], "index": 1, "expected_hash": hash(1), "action": "modify", "outcome": "fine"},
                {"path": ["te"], "index": -1, "expected_hash": null, "action": "append",
                 "objective": "Find z", "outcome": "z", "steps_to_append": [step]},
            ]),
        ),
    );
    assert!(overrides.stale.is_empty(), "{:?}", overrides.stale);
    let rendered = tree.render(&Setting::new(&[]).overrides(&overrides)).unwrap();
    assert_eq!(states(&rendered), ["full", "full", "disabled", "full"]);
    let text = rendered.text();
    assert!(!text.contains("Find one") && text.contains("**Outcome:** fine"), "{text}");
    assert!(text.contains("\n\n### 2.3. Find z (te.added-1)\n\n**Objective:** Find z\n"), "{text}");
    assert!(text.ends_with("**Outcome:** z"), "{text}");
    assert!(rendered.spans().all(|span| span.section.is_some()));
}
