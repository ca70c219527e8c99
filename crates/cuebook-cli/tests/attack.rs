//! `cuebook attack`, as people run it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests, though the lint sees only functions"
)]

mod support;

use serde_json::Value as Json;
use support::{Project, Test, python_or_skip};

const PROMPT: &str = "---
inputs:
  name: {kind: string, strict: true}
  lines: {kind: array, items: {kind: string}}
  photo: {kind: image}
---
system:
Hi {{ name }}.
{% for line in lines %}
- {{ line }}
{% endfor %}

user:
{{ photo }}
";

#[test]
fn every_input_is_driven_and_scripts_get_everything() {
    let project = Project::new();
    project.write("prompts/p.prompty", PROMPT);
    let output = project.command("cuebook", project.path()).args(["attack", "p", "--json"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let attack: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&attack["held"], &attack["dialect"]), (&Json::Bool(true), &Json::from("prompty")));
    let inputs = attack["inputs"].as_array().unwrap();
    let names: Vec<_> = inputs.iter().map(|input| input["input"].as_str()).collect();
    assert_eq!(names, [Some("name"), Some("lines"), Some("photo"), None]);
    assert!(inputs[0]["refused"]["CB508"].as_u64().unwrap() > 30, "{text}");
    assert_eq!(inputs[0]["strict"], true);
    assert!(inputs.iter().all(|input| input["tried"].as_u64().unwrap() > 200), "{text}");
    assert!(inputs.iter().all(|input| input["seen"].as_u64().unwrap() > 50), "{text}");
    assert_eq!(attack["breaches"], Json::Array(Vec::new()));
}

#[test]
fn many_inputs_share_the_values_and_each_breach_is_found() {
    let attack = |count: usize| {
        let project = Project::new();
        let inputs: String = (0..count).map(|n| format!("  v{n}: {{kind: string}}\n")).collect();
        let lines: String = (0..count).map(|n| format!("<t{n}>{{{{ v{n} }}}}</t{n}>\n")).collect();
        project.write("prompts/p.prompty", format!("---\ninputs:\n{inputs}---\nsystem:\n{lines}"));
        let output =
            project.command("cuebook", project.path()).args(["attack", "p", "--json"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        serde_json::from_slice::<Json>(&output.stdout).unwrap()
    };
    let number = |value: &Json| value.as_u64().unwrap();
    let few = attack(2);
    assert_eq!(few["shared"], false);
    let many = attack(24);
    assert_eq!(many["shared"], true);
    let values = number(&many["values"]);
    // Twenty inputs, all at once, and four ends of tags for each input.
    assert!(number(&many["tried"]) <= 21 * values + 4 * 24, "{} of {values}", many["tried"]);
    for input in many["inputs"].as_array().unwrap() {
        assert!((14..=values).contains(&number(&input["tried"])), "{input}");
        // The end of its tag is tried for each input alone.
        assert_eq!(number(&input["breaches"]) > 0, input["input"].is_string(), "{input}");
        assert!(number(&input["seen"]) > 0, "{input}");
    }
}

#[test]
fn the_prompts_that_ship_with_the_program_hold() {
    for prompt in ["general_system", "coding_system", "history_compression", "memory_update"] {
        Test::new().args(["attack", prompt]).code(0).run();
    }
}

#[test]
fn prompts_without_inputs_or_renders_are_reported() {
    Test::new()
        .file("prompts/p/template.md", "Hi.")
        .args(["attack", "p"])
        .stdout("`p` has no inputs, so there is nothing to attack\n")
        .run();
    Test::new()
        .file("prompts/p/template.md", "{{ name.missing.more }}")
        .args(["attack", "p", "--var", "nam=x"])
        .code(1)
        .run();
    Test::new().args(["attack", "nowhere"]).code(1).run();
}

#[test]
fn hooks_take_part_only_when_that_is_asked_for() {
    let Some(()) = python_or_skip() else { return };
    let project = Project::new();
    project.write("user_data/shared/prompts/p/template.md", "Hi {{ name }}.");
    project.write(
        "user_data/shared/prompts/p/prompt.py",
        "METADATA = {'name': 'p', 'version': '1.0.0', 'type': 'system', 'template': 'template.md'}\n\
         VARIABLES = {'required': [{'name': 'name', 'type': 'string'}]}\n\
         def pre_render(variables, context):\n    return {**variables, 'name': variables['name'] + '!'}\n",
    );
    let run = |more: &[&str]| {
        let mut command = project.command("cuebook", project.path());
        let output = command.args(["attack", "p", "--json"]).args(more).output().unwrap();
        serde_json::from_slice::<Json>(&output.stdout).unwrap()
    };
    let without = run(&[]);
    assert_eq!((&without["hooks"], &without["held"]), (&Json::Bool(false), &Json::Bool(true)), "{without}");
    let with = run(&["--hooks"]);
    assert_eq!((&with["hooks"], &with["held"]), (&Json::Bool(true), &Json::Bool(true)), "{with}");
}

#[test]
fn a_changed_structure_sets_the_exit_code_without_a_reader() {
    let project = Project::new();
    project.write("prompts/p.prompty", PROMPT);
    // With any value but one, this cannot be rendered, and nothing is proved.
    project.write(
        "prompts/q/template.md",
        "{% if n == \"x\" %}x{% else %}{% for i in 5 %}{% endfor %}{% endif %}",
    );
    for (prompt, expected) in [("p", 0), ("q", 1)] {
        for more in [&[][..], &["--json"]] {
            let mut command = project.command("cuebook", project.path());
            command
                .args(["attack", prompt, "--var"])
                .arg(if prompt == "q" { "n=x" } else { "name=x" })
                .args(more);
            assert_eq!(support::code_when_closed(command), Some(expected), "{prompt} {more:?}");
        }
    }
}

fn attack(project: &Project, args: &[&str]) -> (Option<i32>, Json) {
    let output =
        project.command("cuebook", project.path()).arg("attack").args(args).arg("--json").output().unwrap();
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn typed_inputs_get_values_of_their_type() {
    let project = Project::new();
    project.write(
        "user_data/shared/prompts/p/template.md",
        "{% if loud %}{{ name }}!{% else %}{{ count }}{% endif %}",
    );
    project.write(
        "user_data/shared/prompts/p/prompt.py",
        "METADATA = {'name': 'p', 'version': '1.0.0', 'type': 'system', 'template': 'template.md'}\n\
         VARIABLES = {'required': [{'name': 'name', 'type': 'string'}, {'name': 'loud', 'type': 'boolean'}, \
         {'name': 'count', 'type': 'integer'}]}\n",
    );
    let (code, answer) = attack(&project, &["p"]);
    assert_eq!(code, Some(0), "{answer}");
    let inputs = answer["inputs"].as_array().unwrap();
    let of = |name: &str| inputs.iter().find(|input| input["input"] == name).unwrap();
    assert_eq!((&of("loud")["carries_text"], &of("loud")["tried"]), (&Json::Bool(false), &Json::from(2)));
    assert_eq!(of("count")["refused"], serde_json::json!({}), "{answer}");
    let all = inputs.iter().find(|input| input["input"].is_null()).unwrap();
    assert!(all["tried"].as_u64().unwrap() > 300 && all["seen"].as_u64().unwrap() > 50, "{all}");
}

#[test]
fn an_input_that_refuses_every_value_fails_the_attack() {
    let project = Project::new();
    // With any text behind the harmless one, this fails.
    project.write("prompts/p/template.md", "{% if n != \"harmless\" %}{{ 1 // 0 }}{% endif %}{{ n }}");
    let (code, answer) = attack(&project, &["p"]);
    assert_eq!((code, &answer["held"]), (Some(1), &Json::Bool(false)), "{answer}");
    let input = &answer["inputs"][0];
    assert_eq!(
        (&input["tried"], &input["problem"]["code"]),
        (&Json::from(0), &Json::from("CB527")),
        "{answer}"
    );
    assert!(
        input["problem"]["message"].as_str().unwrap().contains("no attack reached the input `n`"),
        "{answer}"
    );
}

#[test]
fn a_value_that_closes_a_tag_is_found_in_includes() {
    let project = Project::new();
    project.write("prompts/partials/doc.md", "<doc>\n{{ doc }}\n</doc>\n");
    project.write("prompts/p/template.md", "Read it.\n{% include \"partials/doc.md\" %}");
    let (code, answer) = attack(&project, &["p"]);
    assert_eq!((code, &answer["breaches"][0]["code"]), (Some(1), &Json::from("CB528")), "{answer}");
    project.write("prompts/partials/doc.md", "{{ doc|fence(\"doc\") }}\n");
    let (code, answer) = attack(&project, &["p"]);
    assert_eq!((code, &answer["held"]), (Some(0), &Json::Bool(true)), "{answer}");
    assert!(answer["inputs"][0]["seen"].as_u64().unwrap() > 100, "{answer}");
}

#[test]
fn a_conversation_is_driven_with_roles_that_it_must_not_have() {
    let project = Project::new();
    project.write(
        "prompts/p.prompty",
        "---\ninputs:\n  history: {kind: thread}\n---\nsystem:\nHi.\n\n{{ history }}\n",
    );
    let (code, answer) = attack(&project, &["p"]);
    assert_eq!((code, &answer["held"]), (Some(0), &Json::Bool(true)), "{answer}");
    // Refused are those with roles; what else the conversation says is tried.
    let input = &answer["inputs"][0];
    assert!(input["refused"]["CB601"].as_u64().unwrap() >= 24, "{answer}");
    assert!(input["tried"].as_u64().unwrap() > 300 && input["seen"].as_u64().unwrap() > 100, "{answer}");
}

#[test]
fn text_of_a_hook_is_attacked_too() {
    let Some(()) = python_or_skip() else { return };
    let project = Project::new();
    project.write("user_data/shared/prompts/p/template.md", "<doc>\nHi {{ name }}.\n");
    project.write(
        "user_data/shared/prompts/p/prompt.py",
        "METADATA = {'name': 'p', 'version': '1.0.0', 'type': 'system', 'template': 'template.md'}\n\
         VARIABLES = {'required': [{'name': 'name', 'type': 'string'}]}\n\
         def post_render(text, variables, context):\n    return text + '\\nsystem:\\n' + variables['name'] + '\\nend'\n",
    );
    let (code, answer) = attack(&project, &["p", "--hooks"]);
    assert_eq!((code, &answer["hooks"]), (Some(0), &Json::Bool(true)), "{answer}");
    assert!(answer["inputs"][0]["seen"].as_u64().unwrap() > 100, "{answer}");
}

#[test]
fn a_library_is_attacked_prompt_by_prompt() {
    let project = Project::new();
    project.write("prompts/good/template.md", "Hi {{ name }}.\n");
    project.write("prompts/bare.prompty", "---\nname: bare\n---\nsystem:\nHi.\n");
    let attack = |args: &[&str]| {
        let output = project.command("cuebook", project.path()).arg("attack").args(args).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let (code, stdout, stderr) = attack(&["--json"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    let all: Json = serde_json::from_str(&stdout).unwrap();
    let prompts: Vec<&str> =
        all.as_array().unwrap().iter().map(|one| one["prompt"].as_str().unwrap()).collect();
    assert_eq!(prompts, ["bare", "good"]);
    let (code, stdout, stderr) = attack(&["good", "bare"]);
    assert_eq!(code, 0, "{stdout}");
    assert!(stdout.starts_with("good\nname "), "{stdout}");
    assert_eq!(stderr, "2 prompts: no value changed the structure\n");
    // One that cannot be rendered fails, and the others are attacked all the same.
    project.write("prompts/broken/template.md", "{{ x");
    let (code, stdout, stderr) = attack(&[]);
    assert_eq!((code, stderr.as_str()), (1, "3 prompts: 1 failed\n"), "{stdout}");
    assert!(stdout.contains("error[CB304]") && stdout.contains(" tried "), "{stdout}");
    let (_, stdout, _) = attack(&["prompts/broken", "good", "--json"]);
    let both: Json = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&both[0]["error"]["code"], &both[1]["held"]), (&"CB304".into(), &true.into()), "{both}");
}
