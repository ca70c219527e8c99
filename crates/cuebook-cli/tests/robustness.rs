//! Files, templates and circumstances that nobody wishes for: none makes the command panic, hang, use up the memory, or
//! write half a result, and each is told by name, place and way out.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod robust_support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use robust_support::{CUEBOOK, Project, Run, run, wait};

const TEMPLATE: &str = "prompts/p/template.md";

/// Root reads and writes everything, so there is nothing to see for it.
fn is_root() -> bool {
    let root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if root {
        eprintln!("skipped: root has the right to everything, and a refusal cannot be seen");
    }
    root
}

fn pipe(project: &Project, path: &str) {
    let path = project.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// The same failure for people and for scripts.
#[track_caller]
fn fails(project: &Project, args: &[&str], said: &str) -> Run {
    let run = project.run(args);
    run.says(said);
    let json = project.run(&[args, &["--json"]].concat()).error();
    let code = json["code"].as_str().unwrap();
    assert!(said.starts_with(&format!("error[{code}]: ")), "{json}");
    run
}

// --- how files are stored ---

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
  |    ^ the text stops being UTF-8 here
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
  | ^ the text stops being UTF-8 here
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
        "note[CB312]: prompts/p/template.md: the file has Windows line ends"
    );
}

#[test]
fn a_folder_without_a_template_is_told_where_one_belongs() {
    let project = Project::new().write("prompts/p/notes.txt", "");
    fails(
        &project,
        &["render", "p"],
        "\
error[CB111]: prompts/p: the folder holds neither a template.md nor a prompt.py, and no .prompty or .sections.md file of its name
help: put the prompt's text into prompts/p/template.md",
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
error[CB112]: prompts/p/template.md: the file has 209715200 bytes, and the limit is 4194304
help: raise `limits.file_size` in cuebook.toml if the file is meant to be this large",
    );
}

// --- what is no file ---

#[test]
fn a_circle_of_links_is_named_wherever_it_stands() {
    let circle = |file: &str| {
        format!(
            "error[CB110]: {file}: symbolic links lead in a circle
help: replace one of the links with the file that was meant"
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
            "error[CB110]: {file}: a symbolic link leads nowhere
help: replace the link with what was meant"
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
    fails(
        &project,
        &["render", "p"],
        "error[CB110]: prompts/p/template.md: a file was expected, and this is a folder",
    );
}

#[test]
fn a_pipe_or_a_device_keeps_nobody_waiting() {
    let refused = |file: &str, what: &str| {
        format!(
            "error[CB110]: {file}: a file was expected, and this is {what}
help: put a plain file in its place"
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
fn a_file_that_may_not_be_read_is_told_with_the_way_out() {
    if is_root() {
        return;
    }
    let project = Project::new().write(TEMPLATE, "text");
    fs::set_permissions(project.path(TEMPLATE), fs::Permissions::from_mode(0o000)).unwrap();
    fails(
        &project,
        &["render", "p"],
        "\
error[CB110]: prompts/p/template.md: the file may not be read
help: give yourself the right to read it: chmod u+r prompts/p/template.md",
    );
}

#[test]
fn a_folder_that_may_not_be_looked_into_is_told_and_offers_nothing_that_is_not_there() {
    if is_root() {
        return;
    }
    let project = Project::new().write(TEMPLATE, "text").write("prompts/p/tests.md", "## a\n");
    let folder = project.path("prompts/p");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o000)).unwrap();
    let said = "\
error[CB110]: prompts/p: the folder may not be looked into
help: give yourself the right to: chmod u+rx prompts/p";
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
fn a_closed_folder_on_the_way_is_named_and_not_a_file_that_nobody_can_know_of() {
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
            let said = format!("error[CB110]: {folder}: the folder may not be looked into\n");
            assert_eq!(run.code, Some(1), "{args:?}: {}", run.stderr);
            let all = String::from_utf8_lossy(&run.stdout).into_owned() + &run.stderr;
            assert_eq!(all.matches(&said).count(), 1, "{args:?}: {all}");
            assert!(!run.stderr.contains("nothing fits"), "{}", run.stderr);
        }
    }
}

#[test]
fn a_directive_that_is_a_circle_of_links_is_told_by_everything_that_looks_at_all_of_them() {
    let project = Project::new().link(".ai/directives/x.md", "x.md");
    let listed = project.run(&["list"]);
    assert!(listed.text().contains(".ai/directives/x.md cannot be read"), "{}", listed.text());
    for args in [&["check"][..], &["verify"], &["search", "zebra"], &["render", "x"]] {
        let run = project.run(args);
        assert_eq!(run.code, Some(1), "{args:?}: {}", run.stderr);
        let all = String::from_utf8_lossy(&run.stdout).into_owned() + &run.stderr;
        assert!(all.contains("x.md: symbolic links lead in a circle"), "{args:?}: {all}");
    }
}

#[test]
fn a_prompt_that_nobody_can_ask_for_is_not_listed_and_check_says_why() {
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
    let told: Vec<&str> = report
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["code"] == "CB104")
        .map(|finding| finding["file"].as_str().unwrap())
        .collect();
    assert_eq!(
        told,
        ["prompts/a\\b", "prompts/bad\u{fffd}", "prompts/b\u{fffd}.prompty", "prompts/new\nline"]
    );
}

#[test]
fn a_place_of_prompts_that_cannot_be_looked_into_is_told_and_offers_nothing() {
    // Not even root gets through a circle of links.
    let project = Project::new();
    std::os::unix::fs::symlink("prompts", project.path("prompts")).unwrap();
    for args in [&["render", "p"][..], &["candidates", "p"], &["list"], &["test"], &["test", "p"]] {
        let run = project.run(args);
        assert_eq!(run.code, Some(1), "{args:?}: {}", run.stderr);
        assert!(
            run.stderr.starts_with("error[CB110]: prompts: symbolic links lead in a circle\n"),
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

// --- packs ---

fn pack(manifest: &str) -> Project {
    Project::new().write("user_data/packs/k/pack.json", manifest)
}

const MANIFEST: &str = r#"{"pack_id": "k", "version": "1.0.0", "type": "prompt_pack", "prompts": ["q"]}"#;

#[test]
fn a_pack_that_lists_what_it_does_not_contain_is_found_and_not_installed() {
    let project = pack(MANIFEST);
    let wanted = "\
error[CB202]: the pack lists the prompt `q` and does not contain it
 --> user_data/packs/k/pack.json:1:73
  |
1 | {\"pack_id\": \"k\", \"version\": \"1.0.0\", \"type\": \"prompt_pack\", \"prompts\": [\"q\"]}
  |                                                                         ^^^ there is neither a folder prompts/q nor a file prompts/q.prompty
  |
  = help: add prompts/q/template.md, or take the id out of the list
";
    let checked = project.run(&["check"]);
    assert_eq!((checked.code, String::from_utf8_lossy(&checked.stdout).as_ref()), (Some(1), wanted));
    let other = Project::new();
    let source = project.path("user_data/packs/k");
    let installed = other.run(&["pack", "install", source.to_str().unwrap(), "--json"]).error();
    assert_eq!(installed["code"], "CB202");
    assert!(!other.path("user_data/packs/k").exists());
}

#[test]
fn a_pack_that_contains_what_it_does_not_list_is_a_warning() {
    let project = pack(MANIFEST)
        .write("user_data/packs/k/prompts/q/template.md", "")
        .write("user_data/packs/k/prompts/stowaway/template.md", "");
    let checked = project.run(&["check", "--json"]);
    let findings: serde_json::Value = serde_json::from_str(checked.text()).unwrap();
    assert_eq!(findings[0]["code"], "CB203");
    assert_eq!(
        findings[0]["message"],
        "`user_data/packs/k/prompts/stowaway` holds a prompt that pack.json does not list"
    );
}

#[test]
fn a_pack_whose_id_is_not_its_folders_is_found() {
    let project =
        pack(&MANIFEST.replace("\"k\"", "\"other\"")).write("user_data/packs/k/prompts/q/template.md", "");
    let checked = project.run(&["check"]);
    assert_eq!(checked.code, Some(1));
    assert_eq!(
        String::from_utf8_lossy(&checked.stdout),
        "\
error[CB201]: user_data/packs/k/pack.json: pack.json says `other`, but the folder is `k`
help: rename the folder to user_data/packs/other, or mend `pack_id`
"
    );
}

#[test]
fn a_link_that_leads_out_of_a_pack_is_never_read() {
    let refused = |file: &str| {
        format!(
            "error[CB110]: {file}: a link leads out of the pack
help: put the file itself in its place: a pack holds its own files"
        )
    };
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("template.md"), "SECRET").unwrap();
    fs::write(outside.path().join("pack.json"), "SECRET").unwrap();
    let file = outside.path().join("template.md");
    let (folder, file) = (outside.path().to_str().unwrap(), file.to_str().unwrap());
    let below = "user_data/packs/k/prompts";

    let project = pack(MANIFEST).link(&format!("{below}/q/template.md"), file);
    fails(&project, &["render", "q"], &refused(&format!("{below}/q/template.md")));
    let project = pack(MANIFEST).link(&format!("{below}/q"), folder);
    fails(&project, &["render", "q"], &refused(&format!("{below}/q/template.md")));
    let project = pack(MANIFEST)
        .write(&format!("{below}/q/template.md"), "{% include 'linked/template.md' %}")
        .link(&format!("{below}/linked"), folder);
    fails(&project, &["render", "q"], &refused(&format!("{below}/linked/template.md")));
    let project = pack(MANIFEST)
        .write(&format!("{below}/q/template.md"), "{% include 'linked/template.md' %}")
        .link("user_data/packs/k/linked", folder);
    fails(&project, &["render", "q"], &refused("user_data/packs/k/linked/template.md"));
    let project = Project::new()
        .write(&format!("{below}/q/template.md"), "")
        .link("user_data/packs/k/pack.json", outside.path().join("pack.json").to_str().unwrap());
    fails(&project, &["pack", "show", "k"], &refused("user_data/packs/k/pack.json"));
}

#[test]
fn a_link_in_the_users_own_folder_is_the_users_choice_and_so_is_a_linked_pack() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("s.md"), "mine").unwrap();
    let project = Project::new()
        .write(TEMPLATE, "{% include 'linked/s.md' %}")
        .link("prompts/linked", outside.path().to_str().unwrap());
    assert_eq!(project.run(&["render", "p"]).text(), "mine");
    let developed = Project::new().write("k/prompts/q/template.md", "here").write("k/pack.json", MANIFEST);
    let project = Project::new().link("user_data/packs/k", developed.path("k").to_str().unwrap());
    assert_eq!(project.run(&["render", "q"]).text(), "here");
}

#[test]
fn a_pack_with_links_is_not_approved() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("prompt.py"), "METADATA = {}").unwrap();
    let target = outside.path().join("prompt.py");
    let project = pack(MANIFEST)
        .write("user_data/packs/k/prompts/q/template.md", "")
        .link("user_data/packs/k/prompts/q/prompt.py", target.to_str().unwrap());
    fails(
        &project,
        &["pack", "approve", "k", "--yes"],
        "\
error[CB207]: user_data/packs/k/prompts/q/prompt.py: a pack with links cannot be approved: what they lead to can change without the pack
help: put the file itself in its place",
    );
}

// --- ids and paths ---

#[test]
fn ids_with_tricks_lead_nowhere() {
    let project = Project::new().write(TEMPLATE, "text").write("secret/template.md", "secret");
    let not_an_id = |shown: &str, why: &str| {
        format!(
            "error[CB104]: {shown} is not a prompt id: {why}
help: give an id such as `general_system`, or a path to a file or folder such as `./prompts/greeting`"
        )
    };
    let long = "x".repeat(10_000);
    let dots = "an id cannot begin with a dot or contain control characters";
    for (id, said) in [
        ("", not_an_id("\"\"", "an id cannot be empty")),
        ("   ", not_an_id("\"   \"", "an id cannot be empty")),
        (".hidden", not_an_id("\".hidden\"", dots)),
        ("a\nb", not_an_id("\"a\\nb\"", dots)),
        ("a\u{1b}[2Jb", not_an_id("\"a\\u{1b}[2Jb\"", dots)),
        (
            &long,
            not_an_id(&format!("\"{}\"", "x".repeat(60)), "an id cannot be longer than 200 bytes"),
        ),
        (
            "🦀",
            "error[CB101]: no prompt `🦀` was found\nhelp: `cuebook list` shows every prompt".into(),
        ),
        (
            "secret",
            "error[CB101]: no prompt `secret` was found\nhelp: there is a file or folder of that name: give it as a path, `./secret`".into(),
        ),
        (
            "./nothing",
            "error[CB110]: nothing: there is no such file or folder\nhelp: paths are relative to the folder that you are in".into(),
        ),
    ] {
        fails(&project, &["render", id], &said);
    }
    assert_eq!(project.run(&["render", " p  "]).text(), "text", "white space around an id does not count");
    // A NUL cannot stand in an argument, but in a file that names the prompt.
    project.put("agent.json", r#"{"prompt_id": "a\u0000b"}"#);
    fails(&project, &["render", "--agent", "agent.json"], &not_an_id("\"a\\0b\"", dots));
    project.put("agent.json", r#"{"prompt_id": "./a\u0000b"}"#);
    assert_eq!(project.run(&["render", "--agent", "agent.json", "--json"]).error()["code"], "CB110");
}

#[test]
fn includes_never_leave_the_library() {
    for name in [
        "../secret.md",
        "/etc/passwd",
        ".git/config",
        "partials/../../secret.md",
        "partials/./a.md",
        "a//b.md",
    ] {
        let project = Project::new()
            .write("secret.md", "SECRET")
            .write(".git/config", "SECRET")
            .write("prompts/.git/config", "SECRET")
            .write("prompts/partials/a.md", "")
            .write(TEMPLATE, format!("{{% include '{name}' %}}"));
        let marks = "^".repeat(name.len() + 2);
        fails(
            &project,
            &["render", "p"],
            &format!(
                "\
error[CB306]: no template `{name}` exists
 --> prompts/p/template.md:1:12
  |
1 | {{% include '{name}' %}}
  |            {marks}
  |
  = help: paths are relative to the folder that holds the prompts, as in `partials/safety_rules.md`"
            ),
        );
        // The same by a name that is computed while it runs.
        project.put(TEMPLATE, format!("{{% set n = '{name}' %}}{{% include n %}}"));
        assert_eq!(project.run(&["render", "p", "--json"]).error()["code"], "CB306");
    }
}

// --- hostile templates ---

/// Renders a template that must fail, within the limits on time and memory, and gives the code.
#[track_caller]
fn hostile(template: impl AsRef<[u8]>) -> String {
    hostile_within("file_size = 20000000", template)
}

/// The same with other limits of the project's.
#[track_caller]
fn hostile_within(limits: &str, template: impl AsRef<[u8]>) -> String {
    let project =
        Project::new().write("cuebook.toml", format!("[limits]\n{limits}\n")).write(TEMPLATE, template);
    let text = project.run(&["render", "p"]);
    assert_eq!(text.code, Some(1), "{:.300} {:.2000}", String::from_utf8_lossy(&text.stdout), text.stderr);
    assert!(text.stdout.is_empty());
    assert!(text.stderr.len() < 10_000, "{} bytes of explanation", text.stderr.len());
    project.run(&["render", "p", "--json"]).error()["code"].as_str().unwrap().to_owned()
}

#[test]
fn nesting_without_end_is_refused_before_it_uses_up_the_stack() {
    for (open, close) in [("(", ")"), ("[", "]"), ("{1:", "}")] {
        let nested = format!("{{{{ {}1{} }}}}", open.repeat(100_000), close.repeat(100_000));
        assert_eq!(hostile(nested), "CB505");
    }
    assert_eq!(hostile("{{".repeat(5_000_000)), "CB505");
    let nested = format!("{}{}", "{% if a %}".repeat(100_000), "{% endif %}".repeat(100_000));
    assert_eq!(hostile(nested), "CB304");
}

#[test]
fn chains_without_end_are_refused_before_they_use_up_the_stack() {
    let many = |part: &str| part.repeat(100_000);
    for chain in [
        format!("{{{{ 1{} }}}}", many("+1")),
        format!("{{{{ x{} }}}}", many("~x")),
        format!("{{{{ x{} }}}}", many("|upper")),
        format!("{{{{ x{} }}}}", many(".a")),
        format!("{{{{ x{} }}}}", many("[0]")),
        format!("{{{{ x{} }}}}", many("()")),
        format!("{{{{ {}x }}}}", many("not ")),
        format!("{{{{ {}1 }}}}", many("-")),
        format!("{{{{ x{} }}}}", many(" and x")),
        format!("{{{{ x{} }}}}", many(" if y else x")),
        format!("{{{{ x{} }}}}", many(" < x")),
        format!("{{{{ x{} }}}}", many(" is defined")),
        format!("{{% if a %}}{}{{% endif %}}", many("{% elif b %}")),
    ] {
        assert_eq!(hostile(&chain), "CB505", "{chain:.40}");
    }
}

#[test]
fn recursion_without_end_is_stopped_and_told_once() {
    let project = Project::new().write(TEMPLATE, "{% include 'p/template.md' %}");
    fails(
        &project,
        &["render", "p"],
        "\
error[CB505]: templates or macros are nested more than 500 deep
 --> prompts/p/template.md:1:4
  |
1 | {% include 'p/template.md' %}
  |    ^^^^^^^^^^^^^^^^^^^^^^^
  |
  = help: templates include each other in a circle: prompts/p/template.md → prompts/p/template.md; if it is meant to end, raise `limits.recursion` in cuebook.toml",
    );
    assert_eq!(hostile("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), "CB505");
    assert_eq!(hostile("{% extends 'p/template.md' %}"), "CB307");
    assert_eq!(hostile("{% set n = 'p/template.md' %}{% include n %}"), "CB505");
    assert_eq!(hostile("{% for x in [[1]] recursive %}{{ loop([x]) }}{% endfor %}"), "CB505");
}

#[test]
fn loops_without_end_run_out_of_fuel() {
    let fuel = "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}";
    let project = Project::new().write(TEMPLATE, fuel);
    fails(
        &project,
        &["render", "p"],
        "\
error[CB504]: the template took more than 5000000 steps
 --> prompts/p/template.md:1:1
  |
1 | {% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}
  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  |
  = help: look for a loop that runs too often, or raise `limits.fuel` in cuebook.toml",
    );
    let code = hostile("{% for i in range(1000000000) %}{% endfor %}");
    assert!(["CB501", "CB504", "CB506"].contains(&&*code), "{code}");
}

#[test]
fn output_without_end_is_stopped() {
    let endless = format!("{{% for i in range(100000) %}}{}{{% endfor %}}", "x".repeat(1000));
    assert_eq!(hostile(endless), "CB503");
}

#[test]
fn nothing_can_double_a_value_for_ever() {
    for grow in [
        "{% set ns.s = ns.s ~ ns.s %}",
        "{% set ns.s = ns.s + ns.s %}",
        "{% set ns.s = ns.s * 2 %}",
        "{% set ns.s = [ns.s, ns.s]|join %}",
        "{% set ns.s = ns.s|replace('x', 'xx') %}",
        "{% set ns.s = '%s%s'|format(ns.s, ns.s) %}",
        "{% set ns.s = '{0}{0}'.format(ns.s) %}",
        "{% set ns.s = ns.s.join(['', '', '']) %}",
        "{% set s %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = s %}",
        "{% set ns.s = twice(ns.s) %}",
        "{% set ns.s = [ns.s, ns.s]|string %}",
        "{% set ns.s = [ns.s, ns.s]|tojson %}",
    ] {
        let template = format!(
            "{{% macro twice(s) %}}{{{{ s }}}}{{{{ s }}}}{{% endmacro %}}{{% set ns = namespace(s='x') %}}\
             {{% for i in range(100) %}}{grow}{{% endfor %}}"
        );
        // A build without optimisation takes its time for a string of the usual limit, and no other way.
        assert_eq!(hostile_within("string_bytes = 500000", template), "CB506", "{grow}");
    }
}

#[test]
fn one_step_cannot_make_a_value_without_bounds() {
    for (expression, code) in [
        ("'%2000000000d'|format(1)", "CB506"),
        ("'%.2000000000f'|format(1)", "CB506"),
        ("'{:2000000000}'.format(1)", "CB506"),
        ("'x' * 2000000000", "CB506"),
        ("[0] * 2000000000", "CB506"),
        ("'x'.ljust(2000000000)", "CB506"),
        ("'x'|center(2000000000)", "CB506"),
        ("'x'|indent(2000000000, true)", "CB506"),
        ("range(2000000000)|list", "CB501"),
        ("[1]|batch(2000000000, 0)|list", "CB506"),
        ("[1]|slice(2000000000)|list", "CB506"),
    ] {
        assert_eq!(hostile(format!("{{% set x = {expression} %}}")), code, "{expression}");
    }
}

#[test]
fn many_large_values_cannot_be_kept_at_once() {
    let keep = "{% set big = 'x' * 8000000 %}{% set ns = namespace(l=[]) %}\
                {% for i in range(1000) %}{% set ns.l = ns.l + [big ~ i] %}{% endfor %}";
    assert_eq!(hostile(keep), "CB506");
}

#[test]
fn text_of_the_author_cannot_be_captured_without_end() {
    let text = "x".repeat(4_000);
    for template in [
        format!(
            "{{% set s %}}{{% for i in range(100000) %}}{{% for j in range(10) %}}{text}{{% endfor %}}{{% endfor %}}{{% endset %}}"
        ),
        format!(
            "{{% macro m() %}}{text}{{% endmacro %}}{{% set ns = namespace(l=[]) %}}{{% for i in range(100000) %}}{{% set ns.l = [ns.l, m(), m(), m(), m(), m()] %}}{{% endfor %}}"
        ),
        format!(
            "{{% filter upper %}}{{% for i in range(100000) %}}{{% for j in range(10) %}}{text}{{% endfor %}}{{% endfor %}}{{% endfilter %}}"
        ),
        "{% set s %}{% for i in range(100000) %}{% for j in range(10) %}{% include 'p/part.md' %}{% endfor %}{% endfor %}{% endset %}".to_owned(),
    ] {
        let project = Project::new().write(TEMPLATE, &template).write("prompts/p/part.md", &text);
        assert_eq!(project.run(&["render", "p", "--json"]).error()["code"], "CB506", "{:.200}", template);
    }
}

// --- values ---

#[test]
fn variables_that_cannot_be_read_are_told_with_their_place() {
    let project = Project::new().write(TEMPLATE, "{{ x }}");
    for (content, said) in [
        (
            &b"[1]"[..],
            "error[CB407]: a JSON object was expected\n --> v.json:1:1\n  |\n1 | [1]\n  | ^ this is an array\n  |\n  = help: begin with { and end with }",
        ),
        (
            br#"{"x": "one", "x": "two"}"#,
            "error[CB407]: the key `x` stands twice in one object\n --> v.json:1:14\n  |\n1 | {\"x\": \"one\", \"x\": \"two\"}\n  |  ---         ^^^ the second time\n  |  |\n  |  the first time\n  |\n  = help: keep one of the two: readers of JSON disagree about which of them counts",
        ),
        (
            b"\0\x01\xff",
            "error[CB113]: byte 2 (0xff) is not UTF-8\n --> v.json:1:3\n  |\n1 | \u{2400}\u{2401}\u{fffd}\n  |   ^ the text stops being UTF-8 here\n  |\n  = help: save the file as UTF-8",
        ),
        (b"", "error[CB407]: v.json: not valid JSON: the file is empty\nhelp: write at least `{}`"),
    ] {
        project.put("v.json", content);
        fails(&project, &["render", "p", "--vars", "v.json"], said);
    }
    fails(
        &project,
        &["render", "p", "--vars", "none.json"],
        "error[CB110]: none.json: there is no such file or folder\nhelp: paths are relative to the folder that you are in",
    );
    fails(
        &project,
        &["render", "p", "--vars", "prompts"],
        "error[CB110]: prompts: a file was expected, and this is a folder",
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
        return eprintln!("skipped: there is no /dev/full here");
    };
    for args in [&["list"][..], &["list", "--json"], &["render", "p"]] {
        let mut command = project.command(args);
        let stdout = full.try_clone().unwrap();
        let child = command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
        let run = wait(child, b"");
        assert_eq!(run.code, Some(1));
        assert!(
            run.stderr.starts_with("error: the output could not be written: No space left"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn a_project_that_may_not_be_written_is_told_with_the_way_out() {
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
        .says("error[CB114]: cuebook.toml: could not be written: No such file or directory (os error 2)");
}

#[test]
fn a_project_that_does_not_exist_is_not_an_empty_one() {
    let project = Project::new();
    let hint = "name another folder with --root, or make this one: cuebook init DIR";
    for args in [&["list"][..], &["render", "general_system"], &["check"], &["pack", "list"]] {
        fails(
            &project,
            &[args, &["--root", "nowhere"]].concat(),
            &format!("error[CB110]: nowhere: the project's folder does not exist\nhelp: {hint}"),
        );
        fails(
            &project,
            &[args, &["--root", "cuebook.toml"]].concat(),
            &format!(
                "error[CB110]: cuebook.toml: the project must be a folder, and this is none\nhelp: {hint}"
            ),
        );
    }
}

#[test]
fn a_file_in_the_place_of_a_folder_is_named() {
    let project = Project::new().write("user_data/packs", "");
    fails(&project, &["list"], "error[CB110]: user_data/packs: a folder was expected, and this is a file");
    let project = Project::new().write("prompts", "");
    fails(&project, &["list"], "error[CB110]: prompts: a folder was expected, and this is a file");
}
