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
          the text differs from the expected text (prompts/hi/tests.md:5)
          - Hi Bo!
          + Hi Ada!  <- name (the caller), prompts/hi/template.md:1
            Rights reserved.
          - See you.
          + Bye.  <- prompts/hi/template.md:3
  FAILED  parts
          the text does not contain `Hi Bo` (prompts/hi/tests.md:21)
          the text contains `Bye` (prompts/hi/tests.md:24)
          from prompts/hi/template.md:3
          the text has 8 tokens, but the limit is 3 (prompts/hi/tests.md:15)
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
fn an_update_counts_its_cases() {
    let project = Project::new();
    project.write("prompts/p/template.md", "Hi.\n");
    let cases = "## first\n\n## other\n```text expected\nold\n```\n\n## same\n```text expected\nHi.\n```\n\n\
                 ## still\n```text expected\nold\n```\n```text contains\nBye\n```\n";
    project.write("prompts/p/tests.md", cases);
    let (code, _, stderr) = run(&project, &["test"]);
    assert_eq!((code, stderr.as_str()), (1, "\n4 cases: 1 passed, 3 failed\n"));
    let (code, stdout, stderr) = run(&project, &["test", "--update", "--yes"]);
    assert_eq!(code, 1);
    assert_eq!(
        stdout,
        "prompts/p/tests.md
  ok      same
  new     first
          + Hi.  <- prompts/p/template.md:1
  changed other
          - old
          + Hi.  <- prompts/p/template.md:1
  FAILED  still
          the text differs from the expected text (prompts/p/tests.md:14)
          - old
          + Hi.  <- prompts/p/template.md:1
          the text does not contain `Bye` (prompts/p/tests.md:18)
"
    );
    assert_eq!(
        stderr,
        "prompts/p/tests.md: wrote 1 new expected text and 2 changed expected texts

4 cases: 1 passed, 2 updated, 1 failed
"
    );
    project.write("prompts/p/tests.md", cases);
    let (_, stdout, _) = run(&project, &["test", "--update", "--yes", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let of = |key: &str| {
        document["files"][0]["cases"]
            .as_array()
            .unwrap()
            .iter()
            .map(|case| case[key].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(serde_json::json!(of("written")), serde_json::json!(["new", "changed", null, "changed"]));
    assert_eq!(serde_json::json!(of("updated")), serde_json::json!([true, true, null, false]));
    // Behind it nothing is left to be written.
    let (code, _, stderr) = run(&project, &["test", "--update", "--yes"]);
    assert_eq!((code, stderr.as_str()), (1, "\n4 cases: 3 passed, 1 failed\n"));
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
fn typos_get_hints_and_untested_prompts_are_listed() {
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
    assert!(stdout.contains("expected the error CB401, but the prompt rendered"), "{stdout}");
    assert!(stdout.contains("CB515: no file `legl.md` found"), "{stdout}");
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

/// Plays a person at a terminal: runs a command in one, and answers each question once it is asked. Prints what the person
/// sees, and ends as the command does.
#[cfg(unix)]
const PERSON: &str = include_str!("support/person.py");

#[cfg(unix)]
#[test]
fn only_confirmed_differences_are_written() {
    if support::python_or_skip().is_none() {
        return;
    }
    let project = greeting();
    let case =
        |name: &str| format!("## {name}\n```yaml inputs\nname: {name}\n```\n```text expected\nold\n```\n");
    let before = format!("{}{}", case("one"), case("two"));
    project.write("prompts/hi/tests.md", &before);
    let ask = |answers: &str| {
        let mut person = project.command("python3", project.path());
        person.env("TERM", "xterm").args(["-c", PERSON, answers]);
        let output = person.args([env!("CARGO_BIN_EXE_cuebook"), "test", "--update"]).output().unwrap();
        let seen = String::from_utf8_lossy(&output.stdout).into_owned();
        let file = std::fs::read_to_string(project.path().join("prompts/hi/tests.md")).unwrap();
        (output.status.code(), seen, file)
    };
    let (code, seen, after) = ask("expected text of `one`?=n;expected text of `two`?=n");
    assert_eq!((code, after.as_str()), (Some(1), before.as_str()), "{seen}");
    // The difference stands before the question, with where the new text came from.
    let question = seen.find("Store this as the expected text of `one`?").unwrap();
    assert!(seen[..question].contains("+ Hi one!  <- prompts/hi/template.md:1"), "{seen}");
    let (code, seen, after) = ask("expected text of `one`?=y;expected text of `two`?=");
    let expected = before.replacen("old\n", "Hi one!\nRights reserved.\nBye.\n", 1);
    assert_eq!((code, after), (Some(1), expected), "{seen}");
    assert!(seen.contains("wrote 1 changed expected text"), "{seen}");
    assert!(seen.contains("2 cases: 1 updated, 1 failed"), "{seen}");
    let (code, seen, after) = ask("expected text of `two`?=y");
    assert!(code == Some(0) && !after.contains("old"), "{seen}{after}");
}

#[test]
fn failed_cases_set_the_exit_code_without_a_reader() {
    let project = Project::new();
    project.write("prompts/a/template.md", "A.");
    project.write("prompts/a/tests.md", "## passes\n```text expected\nA.\n```\n");
    project.write("prompts/b/template.md", "B.");
    project.write("prompts/b/tests.md", "## fails\n```text expected\nC.\n```\n");
    for (args, expected) in
        [(&["test"][..], 1), (&["test", "--json"], 1), (&["test", "--all"], 1), (&["test", "a"], 0)]
    {
        let mut command = project.command("cuebook", project.path());
        command.args(args);
        assert_eq!(support::code_when_closed(command), Some(expected), "{args:?}");
    }
}

#[test]
fn a_block_fits_into_a_file_with_carriage_returns() {
    let project = Project::new();
    project.write("prompts/a/template.md", "A{{ x }}.");
    let before = "## one\r\n```yaml inputs\r\nx: 1\r\n```\r\n\r\n## two\r\nProse.\r\n\r\n\r\n## three\r\n```text expected\r\nA.\r\n```\r\n";
    project.write("prompts/a/tests.md", before);
    let (code, stdout, stderr) = run(&project, &["test", "--update", "--yes"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    let after = std::fs::read_to_string(project.path().join("prompts/a/tests.md")).unwrap();
    let expected = before
        .replace("x: 1\r\n```\r\n", "x: 1\r\n```\r\n\r\n```text expected\r\nA1.\r\n```\r\n")
        .replace("Prose.\r\n", "Prose.\r\n\r\n```text expected\r\nA.\r\n```\r\n");
    assert_eq!(after, expected);
    let (code, stdout, stderr) = run(&project, &["test"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
}

#[test]
fn updates_pass_with_carriage_returns_in_values() {
    for line_end in ["\n", "\r\n"] {
        let project = Project::new();
        project.write("prompts/a/template.md", "{{ x }}\nEnd {{ y }}.");
        let cases =
            "## one\n```yaml inputs\nx: \"1\\r\\n2\\r3\\r\\n\"\ny: z\n```\n```text expected\nold\n```\n";
        project.write("prompts/a/tests.md", cases.replace('\n', line_end));
        let (code, stdout, _) = run(&project, &["test"]);
        assert!(code == 1 && stdout.contains("+ End z.  <- prompts/a/template.md:2\n"), "{stdout}");
        let (code, stdout, stderr) = run(&project, &["test", "--update", "--yes"]);
        assert_eq!(code, 0, "{stdout}{stderr}");
        let after = std::fs::read_to_string(project.path().join("prompts/a/tests.md")).unwrap();
        let block = "```text expected\n1\n2\n3\n\nEnd z.\n```\n".replace('\n', line_end);
        assert!(after.ends_with(&block), "{after:?}");
        let (code, stdout, stderr) = run(&project, &["test"]);
        assert_eq!(code, 0, "{stdout}{stderr}");
    }
}

#[test]
fn a_body_without_a_model_asks_for_it_where_a_case_can_say_it() {
    let project = Project::new();
    project.write("prompts/a.prompty", "---\nname: a\n---\nuser:\nHi.\n");
    let cases = "## one\n```yaml settings\nas: wire:openai\n```\n```json expected\n{}\n```\n";
    project.write("prompts/a.tests.md", cases);
    let (code, stdout, stderr) = run(&project, &["test"]);
    assert!(code == 1 && stdout.contains("`model: NAME` to the settings of the case"), "{stdout}{stderr}");
    assert!(!stdout.contains("--model"), "{stdout}");
    project.write("prompts/a.tests.md", cases.replace("openai\n", "openai\nmodel: gpt-4o\n"));
    let (_, stdout, _) = run(&project, &["test"]);
    assert!(stdout.contains("gpt-4o") && !stdout.contains("did not render"), "{stdout}");
}

#[test]
fn a_case_unsets_an_input_of_the_file() {
    let project = Project::new();
    project.write("prompts/hi/template.md", "Hi{% if name is defined %} {{ name }}{% endif %}!\n");
    let cases = |settings: &str, inputs: &str| {
        format!(
            "# All\n```yaml inputs\nname: Ada\n```\n## with\n```text expected\nHi Ada!\n```\n## without\n```yaml settings\n{settings}\n```\n```yaml inputs\n{inputs}\n```\n```text expected\nHi!\n```\n## again\n```text expected\nHi Ada!\n```\n"
        )
    };
    let run = |settings: &str, inputs: &str| {
        project.write("prompts/hi/tests.md", cases(settings, inputs));
        let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
        let output = command.args(["test", "--json"]).output().unwrap();
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    assert_eq!(run("unset: [name]", "")["passed"], 3);
    assert_eq!(run("unset: name", "")["passed"], 3);
    for (settings, inputs, message) in [
        ("unset: [nmae]", "", "there is no input `nmae` to unset"),
        ("unset: [name]", "name: Bo", "the case gives the input `name` and unsets it"),
        ("unset: {name: 1}", "", "`unset` is a list of inputs"),
    ] {
        let report = run(settings, inputs);
        assert_eq!(
            (&report["broken"], &report["files"][0]["error"]["message"]),
            (&1.into(), &message.into()),
            "{report}"
        );
    }
}
