//! Every command over every dialect: what one can do, all can, and an id in several dialects is one conflict with one choice.

#![allow(clippy::unwrap_used, reason = "a test that fails to unwrap has failed")]

mod support;

use cuebook_mock::{Api, Mock, Reply, Script};
use serde_json::Value as Json;
use support::Project;

/// One prompt in every notation: the name of the dialect, its file, its source, and its text.
const DIALECTS: [(&str, &str, &str, &str); 5] = [
    ("template", "prompts/ID/template.md", "prompts/ID", "Help {{ who }} now.\n"),
    (
        "prompty",
        "prompts/ID.prompty",
        "prompts/ID.prompty",
        "---\nname: ID\ndescription: Helps\ninputs:\n  who: {kind: string, required: true}\n---\nuser:\nHelp {{ who }} now.\n",
    ),
    (
        "sections",
        "prompts/ID.sections.md",
        "prompts/ID.sections.md",
        "---\ninputs:\n  who: {kind: string, required: true}\n---\n# Task\nHelp $who now.\n",
    ),
    (
        "directive",
        ".ai/directives/ID.md",
        ".ai/directives/ID.md",
        "# Help\n\n```xml\n<directive name=\"ID\" version=\"1.0.0\">\n  <metadata>\n    <description>Helps</description>\n    <category></category>\n    <author>ann</author>\n    <model tier=\"fast\" />\n    <limits turns=\"3\" tokens=\"20000\" spend=\"0.5\" />\n    <permissions><execute>*</execute></permissions>\n  </metadata>\n  <inputs>\n    <input name=\"who\" type=\"string\" required=\"true\">Whom</input>\n  </inputs>\n</directive>\n```\n\nHelp {input:who} now.\n",
    ),
    (
        "dotprompt",
        "prompts/ID.prompt",
        "prompts/ID.prompt",
        "---\nname: ID\ndescription: Helps\ninput:\n  schema: {who: string}\n---\nHelp {{who}} now.\n",
    ),
];

/// Where the cases of a prompt stand.
fn cases(dialect: &str, id: &str) -> String {
    match dialect {
        "template" => format!("prompts/{id}/tests.md"),
        "directive" => format!(".ai/directives/{id}.tests.md"),
        _ => format!("prompts/{id}.tests.md"),
    }
}

struct Setup {
    project: Project,
    mock: Mock,
}

impl Setup {
    fn new() -> Setup {
        let project = Project::new();
        let mock = Mock::start(Script::new().reply(Reply::text("Done.").usage(10, 5)).forever()).unwrap();
        project.write("home/.ai/config/providers/mock.yaml", mock.provider_yaml(Api::Anthropic));
        Setup { project, mock }
    }

    fn write(&self, dialect: &str, id: &str) -> String {
        let (_, file, source, text) = DIALECTS.into_iter().find(|known| known.0 == dialect).unwrap();
        self.project.write(&file.replace("ID", id), text.replace("ID", id));
        self.project.write(
            &cases(dialect, id),
            "## greets\n```yaml inputs\nwho: Ann\n```\n```text contains\nHelp Ann now.\n```\n",
        );
        source.replace("ID", id)
    }

    fn sign(&self) {
        for args in [&["keys", "generate"][..], &["sign", "directive", "*"]] {
            let (code, _, err) = self.say(args);
            assert_eq!(code, 0, "{args:?}: {err}");
        }
    }

    fn say(&self, args: &[&str]) -> (i32, String, String) {
        let mut command = self.project.command(env!("CARGO_BIN_EXE_cuebook"), self.project.path());
        let output = command.args(args).env("MOCK_KEY", "sk-mock-5f0e8d7c6b5a4938").output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }
}

/// Every command that takes a prompt, what it must say, and whether it can say it as JSON.
fn commands(id: &str) -> Vec<(Vec<&str>, &'static str, bool)> {
    let who = ["--var", "who=Ann"];
    let with = |command: &'static str, more: &[&'static str]| -> Vec<&str> {
        [command, id].into_iter().chain(who).chain(more.iter().copied()).collect()
    };
    vec![
        (vec!["list"], "PROMPT", true),
        (vec!["show", id], "who", true),
        (vec!["candidates", id], "SOURCE", true),
        (vec!["check", id], "", true),
        (with("render", &[]), "Help Ann now.", true),
        (with("render", &["--as", "messages"]), "Help Ann now.", false),
        (with("render", &["--as", "wire:openai", "--model", "gpt-4o"]), "Help Ann now.", false),
        (with("explain", &[]), "who (caller)", true),
        (with("explain", &["--find", "Ann"]), "who", true),
        (with("tokens", &[]), "who (caller)", true),
        (with("attack", &[]), "unchanged", true),
        (vec!["test", id], "greets", true),
        (with("run", &["--model", "fast"]), "Done.", true),
    ]
}

fn assert_all_commands(stage: &Setup, dialect: &str, id: &str, source: &str) {
    for (args, wanted, has_json) in commands(id) {
        let wanted = wanted.replace("PROMPT", id).replace("SOURCE", source);
        let shown = format!("{dialect}: cuebook {}", args.join(" "));
        let (code, out, err) = stage.say(&args);
        assert_eq!(code, 0, "{shown}\n{out}{err}");
        assert!(out.contains(&wanted), "{shown} does not say {wanted:?}:\n{out}{err}");
        if has_json {
            let (code, out, err) = stage.say(&[&args[..], &["--json"]].concat());
            assert_eq!(code, 0, "{shown} --json\n{out}{err}");
            let last = out.trim_end();
            let parsed = serde_json::from_str::<Json>(last).is_ok()
                || last.lines().all(|line| serde_json::from_str::<Json>(line).is_ok());
            assert!(parsed, "{shown} --json is no JSON:\n{out}");
        }
    }
}

#[test]
fn every_command_works_on_every_dialect() {
    for (dialect, ..) in DIALECTS {
        let stage = Setup::new();
        let source = stage.write(dialect, "helper");
        stage.sign_if(dialect);
        assert_all_commands(&stage, dialect, "helper", &source);
        assert!(!stage.mock.requests().is_empty(), "{dialect}: nobody was asked");
        let (_, out, _) = stage.say(&["show", "helper", "--json"]);
        let definition: Json = serde_json::from_str(&out).unwrap();
        assert_eq!(definition["dialect"], dialect);
    }
}

impl Setup {
    /// Signs what must be signed to be run.
    fn sign_if(&self, dialect: &str) {
        if dialect == "directive" {
            self.sign();
        }
    }
}

#[test]
fn every_command_works_on_a_skill() {
    let stage = Setup::new();
    let text = "Answer in {{tone}}.\n";
    let skill = format!("---\nname: answer\ndescription: Answers letters.\n---\n\n{text}");
    stage.project.write("skills/answer/SKILL.md", skill);
    stage.project.write("skills/answer/tests.md", "## is literal\n```text contains\n{{tone}}\n```\n");
    let commands: [(&[&str], &str); 11] = [
        (&["list"], "answer"),
        (&["show", "answer"], "Answers letters."),
        (&["candidates", "answer"], "skills/answer"),
        (&["check", "answer"], ""),
        (&["render", "answer"], text),
        (&["render", "answer", "--as", "messages"], "{{tone}}"),
        (&["render", "answer", "--as", "wire:openai", "--model", "gpt-4o"], "{{tone}}"),
        (&["explain", "answer"], "skills/answer/SKILL.md"),
        (&["tokens", "answer"], "SKILL.md"),
        (&["test", "answer"], "is literal"),
        (&["run", "answer", "--model", "fast"], "Done."),
    ];
    for (args, wanted) in commands {
        let (code, out, err) = stage.say(args);
        assert_eq!(code, 0, "{args:?}\n{out}{err}");
        assert!(out.contains(wanted), "{args:?} does not say {wanted:?}:\n{out}{err}");
    }
    let (code, _, err) = stage.say(&["render", "answer", "--var", "tone=calm"]);
    assert!(code == 1 && err.contains("CB404"), "{err}");
}

#[test]
fn an_id_in_every_dialect_is_one_conflict() {
    let stage = Setup::new();
    let sources: Vec<(&str, String)> =
        DIALECTS.iter().map(|(dialect, ..)| (*dialect, stage.write(dialect, "helper"))).collect();
    stage.sign();
    // No choice is recorded: every command that needs one prompt says so, and names all of them.
    for (args, ..) in commands("helper") {
        if matches!(args[0], "list" | "candidates") {
            continue;
        }
        let (code, out, err) = stage.say(&args);
        assert_eq!(code, 1, "{args:?}\n{out}{err}");
        let reported = format!("{out}{err}");
        assert!(reported.contains("CB102"), "{args:?}: {reported}");
        for (_, source) in &sources {
            assert!(reported.contains(source), "{args:?} does not name {source}: {reported}");
        }
    }
    let (_, out, _) = stage.say(&["list", "--json"]);
    let list: Json = serde_json::from_str(&out).unwrap();
    let listed = list.as_array().unwrap().iter().find(|one| one["id"] == "helper").unwrap().clone();
    assert_eq!(
        (listed["conflict"].as_bool(), listed["candidates"].as_array().map(Vec::len)),
        (Some(true), Some(DIALECTS.len()))
    );
    for (dialect, source) in &sources {
        let (code, _, err) = stage.say(&["resolve", "helper", source]);
        assert_eq!(code, 0, "{source}: {err}");
        assert_all_commands(&stage, dialect, "helper", source);
        let (_, out, _) = stage.say(&["show", "helper", "--json"]);
        let definition: Json = serde_json::from_str(&out).unwrap();
        assert_eq!(
            (definition["dialect"].as_str(), definition["source"].as_str()),
            (Some(*dialect), Some(source.as_str()))
        );
    }
}

#[test]
fn a_directive_runs_with_signed_includes_only() {
    let stage = Setup::new();
    stage.write("directive", "inner");
    let tea = "```yaml\nname: tea\ncategory: \"\"\ntitle: Tea\nauthor: ann\nversion: 1.0.0\nentry_type: fact\n```\n\nFour minutes.\n";
    stage.project.write(".ai/knowledge/tea.md", tea);
    let (_, _, _, text) = DIALECTS[3];
    let outer = text
        .replace("ID", "outer")
        .replace("Help {input:who} now.", "{include:tea} {include:directive:inner}");
    stage.project.write(".ai/directives/outer.md", outer);
    stage.sign();
    let execute = ["execute", "directive", "outer", "--param", "who=Ann"];
    let (code, out, err) = stage.say(&execute);
    assert!(code != 0 && format!("{out}{err}").contains("Unsigned"), "{out}{err}");
    let (code, _, err) = stage.say(&["sign", "knowledge", "*"]);
    assert_eq!(code, 0, "{err}");
    let (code, out, err) = stage.say(&execute);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("Four minutes. Help Ann now."), "{out}");
    let (code, _, err) = stage.say(&["run", "outer", "--var", "who=Ann", "--model", "fast"]);
    assert_eq!(code, 0, "{err}");
    let asked = stage.mock.requests().last().map(|request| request.body.to_string()).unwrap();
    assert!(asked.contains("Four minutes. Help Ann now."), "{asked}");
    // Changed since: neither executed nor run, also by a program that has read it before.
    stage.project.write(".ai/knowledge/tea.md", tea);
    for args in [&execute[..], &["run", "outer", "--var", "who=Ann", "--model", "fast"]] {
        let (code, out, err) = stage.say(args);
        assert!(code != 0 && format!("{out}{err}").contains("Unsigned"), "{args:?}: {out}{err}");
    }
}

#[test]
fn includes_of_every_dialect_name_their_file() {
    let stage = Setup::new();
    for (dialect, ..) in DIALECTS {
        stage.write(dialect, dialect);
    }
    stage.sign();
    let include = |dialect: &str| format!("{{% include \"prompt:{dialect}\" %}}\n");
    let all: String = DIALECTS.iter().map(|(dialect, ..)| include(dialect)).collect();
    stage.project.write("prompts/all/template.md", all);
    let (code, out, err) = stage.say(&["explain", "all", "--var", "who=Ann"]);
    assert_eq!(code, 0, "{err}");
    for (dialect, file, ..) in DIALECTS {
        assert!(out.contains(&file.replace("ID", dialect)), "{dialect}:\n{out}");
    }
    assert_eq!(out.matches("│ Ann").count(), DIALECTS.len(), "{out}");
    let (_, out, _) = stage.say(&["show", "all"]);
    assert!(
        out.contains(
            "includes  prompt:directive, prompt:dotprompt, prompt:prompty, prompt:sections, prompt:template"
        ),
        "{out}"
    );
    let (code, out, err) = stage.say(&["check", "all"]);
    assert_eq!(code, 0, "{err}");
    // A template has no roles, so those of what it includes are text.
    assert!(out.starts_with("warning[CB332]: role lines of `prompty` are text here"), "{out}");
    assert_eq!(out.matches("[CB").count(), 1, "{out}");
    let (code, _, err) = stage.say(&["run", "all", "--var", "who=Ann", "--model", "fast"]);
    assert_eq!(code, 0, "{err}");
    // What was changed after it was signed is refused wherever it shows.
    stage.write("directive", "directive");
    for command in ["render", "explain", "tokens", "run"] {
        let (code, out, err) = stage.say(&[command, "all", "--var", "who=Ann"]);
        assert!(code == 1 && err.contains("CB220") && out.is_empty(), "{command}: {out}{err}");
    }
}

#[test]
fn one_command_leaves_one_trace() {
    let stage = Setup::new();
    stage.write("prompty", "help");
    let render = [
        "render",
        "help",
        "--var",
        "who=Ada",
        "--as",
        "wire:openai",
        "--model",
        "gpt-4o",
        "--trace",
        "traces",
    ];
    let output = stage.project.command("cuebook", stage.project.path()).args(render).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let traces: Vec<_> = std::fs::read_dir(stage.project.path().join("traces")).unwrap().collect();
    let [Ok(trace)] = traces.as_slice() else { panic!("{traces:?}") };
    let trace: Json = serde_json::from_str(&std::fs::read_to_string(trace.path()).unwrap()).unwrap();
    assert_eq!(trace["trace"]["name"], "call");
    let frames = trace["trace"]["__frames"].as_array().unwrap();
    let names: Vec<&str> = frames.iter().map(|frame| frame["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"render") && names.contains(&"prepare"), "{names:?}");
    let prepare = frames.iter().find(|frame| frame["name"] == "prepare").unwrap();
    assert_eq!(prepare["__frames"][0]["name"], "parse");
}
