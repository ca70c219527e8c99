//! What scripts rely on: documents, exit codes, and what a command does not do.

#![allow(clippy::unwrap_used, reason = "a test that fails to unwrap has failed")]

mod support;

use serde_json::{Value as Json, json};
use support::{Project, Test};

/// Runs the command in a project: exit code, stdout, stderr.
fn cuebook(project: &Project, args: &[&str]) -> (i32, String, String) {
    let output = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path()).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(project: &Project, args: &[&str]) -> Json {
    let (_, stdout, _) = cuebook(project, args);
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

#[test]
fn wrong_usage_exits_with_2_and_a_failed_request_with_1() {
    let project = Project::new();
    project.write("prompts/p/template.md", "{{ x }}");
    for args in [
        &["render"][..],
        &["render", "p", "--var", "x"],
        &["render", "p", "--var", "=x"],
        &["render", "p", "--context", "language"],
        &["render", "p", "--context", "languag=ja"],
        &["render", "p", "--as", "txt"],
        &["render", "p", "--nonsense"],
        &["nonsense"],
    ] {
        let (code, stdout, stderr) = cuebook(&project, args);
        assert_eq!((code, stdout.as_str()), (2, ""), "{args:?}: {stderr}");
        let error = json(&project, &[args, &["--json"]].concat());
        assert_eq!(
            (&error["status"], &error["error"]["type"]),
            (&json!("error"), &json!("UsageError")),
            "{args:?}"
        );
    }
    for args in [
        &["render", "nothing"][..],
        &["render", "p", "--var", "y=1"],
        &["check", "nothing"],
        &["pack", "show", "x"],
    ] {
        let (code, _, _) = cuebook(&project, args);
        assert_eq!(code, 1, "{args:?}");
    }
}

#[test]
fn the_documents_have_the_fields_of_the_contract() {
    let project = Project::new();
    project.write("prompts/p/template.md", "A {{ x }}");
    let rendered = json(&project, &["render", "p", "--var", "x=1", "--json"]);
    assert_eq!((&rendered["text"], &rendered["tools"]), (&json!("A 1"), &json!([])));
    assert_eq!(rendered["spans"][1]["start"], 2);
    let segments = json(&project, &["render", "p", "--var", "x=1", "--as", "segments", "--json"]);
    assert_eq!(segments[1], json!({"kind": "interp", "text": "1", "source": "x", "strict": false}));
    let candidates = json(&project, &["candidates", "p", "--json"]);
    assert_eq!(
        candidates,
        json!([{"source": "prompts/p", "version": "1.0.0", "pack_id": null, "has_prompt_py": false, "has_template": true, "dialect": "template"}])
    );
    let listed = json(&project, &["list", "--json"]);
    let p = listed.as_array().unwrap().iter().find(|row| row["id"] == "p").unwrap();
    assert_eq!(
        (&p["name"], &p["type"], &p["dialect"], &p["source"]),
        (&json!("p"), &json!("custom"), &json!("template"), &json!("prompts/p"))
    );
    project.write("prompts/q/template.md", "{{ x");
    let findings = json(&project, &["check", "--json"]);
    let finding = &findings[0];
    assert_eq!(
        (&finding["code"], &finding["severity"], &finding["file"], &finding["line"], &finding["column"]),
        (&json!("CB304"), &json!("error"), &json!("prompts/q/template.md"), &json!(1), &json!(5))
    );
    let explained = json(&project, &["explain", "p", "--var", "x=1", "--json"]);
    assert_eq!(explained["prompt"]["source"], "prompts/p");
    assert_eq!(
        explained["variables"][0],
        json!({"name": "x", "layer": "caller", "value": "1", "declared": null, "used": true})
    );
    assert_eq!(json(&project, &["help", "CB101", "--json"])["rule"], "prompt-not-found");
    assert_eq!(json(&project, &["help", "hooks", "--json"])["topic"], "hooks");
}

#[test]
fn help_has_topics_and_suggests_the_near_ones() {
    Test::new().args(["help", "hooks"]).stdout(include_str!("../topics/hooks.md")).run();
    let error = "error[CB407]: no help for `hoks`\nhelp: did you mean `hooks` or `hook-signature`?\n\nfor more about this: cuebook help CB407\n";
    Test::new().args(["help", "hoks"]).stderr(error).code(1).run();
}

#[test]
fn a_conflict_lists_candidates_and_versions() {
    let project = Project::new();
    project.write("prompts/p/prompt.py", "METADATA = {");
    project.write(
        "user_data/shared/prompts/p/prompt.py",
        "METADATA = {\"version\": \"3.1.0\"}\nTEMPLATE = \"x\"",
    );
    let error = json(&project, &["render", "p", "--json"]);
    assert_eq!(error["error"]["type"], "PromptConflictError");
    let versions: Vec<&Json> = error["error"]["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|candidate| &candidate["version"])
        .collect();
    assert_eq!(versions, [&json!("3.1.0"), &Json::Null]);
    assert_eq!(cuebook(&project, &["candidates", "p"]).0, 0);
}

#[test]
fn check_takes_folders_and_goes_on_after_a_bad_target() {
    let project = Project::new();
    project.write("user_data/shared/prompts/bad/template.md", "{% if %}");
    project.write("new_pack/pack.json", r#"{"pack_id": "fresh", "prompts": ["one"]}"#);
    project.write("new_pack/prompts/one/template.md", "one");
    for target in [".", "user_data", "./user_data", "user_data/shared/prompts"] {
        let (code, stdout, stderr) = cuebook(&project, &["check", target]);
        assert_eq!(code, 1, "{target}: {stderr}");
        assert!(stdout.contains("CB304"), "{target}: {stdout}{stderr}");
    }
    let (code, stdout, stderr) = cuebook(&project, &["check", "new_pack"]);
    assert_eq!((code, stdout.as_str()), (0, ""), "{stderr}");
    let findings = json(&project, &["check", "bad", "nothing_at_all", "--json"]);
    let codes: Vec<&str> = findings.as_array().unwrap().iter().map(|f| f["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["CB101", "CB304"]);
}

#[test]
fn a_damaged_settings_file_is_one_error() {
    let project = Project::new();
    project.write("user_data/shared/prompts/resolution.json", r#"{"q": {"source": 3}}"#);
    assert_eq!(json(&project, &["list", "--json"])["error"]["code"], "CB107");
}

#[test]
fn a_configured_folder_that_is_not_there_is_named() {
    let project = Project::new();
    project.write("cuebook.toml", "[library]\npaths = [\"nosuch\"]\n");
    let error = json(&project, &["list", "--json"]);
    assert_eq!((&error["error"]["code"], &error["error"]["line"]), (&json!("CB105"), &json!(2)));
}

#[test]
fn check_reports_a_wrong_or_unused_vocabulary() {
    let project = Project::new();
    project.write("prompts/a/template.md", "A");
    project.write("prompts/d/template.md", "D");
    let vocab = "user_data/shared/vocab.json";
    let codes = |project: &Project| {
        let findings = json(project, &["check", "--json"]);
        let reported = |f: &Json| format!("{} {} {}", f["severity"], f["code"], f["line"]).replace('"', "");
        findings.as_array().unwrap().iter().map(reported).collect::<Vec<_>>()
    };
    project.write(vocab, "{\"prompt.a\": [\"prompt.hello\"],\n \"prompt.d\": [\"prompt.hello\"]}");
    assert_eq!(codes(&project), ["error CB106 2"]);
    assert_eq!(json(&project, &["render", "hello", "--json"])["error"]["code"], "CB106");
    project.write(vocab, "{\"prompt.a\": [\"prompt.d\"],\n \"prompt.nobody\": [\"prompt.hello\"]}");
    assert_eq!(codes(&project), ["warning CB106 1", "warning CB106 2"]);
    project.write(vocab, "{\"prompt.a\": [\"prompt.hello\"]}");
    assert_eq!(codes(&project), [""; 0]);
    project.write("cuebook.toml", "[library]\nvocab = \"nosuch.json\"\n");
    assert_eq!(codes(&project).len(), 1, "{:?}", codes(&project));
}

#[test]
fn hints_can_be_followed() {
    let project = Project::new();
    project.write("prompts/p/template.md", "A");
    let (_, _, reported) = cuebook(&project, &["render", "p", "--context", "session_id:=5"]);
    assert!(
        reported.contains("write --context session_id=TEXT") && !reported.contains("did you mean"),
        "{reported}"
    );
    let inputs = "<inputs><input name=\"order\" type=\"integer\" required=\"true\"/><input name=\"who\" required=\"true\"/></inputs>";
    project.write(
        ".ai/directives/ask.md",
        format!("# Ask\n\n```xml\n<directive name=\"ask\" version=\"1.0.0\"><metadata><description>d</description><category></category><author>a</author></metadata>{inputs}</directive>\n```\n\nGo.\n"),
    );
    let (_, _, reported) = cuebook(&project, &["render", "ask"]);
    assert!(reported.contains("pass --var order:=NUMBER --var who=TEXT"), "{reported}");
    let (_, _, reported) = cuebook(&project, &["resolve", "provider.git"]);
    assert!(reported.contains("no installed pack provides `git`"), "{reported}");
    for pack in ["one", "two"] {
        let manifest = r#"{"pack_id": "ID", "variable_providers": [{"namespace": "git", "file": "git.py"}]}"#;
        project.write(&format!("user_data/packs/{pack}/pack.json"), manifest.replace("ID", pack));
        project.write(&format!("user_data/packs/{pack}/git.py"), "def provide(context):\n    return {}\n");
    }
    let (code, _, reported) = cuebook(&project, &["resolve", "provider.git"]);
    assert!(code == 1 && reported.contains("user_data/packs/one/git.py"), "{reported}");
    let (code, shown, reported) = cuebook(&project, &["candidates", "provider.git"]);
    assert_eq!((code, shown.lines().count()), (0, 2), "{reported}");
    let source = json(&project, &["candidates", "provider.git", "--json"])[0]["source"].clone();
    let (code, _, reported) = cuebook(&project, &["resolve", "provider.git", source.as_str().unwrap()]);
    assert_eq!(code, 0, "{reported}");
    let (_, shown, _) = cuebook(&project, &["candidates", "provider.git"]);
    assert!(shown.starts_with("* "), "{shown}");
}

#[test]
fn a_replacement_goes_with_its_pack_and_must_be_accepted_again() {
    let project = Project::new();
    project.write("prompts/coding/template.md", "ours");
    let pack = r#"{"pack_id": "pro", "prompts": ["mine"], "replaces": {"prompts": {"coding": "mine"}}}"#;
    for (folder, text) in [("one", "good"), ("two", "evil")] {
        project.write(&format!("{folder}/pack.json"), pack);
        project.write(&format!("{folder}/prompts/mine/template.md"), text);
    }
    assert_eq!(cuebook(&project, &["pack", "install", "one", "--yes"]).0, 0);
    assert_eq!(cuebook(&project, &["render", "coding"]).1, "good");
    assert_eq!(cuebook(&project, &["pack", "remove", "pro", "--yes"]).0, 0);
    assert_eq!(cuebook(&project, &["render", "coding"]).1, "ours");
    let installed = json(&project, &["pack", "install", "two", "--json"]);
    assert_eq!(installed["replaced"], json!([]));
    assert_eq!(cuebook(&project, &["render", "coding"]).1, "ours");
}

#[test]
fn a_pack_needs_its_replacements_recorded() {
    let project = Project::new();
    project.write("prompts/coding/template.md", "ours");
    project.write("user_data/shared/prompts/resolution.json", "{\"q\": ");
    let pack = r#"{"pack_id": "pro", "prompts": ["mine"], "replaces": {"prompts": {"coding": "mine"}}}"#;
    project.write("new/pack.json", pack);
    project.write("new/prompts/mine/template.md", "theirs");
    let (code, _, stderr) = cuebook(&project, &["pack", "install", "new", "--yes"]);
    assert_eq!(code, 1, "{stderr}");
    assert!(stderr.contains("CB107"), "{stderr}");
    assert!(!project.path().join("user_data/packs/pro").exists());
}

#[test]
fn init_makes_a_project_and_overwrites_nothing() {
    let project = Project::new();
    let root = project.path().join("there");
    let root = root.to_str().unwrap();
    assert_eq!(cuebook(&project, &["--root", root, "init"]).0, 0);
    assert_eq!(cuebook(&project, &["--root", root, "check"]).0, 0);
    let (code, text, _) =
        cuebook(&project, &["--root", root, "render", "greeting", "--var", "user_name=Ada"]);
    assert!(code == 0 && text.contains("Ada"));
    assert_eq!(cuebook(&project, &["--root", root, "init"]).0, 1);
    assert!(!project.path().join("cuebook.toml").exists());
}

#[test]
fn completions_are_made_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let project = Project::new();
        let (code, script, _) = cuebook(&project, &["completions", shell]);
        assert!(code == 0 && script.contains("cuebook") && script.contains("candidates"), "{shell}");
        assert!(script.contains("cancel") && !script.contains("carry-out"), "{shell}");
    }
}

#[test]
fn a_cycle_of_includes_is_an_error() {
    Test::new()
        .file("prompts/a/template.md", "{% include 'b/template.md' %}")
        .file("prompts/b/template.md", "{% include 'a/template.md' %}")
        .args(["check", "a"])
        .code(1)
        .run();
    let project = Project::new();
    project.write("prompts/a/template.md", "{% include 'b/template.md' %}");
    project.write("prompts/b/template.md", "{% include 'a/template.md' %}");
    let error = json(&project, &["render", "a", "--json"]);
    assert_eq!(error["error"]["code"], "CB505");
    assert!(
        error["error"]["hint"].as_str().unwrap().contains("prompts/a/template.md → prompts/b/template.md"),
        "{error}"
    );
}

#[test]
fn help_groups_the_commands_and_suggests_the_near_ones() {
    let project = Project::new();
    let (code, long, _) = cuebook(&project, &["--help"]);
    assert_eq!(code, 0);
    for group in ["Write", "Inspect", "Test", "Share", "Run", "Serve", "Help", "Options"] {
        assert!(long.contains(&format!("\n\n{group}:\n")), "{group}: {long}");
    }
    assert!(long.contains("\nRun:\n  run          Run a prompt with a model\n"), "{long}");
    assert_eq!(cuebook(&project, &["help"]).1, long);
    let (code, _, stderr) = cuebook(&project, &["rendr"]);
    assert!(code == 2 && stderr.contains("similar subcommands exist: 'thread', 'render'"), "{stderr}");
}

#[test]
fn variables_come_from_json_and_from_yaml() {
    let project = Project::new();
    project.write("prompts/p/template.md", "{{ name }}: {{ langs|join('+') }}");
    project.write("v.yaml", "# whose\nname: Ada\nlangs: [en, ja]\n");
    project.write("v.json", r#"{"name": "Ada", "langs": ["en", "ja"]}"#);
    project.write("v.txt", "name: Ada\nlangs:\n  - en\n  - ja\n");
    for file in ["v.yaml", "v.json", "v.txt"] {
        let (code, stdout, stderr) = cuebook(&project, &["render", "p", "--vars", file]);
        assert_eq!((code, stdout.as_str()), (0, "Ada: en+ja"), "{file}: {stderr}");
    }
    project.write("list.yaml", "- a\n- b\n");
    project.write("broken.yaml", "name: [a\nlangs: b\n");
    project.write("broken.json", "name: Ada\n");
    for (file, wanted) in [
        ("list.yaml", "list.yaml:1:1"),
        ("broken.yaml", "broken.yaml:"),
        ("broken.json", "a YAML file ends in .yaml"),
    ] {
        let (code, _, stderr) = cuebook(&project, &["render", "p", "--vars", file]);
        assert_eq!(code, 1, "{file}: {stderr}");
        assert!(stderr.contains(wanted) && stderr.contains("help: "), "{file}: {stderr}");
    }
}

#[test]
fn a_budget_is_a_number() {
    let project = Project::new();
    project.write("prompts/p.sections.md", "# Task\nDo it.\n");
    for wrong in ["abc", "-1", "1.5", ""] {
        let (code, _, stderr) = cuebook(&project, &["render", "p", &format!("--fit={wrong}")]);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains("write a whole number of tokens, as in 4000"), "{wrong}: {stderr}");
    }
}
