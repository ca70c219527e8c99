//! Files and folders that are not what they should be.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::robust_support::{Project, Run, run};
use crate::{TEMPLATE, fails, is_root, pipe};

#[test]
fn a_template_that_is_not_utf8_is_refused_at_the_wrong_byte() {
    let project = Project::new().write(TEMPLATE, b"first\nok \xff bad");
    fails(
        &project,
        &["render", "p"],
        "\
error[CB113]: byte 9 (0xff) is not UTF-8
 --> prompts/p/template.md:2:4
  |
1 | first
2 | ok \u{fffd} bad
  |    ^ not UTF-8 from here
  |
  = help: save the file as UTF-8",
    );
}

#[test]
fn utf16_is_recognised() {
    let project = Project::new().write(TEMPLATE, b"\xff\xfeh\0i\0");
    fails(
        &project,
        &["render", "p"],
        "\
error[CB113]: byte 0 (0xff) is not UTF-8
 --> prompts/p/template.md:1:1
  |
1 | \u{fffd}\u{fffd}h\u{2400}i\u{2400}
  | ^ not UTF-8 from here
  |
  = help: the file looks like UTF-16: save it as UTF-8",
    );
}

#[test]
fn a_byte_order_mark_changes_nothing_and_is_a_warning() {
    let project =
        Project::new().write(TEMPLATE, b"\xef\xbb\xbfhello").write("prompts/q/template.md", "hello");
    assert_eq!(project.run(&["render", "p"]).text(), project.run(&["render", "q"]).text());
    assert_eq!(
        project.run(&["check", "p"]).text(),
        "\
warning[CB311]: prompts/p/template.md: the file begins with a byte-order mark
help: save it as UTF-8 without a byte-order mark
"
    );
}

#[test]
fn windows_line_ends_render_as_newlines_and_are_noted() {
    let project = Project::new().write(TEMPLATE, "a\r\n{{ x }}b\r\n");
    assert_eq!(project.run(&["render", "p"]).text(), "a\nb");
    assert_eq!(
        project.run(&["check", "p"]).text().lines().next().unwrap(),
        "note[CB312]: prompts/p/template.md: the file has Windows line endings"
    );
}

#[test]
fn a_folder_without_a_template_gets_a_hint_with_its_path() {
    let project = Project::new().write("prompts/p/notes.txt", "");
    fails(
        &project,
        &["render", "p"],
        "\
error[CB111]: prompts/p: the folder has neither a template.md nor a prompt.py, and no .prompty or .sections.md file with its name
help: write the prompt's text into prompts/p/template.md",
    );
}

#[test]
fn a_template_of_200_megabytes_is_refused_unread() {
    let project = Project::new().write(TEMPLATE, "");
    fs::File::create(project.path(TEMPLATE)).unwrap().set_len(200 << 20).unwrap();
    fails(
        &project,
        &["render", "p"],
        "\
error[CB112]: prompts/p/template.md: the file has 209715200 bytes, but the limit is 4194304
help: if you need a file of this size, raise `limits.file_size` in cuebook.toml, and grant it: cuebook allow",
    );
}

// --- what is no file ---

#[test]
fn a_circle_of_links_is_reported_for_every_file() {
    let circle = |file: &str| {
        format!(
            "error[CB110]: {file}: symbolic links form a cycle
help: replace one of the links with the file"
        )
    };
    let project = Project::new().link(TEMPLATE, "template.md");
    fails(&project, &["render", "p"], &circle(TEMPLATE));
    let project = Project::new().link("prompts/p", "p");
    fails(&project, &["render", "p"], &circle("prompts/p"));
    assert_eq!(project.run(&["check"]).code, Some(1), "check finds it as well");
    let project = Project::new()
        .write(TEMPLATE, "{% include 'partials/a.md' %}")
        .link("prompts/partials/a.md", "b.md")
        .link("prompts/partials/b.md", "a.md");
    fails(&project, &["render", "p"], &circle("prompts/partials/a.md"));
}

#[test]
fn a_link_that_leads_nowhere_is_named() {
    let nowhere = |file: &str| {
        format!(
            "error[CB110]: {file}: broken symbolic link
help: replace the link with the file or folder"
        )
    };
    fails(&Project::new().link(TEMPLATE, "gone.md"), &["render", "p"], &nowhere(TEMPLATE));
    fails(&Project::new().link("prompts/p", "gone"), &["render", "p"], &nowhere("prompts/p"));
    // A built-in prompt does not silently step into its place.
    let project = Project::new().link("prompts/general_system", "gone");
    assert_eq!(project.run(&["render", "general_system", "--json"]).error()["code"], "CB102");
}

#[test]
fn a_folder_with_the_name_of_a_template_is_named() {
    let project = Project::new().write("prompts/p/template.md/x", "");
    fails(&project, &["render", "p"], "error[CB110]: prompts/p/template.md: expected a file, found a folder");
}

#[test]
fn a_pipe_or_a_device_blocks_no_command() {
    let refused = |file: &str, what: &str| {
        format!(
            "error[CB110]: {file}: expected a file, found {what}
help: replace it with a plain file"
        )
    };
    let project = Project::new();
    pipe(&project, TEMPLATE);
    pipe(&project, "prompts/p/other.md");
    fails(&project, &["render", "p"], &refused(TEMPLATE, "a pipe"));
    fails(&project, &["render", "prompts/p/other.md"], &refused("prompts/p/other.md", "a pipe"));
    assert_eq!(project.run(&["check"]).code, Some(1));
    assert_eq!(project.run(&["list"]).code, Some(0));
    let project = Project::new().write("prompts/q/template.md", "{% include 'p/template.md' %}");
    pipe(&project, TEMPLATE);
    fails(&project, &["render", "q"], &refused(TEMPLATE, "a pipe"));
    let project = Project::new().link(TEMPLATE, "/dev/zero");
    fails(&project, &["render", "p"], &refused(TEMPLATE, "a device"));
    for file in
        ["cuebook.toml", "user_data/shared/prompts/defaults.json", "user_data/shared/prompts/resolution.json"]
    {
        let project = Project::new().write(TEMPLATE, "text");
        let _ = fs::remove_file(project.path(file));
        pipe(&project, file);
        fails(&project, &["render", "p"], &refused(file, "a pipe"));
    }
}

#[test]
fn variables_may_come_through_a_pipe() {
    let project = Project::new().write(TEMPLATE, "{{ x }}");
    pipe(&project, "variables");
    let path = project.path("variables");
    let writer = std::thread::spawn(move || fs::write(path, r#"{"x": "piped"}"#).unwrap());
    assert_eq!(project.run(&["render", "p", "--vars", "variables"]).text(), "piped");
    writer.join().unwrap();
    let piped = run(project.command(&["render", "p", "--vars", "-"]), br#"{"x": "stdin"}"#);
    assert_eq!(piped.text(), "stdin");
}

#[test]
fn an_unreadable_file_is_reported_with_a_fix() {
    if is_root() {
        return;
    }
    let project = Project::new().write(TEMPLATE, "text");
    fs::set_permissions(project.path(TEMPLATE), fs::Permissions::from_mode(0o000)).unwrap();
    fails(
        &project,
        &["render", "p"],
        "\
error[CB110]: prompts/p/template.md: permission denied
help: make the file readable: chmod u+r prompts/p/template.md",
    );
}

#[test]
fn an_unreadable_folder_is_reported_and_offers_nothing() {
    if is_root() {
        return;
    }
    let project = Project::new().write(TEMPLATE, "text").write("prompts/p/tests.md", "## a\n");
    let folder = project.path("prompts/p");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o000)).unwrap();
    let said = "\
error[CB110]: prompts/p: permission denied to list the folder
help: make the folder readable: chmod u+rx prompts/p";
    fails(&project, &["render", "p"], said);
    let listed = project.run(&["list"]);
    let tested = project.run(&["test"]);
    let all = project.run(&["candidates", "p", "--json"]);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(listed.text().contains("prompts/p cannot be read"), "{}", listed.text());
    assert_eq!(tested.code, Some(1), "{}", tested.stderr);
    assert!(tested.stderr.ends_with("0 cases: 1 file could not be read\n"), "{}", tested.stderr);
    assert!(!String::from_utf8_lossy(&all.stdout).contains(".prompty"));
}

#[test]
fn an_unreadable_folder_is_named() {
    if is_root() {
        return;
    }
    for (folder, commands) in [
        (".ai", &[&["render", "p"][..], &["list"], &["check"], &["verify"], &["search", "zebra"]][..]),
        ("user_data", &[&["render", "p"], &["list"], &["check"]]),
    ] {
        let project = Project::new()
            .write(TEMPLATE, "text")
            .write(".ai/directives/ok.md", "x")
            .write("user_data/shared/defaults.json", "{}");
        let path = project.path(folder);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        let runs: Vec<Run> = commands.iter().map(|args| project.run(args)).collect();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        for (run, args) in runs.iter().zip(commands) {
            let said = format!("error[CB110]: {folder}: permission denied to list the folder\n");
            assert_eq!(run.code, Some(1), "{args:?}: {}", run.stderr);
            let all = String::from_utf8_lossy(&run.stdout).into_owned() + &run.stderr;
            assert_eq!(all.matches(&said).count(), 1, "{args:?}: {all}");
            assert!(!run.stderr.contains("no match"), "{}", run.stderr);
        }
    }
}

#[test]
fn every_survey_reports_a_directive_of_circular_links() {
    let project = Project::new().link(".ai/directives/x.md", "x.md");
    let listed = project.run(&["list"]);
    assert!(
        listed.text().contains(".ai/directives/x.md\n  cannot be read: cuebook check\n"),
        "{}",
        listed.text()
    );
    for args in [&["check"][..], &["verify"], &["search", "zebra"], &["render", "x"]] {
        let run = project.run(args);
        assert_eq!(run.code, Some(1), "{args:?}: {}", run.stderr);
        let all = String::from_utf8_lossy(&run.stdout).into_owned() + &run.stderr;
        assert!(all.contains("x.md: symbolic links form a cycle"), "{args:?}: {all}");
    }
}

#[test]
fn an_unreachable_prompt_is_reported_by_check() {
    use std::os::unix::ffi::OsStrExt;
    let project = Project::new().write(TEMPLATE, "text");
    let names: [&[u8]; 5] = [b"a\\b", b"new\nline", b"bad\xff", b"b\xfe.prompty", b"plain"];
    for name in names {
        let path = project.path("prompts").join(std::ffi::OsStr::from_bytes(name));
        match name.ends_with(b".prompty") {
            true => fs::write(path, "Hi").unwrap(),
            false => {
                fs::create_dir(&path).unwrap();
                fs::write(path.join("template.md"), "Hi").unwrap();
            }
        }
    }
    let listed = project.run(&["list"]);
    let own: Vec<&str> = listed.text().lines().filter(|line| line.contains(" prompts/")).collect();
    assert_eq!(own.len(), 2, "{}", listed.text());
    let checked = project.run(&["check", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
    let reported: Vec<&str> = report
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["code"] == "CB104")
        .map(|finding| finding["file"].as_str().unwrap())
        .collect();
    assert_eq!(
        reported,
        ["prompts/a\\b", "prompts/bad\u{fffd}", "prompts/b\u{fffd}.prompty", "prompts/new\nline"]
    );
}

#[test]
fn an_unreadable_place_is_reported_and_offers_nothing() {
    // Not even root gets through a circle of links.
    let project = Project::new();
    std::os::unix::fs::symlink("prompts", project.path("prompts")).unwrap();
    for args in [&["render", "p"][..], &["candidates", "p"], &["list"], &["test"], &["test", "p"]] {
        let run = project.run(args);
        assert_eq!(run.code, Some(1), "{args:?}: {}", run.stderr);
        assert!(
            run.stderr.starts_with("error[CB110]: prompts: symbolic links form a cycle\n"),
            "{args:?}: {}",
            run.stderr
        );
    }
}

#[test]
fn cases_that_cannot_be_looked_at_are_not_taken_for_none() {
    let project = Project::new().write(TEMPLATE, "text");
    std::os::unix::fs::symlink("tests.md", project.path("prompts/p/tests.md")).unwrap();
    let run = project.run(&["test"]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.ends_with("0 cases: 1 file could not be read\n"), "{}", run.stderr);
}
