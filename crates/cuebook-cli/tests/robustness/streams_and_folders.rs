//! Inputs, outputs and folders that are gone, closed or full.

use crate::skip;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::robust_support::{CUEBOOK, Project, run, wait};
use crate::{TEMPLATE, fails, is_root};

#[test]
fn unreadable_variables_are_reported_with_their_place() {
    let project = Project::new().write(TEMPLATE, "{{ x }}");
    for (content, said) in [
        (
            &b"[1]"[..],
            "error[CB407]: expected a JSON object\n --> v.json:1:1\n  |\n1 | [1]\n  | ^ this is an array\n  |\n  = help: start with { and end with }",
        ),
        (
            br#"{"x": "one", "x": "two"}"#,
            "error[CB407]: duplicate key `x` in an object\n --> v.json:1:14\n  |\n1 | {\"x\": \"one\", \"x\": \"two\"}\n  |  ---         ^^^ second one here\n  |  |\n  |  first one here\n  |\n  = help: remove one of them: JSON readers disagree about which one counts",
        ),
        (
            b"\0\x01\xff",
            "error[CB113]: byte 2 (0xff) is not UTF-8\n --> v.json:1:3\n  |\n1 | \u{2400}\u{2401}\u{fffd}\n  |   ^ not UTF-8 from here\n  |\n  = help: save the file as UTF-8",
        ),
        (b"", "error[CB407]: v.json: not valid JSON: the file is empty\nhelp: write at least `{}`"),
    ] {
        project.put("v.json", content);
        fails(&project, &["render", "p", "--vars", "v.json"], said);
    }
    fails(
        &project,
        &["render", "p", "--vars", "none.json"],
        "error[CB110]: none.json: no such file or folder\nhelp: paths are relative to the current folder",
    );
    fails(
        &project,
        &["render", "p", "--vars", "prompts"],
        "error[CB110]: prompts: expected a file, found a folder",
    );
}

#[test]
fn values_that_are_nested_without_end_are_refused() {
    let project = Project::new().write(TEMPLATE, "{{ x }}");
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{{\"x\": {}1{}}}", open.repeat(10_000), close.repeat(10_000));
        project.put("v.json", deep);
        let error = project.run(&["render", "p", "--vars", "v.json", "--json"]).error();
        assert_eq!(error["code"], "CB407");
        assert!(error["message"].as_str().unwrap().contains("recursion limit exceeded"), "{error}");
    }
    let value = format!("x:={}{}", "[".repeat(10_000), "]".repeat(10_000));
    let run = project.run(&["render", "p", "--var", &value]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.len() < 1_000, "the value is not repeated at length");
}

#[test]
fn a_hundred_thousand_variables_are_taken() {
    let project = Project::new().write(TEMPLATE, "{{ v0 }} {{ v99999 }}");
    let values: serde_json::Map<String, serde_json::Value> =
        (0..100_000).map(|number| (format!("v{number}"), number.into())).collect();
    project.put("v.json", serde_json::to_vec(&values).unwrap());
    assert_eq!(project.run(&["render", "p", "--vars", "v.json"]).text(), "0 99999");
}

// --- circumstances ---

#[test]
fn a_closed_stdin_is_an_empty_one() {
    let project = Project::new().write(TEMPLATE, "{{ x }}");
    let mut command = Command::new("sh");
    command
        .args(["-c", "exec \"$0\" render p --vars - <&-", CUEBOOK])
        .current_dir(project.root())
        .env_remove("CUEBOOK_ROOT");
    run(command, b"").says(
        "\
error[CB407]: stdin: not valid JSON: the file is empty
help: write at least `{}`",
    );
}

#[test]
fn a_reader_that_has_had_enough_is_no_failure() {
    let project =
        Project::new().write(TEMPLATE, "long text\n".repeat(4_000)).write("prompts/q/template.md", "{{ x }}");
    for args in [
        &["list"][..],
        &["list", "--json"],
        &["render", "p"],
        &["render", "p", "--json"],
        &["render", "p", "--as", "segments"],
        &["show", "p"],
        &["explain", "p"],
        &["candidates", "p"],
        &["check"],
        &["pack", "list"],
        &["help", "codes"],
        &["completions", "bash"],
    ] {
        let mut child = project
            .command(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The other end is closed before anything is written: there is no reader at all.
        drop(child.stdout.take());
        let run = wait(child, b"");
        assert_eq!(run.code, Some(0), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn a_full_disk_is_a_failure_that_says_so() {
    let project = Project::new().write(TEMPLATE, "text");
    let Ok(full) = fs::File::options().write(true).open("/dev/full") else {
        return skip::on_this_machine("/dev/full is missing");
    };
    for args in [&["list"][..], &["list", "--json"], &["render", "p"]] {
        let mut command = project.command(args);
        let stdout = full.try_clone().unwrap();
        let child = command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
        let run = wait(child, b"");
        assert_eq!(run.code, Some(1));
        assert!(
            run.stderr.starts_with("error[CB114]: cannot write the output: No space left"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn a_read_only_project_is_reported_with_a_fix() {
    if is_root() {
        return;
    }
    let project =
        Project::new().write(TEMPLATE, "text").write("user_data/shared/prompts/p/template.md", "text");
    let shared = project.path("user_data/shared/prompts");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o555)).unwrap();
    let run = project.run(&["resolve", "p", "prompts/p", "--json"]);
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).unwrap();
    let error = run.error();
    assert_eq!(error["code"], "CB114");
    assert_eq!(error["hint"], "make the folder writable, or choose another project with --root");
}

#[test]
fn commands_work_as_far_as_they_can_in_a_folder_that_is_gone() {
    let project = Project::new();
    let gone = |args: &str| {
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("mkdir gone && cd gone && rmdir ../gone && exec \"$0\" {args}"), CUEBOOK])
            .current_dir(project.root())
            .env_remove("CUEBOOK_ROOT");
        run(command, b"")
    };
    assert!(gone("render general_system --var agent_name=Ada").text().contains("Ada"));
    assert!(gone("list").text().contains("general_system"));
    gone("render ./x").says("error[CB110]: ./x: the file does not exist");
    gone("init")
        .says("error[CB114]: cuebook.toml: cannot write the file: No such file or directory (os error 2)");
}

#[test]
fn a_project_that_does_not_exist_is_not_an_empty_one() {
    let project = Project::new();
    let hint = "name another directory with --root, or create this one: cuebook init DIR";
    for args in [&["list"][..], &["render", "general_system"], &["check"], &["pack", "list"]] {
        fails(
            &project,
            &[args, &["--root", "nowhere"]].concat(),
            &format!("error[CB110]: nowhere: the project's directory does not exist\nhelp: {hint}"),
        );
        fails(
            &project,
            &[args, &["--root", "cuebook.toml"]].concat(),
            &format!("error[CB110]: cuebook.toml: the project is not a directory\nhelp: {hint}"),
        );
    }
}

#[test]
fn a_file_in_the_place_of_a_folder_is_named() {
    let project = Project::new().write("user_data/packs", "");
    fails(&project, &["list"], "error[CB110]: user_data/packs: expected a folder, found a file");
    let project = Project::new().write("prompts", "");
    fails(&project, &["list"], "error[CB110]: prompts: expected a folder, found a file");
}
