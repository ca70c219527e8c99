//! Skills: where they are found, what the format demands, and that their text is shown as it is written.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests, though the lint sees only functions")]

mod support;

use cuebook::items::Spaces;
use cuebook::{Book, Code, Context, Variables};
use cuebook_lab::BookExt;
use serde_json::json;
use support::Project;

const BODY: &str = "# Invoices\n\nRun `scripts/read.py {{file}}` for ${each} $file.\n\n---\n{% raw %}\n";

fn skill(name: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: Reads invoices. Use it for PDF files.\nallowed-tools: Read, Bash(git log:*) Grep\nmetadata: {{author: ann, version: \"2.1\"}}\n---\n\n{BODY}"
    )
}

#[test]
fn a_skill_is_found_in_every_place_and_shown_as_it_is_written() {
    for place in ["prompts", "skills", ".claude/skills", ".agents/skills", "user_data/packs/tools/skills"] {
        let project =
            Project::new().file(&format!("{place}/read-invoices/SKILL.md"), &skill("read-invoices"));
        project.write("user_data/packs/tools/pack.json", "{\"pack_id\": \"tools\"}");
        let book = project.book();
        let rendered = book.render("read-invoices", &Variables::new(), &Context::default());
        let rendered = rendered.unwrap_or_else(|error| panic!("{place}: {error}"));
        assert_eq!(rendered.text(), BODY, "{place}");
        let listed = book.list_prompts(None, None).unwrap();
        let line = listed.iter().find(|line| line.id == "read-invoices").unwrap().to_json();
        assert_eq!((&line["dialect"], &line["version"]), (&json!("skill"), &json!("2.1")), "{place}");
        let shown = book.get_definition("read-invoices").unwrap();
        assert_eq!(shown["metadata"]["allowed-tools"], json!(["Read", "Bash(git log:*)", "Grep"]));
    }
}

#[test]
fn a_skill_of_the_user_is_found_in_every_project() {
    let (project, user) = (Project::new(), tempfile::tempdir().unwrap());
    let folder = user.path().join(".claude/skills/read-invoices");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("SKILL.md"), skill("read-invoices")).unwrap();
    let root = project.path("");
    let book = Book::open(&root).with_spaces(Spaces::new(&root, Some(user.path())));
    let rendered = book.render("read-invoices", &Variables::new(), &Context::default()).unwrap();
    assert_eq!(rendered.text(), BODY);
    assert_eq!(rendered.prompt().source, "~/.claude/skills/read-invoices/SKILL.md");
}

#[test]
fn violations_of_the_skill_format_are_reported() {
    let long = "x".repeat(1_025);
    let cases = [
        (
            "---\nname: Read_Invoices\ndescription: x\n---\n".to_owned(),
            "the name of a skill has lower-case letters",
        ),
        (
            "---\nname: -x\ndescription: x\n---\n".into(),
            "the name of a skill cannot begin or end with a hyphen",
        ),
        ("---\nname: other\ndescription: x\n---\n".into(), "the skill is called `other`, but its folder `s`"),
        (format!("---\nname: s\ndescription: {long}\n---\n"), "the description has 1025 characters"),
        (
            "---\nname: s\ndescription: x\nallowed-tools: {a: b}\n---\n".into(),
            "`allowed-tools` must be names of tools",
        ),
        ("---\nname: s\ndescription: x\ncompatibility: \"\"\n---\n".into(), "`compatibility` must be a text"),
    ];
    for (text, expected) in cases {
        let project = Project::new().file("skills/s/SKILL.md", &text);
        let report = project.book().check(&[], |_| {}).unwrap();
        let found = report.findings.iter().find(|found| found.message.starts_with(expected));
        let found = found.unwrap_or_else(|| panic!("{expected}: {:?}", report.findings));
        assert!(found.place.is_some() && found.hint.is_some(), "{found:?}");
    }
    let project = Project::new().file("skills/s/SKILL.md", "---\nname: s\ndescription: x\n---\nDo it.\n");
    assert_eq!(project.book().check(&[], |_| {}).unwrap().findings.len(), 0);
}

#[test]
fn a_file_that_no_agent_would_load_is_refused() {
    for (text, line) in [
        ("# No front matter\n", 1),
        ("---\nname: s\n---\n", 2),
        ("---\ndescription: x\n---\n", 2),
        ("---\nname: s\ndescription: [a]\n---\n", 3),
        ("---\nname: s\ndescription: Use it: when you can\n---\n", 3),
    ] {
        let project = Project::new().file("skills/s/SKILL.md", text);
        let error = project.book().render("s", &Variables::new(), &Context::default()).unwrap_err();
        let found = error.diagnostic();
        assert_eq!(
            (error.code(), found.place.as_ref().unwrap().line()),
            (Code::BadFrontMatter, line),
            "{text}"
        );
        assert!(found.hint.is_some(), "{text}: {error}");
    }
}
