//! Packs and names that try to lead somewhere else.

use std::fs;

use crate::robust_support::Project;
use crate::{TEMPLATE, fails};

fn pack(manifest: &str) -> Project {
    Project::new().write("user_data/packs/k/pack.json", manifest)
}

const MANIFEST: &str = r#"{"pack_id": "k", "version": "1.0.0", "type": "prompt_pack", "prompts": ["q"]}"#;

#[test]
fn a_pack_with_missing_files_is_not_installed() {
    let project = pack(MANIFEST);
    let wanted = "\
error[CB202]: the pack lists the prompt `q`, but does not contain it
 --> user_data/packs/k/pack.json:1:73
  |
1 | {\"pack_id\": \"k\", \"version\": \"1.0.0\", \"type\": \"prompt_pack\", \"prompts\": [\"q\"]}
  |                                                                         ^^^ neither a folder prompts/q nor a file prompts/q.prompty exists
  |
  = help: add prompts/q/template.md, or remove the id from the list
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
        "`user_data/packs/k/prompts/stowaway` is a prompt that pack.json does not list"
    );
}

#[test]
fn a_pack_whose_id_is_not_its_folders_is_found() {
    let project = pack(&MANIFEST.replace("\"k\"", "\"other\""))
        .write("user_data/packs/k/prompts/q/template.md", "text");
    let checked = project.run(&["check"]);
    assert_eq!(checked.code, Some(1));
    assert_eq!(
        String::from_utf8_lossy(&checked.stdout),
        "\
error[CB201]: user_data/packs/k/pack.json: pack.json says `other`, but the folder is `k`
help: rename the folder to user_data/packs/other, or fix `pack_id`
"
    );
}

#[test]
fn a_link_that_leads_out_of_a_pack_is_never_read() {
    let refused = |file: &str| {
        format!(
            "error[CB110]: {file}: the symbolic link leads out of the project or pack
help: replace the link with the file"
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
fn a_link_leads_out_of_no_project() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("s.md"), "mine").unwrap();
    let project = Project::new()
        .write(TEMPLATE, "{% include 'linked/s.md' %}")
        .link("prompts/linked", outside.path().to_str().unwrap());
    let run = project.run(&["render", "p"]);
    assert_eq!((run.code, run.stdout.len()), (Some(1), 0));
    assert!(run.stderr.contains("the symbolic link leads out of the project or pack"), "{}", run.stderr);
    let developed = Project::new().write("k/prompts/q/template.md", "here").write("k/pack.json", MANIFEST);
    for (link, target) in [("user_data/packs/k", "k"), ("user_data/packs", "")] {
        let project = Project::new().link(link, developed.path(target).to_str().unwrap());
        let run = project.run(&["render", "q"]);
        assert_eq!((run.code, run.stdout.len()), (Some(1), 0), "{link}");
        assert!(run.stderr.contains("the symbolic link leads out of the project or pack"), "{}", run.stderr);
    }
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
error[CB207]: user_data/packs/k/prompts/q/prompt.py: a pack with links cannot be approved: their targets can change without the pack
help: replace the link with the file",
    );
}

// --- ids and paths ---

#[test]
fn ids_with_tricks_lead_nowhere() {
    let project = Project::new().write(TEMPLATE, "text").write("secret/template.md", "secret");
    let not_an_id = |shown: &str, why: &str| {
        format!(
            "error[CB104]: invalid prompt id {shown}: {why}
help: use an id such as `general_system`, or a path such as `./prompts/greeting`"
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
            "error[CB101]: no prompt `🦀` in user_data/shared/prompts, prompts, ecosystem/default/prompts, the built-in prompts\nhelp: list the prompts: cuebook list".into(),
        ),
        (
            "secret",
            "error[CB101]: no prompt `secret` in user_data/shared/prompts, prompts, ecosystem/default/prompts, the built-in prompts\nhelp: a file or folder has this name: name it as a path, `./secret`".into(),
        ),
        (
            "./nothing",
            "error[CB110]: nothing: no such file or folder\nhelp: paths are relative to the current folder".into(),
        ),
    ] {
        fails(&project, &["render", id], &said);
    }
    assert_eq!(project.run(&["render", " p  "]).text(), "text", "white space around an id does not count");
    // A NUL cannot stand in an argument, but in a file that names the prompt.
    project.put("agent.json", r#"{"prompt_id": "a\u0000b"}"#);
    fails(&project, &["render", "--agent", "agent.json"], &not_an_id("\"a\\0b\"", dots));
    project.put("agent.json", r#"{"prompt_id": "./a\u0000b"}"#);
    assert_eq!(project.run(&["render", "--agent", "agent.json", "--json"]).error()["code"], "CB104");
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
error[CB306]: no template `{name}` found
 --> prompts/p/template.md:1:12
  |
1 | {{% include '{name}' %}}
  |            {marks}
  |
  = help: paths are relative to the prompts' folder, as in `partials/safety_rules.md`"
            ),
        );
        // The same by a name that is computed while it runs.
        project.put(TEMPLATE, format!("{{% set n = '{name}' %}}{{% include n %}}"));
        assert_eq!(project.run(&["render", "p", "--json"]).error()["code"], "CB306");
    }
}
