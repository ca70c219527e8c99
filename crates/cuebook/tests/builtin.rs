//! The prompts that ship inside the binary.

#![allow(clippy::unwrap_used)] // A test that fails to unwrap has failed.

mod support;

use std::path::Path;

use cuebook::Context;
use cuebook_lab::BookExt;
use serde_json::{Value as Json, json};
use support::{Project, values};

/// What the seed's modules pass when they call them.
fn calls() -> Vec<(&'static str, Json)> {
    let tools = json!([{"name": "grep", "description": "Search the files of the workspace"}]);
    vec![
        ("general_system", json!({"agent_name": "Rumi"})),
        (
            "coding_system",
            json!({"agent_name": "Rumi", "tools": tools, "project_memory": "Rust only", "user_memory": "Likes tests"}),
        ),
        ("history_compression", json!({"message_count": 42, "target_length": 500})),
        ("memory_update", json!({"current_memory": "# Project", "session_summary": "Fixed a bug."})),
        ("planning_task_decomposition", json!({"task": "Write a parser"})),
    ]
}

#[test]
fn every_call_of_the_seed_renders_clean_text_in_both_languages() {
    let book = Project::new().book();
    for (id, variables) in calls() {
        let mut texts = Vec::new();
        for language in ["en", "ja"] {
            let context = Context { language: Some(language.into()), strict: true, ..Context::default() };
            let rendered =
                book.render(id, &values(variables.clone()), &context).unwrap_or_else(|e| panic!("{id}: {e}"));
            let text = rendered.text().to_owned();
            assert!(!text.contains("\n\n\n"), "{id} ({language}) has two blank lines in a row");
            assert!(
                text.lines().all(|line| line == line.trim_end()),
                "{id} ({language}) has spaces at the end of a line"
            );
            assert_eq!(text.trim(), text, "{id} ({language}) begins or ends with blank lines");
            assert!(text.len() > 500, "{id} ({language}) is not a real prompt");
            texts.push(text);
        }
        assert!(texts[1].contains('。') && !texts[0].contains('。'), "{id} is not in two languages");
    }
}

/// Shipped prompts keep the rules that users are held to.
#[test]
fn a_check_of_the_shipped_prompts_finds_nothing() {
    let project = Project::new();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cuebook-library/builtin/prompts");
    for folder in std::fs::read_dir(shipped).unwrap() {
        let folder = folder.unwrap();
        for file in std::fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap();
            let name =
                format!("{}/{}", folder.file_name().to_str().unwrap(), file.file_name().to_str().unwrap());
            project.write(
                &format!("ecosystem/default/prompts/{name}"),
                &std::fs::read_to_string(file.path()).unwrap(),
            );
        }
    }
    let report = project.book().check(&[], |_| {}).unwrap();
    let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert_eq!((report.prompts, findings), (5, Vec::<String>::new()));
}
