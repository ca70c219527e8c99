//! Skills: where they are found, what the format demands, and that their text is shown as it is written.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests, though the lint sees only functions")]

mod support;

use cuebook::dialect::skill::SkillFolder;
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
        (
            "---\nname: s\ndescription: x\nlicense: [MIT]\n---\n".into(),
            "`license` must be a text, but is a list",
        ),
        (
            "---\nname: s\ndescription: x\nmetadata:\n  version: 2.1\n---\n".into(),
            "`metadata.version` must be a text, but is a number",
        ),
        ("---\nname: s\ndescription: x\nallowed_tools: Read\n---\n".into(), "unknown key `allowed_tools`"),
        ("---\nname: s\ndescription: x\nowner: ann\n---\n".into(), "unknown key `owner`"),
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

#[test]
fn an_unknown_key_comes_with_the_nearest_one() {
    let project = Project::new()
        .file("skills/s/SKILL.md", "---\nname: s\ndescription: x\nallowed_tools: Read\n---\nDo it.\n");
    let report = project.book().check(&[], |_| {}).unwrap();
    let found = &report.findings[0];
    assert_eq!(
        (found.code, found.hint.as_deref()),
        (Code::UnknownKey, Some("did you mean `allowed-tools`?"))
    );
    let text =
        "---\nname: s\ndescription: x\nargument-hint: \"[file]\"\nuser-invocable: false\n---\nDo it.\n";
    let project = Project::new().file("skills/s/SKILL.md", text);
    assert_eq!(project.book().check(&[], |_| {}).unwrap().findings.len(), 0, "keys of agents are known");
}

#[test]
fn a_file_name_in_lower_case_is_reported() {
    let text = "---\nname: s\ndescription: x\n---\nDo it.\n";
    let project = Project::new().file(".claude/skills/s/skill.md", text).file("skills/s/SKILL.md", text);
    let report = project.book().check(&[], |_| {}).unwrap();
    let found = report.findings.iter().find(|found| found.message.contains("agents look for `SKILL.md`"));
    assert_eq!(found.unwrap().file_name(), Some(".claude/skills/s/skill.md"), "{:?}", report.findings);
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
}

/// Shapes of front matter that skills in repositories have.
#[test]
fn common_shapes_of_skills_are_read() {
    let folded = "---\nname: s\ndescription: >-\n  Reads invoices.\n  Use it for PDF files.\n---\nDo it.\n";
    let literal = "---\nname: s\ndescription: |\n  Reads invoices.\n  Use it.\n---\nDo it.\n";
    let quoted = "---\nname: \"s\"\ndescription: 'Use when: asked'\n---\nDo it.\n";
    let rules = "---\nname: s\ndescription: x\n---\nDo it.\n\n---\n\nMore.\n";
    let crlf = "---\r\nname: s\r\ndescription: Reads invoices.\r\n---\r\nDo it.\r\n";
    let cases: [(&str, String, &str, &str); 7] = [
        ("a folded description", folded.into(), "Reads invoices. Use it for PDF files.", "Do it.\n"),
        ("a literal description", literal.into(), "Reads invoices.\nUse it.", "Do it.\n"),
        ("a quoted description", quoted.into(), "Use when: asked", "Do it.\n"),
        ("rules in the text", rules.into(), "x", "Do it.\n\n---\n\nMore.\n"),
        ("Windows line endings", crlf.into(), "Reads invoices.", "Do it.\n"),
        ("a byte-order mark", format!("\u{feff}{quoted}"), "Use when: asked", "Do it.\n"),
        ("no text", "---\nname: s\ndescription: x\n---\n".into(), "x", ""),
    ];
    for (what, text, description, body) in cases {
        let project = Project::new().file("skills/s/SKILL.md", &text);
        let book = project.book();
        let rendered = book.render("s", &Variables::new(), &Context::default());
        let rendered = rendered.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(rendered.text(), body, "{what}");
        let shown = rendered.prompt().metadata.description.clone();
        assert_eq!(shown.as_deref(), Some(description), "{what}");
    }
}

#[test]
fn a_colon_in_a_plain_description_is_refused_with_a_hint() {
    let text = "---\nname: s\ndescription: Use when: asked\n---\nDo it.\n";
    let project = Project::new().file("skills/s/SKILL.md", text);
    let error = project.book().render("s", &Variables::new(), &Context::default()).unwrap_err();
    let hint = error.diagnostic().hint.as_deref().unwrap();
    assert_eq!(error.code(), Code::BadFrontMatter);
    assert!(hint.contains("quote a text that contains `: `"), "{hint}");
}

#[test]
fn the_files_of_a_skill_have_digests_and_no_links() {
    let project = Project::new().file("skills/read-invoices/SKILL.md", &skill("read-invoices"));
    project.write("skills/read-invoices/scripts/read.py", "abc");
    project.write("skills/read-invoices/.hidden", "x");
    let book = project.book();
    let found = book.find("read-invoices").unwrap();
    let folder = SkillFolder::of(&found.candidate, 1 << 20).unwrap().unwrap();
    assert_eq!(folder.shown(), "skills/read-invoices");
    assert_eq!(folder.front_matter()["metadata"], json!({"author": "ann", "version": "2.1"}));
    let files = folder.files().unwrap();
    assert_eq!(files.keys().collect::<Vec<_>>(), ["SKILL.md", "scripts/read.py"]);
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!((files["scripts/read.py"].size, files["scripts/read.py"].sha256.as_str()), (3, digest));
    assert_eq!(folder.read("scripts/read.py").unwrap().as_deref(), Some(&b"abc"[..]));
    assert_eq!(folder.read("../read-invoices/SKILL.md").unwrap(), None);
    assert_eq!(folder.read(".hidden").unwrap(), None);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/etc/passwd", project.path("skills/read-invoices/passwd")).unwrap();
        let error = folder.read("SKILL.md").unwrap_err();
        assert_eq!(error.code(), Code::Unreadable);
        assert_eq!(error.diagnostic().file_name(), Some("skills/read-invoices/passwd"));
    }
}
