//! `keys`, `trust`, `sign`, `verify`, `search` and `load`, as scripts use them.

#![allow(clippy::unwrap_used, reason = "a test that fails to unwrap has failed")]

mod support;

use std::process::Output;

use support::Project;

const DIRECTIVE: &str = "# Greet\n\n```xml\n<directive name=\"greet\" version=\"1.0.0\">\n  <metadata>\n    <description>Greets somebody</description>\n    <category>demo</category>\n    <author>ada</author>\n  </metadata>\n</directive>\n```\n\nSay hello.\n";

fn project() -> Project {
    let project = Project::new();
    project.write(".ai/directives/demo/greet.md", DIRECTIVE);
    project
}

fn run(project: &Project, args: &[&str]) -> Output {
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    command.args(args).output().unwrap()
}

fn json(project: &Project, args: &[&str]) -> (i32, serde_json::Value) {
    let output = run(project, &[args, &["--json"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let answer = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {error}: {text}"));
    (output.status.code().unwrap(), answer)
}

#[test]
fn scripts_sign_verify_search_and_load() {
    let project = project();
    let (code, key) = json(&project, &["keys", "generate", "--owner", "Ada"]);
    assert_eq!(code, 0, "{key}");
    let fingerprint = key["fingerprint"].as_str().unwrap().to_owned();
    let (code, unsigned) = json(&project, &["verify"]);
    assert_eq!((code, &unsigned["failed"]), (1, &1.into()));
    assert_eq!(unsigned["items"][0]["error"]["code"], "CB220");
    let (code, signed) = json(&project, &["sign", "directive", "demo/greet"]);
    assert_eq!((code, signed["signature"]["pubkey_fp"].as_str()), (0, Some(&*fingerprint)), "{signed}");
    let (code, verified) = json(&project, &["verify", "directive", "demo/greet"]);
    assert_eq!((code, &verified["owner"]), (0, &"Ada".into()));
    let (code, by_path) = json(&project, &["verify", ".ai/directives/demo/greet.md"]);
    assert_eq!((code, &by_path["hash"]), (0, &verified["hash"]));
    let (_, found) = json(&project, &["search", "greet", "--scope", "directive.demo"]);
    assert_eq!((&found["total"], &found["results"][0]["signed"]), (&1.into(), &true.into()));
    let (_, loaded) = json(&project, &["load", "directive", "demo/greet", "--to", "user"]);
    assert_eq!((&loaded["status"], &loaded["copied_to"]), (&"success".into(), &"user".into()));
    let (_, list) = json(&project, &["trust", "list"]);
    assert_eq!((&list[0]["trusted"], &list[0]["fingerprint"]), (&true.into(), &fingerprint.into()));
}

#[test]
fn a_private_key_is_never_shown_or_taken_for_public() {
    let project = project();
    run(&project, &["keys", "generate"]);
    let file = project.path().join("home/.ai/config/keys/signing/private_key.pem");
    let secret = std::fs::read_to_string(&file).unwrap();
    let secret = secret.lines().nth(1).unwrap();
    for args in [
        &["keys", "list"][..],
        &["keys", "list", "--json"],
        &["keys", "export"],
        &["keys", "export", "--json"],
        &["keys", "generate"],
        &["trust", "list", "--json"],
        &["trust", "add", file.to_str().unwrap()],
        &["--verbose", "sign", "directive", "*"],
    ] {
        let output = run(&project, args);
        let printed = [output.stdout, output.stderr].concat();
        assert!(!String::from_utf8_lossy(&printed).contains(secret), "{args:?}");
    }
    let output = run(&project, &["trust", "add", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("private key"));
    // The file that was there is there still.
    assert!(std::fs::read_to_string(&file).unwrap().contains(secret));
}

#[test]
fn mistakes_are_met_with_what_was_meant() {
    let project = project();
    let reported = |args: &[&str]| String::from_utf8_lossy(&run(&project, args).stderr).into_owned();
    assert!(reported(&["verify", "directiv", "demo/greet"]).contains("did you mean `directive`?"));
    assert!(reported(&["verify", "directive", "demo/gret"]).contains("did you mean `demo/greet`?"));
    assert!(reported(&["verify", ".ai/directives/demo/gret.md"]).contains("greet.md"));
    assert!(reported(&["search", "x", "--scope", "directve"]).contains("did you mean `directive`?"));
    assert!(reported(&["load", "directive", "demo/gret"]).contains("did you mean `demo/greet`?"));
    assert!(reported(&["sign", "directive", "../../x"]).contains("CB117"));
    assert!(reported(&["trust", "add", "nobody.pem"]).contains("CB110"));
    assert!(reported(&["sing", "directive", "x"]).contains("sign"));
}

#[test]
fn items_of_the_user_make_no_project_of_the_home() {
    let project = Project::new();
    project.write("home/.ai/directives/demo/greet.md", DIRECTIVE);
    project.write("home/work/deep/file.txt", "");
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), &project.path().join("home/work/deep"));
    let output = command.args(["search", "greet", "--scope", "directive.demo", "--json"]).output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["total"], &answer["results"][0]["source"]), (&1.into(), &"user".into()), "{answer}");
    // A project is found from a folder inside of it.
    project.write("home/work/.ai/directives/demo/other.md", DIRECTIVE);
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), &project.path().join("home/work/deep"));
    let output = command.args(["search", "greet", "--scope", "directive.demo", "--json"]).output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&answer["total"], &answer["results"][0]["source"]),
        (&2.into(), &"project".into()),
        "{answer}"
    );
}

#[test]
fn completions_know_the_commands_and_their_types() {
    let project = Project::new();
    let output = run(&project, &["completions", "bash"]);
    let script = String::from_utf8(output.stdout).unwrap();
    for word in ["keys", "trust", "sign", "verify", "search", "load", "directive tool knowledge"] {
        assert!(script.contains(word), "{word}");
    }
}

#[test]
fn the_report_says_where_a_key_is() {
    let project = Project::new();
    let elsewhere = project.path().join("elsewhere");
    let run = |args: &[&str], moved: bool| {
        let mut command = project.command("cuebook", project.path());
        if moved {
            command.env("USER_SPACE", &elsewhere);
        }
        let output = command.args(args).output().unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let reported = run(&["keys", "generate"], true);
    let place = elsewhere.join(".ai").to_string_lossy().into_owned();
    assert!(reported.contains(&format!("trusted in {place}/")) && !reported.contains('~'), "{reported}");
    let again = run(&["keys", "generate"], true);
    assert!(again.contains(&place) && !again.contains("~/"), "{again}");
    assert!(run(&["keys", "generate"], false).contains("trusted in ~/.ai/"));
}

#[test]
fn invalid_queries_are_refused_and_limits_are_shared() {
    let project = project();
    for query in ["((", "AND", &"x".repeat(4_097)] {
        let output = run(&project, &["search", query]);
        let reported = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{reported}");
        assert!(reported.contains("error[CB") && reported.contains("query"), "{reported}");
    }
    let (_, all) = json(&project, &["search", "", "--limit", "1000"]);
    let count = |answer: &serde_json::Value| {
        let answers = answer["answers"].as_array().unwrap().iter();
        answers.map(|one| one["results"].as_array().unwrap().len()).sum::<usize>()
    };
    assert!(count(&all) > 4);
    let (_, some) = json(&project, &["search", "", "--limit", "2", "--offset", "1"]);
    assert_eq!(count(&some), 2);
    let output = run(&project, &["search", "", "--limit", "3"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 3);
}

#[test]
fn unmatched_patterns_and_foreign_items_are_reported() {
    let project = project();
    run(&project, &["keys", "generate"]);
    let (code, answer) = json(&project, &["sign", "directive", "zz/*"]);
    assert_eq!(code, 1, "{answer}");
    assert_eq!(answer["error"]["code"], "CB116", "{answer}");
    let reported = String::from_utf8(run(&project, &["sign", "directive", "zz/*"]).stderr).unwrap();
    assert!(reported.contains("No directive items match: zz/*") && !reported.contains("]: :"), "{reported}");
    run(&project, &["sign", "directive", "demo/greet"]);
    run(&project, &["load", "directive", "demo/greet", "--to", "user"]);
    std::fs::remove_file(project.path().join(".ai/directives/demo/greet.md")).unwrap();
    let reported = String::from_utf8(run(&project, &["sign", "directive", "demo/greet"]).stderr).unwrap();
    assert!(reported.contains("cuebook sign directive demo/greet --space user"), "{reported}");
}

const SHELL_TOOL: &str = "# __version__ = \"1.0.0\"\n# __tool_type__ = \"shell\"\n# __category__ = \"a\"\n# __tool_description__ = \"D\"\n# __executor_id__ = \"rye/core/runtimes/bash/bash\"\n";

#[test]
fn a_copied_tool_or_directive_is_reported_and_does_not_run() {
    let project = project();
    project.write(".ai/tools/a/danger.sh", format!("{SHELL_TOOL}touch pwned\n"));
    run(&project, &["keys", "generate"]);
    assert_eq!(json(&project, &["sign", "tool", "a/danger"]).0, 0);
    assert_eq!(json(&project, &["sign", "directive", "demo/greet"]).0, 0);
    let path = |file: &str| project.path().join(file);
    std::fs::copy(path(".ai/tools/a/danger.sh"), path(".ai/tools/a/safe.sh")).unwrap();
    std::fs::create_dir_all(path(".ai/knowledge/demo")).unwrap();
    std::fs::copy(path(".ai/directives/demo/greet.md"), path(".ai/knowledge/demo/greet.md")).unwrap();
    let (code, answer) = json(&project, &["verify"]);
    let codes: Vec<(&str, &str)> = answer["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| Some((item["item_id"].as_str()?, item["error"]["code"].as_str()?)))
        .collect();
    assert_eq!((code, codes), (1, vec![("a/safe", "CB222"), ("demo/greet", "CB222")]), "{answer}");
    let (code, answer) = json(&project, &["execute", "tool", "a/safe"]);
    assert_eq!((code, &answer["metadata"]["error"]["code"]), (1, &"CB222".into()), "{answer}");
    assert!(!path("pwned").exists());
}

#[test]
fn a_signed_tool_is_no_key_once_it_is_copied() {
    let project = project();
    run(&project, &["keys", "generate"]);
    let stranger = project.path().join("stranger");
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    let output = command.env("USER_SPACE", &stranger).args(["keys", "generate", "--json"]).output().unwrap();
    let made: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let fingerprint = made["fingerprint"].as_str().unwrap();
    let pem = std::fs::read_to_string(stranger.join(".ai/config/keys/signing/public_key.pem")).unwrap();
    let tool = format!(
        "version = \"1.0.0\"\ntool_type = \"x\"\ncategory = \"a\"\ndescription = \"D\"\nexecutor_id = \"rye/core/primitives/subprocess\"\nfingerprint = \"{fingerprint}\"\n[public_key]\npem = \"\"\"\n{pem}\"\"\"\n"
    );
    project.write(".ai/tools/a/x.toml", &tool);
    assert_eq!(json(&project, &["sign", "tool", "a/x"]).0, 0);
    let signed = std::fs::read_to_string(project.path().join(".ai/tools/a/x.toml")).unwrap();
    project.write(&format!(".ai/config/keys/trusted/{fingerprint}.toml"), &signed);
    let (_, list) = json(&project, &["trust", "list"]);
    let entry = list.as_array().unwrap().iter().find(|entry| entry["fingerprint"] == *fingerprint).unwrap();
    assert_eq!(entry["trusted"], false, "{list}");
}

#[test]
fn two_permissions_elements_are_refused() {
    let project = Project::new();
    let twice = DIRECTIVE.replace("    <author>", "    <permissions/>\n    <permissions><execute><tool>rye.bash.*</tool></execute></permissions>\n    <author>");
    project.write(".ai/directives/demo/greet.md", &twice);
    run(&project, &["keys", "generate"]);
    for args in [&["sign", "directive", "demo/greet"][..], &["check", "demo/greet"], &["show", "demo/greet"]]
    {
        let output = run(&project, args);
        let reported = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {reported}");
        assert!(reported.contains("duplicate <permissions>"), "{args:?}: {reported}");
    }
}

#[test]
fn a_tool_with_a_parameter_in_a_nested_script_is_not_signed() {
    let project = Project::new();
    let tool = |script: &str| {
        format!(
            "version: 1.0.0\ntool_type: shell\ncategory: a\ndescription: D\nexecutor_id: rye/core/runtimes/bash/bash\nconfig:\n  command: |\n    {script}\n"
        )
    };
    run(&project, &["keys", "generate"]);
    project.write(".ai/tools/a/x.yaml", tool("sh -c \"echo {x}\""));
    let output = run(&project, &["sign", "tool", "a/x"]);
    let reported = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{reported}");
    assert!(
        reported.contains("{x} in line 8 would become part of the program that `sh -c` runs"),
        "{reported}"
    );
    project.write(".ai/tools/a/x.yaml", tool("sh -c 'echo \"$1\"' sh {x}"));
    assert_eq!(run(&project, &["sign", "tool", "a/x"]).status.code(), Some(0));
    let output = run(&project, &["execute", "tool", "a/x", "--dry-run"]);
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(reported.contains("interpreter: /") && reported.contains("bash"), "{reported}");
}

const SKILL: &str = "---\nname: review\ndescription: Reviews code\n---\nLook at {{ it }}.\n";

fn skill() -> Project {
    let project = Project::new();
    project.write("skills/review/SKILL.md", SKILL);
    project.write("skills/review/scripts/look.sh", "echo look\n");
    project
}

/// The error code of a command that fails.
fn code(project: &Project, args: &[&str]) -> String {
    let (status, answer) = json(project, args);
    assert_ne!(status, 0, "{args:?}: {answer}");
    answer["error"]["code"].as_str().unwrap().to_owned()
}

#[test]
fn a_skill_is_loaded_with_its_files() {
    let project = skill();
    let output = run(&project, &["load", "skill", "review"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), SKILL);
    let output = run(&project, &["load", "skill", "review", "scripts/look.sh"]);
    assert_eq!(output.stdout, b"echo look\n");
    let (_, loaded) = json(&project, &["load", "skill", "review"]);
    assert_eq!((&loaded["content"], &loaded["source"]), (&SKILL.into(), &"project".into()));
    assert_eq!(loaded["files"]["scripts/look.sh"]["size"], 10);
    for (args, error) in [
        (&["load", "skill", "reviw"][..], "CB116"),
        (&["load", "skill", "review", "scripts/lok.sh"], "CB116"),
        (&["load", "skill", "review", "../../secret"], "CB116"),
        (&["load", "skill", "review", "--from", "user"], "CB116"),
        (&["load", "directive", "demo/greet", "SKILL.md"], "CB407"),
    ] {
        assert_eq!(code(&project, args), error, "{args:?}");
    }
}

#[test]
fn a_skill_is_copied_whole_and_replaced_only_when_asked() {
    let project = skill();
    let copy = project.home().join(".agents/skills/review");
    let (status, copied) = json(&project, &["load", "skill", "review", "--to", "user"]);
    assert_eq!((status, &copied["copied_to"]), (0, &"user".into()), "{copied}");
    assert_eq!(std::fs::read_to_string(copy.join("scripts/look.sh")).unwrap(), "echo look\n");
    // Now there are two of this name, which --from distinguishes.
    assert_eq!(code(&project, &["load", "skill", "review"]), "CB102");
    for from in ["project", "user"] {
        let (status, loaded) = json(&project, &["load", "skill", "review", "--from", from, "--to", "user"]);
        assert_eq!((status, &loaded["source"]), (0, &from.into()), "{loaded}");
    }
    // The project's own copy goes, so that the user's is found.
    std::fs::remove_dir_all(project.path().join("skills")).unwrap();
    let (_, loaded) = json(&project, &["load", "skill", "review"]);
    assert_eq!(loaded["source"], "user");
    project.write("skills/other/SKILL.md", "---\nname: other\ndescription: Mine\n---\nMine.\n");
    std::fs::create_dir_all(project.home().join(".agents/skills/other")).unwrap();
    std::fs::write(project.home().join(".agents/skills/other/notes.md"), "Notes.\n").unwrap();
    assert_eq!(code(&project, &["load", "skill", "other", "--to", "user"]), "CB114");
    let (status, replaced) = json(&project, &["load", "skill", "other", "--to", "user", "--replace"]);
    assert_eq!(status, 0, "{replaced}");
    let names = |folder: &str| -> Vec<String> {
        let entries = std::fs::read_dir(project.home().join(folder)).unwrap().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names(".agents/skills/other"), ["SKILL.md"]);
    assert_eq!(names(".agents/skills"), ["other", "review"]);
}

#[test]
fn a_signed_skill_that_was_changed_is_not_loaded() {
    let project = skill();
    run(&project, &["keys", "generate", "--owner", "Ada"]);
    assert_eq!(json(&project, &["sign", "skill", "review"]).0, 0);
    assert_eq!(json(&project, &["load", "skill", "review"]).0, 0);
    project.write("skills/review/scripts/look.sh", "rm -r ~\n");
    for args in [&["load", "skill", "review"][..], &["load", "skill", "review", "--to", "user"]] {
        assert_eq!(code(&project, args), "CB221");
    }
    assert!(!project.home().join(".agents").exists());
}
