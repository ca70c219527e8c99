//! Directives on the command line.

#![allow(clippy::unwrap_used, reason = "a test that fails to unwrap has failed")]

mod support;

use support::Project;

const GREET: &str = "# Greet\n\n```xml\n<directive name=\"greet\" version=\"1.0.0\">\n  <metadata>\n    <description>Greet somebody</description>\n    <category>demo</category>\n    <author>ann</author>\n    <limits turns=\"3\" />\n    <permissions><execute>*</execute></permissions>\n  </metadata>\n  <inputs><input name=\"who\" required=\"true\">Whom</input></inputs>\n  <outputs><output name=\"said\" /></outputs>\n</directive>\n```\n\nGreet {input:who} from {env:GREETER:us}.\n";

/// A project with one directive, also in the user's space if that is wanted.
fn greet() -> Project {
    let project = Project::new();
    project.write(".ai/directives/demo/greet.md", GREET);
    project.write("home/.ai/config/cuebook.toml", "[prompts]\nenv = [\"GREETER\"]\n");
    project
}

/// What a command says: its exit code, and what it wrote.
fn say(project: &Project, args: &[&str]) -> (i32, String, String) {
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    let output = command.args(args).env("GREETER", "{input:who}").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[test]
fn a_directive_is_a_message_of_the_user() {
    let given =
        ["render", "demo/greet", "--var", "who=Ann", "--context", "returns=block", "--as", "messages"];
    let (code, out, err) = say(&greet(), &given);
    let messages: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, messages[0]["role"].as_str()), (0, Some("user")), "{err}");
    let text = messages.to_string();
    assert!(
        text.contains(r#"Greet Ann from {input:who}.\n\n<returns>\n  <output name=\"said\" />"#),
        "{text}"
    );
    assert!(err.starts_with("warning[CB220]"), "{err}");
    let given = [
        "render",
        "demo/greet",
        "--var",
        "who=Ann",
        "--as",
        "wire:anthropic",
        "--model",
        "claude-sonnet-4-5",
    ];
    let (code, out, _) = say(&greet(), &given);
    assert!(code == 0 && out.contains("Greet Ann from"), "{out}");
}

#[test]
fn a_directive_is_shown_and_listed() {
    let (_, out, _) = say(&greet(), &["show", "demo/greet"]);
    for line in ["may       rye.execute.*", "limits    turns 3", "returns   said", "  who  string   Whom"] {
        assert!(out.contains(line), "{line}:\n{out}");
    }
    let (_, out, _) = say(&greet(), &["list", "--type", "directive"]);
    assert_eq!(
        out,
        "demo/greet                 directive  .ai/directives/demo/greet.md\nrye/agent/continuation     directive  built-in:…/rye/agent/continuation.md\nrye/core/create_directive  directive  built-in:…/rye/core/create_directive.md\n"
    );
}

#[test]
fn shadowed_items_are_marked() {
    let project = greet();
    project.write("home/.ai/directives/demo/greet.md", GREET);
    let (_, out, err) = say(&project, &["candidates", "demo/greet"]);
    assert_eq!(
        out,
        "* .ai/directives/demo/greet.md  1.0.0  directive\n  ~/.ai/directives/demo/greet.md  1.0.0  directive, shadowed\n"
    );
    assert!(err.contains("it shadows ~/.ai/directives/demo/greet.md"), "{err}");
    let (_, out, _) = say(&project, &["list", "--type", "directive"]);
    assert!(
        out.contains(".ai/directives/demo/greet.md\n  shadows ~/.ai/directives/demo/greet.md\n"),
        "{out}"
    );
}

#[test]
fn a_misspelt_name_is_reported_with_the_nearest_one() {
    for (args, code, hint) in [
        (&["render", "demo/greet", "--var", "whoo=Ann"][..], 1, "did you mean `who`?"),
        (&["render", "demo/gret"], 1, "did you mean `demo/greet`?"),
        (
            &["render", "demo/greet", "--var", "who=x", "--context", "returns=blok"],
            2,
            "returns=call or returns=block",
        ),
    ] {
        let (found, _, err) = say(&greet(), args);
        assert!(err.contains(hint), "{args:?}: {err}");
        assert_eq!(found, code, "{args:?}: {err}");
    }
}

#[test]
fn the_environment_is_explained_and_not_looked_into() {
    let (_, out, _) = say(&greet(), &["explain", "demo/greet", "--var", "who=Ann"]);
    let (_, text) = out.split_once("\ntext\n").unwrap();
    let line = text.lines().find(|line| line.contains("env:GREETER (environment)")).unwrap_or(text);
    assert!(line.ends_with("│ {input:who}"), "{line}");
}

#[test]
fn a_folder_below_the_project_is_in_the_project() {
    let project = greet();
    std::fs::create_dir_all(project.path().join("src/deep")).unwrap();
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), &project.path().join("src/deep"));
    let output = command.args(["render", "demo/greet", "--var", "who=Ann"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
