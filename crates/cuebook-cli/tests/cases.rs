//! `cuebook test`, as people run it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests, though the lint sees only functions"
)]

mod support;

use serde_json::Value as Json;
use support::{Project, Test};

fn run(project: &Project, args: &[&str]) -> (i32, String, String) {
    let output = project.command("cuebook", project.path()).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn greeting() -> Project {
    let project = Project::new();
    project.write("prompts/hi/template.md", "Hi {{ name }}!\n{% include 'partials/legal.md' %}\nBye.\n");
    project.write("prompts/partials/legal.md", "Rights reserved.");
    project
}

#[test]
fn a_difference_shows_where_the_new_text_came_from() {
    let project = greeting();
    project.write(
        "prompts/hi/tests.md",
        "## whole\n```yaml inputs\nname: Ada\n```\n```text expected\nHi Bo!\nRights reserved.\nSee you.\n```\n\
         ## parts\n```yaml inputs\nname: Ada\n```\n```yaml settings\nmax_tokens: 3\nmodel: gpt-4o\nforbid: [variable name, file partials/legal.md]\n```\n\
         ```text contains\nHi Ada\nHi Bo\n```\n```text absent\nBye\n```\n",
    );
    let (code, stdout, stderr) = run(&project, &["test", "hi"]);
    assert_eq!(code, 1);
    assert_eq!(
        stdout,
        "\
prompts/hi/tests.md
  FAILED  whole
          the text is not what was expected (prompts/hi/tests.md:5)
          - Hi Bo!
          + Hi Ada!  <- name (the caller), prompts/hi/template.md:1
            Rights reserved.
          - See you.
          + Bye.  <- prompts/hi/template.md:3
  FAILED  parts
          `Hi Bo` is not in the text (prompts/hi/tests.md:21)
          `Bye` is in the text (prompts/hi/tests.md:24)
          from prompts/hi/template.md:3
          the text has 8 tokens, and 3 are allowed (prompts/hi/tests.md:15)
          \"Ada\" comes from the variable `name` (prompts/hi/tests.md:17)
          from name (the caller), prompts/hi/template.md:1
          \"Rights reserved.\" comes from `partials/legal.md` (prompts/hi/tests.md:17)
          from prompts/partials/legal.md:1
"
    );
    assert_eq!(stderr, "\n2 cases: 2 failed\n");
}

#[test]
fn an_update_asks_writes_whole_files_and_changes_nothing_else() {
    let project = greeting();
    let before = "# Hi\r\n\r\n## one\r\n```yaml inputs\r\nname: Ada\r\n```\r\n~~~text expected\r\nold\r\n~~~\r\n\r\nProse.\r\n\r\n## two\r\n```yaml inputs\r\nname: \"```\"\r\n```\r\n";
    project.write("prompts/hi/tests.md", before);
    let (code, stdout, stderr) = run(&project, &["test", "--update"]);
    assert_eq!(code, 1, "{stdout}{stderr}");
    assert!(stderr.contains("[CB208]") && stderr.contains("--yes"), "{stderr}");
    assert_eq!(std::fs::read_to_string(project.path().join("prompts/hi/tests.md")).unwrap(), before);
    let (code, stdout, stderr) = run(&project, &["test", "--update", "--yes"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(stderr.ends_with("2 cases: 2 updated\n"), "{stderr}");
    let after = std::fs::read_to_string(project.path().join("prompts/hi/tests.md")).unwrap();
    let expected = before.replace(
        "~~~text expected\r\nold\r\n~~~\r\n",
        "```text expected\r\nHi Ada!\r\nRights reserved.\r\nBye.\r\n```\r\n",
    ) + "\r\n```text expected\r\nHi ```!\r\nRights reserved.\r\nBye.\r\n```\r\n";
    assert_eq!(after, expected);
    let (code, stdout, _) = run(&project, &["test", "prompts/hi/tests.md"]);
    assert_eq!((code, stdout.as_str()), (0, "prompts/hi/tests.md\n  ok      one\n  ok      two\n"));
}

#[test]
fn every_dialect_has_its_cases_beside_it_and_folders_hold_many() {
    let project = greeting();
    project.write(
        "prompts/hi/tests.md",
        "## a\n```yaml inputs\nname: Ada\n```\n```text contains\nHi Ada!\n```\n",
    );
    project.write(
        "prompts/chat.prompty",
        "---\ninputs: {q: {kind: string}, photo: {kind: image}}\n---\nuser:\n{{ q }} {{ photo }}\n",
    );
    project.write(
        "prompts/chat.tests.md",
        "## b\n```yaml inputs\nq: Why?\nphoto: https://example.com/a.png\n```\n```yaml settings\nas: messages\n```\n\
         ```json messages\n[{\"role\": \"user\", \"content\": [{\"value\": \"Why?\"}, {\"kind\": \"image\"}]}]\n```\n\
         ```text contains\n__PROMPTY_THREAD_0000000000000000_photo__\n```\n",
    );
    project.write(
        "prompts/tree.sections.md",
        "# Task\nDo.\n\n# More\n```yaml section\nsummary: Short.\nvisibility: summary\n```\nLong.\n",
    );
    project.write(
        "prompts/tree.tests.md",
        "## c\n```text absent\nLong.\n```\n## d\n```yaml settings\nexpand: [more]\n```\n```text contains\nLong.\n```\n",
    );
    let directive = "# Go\n\n```xml\n<directive name=\"go\" version=\"1.0.0\">\n<metadata><description>Goes.</description><category></category><author>me</author></metadata>\n\
        </directive>\n```\n\nGo there.\n";
    project.write(".ai/directives/go.md", directive);
    project.write(".ai/directives/go.tests.md", "## e\n```text contains\nGo there.\n```\n");
    let (code, stdout, stderr) = run(&project, &["test"]);
    assert_eq!((code, stderr.as_str()), (0, "\n5 cases: all passed\n"), "{stdout}");
    let (_, list, _) = run(&project, &["list", "--json"]);
    assert!(!list.contains("go.tests"), "the cases of a directive are no directive: {list}");
    let (code, stdout, _) = run(&project, &["test", "prompts", "--json"]);
    let document: Json = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &document["passed"], document["files"].as_array().unwrap().len()), (0, &4.into(), 3));
    assert_eq!(document["files"][2]["cases"][1]["case"], "d");
}

#[test]
fn slips_are_told_with_what_was_meant_and_prompts_without_cases_are_listed() {
    let project = greeting();
    project.write(
        "prompts/hi/tests.md",
        "## a\n```yaml inputs\nnam: Ada\n```\n```text contains\nHi\n```\n## b\n```yaml settings\nerror: CB401\n```\n\
         ## c\n```yaml settings\nforbid: [file legl.md]\n```\n",
    );
    project.write("prompts/bare/template.md", "Bare.");
    let (code, stdout, stderr) = run(&project, &["test", "--all"]);
    assert_eq!(code, 1);
    assert!(
        stdout.contains("CB404: the prompt `hi` has no variable `nam`\n          help: did you mean `name`?"),
        "{stdout}"
    );
    assert!(stdout.contains("it was rendered, and CB401 was expected"), "{stdout}");
    assert!(stdout.contains("CB515: there is no file `legl.md`"), "{stdout}");
    assert!(stdout.contains("prompts/bare: no cases; they would be in prompts/bare/tests.md"), "{stdout}");
    assert!(stderr.ends_with("3 cases: 3 failed\n"), "{stderr}");
    let (code, _, stderr) = run(&project, &["test", "bare"]);
    assert_eq!(
        (code, stderr.as_str()),
        (1, "there are no cases; write some, as in prompts/bare/tests.md: cuebook help testing\n")
    );
    Test::new().args(["test", "nowhere"]).code(1).run();
    Test::new().args(["test"]).code(0).run();
}

#[test]
fn a_time_makes_a_case_that_can_be_repeated() {
    let project = Project::new();
    project.write("prompts/now/template.md", "It is {{ system.date }}.");
    project.write(
        "prompts/now/tests.md",
        "## a\n```yaml settings\nnow: 2026-02-20T15:30:00+00:00[UTC]\n```\n```text expected\nIt is 2026-02-20.\n```\n",
    );
    let (code, stdout, _) = run(&project, &["test"]);
    assert_eq!(code, 0, "{stdout}");
}
