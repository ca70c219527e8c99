//! `cuebook convert`, as people run it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests, though the lint sees only functions"
)]

mod support;

use serde_json::Value as Json;
use support::Project;

fn project() -> Project {
    let project = Project::new();
    project.write("prompts/p/template.md", "# Task\n\nGreet {{ name }} now.\n");
    project
}

fn read(project: &Project, path: &str) -> String {
    std::fs::read_to_string(project.path().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn run(project: &Project, args: &[&str]) -> (i32, String, String) {
    let output = project.command("cuebook", project.path()).arg("convert").args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn one_file_is_all_of_stdout_and_two_have_their_names() {
    let project = project();
    let (code, out, err) = run(&project, &["p", "--to", "directive"]);
    assert_eq!(code, 0, "{err}");
    assert!(
        out.starts_with("```xml\n<directive name=\"p\"") && out.ends_with("Greet {input:name?} now.\n"),
        "{out}"
    );
    assert!(err.contains("the directive is not signed") && err.contains("cuebook sign directive p"), "{err}");
    project.write("q.prompty", "Hi {{ name }}.");
    let (_, out, err) = run(&project, &["q.prompty", "--to", "template"]);
    assert!(
        out.starts_with("==> template.md <==\nHi {{ name }}.\n\n==> prompt.py <==\nMETADATA"),
        "{out}{err}"
    );
}

#[test]
fn convert_never_overwrites_other_files() {
    let project = project();
    let (code, out, err) = run(&project, &["p", "--to", "prompty", "--out", "made/hello.prompty"]);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    let written = read(&project, "made/hello.prompty");
    assert!(written.ends_with("---\n# Task\n\nGreet {{ name }} now."), "{written}");
    project.write("made/hello.prompty", "mine");
    let (code, _, err) = run(&project, &["p", "--to", "prompty", "--out", "made/hello.prompty"]);
    assert!(code == 1 && err.contains("error[CB518]") && err.contains("--force"), "{err}");
    assert_eq!(read(&project, "made/hello.prompty"), "mine");
    let (code, _, err) = run(&project, &["p", "--to", "prompty", "--out", "made/hello.prompty", "--force"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(read(&project, "made/hello.prompty"), written);
    // A folder gets a file of the prompt's name, a template is a folder, and a directive knows where it lies.
    assert_eq!(run(&project, &["p", "--to", "sections", "--out", "made"]).0, 0);
    assert!(read(&project, "made/p.sections.md").contains("Greet"));
    assert_eq!(run(&project, &["made/hello.prompty", "--to", "template", "--out", "made/again"]).0, 0);
    assert_eq!(read(&project, "made/again/template.md"), "# Task\n\nGreet {{ name }} now.\n");
    let (code, _, err) = run(&project, &["p", "--to", "directive", "--out", ".ai/directives/a/b/hi.md"]);
    assert_eq!(code, 0, "{err}");
    let directive = read(&project, ".ai/directives/a/b/hi.md");
    assert!(
        directive.contains("name=\"hi\"") && directive.contains("<category>a/b</category>"),
        "{directive}"
    );
    assert!(err.contains("cuebook sign directive a/b/hi"), "{err}");
}

#[test]
fn a_name_that_contradicts_the_notation_is_refused() {
    let project = project();
    for (to, out, better) in [
        ("template", "made/x.prompty", "--out made/x\n"),
        ("template", "x.sections.md", "--out x\n"),
        ("template", "x.md", "--out x\n"),
        ("template", ".prompty", "--out NAME\n"),
        ("prompty", "x.sections.md", "--out x.prompty,"),
        ("sections", "made/x.prompty", "--out made/x.sections.md,"),
        ("directive", "x.sections.md", "--out x.md,"),
    ] {
        let source = if to == "template" { "general_system" } else { "p" };
        let (code, stdout, stderr) = run(&project, &[source, "--to", to, "--out", out]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{to} {out}: {stderr}");
        assert!(
            stderr.starts_with("error[CB407]: --out names a file") && stderr.contains(better),
            "{stderr}"
        );
        assert!(!stderr.contains("/tmp"), "{stderr}");
        assert!(!project.path().join(out).exists() && !project.path().join("made").exists());
    }
}

#[test]
fn ignored_differences_are_reported() {
    let project = Project::new();
    project.write("prompts/p/template.md", "# Task\n\nGreet {{ name }} now.\n");
    project.write("prompts/p/prompt.py", "def pre_render(variables, context):\n    return variables\n");
    let (code, _, stderr) = run(&project, &["p", "--to", "prompty"]);
    assert_eq!(code, 0, "{stderr}");
    let reported =
        "1 lost; otherwise 4 test renders match\n(in the comparison, hooks and providers did not run)\n";
    assert!(stderr.ends_with(reported), "{stderr}");
    let (_, stdout, _) = run(&project, &["p", "--to", "prompty", "--json"]);
    let json: Json = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&json["compared"], &json["uncompared"]), (&4.into(), &Json::Null));
    assert_eq!(json["compared_without"], serde_json::json!(["hooks and providers did not run"]));
}

#[test]
fn cases_are_written_beside_the_result_and_never_over_others() {
    let project = project();
    let cases = "## a\n```yaml inputs\nname: Ann\n```\n```text contains\nGreet Ann\n```\n";
    project.write("prompts/p/tests.md", cases);
    let (code, stdout, stderr) = run(&project, &["p", "--to", "prompty"]);
    assert!(code == 0 && stdout.starts_with("---\n") && !stdout.contains("==>"), "{stdout}{stderr}");
    assert!(
        stderr.starts_with("its test cases are not shown; --out writes them next to it as p.tests.md\n"),
        "{stderr}"
    );
    project.write("made/q.tests.md", "mine");
    let (code, _, stderr) = run(&project, &["p", "--to", "prompty", "--out", "made/q.prompty"]);
    assert!(code == 1 && stderr.starts_with("error[CB518]: made/q.tests.md"), "{stderr}");
    assert!(!project.path().join("made/q.prompty").exists());
    let (code, _, stderr) = run(&project, &["p", "--to", "prompty", "--out", "made/r.prompty"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.starts_with("wrote made/r.prompty\nwrote made/r.tests.md\n"), "{stderr}");
    assert_eq!(read(&project, "made/r.tests.md"), cases);
    let tested =
        project.command("cuebook", project.path()).args(["test", "made/r.prompty"]).output().unwrap();
    assert!(tested.status.success());
}

#[test]
fn an_id_that_becomes_a_conflict_is_reported() {
    let project = project();
    let (code, _, stderr) = run(&project, &["p", "--to", "prompty", "--out", "prompts"]);
    assert_eq!(code, 0, "{stderr}");
    let reported = "\n2 candidates for `p` now: delete one, or choose with cuebook resolve p SOURCE\n  prompts/p\n  prompts/p.prompty\n";
    assert!(stderr.ends_with(reported), "{stderr}");
    let (_, _, stderr) = run(&project, &["prompts/p", "--to", "prompty", "--out", "prompts/q.prompty"]);
    assert!(!stderr.contains("prompts have the id"), "{stderr}");
}

#[test]
fn half_of_a_template_is_never_left_behind() {
    let project = project();
    project.write("q.prompty", "Hi.");
    // What is there is found before anything is written.
    project.write("made/prompt.py", "mine = 1\n");
    let (code, _, err) = run(&project, &["q.prompty", "--to", "template", "--out", "made"]);
    assert!(code == 1 && err.contains("CB518"), "{err}");
    assert!(!project.path().join("made/template.md").exists());
    // What cannot be written takes the rest along.
    std::fs::create_dir_all(project.path().join("other/prompt.py")).unwrap();
    let (code, _, err) = run(&project, &["q.prompty", "--to", "template", "--out", "other", "--force"]);
    assert_eq!(code, 1, "{err}");
    assert!(!project.path().join("other/template.md").exists(), "{err}");
}

#[test]
fn strict_conversion_lists_losses_and_writes_nothing() {
    let project = project();
    project.write("q.prompty", "---\nmodel: {id: m}\ntools: [{name: t, kind: function}]\n---\nHi.");
    let args = ["q.prompty", "--to", "template", "--out", "made", "--strict"];
    let (code, _, err) = run(&project, &args);
    assert_eq!(code, 1);
    assert!(
        err.contains("error[CB516]: the model `m`") && err.contains("error[CB516]: the tool `t`"),
        "{err}"
    );
    assert!(!project.path().join("made").exists());
    let (code, out, _) = run(&project, &["q.prompty", "--to", "template", "--strict", "--json"]);
    let error: Json = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &error["error"]["code"]), (1, &Json::from("CB516")), "{out}");
}

#[test]
fn scripts_get_the_files_and_the_report() {
    let project = project();
    let limits = "{\"limits\": {\"max_output_size\": 50000}}";
    project.write("user_data/shared/prompts/defaults.json", limits);
    let (code, out, err) = run(&project, &["p", "--to", "prompty", "--json", "--out", "made/p.prompty"]);
    let answer: Json = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!((&answer["from"], &answer["to"]), (&Json::from("template"), &Json::from("prompty")));
    assert_eq!((&answer["lossless"], &answer["compared"]), (&Json::from(true), &Json::from(4)));
    assert_eq!(answer["files"][0]["path"], "p.prompty");
    assert_eq!(answer["written"][0], "made/p.prompty");
    assert_eq!(answer["report"], Json::Array(Vec::new()));
}

#[test]
fn mistakes_are_reported_with_the_next_step() {
    let project = project();
    let (code, _, err) = run(&project, &["p", "--to", "prompty", "--out", "made/p.txt"]);
    assert!(code == 2 && err.contains("made/p.prompty"), "{err}");
    let (code, _, err) = run(&project, &["p", "--to", "template"]);
    assert!(code == 2 && err.contains("CB517") && err.contains("--to prompty"), "{err}");
    let (code, _, err) = run(&project, &["p", "--to", "promty"]);
    assert!(code == 2 && err.contains("prompty"), "{err}");
    let (code, _, err) = run(&project, &["q", "--to", "prompty"]);
    assert!(code == 1 && err.contains("CB101"), "{err}");
    let (code, _, err) = run(&project, &["p", "--to", "prompty", "--force"]);
    assert!(code == 2 && err.contains("--out"), "{err}");
    // Nothing stays behind where results are looked at.
    project.write("q.prompty", "---\ninputs: [\n---\nHi.");
    let (code, _, err) = run(&project, &["q.prompty", "--to", "template"]);
    assert!(code == 1 && err.contains("CB318"), "{err}");
}

#[test]
fn every_dialect_drops_the_last_newline_of_includes() {
    for (number, template) in [
        "Hi {{ name }}.\n{% include 'partials/rules.md' %}\nBye.\n",
        "{% include 'partials/rules.md' %}\n\n  Bye {{ name }}.\n{% include 'partials/rules.md' %}\n",
        "{% include 'partials/bare.md' %}\nBye {{ name }}.\n",
    ]
    .into_iter()
    .enumerate()
    {
        let project = Project::new();
        project.write("prompts/hi/template.md", template);
        project.write("prompts/partials/rules.md", "Rules:\n- one\n");
        project.write("prompts/partials/bare.md", "Rules");
        let run = |args: &[&str]| {
            let output = project.command("cuebook", project.path()).args(args).output().unwrap();
            (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap(), output.stderr)
        };
        let (code, _, stderr) = run(&["convert", "hi", "--to", "prompty", "--out", "prompts/new.prompty"]);
        let report = String::from_utf8_lossy(&stderr);
        assert_eq!(code, 0, "{number}: {report}");
        assert!(!report.contains("differs"), "{number}: {report}");
        let rendered = |id: &str| run(&["render", id, "--var", "name=Ada"]).1;
        assert_eq!(rendered("new").trim_end(), rendered("hi").trim_end(), "{number}");
    }
}

#[test]
fn a_result_that_renders_another_text_is_a_failure() {
    let project = Project::new();
    // Text behind the include on its line: nothing can take the newline away.
    project.write("prompts/hi/template.md", "{% include 'partials/rules.md' %} {{ name }}\n");
    project.write("prompts/partials/rules.md", "Rules\n");
    let output =
        project.command("cuebook", project.path()).args(["convert", "hi", "--to", "prompty"]).output();
    let output = output.unwrap();
    let report = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert!(
        report.contains("the rendered text differs") && report.contains("add `-` to the tags"),
        "{report}"
    );
}

const OLD: &str = "---
name: Old
authors: [me]
model:
  api: chat
  configuration: {type: openai, model: gpt-4o, api_key: '${env:KEY}'}
  parameters: {max_tokens: 100}
inputs:
  name: {type: string, default: you}
  chat: {type: list}
sample: {name: Ada}
template: jinja2
---
user:
Greet {{ name }}.

{% for item in chat %}
{{ item.role }}:
{{ item.content }}
{% endfor %}
";

#[test]
fn prompty_1_files_are_rewritten_with_a_report() {
    let project = project();
    project.write("prompts/old.prompty", OLD);
    let (code, out, err) = run(&project, &["old", "--to", "prompty"]);
    assert_eq!(code, 0, "{err}");
    let body = OLD.split_once("---\nuser:").unwrap().1;
    assert!(out.ends_with(&format!("---\nuser:{body}")), "the template stays as it is: {out}");
    for line in [
        "  apiType: chat\n",
        "  id: gpt-4o\n",
        "  provider: openai\n",
        "    apiKey: \"${env:KEY}\"\n",
        "    maxOutputTokens: 100\n",
        "    default: you\n",
        "    example: Ada\n",
        "      roles: values\n",
        "      scalars: python\n",
        "  authors:",
    ] {
        assert!(out.contains(line), "{line}{out}");
    }
    for text in ["`model.api` is `model.apiType`", "the default of `name` is used: Prompty 1 does not use it"]
    {
        assert!(err.contains(text), "{text}: {err}");
    }
    assert!(!err.contains("a message without text is kept"), "every message has text: {err}");
    let (code, _, err) = run(&project, &["old", "--to", "prompty", "--out", "prompts/new.prompty"]);
    assert_eq!(code, 0, "{err}");
    let (code, _, err) = run(&project, &["new", "--to", "prompty"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("`new` is a .prompty file already"), "{err}");
    let check = project.command("cuebook", project.path()).args(["check", "new"]).output().unwrap();
    let said = String::from_utf8_lossy(&check.stderr).into_owned() + &String::from_utf8_lossy(&check.stdout);
    assert!(!said.contains("CB320"), "{said}");
}

#[test]
fn prompty_1_files_are_rewritten_without_what_they_refer_to() {
    let project = project();
    let old = "---
name: Old
model:
  api: chat
  configuration: {type: azure_openai, azure_deployment: '${env:DEPLOYMENT}', azure_endpoint: '${env:ENDPOINT}'}
inputs:
  name: {type: string}
tools: ${file:tools.json}
extra: {region: '${env:REGION}', zone: '${env:ZONE:west}'}
---
user:
Greet {{ name }}.
";
    project.write("prompts/old.prompty", old);
    let (code, out, err) = run(&project, &["old", "--to", "prompty"]);
    assert_eq!(code, 0, "{err}");
    for line in
        ["  id: \"${env:DEPLOYMENT}\"\n", "  region: \"${env:REGION}\"\n", "tools: \"${file:tools.json}\"\n"]
    {
        assert!(out.contains(line), "{line}{out}");
    }
    for text in ["`model.id` needs what `${env:DEPLOYMENT}` refers to", "`extra.region`", "`tools`"] {
        assert!(err.contains(text), "{text}: {err}");
    }
    assert!(!err.contains("ZONE") && !err.contains("`${env:ENDPOINT}` refers"), "{err}");
}

fn check(project: &Project) -> (i32, String) {
    let output = project.command("cuebook", project.path()).arg("check").output().unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn files_for_other_programs_carry_source_and_hash() {
    let project = Project::new();
    project.write("prompts/parts/tone.md", "Be {{ tone }}.");
    project.write("prompts/house_rules/template.md", "Write tests. {% include 'parts/tone.md' %}\n");
    project.write(
        "prompts/house_rules/prompt.py",
        "METADATA = {\"description\": \"How we write code.\"}\nVARIABLES = {\"optional\": [{\"name\": \"tone\", \"type\": \"string\", \"default\": \"kind\"}]}\n",
    );
    let (code, _, err) = run(&project, &["house_rules", "--to", "agents-md", "--out", "AGENTS.md"]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("`tone` is always \"kind\""), "{err}");
    let text = read(&project, "AGENTS.md");
    assert!(
        text.starts_with("<!-- Written by `cuebook convert`")
            && text.contains("cuebook-source: house_rules\n")
    );
    assert!(text.ends_with("-->\n\nWrite tests. Be kind.\n"), "{text}");
    let (code, _, err) = run(&project, &["house_rules", "--to", "skill", "--out", ".claude/skills/"]);
    assert_eq!(code, 0, "{err}");
    let skill = read(&project, ".claude/skills/house-rules/SKILL.md");
    assert!(skill.starts_with("---\nname: house-rules\ndescription: How we write code.\n"), "{skill}");
    let (code, found) = check(&project);
    assert_eq!((code, found.as_str()), (0, ""), "a new file fits its source");
    // Something that is included has changed.
    project.write("prompts/parts/tone.md", "Be very {{ tone }}.");
    let (code, found) = check(&project);
    assert_eq!((code, found.matches("error[CB530]").count()), (1, 2), "{found}");
    assert!(found.contains("AGENTS.md") && found.contains(".claude/skills/house-rules/SKILL.md"), "{found}");
    let again = ["house_rules", "--to", "skill", "--out", ".claude/skills/house-rules/SKILL.md", "--force"];
    assert_eq!(run(&project, &again).0, 0);
    project.write("AGENTS.md", text.replace("Write tests", "Write no tests"));
    project.write("prompts/parts/tone.md", "Be {{ tone }}.");
    let (_, found) = check(&project);
    assert!(found.contains("changed by hand") && found.contains("out of date"), "{found}");
    std::fs::remove_dir_all(project.path().join("prompts/house_rules")).unwrap();
    let (_, found) = check(&project);
    assert_eq!(found.matches("which is gone").count(), 2, "{found}");
}

#[test]
fn a_literal_file_has_no_inputs_and_no_tags() {
    let project = project();
    project.write("prompts/q/template.md", "Write {% raw %}{{ name }}{% endraw %}.\n");
    project.write("talk.prompty", "system:\nBe brief.\nuser:\nHi.\n");
    project.write(
        "prompts/p/prompt.py",
        "VARIABLES = {\"required\": [{\"name\": \"name\", \"type\": \"string\"}]}\n",
    );
    for (prompt, expected) in [
        ("p", "error[CB517]: the prompt needs `name`"),
        ("q", "the written CLAUDE.md still has a template tag: `{{ name }}"),
        ("talk.prompty", "the prompt is 2 messages"),
    ] {
        let (code, _, err) = run(&project, &[prompt, "--to", "claude-md", "--out", "CLAUDE.md"]);
        assert!(code == 1 && err.contains(expected), "{prompt}: {err}");
        assert!(!project.path().join("CLAUDE.md").exists(), "{prompt}");
    }
}

#[test]
fn a_prompt_file_renders_what_its_source_renders() {
    let project = Project::new();
    project.write(
        "prompts/greet/template.md",
        "Greet {{ name }} in a {{ tone }} way, not {% raw %}{{ name }}{% endraw %}.\n",
    );
    project.write(
        "prompts/greet/prompt.py",
        "VARIABLES = {\"required\": [{\"name\": \"name\", \"type\": \"string\", \"description\": \"Who\"}],\n\"optional\": [{\"name\": \"tone\", \"type\": \"string\", \"default\": \"kind\"}]}\n",
    );
    let (code, _, err) = run(&project, &["greet", "--to", "prompt", "--out", "prompts/hello.prompt"]);
    assert_eq!(code, 0, "{err}");
    let render = |prompt: &str| {
        let mut command = project.command("cuebook", project.path());
        let output = command.args(["render", prompt, "--json", "--var", "name=Ann {{x}}"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let json: Json = serde_json::from_str(&text).unwrap_or_else(|_| {
            panic!("{text}{}", String::from_utf8_lossy(&output.stderr));
        });
        json["rendered"]
            .as_str()
            .or(json["text"].as_str())
            .unwrap_or_else(|| panic!("{json}"))
            .trim()
            .to_owned()
    };
    assert_eq!(render("hello"), format!("<<<dotprompt:role:system>>>{}", render("greet")));
    assert!(render("hello").contains("a kind way, not {{ name }}."), "{}", render("hello"));
    project.write("prompts/loop/template.md", "{% for x in xs %}{{ x }}{% endfor %}\n");
    let (code, _, err) = run(&project, &["loop", "--to", "prompt"]);
    assert!(code == 1 && err.contains("error[CB517]"), "{err}");
}

#[test]
fn skills_and_prompt_files_can_be_converted() {
    let project = Project::new();
    project
        .write("skills/sum/SKILL.md", "---\nname: sum\ndescription: Sums.\n---\nSum {{total}} in {%x%}.\n");
    project.write("skills/sum/scripts/sum.py", "print(1)\n");
    let (code, out, err) = run(&project, &["sum", "--to", "template"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("{% raw %}") && out.contains("{{total}}"), "{out}");
    assert!(err.contains("the other files of the skill are left out: scripts/sum.py"), "{err}");
    let (code, out, err) = run(&project, &["sum", "--to", "agents-md"]);
    assert!(code == 0 && out.ends_with("Sum {{total}} in {%x%}.\n"), "{out}{err}");
    project.write(
        "prompts/hi.prompt",
        "---\ninput:\n  schema:\n    name: string\n---\n{{role \"system\"}}Hi {{name}}.\n",
    );
    let (code, out, err) = run(&project, &["hi", "--to", "prompty"]);
    assert!(code == 0 && out.ends_with("Hi {{ name }}."), "{out}{err}");
    project.write("prompts/many.prompt", "Hi {{#each names}}{{this}}{{/each}}.\n");
    let (code, _, err) = run(&project, &["many", "--to", "prompty"]);
    assert!(code == 1 && err.contains("error[CB517]: the text has `{{#each names}}`"), "{err}");
    assert!(err.contains("prompts/many.prompt:1:4"), "{err}");
}
