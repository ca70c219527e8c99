//! `cuebook check` for continuous integration: which findings fail it, and the forms that other programs read.

#![allow(clippy::unwrap_used, reason = "a test that fails to unwrap has failed")]

mod support;

use serde_json::Value as Json;
use support::Project;

/// Runs the command in a folder of a project: exit code, stdout, stderr.
fn check_in(project: &Project, folder: &str, args: &[&str]) -> (i32, String, String) {
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), &project.path().join(folder));
    let output = command.arg("check").args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn check(project: &Project, args: &[&str]) -> (i32, String, String) {
    check_in(project, "", args)
}

/// A project with a warning (CB402), and nothing worse.
fn with_warning() -> Project {
    let project = Project::new();
    project.write("prompts/hi/prompt.py", "VARIABLES = {'required': [{'name': 'name'}]}\n");
    project.write("prompts/hi/template.md", "Hi {{ nmae }}, {{ name }}.\n");
    project
}

#[test]
fn denied_findings_fail_and_others_do_not() {
    let project = with_warning();
    let (code, stdout, _) = check(&project, &[]);
    assert_eq!(code, 0);
    assert!(stdout.starts_with("warning[CB402]"), "{stdout}");
    for denied in ["warnings", "warning", "notes", "CB402", "cb402", "undeclared-variable", "CB999,warnings"]
    {
        let (code, stdout, stderr) = check(&project, &["--deny", denied]);
        if denied.starts_with("CB999") {
            assert_eq!(code, 2, "{stderr}");
            continue;
        }
        assert_eq!(code, 1, "{denied}: {stderr}");
        assert!(stdout.starts_with("error[CB402]"), "{denied}: {stdout}");
        assert!(stderr.ends_with("1 prompt checked: 1 error\n"), "{denied}: {stderr}");
    }
    assert_eq!(check(&project, &["--deny", "CB304", "--deny", "CB306"]).0, 0);
    assert_eq!(check(&project, &["--deny", "CB304,CB402"]).0, 1);
    let (_, _, stderr) = check(&project, &["--deny", "warnigs"]);
    assert!(stderr.contains("did you mean `warnings`?"), "{stderr}");
}

#[test]
fn a_misspelt_key_can_fail_a_build() {
    let project = Project::new();
    project.write("prompts/hi.prompty", "---\nname: hi\ninptus:\n  - {name: name}\n---\nsystem:\nHi.\n");
    assert_eq!(check(&project, &[]).0, 0);
    assert_eq!(check(&project, &["--deny", "warnings"]).0, 1);
}

#[test]
fn github_gets_one_annotation_per_finding() {
    let project = with_warning();
    let (code, stdout, stderr) = check(&project, &["--output", "github"]);
    assert_eq!(code, 0);
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines.len(), 1, "{stdout}");
    let start = "::warning file=prompts/hi/template.md,line=1,endLine=1,col=7,endColumn=11,title=CB402 undeclared-variable::";
    assert!(lines[0].starts_with(start), "{stdout}");
    assert!(lines[0].contains("%0Ahelp: did you mean `name`?"), "{stdout}");
    assert_eq!(stderr, "1 prompt checked: 1 warning\n");
    let (_, stdout, _) = check(&project, &["--output", "github", "--deny", "warnings"]);
    assert!(stdout.starts_with("::error file="), "{stdout}");
}

#[test]
fn files_are_named_from_the_top_of_the_repository() {
    let project = Project::new();
    project.write(".git/HEAD", "ref: refs/heads/main\n");
    project.write("service/cuebook.toml", "");
    project.write("service/prompts/a, b/template.md", "{{ x");
    let (code, stdout, _) = check_in(&project, "service", &["--output", "github"]);
    assert_eq!(code, 1);
    assert!(stdout.starts_with("::error file=service/prompts/a%2C b/template.md,line=1,"), "{stdout}");
    let (_, stdout, _) = check_in(&project, "service", &["--output", "sarif"]);
    let sarif: Json = serde_json::from_str(&stdout).unwrap();
    let location = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "service/prompts/a%2C%20b/template.md");
}

#[test]
fn sarif_has_what_its_schema_requires() {
    let project = with_warning();
    project.write("prompts/no/template.md", "äö {{ x|uper }}\n{{ y\n");
    let (code, stdout, _) = check(&project, &["--output", "sarif"]);
    assert_eq!(code, 1);
    let sarif: Json = serde_json::from_str(&stdout).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    assert_eq!(
        (&run["tool"]["driver"]["name"], &run["columnKind"]),
        (&"cuebook".into(), &"unicodeCodePoints".into())
    );
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert!(results.len() >= 2);
    for result in results {
        let rule = &rules[usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        let region = &result["locations"][0]["physicalLocation"]["region"];
        for key in ["startLine", "startColumn", "endLine", "endColumn"] {
            assert!(region[key].as_u64().unwrap() >= 1, "{key}: {result}");
        }
    }
    let ids: Vec<&Json> = rules.iter().map(|rule| &rule["id"]).collect();
    let mut unique = ids.clone();
    unique.dedup();
    assert_eq!(ids, unique, "a rule is described once");
}

#[test]
fn nothing_found_is_an_empty_log() {
    let project = Project::new();
    project.write("prompts/hi/template.md", "Hi.\n");
    let (code, stdout, _) = check(&project, &["--output", "sarif"]);
    let sarif: Json = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, sarif["runs"][0]["results"].as_array().unwrap().len()), (0, 0));
    assert_eq!(check(&project, &["--output", "github"]).1, "");
    assert_eq!(check(&project, &["--output", "json"]).1.trim(), "[]");
    let (code, _, stderr) = check(&project, &["--output", "sarif", "--json"]);
    assert_eq!(code, 2, "{stderr}");
}

#[test]
fn an_unknown_option_of_a_model_is_reported_once() {
    let project = Project::new();
    let file = "---\nname: x\nmodel:\n  id: gpt-4o\n  options: {maxTokens: 5}\n---\nsystem:\nHi.\n";
    project.write("prompts/x.prompty", file);
    let (_, stdout, _) = check(&project, &[]);
    assert_eq!(stdout.matches("`maxTokens`").count(), 1, "{stdout}");
    assert!(stdout.contains("did you mean `maxOutputTokens`?"), "{stdout}");
}

/// A file's findings in the JSON form: code, line and column.
fn places(project: &Project) -> Vec<(String, u64, u64)> {
    let (_, stdout, _) = check(project, &["--json"]);
    let found: Vec<Json> = serde_json::from_str(&stdout).unwrap();
    let number = |one: &Json, name: &str| one[name].as_u64().unwrap_or_default();
    let place =
        |one: &Json| (one["code"].as_str().unwrap().to_owned(), number(one, "line"), number(one, "column"));
    let mut places: Vec<_> = found.iter().map(place).collect();
    places.sort();
    places
}

#[test]
fn every_syntax_error_of_a_template_is_reported() {
    let project = Project::new();
    project.write(
        "prompts/hi/template.md",
        "{{ a. }} {{ b. }}
{{ f( }} text {{ c. }}
{% include 'part.md' %}
",
    );
    project.write(
        "prompts/part.md",
        "{{ d. }} {{ e. }}
",
    );
    let found = places(&project);
    let lines: Vec<u64> = found.iter().filter(|one| one.0 == "CB304").map(|one| one.1).collect();
    assert_eq!(lines, [1, 1, 1, 1, 2, 2], "{found:?}");
}

#[test]
fn a_half_typed_prompty_has_only_its_error() {
    let project = Project::new();
    let head = "---
name: hi
inputs:
  - {name: user, kind: string}
---
system:
";
    project.write(
        "prompts/hi.prompty",
        format!(
            "{head}{{{{ user. }}}}
"
        ),
    );
    let found = places(&project);
    assert_eq!(found.iter().map(|one| one.0.as_str()).collect::<Vec<_>>(), ["CB304"], "{found:?}");
}

#[test]
fn tools_and_knowledge_that_cannot_be_signed_are_reported() {
    let project = Project::new();
    project.write("prompts/hi/template.md", "Hi.\n");
    project.write(".ai/tools/desk/order.yaml", "version: 1.0.0\ntool_type: http\ncategory: desk\n");
    project.write(".ai/tools/desk/broken.yaml", "version: [1\n");
    project.write(".ai/tools/desk/stamp.py", "import time\n\n__version__ = time.time()\n");
    project.write(".ai/tools/desk/helper.py", "def double(n):\n    return 2 * n\n");
    project.write(
        ".ai/knowledge/ops/backup.md",
        "---\nname: restore\ntitle: Backups\ncategory: ops\n---\nDaily.\n",
    );
    project.write(".ai/knowledge/ops/notes.md", "Only text.\n");
    let (code, stdout, _) = check(&project, &["--json"]);
    assert_eq!(code, 1);
    let findings: Vec<Json> = serde_json::from_str(&stdout).unwrap();
    let of = |file: &str| -> Vec<(String, String)> {
        let here = findings.iter().filter(|one| one["file"] == file);
        here.map(|one| {
            let text = |key: &str| one[key].as_str().unwrap().to_owned();
            (text("code") + " " + &text("severity"), text("message"))
        })
        .collect()
    };
    let missing = "Validation failed: Missing required field: description";
    assert_eq!(of(".ai/tools/desk/order.yaml"), [("CB328 warning".into(), missing.into())]);
    assert_eq!(of(".ai/tools/desk/broken.yaml").len(), 1);
    assert_eq!(of(".ai/tools/desk/stamp.py")[0].0, "CB328 error");
    assert_eq!(of(".ai/tools/desk/helper.py"), []);
    assert!(
        of(".ai/knowledge/ops/backup.md").iter().any(|one| one.1.contains("must match filename 'backup'"))
    );
    assert_eq!(of(".ai/knowledge/ops/notes.md"), []);
}
