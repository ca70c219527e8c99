//! The runner of literate pages, tried on pages of its own.

mod support;

use support::transcript::Setup;
use support::{Test, transcript};

const PAGE: &str = "\
A page.

```file cuebook.toml
```

```file prompts/hi/template.md
Hi {{ name }}!
```

```console
$ cuebook render hi --var name=Ada
Hi Ada!
$ cuebook render hi --var nam=Ada
...
help: did you mean `name`?
...
[exit 1]
$ mkdir -p sub
$ cd sub
$ cuebook render hi \\
    --var name=Bo
Hi Bo!
$ echo 2026-11-15T09:15:05Z 2026-11-15 09:15:05.25+09:00 127.0.0.1 12:30
<DATE>T<TIME> <DATE> <TIME> 127.0.0.1 12:30
```

Other blocks are left alone:

```json
{}
```
";

#[test]
fn a_correct_page_is_unchanged() {
    let run = transcript::run(PAGE);
    assert_eq!(transcript::diff(PAGE, &run.rewritten), transcript::diff(PAGE, PAGE));
    assert!(run.printed.contains("error[CB404]"), "{}", run.printed);
}

#[test]
fn only_wrong_output_of_a_page_is_rewritten() {
    let wrong = PAGE.replace("Hi Ada!", "Hi Eve!").replace("Hi Bo!\n", "");
    assert_eq!(transcript::run(&wrong).rewritten, PAGE);
}

#[test]
fn the_pages_of_a_guide_go_on_where_the_one_before_them_ended() {
    let mut stage = Setup::new();
    stage.variable("WHO", "Ada");
    let first = "```console\n$ mkdir desk\n$ cd desk\n```\n```text file note.txt\nHi\n```\n```file ~/note.txt\nHome\n```\n";
    assert_eq!(stage.run(first).rewritten, first);
    let second = "```console\n$ cat note.txt ~/note.txt\nHi\nHome\n$ echo $WHO\nAda\n```\n";
    assert_eq!(stage.run(second).rewritten, second);
}

#[test]
#[should_panic(expected = "there is no folder nowhere")]
fn a_page_cannot_go_where_nothing_is() {
    Setup::new().run("```console\n$ cd nowhere\n```\n");
}

#[test]
fn a_file_of_bytes_and_a_link_are_made() {
    let page = "```file b.bin base64\n//5oAA==\n```\n```link a.bin -> b.bin\n```\n\
                ```console\n$ od -An -tx1 a.bin\n ff fe 68 00\n```\n";
    assert_eq!(transcript::run(page).rewritten, page);
}

#[test]
fn a_difference_is_shown_line_by_line() {
    assert_eq!(transcript::diff("a\nb\nc\n", "a\nx\nc\nd\n"), "  a\n- b\n+ x\n  c\n+ d\n");
}

#[test]
fn a_command_runs_in_a_project_of_its_own() {
    Test::new()
        .file("prompts/hi/template.md", "Hi {{ name }}")
        .args(["render", "hi", "--vars", "-"])
        .stdin("{\"name\": \"Ada\"}")
        .stdout("Hi Ada")
        .stderr("")
        .run();
    Test::new()
        .link("prompts/hi", "../elsewhere")
        .file("elsewhere/template.md", "Hi")
        .args(["render", "hi"])
        .stdout("Hi")
        .code(0)
        .run();
}
