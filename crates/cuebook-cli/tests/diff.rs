//! `cuebook diff`, with real repositories, packs and archives.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests, though the lint sees only functions"
)]

mod support;

use std::path::Path;

use serde_json::Value as Json;
use support::Project;

fn cuebook_in(project: &Project, folder: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), folder);
    let output = command.arg("diff").args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn diff(project: &Project, args: &[&str]) -> (i32, String, String) {
    cuebook_in(project, project.path(), args)
}

fn json(project: &Project, args: &[&str]) -> Json {
    let (_, out, err) = diff(project, &[args, &["--json"]].concat());
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"))
}

fn git(project: &Project, args: &[&str]) {
    let who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main"];
    let done = project.command("git", project.path()).args(who).args(args).output().unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn commit(project: &Project) {
    git(project, &["add", "."]);
    git(project, &["commit", "-q", "--allow-empty", "-m", "A step"]);
}

/// A repository with a prompt that includes a partial.
fn greeting() -> Project {
    let project = Project::new();
    project.write("cuebook.toml", "");
    project.write("prompts/hi/template.md", "Hi {{ name }}!\n{% include 'partials/legal.md' %}\nBye.\n");
    project.write("prompts/partials/legal.md", "Rights reserved.");
    git(&project, &["init", "-q"]);
    commit(&project);
    project
}

#[test]
fn an_empty_committed_folder_stays_empty() {
    let project = Project::new();
    project.write("cuebook.toml", "[library]\npaths = [\"team\"]\n");
    project.write("prompts/hi/template.md", "Hi.\n");
    std::fs::create_dir(project.path().join("team")).unwrap();
    git(&project, &["init", "-q"]);
    commit(&project);
    project.write("prompts/hi/template.md", "Hello.\n");
    let (code, out, err) = diff(&project, &["HEAD:hi", "hi"]);
    assert!(code == 1 && out.contains("Hello."), "{code} {out}{err}");
}

#[test]
fn diff_compares_with_any_commit() {
    let project = greeting();
    let values = ["--var", "name=Ada"];
    let run = |args: &[&str]| diff(&project, &[args, &values].concat());
    let (code, out, err) = run(&["hi"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "HEAD:hi → hi: no difference\n", ""));
    // What is included counts, and is the revision's own.
    project.write("prompts/partials/legal.md", "All rights reserved.");
    let expected = "\
HEAD:hi → hi: text (+1 -1), 8 → 9 tokens

text
            Hi Ada!
          - Rights reserved.  <- HEAD:prompts/partials/legal.md:1
          + All rights reserved.  <- prompts/partials/legal.md:1
            Bye.

tokens, estimated
       8 → 9          +1  1 system
";
    let (code, out, err) = run(&["hi"]);
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    assert_eq!(out, expected);
    commit(&project);
    assert_eq!(run(&["hi"]).0, 0);
    let (code, out, _) = run(&["HEAD~1:hi"]);
    assert_eq!((code, out), (1, expected.replace("HEAD:", "HEAD~1:")));
    let (code, out, _) = run(&["HEAD~1:prompts/hi", "main:prompts/hi/template.md"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("+ All rights reserved.  <- main:prompts/partials/legal.md:1"), "{out}");
    // Nothing is left behind, and nothing was written.
    let status = project.command("git", project.path()).args(["status", "--porcelain"]).output().unwrap();
    assert_eq!(String::from_utf8(status.stdout).unwrap(), "");
}

#[test]
fn paths_are_relative_to_folder_project_or_root() {
    let project = Project::new();
    project.write("apps/one/cuebook.toml", "");
    project.write("apps/one/prompts/hi/template.md", "Hi!\n");
    git(&project, &["init", "-q"]);
    commit(&project);
    project.write("apps/one/prompts/hi/template.md", "Hello!\n");
    let one = project.path().join("apps/one");
    for (folder, path) in [
        (one.clone(), "HEAD:hi"),
        (one.clone(), "HEAD:prompts/hi"),
        (one.clone(), "HEAD:./prompts/hi/template.md"),
        (one.clone(), "HEAD:apps/one/prompts/hi"),
        (one.join("prompts"), "HEAD:hi/template.md"),
        (one.join("prompts/hi"), "HEAD:../../prompts/hi/template.md"),
    ] {
        let (code, out, err) = cuebook_in(&project, &folder, &[path, "hi"]);
        assert_eq!(code, 1, "{path}: {out}{err}");
        assert!(out.contains("- Hi!  <- HEAD:prompts/hi/template.md:1"), "{path}: {out}");
        assert!(out.contains("+ Hello!  <- prompts/hi/template.md:1"), "{path}: {out}");
    }
}

#[test]
fn a_prompt_missing_in_a_revision_is_reported_with_a_suggestion() {
    let project = greeting();
    project.write("prompts/new/template.md", "New");
    for (args, code, words) in [
        (&["HEAD:hii"][..], "CB521", "did you mean `hi`?"),
        (&["HEAD:prompts/hi/templte.md", "hi"], "CB521", "did you mean `prompts/hi/template.md`"),
        (&["new"], "CB521", "the revision `HEAD` has no prompt `new`"),
        (&["mian:hi"], "CB520", "did you mean `main`?"),
        (&["HEAD~7:hi"], "CB520", "the repository has no revision `HEAD~7`"),
        (&["general_system"], "CB521", "is built into the program"),
        (&["HEAD:general_system"], "CB521", "`HEAD:general_system` does not exist"),
        (&["hi", "nowhere"], "CB101", "no prompt `nowhere`"),
        (&["HEAD:"], "CB407", "has no prompt after its colon"),
        (&["--", "--output=x:hi"], "CB520", "has no revision `--output=x`"),
        (&["hi", "--var", "nam=Ada"], "CB404", "did you mean `name`?"),
    ] {
        let (exit, out, err) = diff(&project, args);
        assert_eq!((exit, out.as_str()), (2, ""), "{args:?}: {err}");
        assert!(err.contains(code) && err.contains(words), "{args:?}: {err}");
        let (exit, out, _) = diff(&project, &[&["--json"], args].concat());
        let document: Json = serde_json::from_str(&out).unwrap();
        assert_eq!((exit, document["error"]["code"].as_str()), (2, Some(code)), "{args:?}");
    }
    assert!(!project.path().join("x").exists());
}

#[test]
fn diff_without_git_compares_files() {
    let project = Project::new();
    project.write("a.prompty", "---\nname: p\n---\nsystem:\nOne.\n");
    project.write("b.prompty", "---\nname: p\n---\nsystem:\nTwo.\n\nuser:\nGo.\n");
    project.write("prompts/hi/template.md", "Hi");
    let (code, _, err) = diff(&project, &["hi"]);
    assert!(code == 2 && err.contains("CB519") && err.contains("not in a git repository"), "{err}");
    git(&project, &["init", "-q"]);
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    let none = command.args(["diff", "hi"]).env("PATH", project.path()).output().unwrap();
    let err = String::from_utf8(none.stderr).unwrap();
    assert!(none.status.code() == Some(2) && err.contains("git is not installed"), "{err}");
    let (code, out, _) = diff(&project, &["a.prompty", "b.prompty"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.starts_with("a.prompty → b.prompty: roles, text (+"), "{out}");
    assert!(out.contains("~ messages  system → system, user"), "{out}");
}

#[test]
fn code_of_a_revision_is_never_run_and_reported() {
    let project = Project::new();
    let code = "def pre_render(variables, context):\n    open('/tmp/ran', 'w')\n    return variables\n";
    project.write("prompts/hi/prompt.py", code);
    project.write("prompts/hi/template.md", "Hi");
    git(&project, &["init", "-q"]);
    commit(&project);
    project.write("prompts/hi/prompt.py", code.replace("open('/tmp/ran', 'w')", "variables['x'] = 1"));
    let (exit, out, err) = diff(&project, &["hi"]);
    assert_eq!(exit, 1, "{out}{err}");
    assert!(
        out.contains("pre_render did not run (HEAD:prompts/hi/prompt.py:1, prompts/hi/prompt.py:1)"),
        "{out}"
    );
    assert!(out.contains("-     open('/tmp/ran', 'w')"), "{out}");
    let document = json(&project, &["hi"]);
    assert_eq!(document["before"]["not_run"][0]["name"], "pre_render");
    assert_eq!(document["changes"][0]["aspect"], "hooks");
}

#[test]
fn an_error_in_a_revision_has_its_place_there() {
    let project = Project::new();
    project.write("prompts/hi/template.md", "Hi {{ name\n");
    git(&project, &["init", "-q"]);
    commit(&project);
    project.write("prompts/hi/template.md", "Hi {{ name }}\n");
    let (exit, _, err) = diff(&project, &["hi"]);
    assert!(exit == 2 && err.contains("--> HEAD:prompts/hi/template.md:1"), "{err}");
    // One that shows only when it is rendered does not keep the files from being compared.
    project.write("prompts/hi/template.md", "{{ 1 / name }}\n");
    commit(&project);
    project.write("prompts/hi/template.md", "Hi {{ name }}\n");
    let (exit, out, err) = diff(&project, &["hi", "--var", "name=Ada"]);
    assert_eq!(exit, 1, "{out}{err}");
    assert!(out.contains("HEAD:hi does not render:"), "{out}");
    assert!(out.contains("- {{ 1 / name }}  <- HEAD:prompts/hi/template.md:1"), "{out}");
    assert!(!out.contains("cuebook-diff-"), "{out}");
}

#[cfg(unix)]
#[test]
fn links_of_a_revision_lead_nowhere_outside_of_it() {
    let project = Project::new();
    let secret = tempfile::tempdir().unwrap();
    std::fs::write(secret.path().join("key.md"), "secret").unwrap();
    project.write("prompts/one/template.md", "Hi\n");
    project.link("prompts/two/template.md", "../one/template.md");
    project.link("prompts/folder", "one");
    project.link("prompts/around", "..");
    project.link("deep/er/template.md", "../link.md");
    project.link("deep/link.md", "../prompts/one/template.md");
    project.link("prompts/twice/template.md", "../../deep/er/template.md");
    project.link("prompts/out/template.md", &secret.path().join("key.md").to_string_lossy());
    git(&project, &["init", "-q"]);
    commit(&project);
    for link in ["HEAD:two", "HEAD:folder", "HEAD:twice"] {
        let (code, out, err) = diff(&project, &[link, "one"]);
        assert_eq!(code, 1, "{out}{err}");
        assert!(out.contains("about") && !out.contains("text ("), "it is what it leads to: {out}");
    }
    let (code, _, err) = diff(&project, &["HEAD:prompts/around", "one"]);
    assert!(code == 2 && err.contains("does not lead to a readable file"), "{err}");
    let (code, out, err) = diff(&project, &["HEAD:out", "one"]);
    assert!(code == 2 && !out.contains("secret") && !err.contains("secret"), "{out}{err}");
}

#[test]
fn packs_and_archives_are_compared() {
    let project = Project::new();
    for (pack, text) in [("polite", "Good day!\n"), ("brisk", "Hey!\n")] {
        project.write(&format!("user_data/packs/{pack}/pack.json"), format!(r#"{{"pack_id": "{pack}"}}"#));
        project.write(&format!("user_data/packs/{pack}/prompts/greet/template.md"), text);
    }
    let (code, out, _) = diff(&project, &["polite/greet", "brisk/greet"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("+ Hey!  <- user_data/packs/brisk/prompts/greet/template.md:1"), "{out}");
    let (code, _, err) = diff(&project, &["greet", "brisk/greet"]);
    assert_eq!(code, 2);
    let hint = "or compare them: cuebook diff user_data/packs/brisk/prompts/greet user_data/packs/polite/prompts/greet";
    assert!(err.contains("CB102") && err.contains(hint), "{err}");

    // What a revision offers twice is reported with what to write.
    git(&project, &["init", "-q"]);
    commit(&project);
    let (code, _, err) = diff(&project, &["HEAD:greet", "brisk/greet"]);
    let hint =
        "cuebook diff HEAD:user_data/packs/brisk/prompts/greet HEAD:user_data/packs/polite/prompts/greet";
    assert!(code == 2 && err.contains("CB102") && err.contains(hint), "{err}");
    let (code, out, err) = diff(&project, &["HEAD:polite/greet", "brisk/greet"]);
    assert_eq!(code, 1, "{out}{err}");

    // The next version of a pack, before it is installed.
    let next = project.path().join("polite-2.tar.gz");
    let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(
        std::fs::File::create(&next).unwrap(),
        flate2::Compression::fast(),
    ));
    for (path, text) in [
        (
            "polite/pack.json",
            r#"{"pack_id": "polite", "name": "Polite", "version": "2.0.0", "prompts": ["greet"]}"#,
        ),
        ("polite/prompts/greet/template.md", "Good evening!\n"),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap();
    let (code, out, err) = diff(&project, &["polite/greet", "polite-2.tar.gz:greet"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("+ Good evening!  <- polite-2.tar.gz:prompts/greet/template.md:1"), "{out}");
    let (code, _, err) = diff(&project, &["polite/greet", "polite-2.tar.gz:gret"]);
    assert!(code == 2 && !err.contains("cuebook-diff-"), "{err}");
    let reported = "the pack `polite-2.tar.gz` has no prompt `gret`";
    assert!(err.contains(reported) && err.contains("did you mean `greet`?"), "{err}");
    for other in ["nope", "prompts/nope"] {
        let (code, _, err) = diff(&project, &["polite/greet", &format!("polite-2.tar.gz:{other}")]);
        let reported = format!("the pack `polite-2.tar.gz` has no prompt `{other}`");
        assert!(code == 2 && err.contains(&reported) && err.contains("it has greet"), "{err}");
    }
    let (code, _, err) = diff(&project, &["polite/greet", "nothing.zip:greet"]);
    assert!(code == 2 && err.contains("nothing.zip"), "{err}");
    assert!(!project.path().join("user_data/packs/polite/prompts/greet/x").exists());
}

#[test]
fn scripts_get_everything_and_no_colours() {
    let project = greeting();
    project.write("prompts/hi/template.md", "Hello {{ name }} and {{ other }}!\n");
    let document = json(&project, &["hi", "--var", "name=Ada", "--model", "gpt-4o", "--color", "always"]);
    assert_eq!(document["same"], false);
    assert_eq!(
        (&document["before"]["label"], &document["after"]["source"]),
        (&"HEAD:hi".into(), &"prompts/hi".into())
    );
    assert_eq!(document["text"]["basis"], "rendered");
    assert_eq!(document["after"]["absent"][0], "other");
    assert_eq!(document["after"]["tokens"]["model"], "gpt-4o");
    assert_eq!((&document["text"]["added"], &document["text"]["removed"]), (&1.into(), &3.into()));
    let (_, out, _) = diff(&project, &["hi"]);
    assert!(!out.contains('\x1b'), "{out:?}");
}

#[test]
fn diff_exits_with_one_into_a_closed_pipe() {
    let project = Project::new();
    project.write("prompts/one/template.md", "One.");
    project.write("prompts/two/template.md", "Two.");
    let command = |args: &[&str]| {
        let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
        command.arg("diff").args(args);
        command
    };
    for more in [&[][..], &["--json"]] {
        let code = |two: &[&str]| support::code_when_closed(command(&[two, more].concat()));
        assert_eq!((code(&["one", "two"]), code(&["one", "one"])), (Some(1), Some(0)), "{more:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_unwritable_answer_is_a_failure() {
    let project = Project::new();
    project.write("prompts/one/template.md", "One.");
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    let done = command.args(["diff", "one", "one"]).stdout(full).output().unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("cannot write the output"), "{stderr}");
}

#[cfg(unix)]
#[test]
fn a_device_at_the_root_of_the_disk_is_named_by_its_path() {
    let project = Project::new();
    project.write("prompts/p/template.md", "Hi.");
    let output =
        project.command("cuebook", project.path()).args(["diff", "/dev/null", "p"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with("error[CB110]: /dev/null: expected a file, found a device"), "{stderr}");
}

#[test]
fn another_file_of_the_same_id_is_called_by_its_own_name() {
    let project = greeting();
    project
        .write("prompts/hi.prompty", "---\ninputs: {n: {kind: integer, required: true}}\n---\nNo {{ n }}.\n");
    let (_, stdout, stderr) = diff(&project, &["prompts/hi.prompty"]);
    assert!(stdout.starts_with("HEAD:prompts/hi → prompts/hi.prompty"), "{stdout}{stderr}");
    // What is no text is passed with another sign.
    assert!(stdout.contains("--var n:=…"), "{stdout}");
}

#[test]
fn a_library_is_compared_with_a_revision() {
    let project = greeting();
    project.write("prompts/gone/template.md", "Soon gone.\n");
    project.write("prompts/same/template.md", "Stays.\n");
    commit(&project);
    assert_eq!(diff(&project, &[]), (0, String::new(), "3 prompts since HEAD: no differences\n".to_owned()));
    std::fs::remove_dir_all(project.path().join("prompts/gone")).unwrap();
    project.write("prompts/new/template.md", "New.\n");
    // A partial changes what includes it.
    project.write("prompts/partials/legal.md", "All rights reserved.");
    let status = |document: &Json| -> Vec<(String, String)> {
        let text = |one: &Json, key: &str| one[key].as_str().unwrap().to_owned();
        document.as_array().unwrap().iter().map(|one| (text(one, "prompt"), text(one, "status"))).collect()
    };
    let pair = |prompt: &str, status: &str| (prompt.to_owned(), status.to_owned());
    let all = [pair("gone", "removed"), pair("hi", "changed"), pair("new", "added"), pair("same", "same")];
    assert_eq!(status(&json(&project, &[])), all);
    assert_eq!(status(&json(&project, &["--since", "HEAD"])), all);
    let (code, out, err) = diff(&project, &[]);
    assert_eq!(code, 1, "{err}");
    assert!(
        out.contains("- gone  removed (prompts/gone)\n") && out.contains("+ new  new (prompts/new)\n"),
        "{out}"
    );
    assert!(out.contains("+ All rights reserved.  <- prompts/partials/legal.md:1"), "{out}");
    assert_eq!(err, "4 prompts since HEAD: 1 changed, 1 added, 1 removed\n");
    let some = json(&project, &["--since", "HEAD~1", "same", "hi"]);
    assert_eq!(status(&some), [pair("same", "added"), pair("hi", "changed")]);
    assert_eq!(status(&json(&project, &["prompts"])), all[1..]);
    // A prompt that cannot be read is a failure.
    project.write("prompts/same/template.md", "{{ x");
    let (code, out, _) = diff(&project, &["--since", "HEAD"]);
    assert_eq!(code, 2);
    assert!(out.contains("error[CB304]"), "{out}");
    let (code, _, err) = diff(&project, &["hi", "new", "same"]);
    assert_eq!(code, 2);
    assert!(err.contains("cuebook diff --since HEAD hi new same"), "{err}");
    assert_eq!(diff(&project, &["--since", "nowhere"]).0, 2);
}
