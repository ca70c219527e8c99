//! `cuebook render FILE --style chat`: chat templates of models.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::duplicate_mod, reason = "both modules of helpers report skipped tests")]

#[path = "../../cuebook-template/tests/support/mod.rs"]
mod reference;
mod support;

use std::collections::HashSet;

use serde_json::json;
use support::Project;

fn cuebook(project: &Project, args: &[&str]) -> (i32, String, String) {
    let output = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path()).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

const TEMPLATE: &str = "\
{{- bos_token }}
{% for message in messages %}
    {% if message.role not in ['system', 'user', 'assistant'] %}
        {{ raise_exception('Unknown role: ' + message.role) }}
    {% endif %}
    {%- if message.role == 'assistant' %}
<|assistant|>
{% generation %}{{ message.content }}</s>{% endgeneration %}

    {% else %}
<|{{ message.role }}|>
{{ message.content | trim }}
    {% endif %}
{% endfor %}
{% if tools %}
{{ tools | tojson(indent=2) }}
{% endif %}
{% if add_generation_prompt %}
<|assistant|>
{% endif %}
";

fn project() -> Project {
    let project = Project::new();
    project.write("model.jinja", TEMPLATE);
    let values = json!({
        "messages": [
            {"role": "system", "content": " Be <b>brief</b>. "},
            {"role": "user", "content": "Grüße {{ 1 + 1 }}"},
            {"role": "assistant", "content": "Hallo"},
        ],
        "tools": [{"name": "z", "a": "ü & <"}],
        "bos_token": "<s>",
        "add_generation_prompt": true,
    });
    project.write("chat.json", values.to_string());
    project
}

/// The text that transformers gives for the same template and values.
const EXPECTED: &str = "<s>\n<|system|>\nBe <b>brief</b>.\n<|user|>\nGrüße {{ 1 + 1 }}\n<|assistant|>\nHallo</s>\n\
    [\n  {\n    \"name\": \"z\",\n    \"a\": \"ü & <\"\n  }\n]\n<|assistant|>\n";

#[test]
fn a_chat_template_renders_byte_for_byte() {
    let project = project();
    let (code, out, err) =
        cuebook(&project, &["render", "model.jinja", "--style", "chat", "--vars", "chat.json"]);
    assert_eq!((code, out.as_str()), (0, EXPECTED), "{err}");
    let shorter = [
        "render",
        "model.jinja",
        "--style",
        "chat",
        "--var",
        "messages:=[]",
        "--var",
        "bos_token=<s>",
        "--json",
    ];
    let (code, out, err) = cuebook(&project, &shorter);
    assert_eq!(
        (code, serde_json::from_str::<serde_json::Value>(&out).unwrap()),
        (0, json!({"text": "<s>\n"})),
        "{err}"
    );
}

#[test]
fn raise_exception_gives_the_error() {
    let project = project();
    let values = r#"messages:=[{"role": "tool", "content": ""}]"#;
    let (code, out, err) = cuebook(&project, &["render", "model.jinja", "--style", "chat", "--var", values]);
    assert!(code != 0 && out.is_empty(), "{code} {out}");
    assert!(err.contains("Unknown role: tool") && err.contains("model.jinja:4"), "{err}");
}

#[test]
fn other_forms_are_refused_with_what_to_write() {
    let project = project();
    let (code, _, err) = cuebook(&project, &["render", "model.jinja", "--style", "chat", "--as", "messages"]);
    assert!(code != 0 && err.contains("--style chat renders a file to text"), "{err}");
}

#[test]
#[cfg(unix)]
fn a_file_of_the_project_leads_nowhere_else() {
    let project = project();
    let outside = Project::new();
    outside.write("secret", "hunter2");
    outside.write("model.jinja", "from outside");
    std::os::unix::fs::symlink(outside.path().join("secret"), project.path().join("linked.jinja")).unwrap();
    let (code, out, err) = cuebook(&project, &["render", "linked.jinja", "--style", "chat"]);
    assert!(code == 1 && out.is_empty() && err.contains("CB110"), "{out} {err}");
    let pipe = project.path().join("pipe.jinja");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (code, _, err) = cuebook(&project, &["render", "pipe.jinja", "--style", "chat"]);
    assert!(code == 1 && err.contains("found a pipe"), "{err}");
    // A file elsewhere is what the user names.
    let elsewhere = outside.path().join("model.jinja");
    let (code, out, err) = cuebook(&project, &["render", elsewhere.to_str().unwrap(), "--style", "chat"]);
    assert_eq!((code, out.as_str()), (0, "from outside"), "{err}");
}

#[test]
fn chat_templates_of_models_render_as_transformers_renders_them() {
    let Some(python) = reference::jinja2() else { return };
    // Every template once. The clock of the command moves, and that of the reference does not, so a template that asks for the time
    // counts only if it has its own `strftime_now`.
    let mut seen = HashSet::new();
    let mut cases = reference::chat_cases();
    let found = cases.len();
    cases.retain(|case| {
        let text = case["main"].as_str().unwrap();
        let is_still = text.contains("macro strftime_now") || !text.contains("strftime_now");
        is_still && seen.insert(text.to_owned())
    });
    assert!(found == 0 || !cases.is_empty(), "no template of {found} is left to compare");
    let project = Project::new();
    let mut wrong = Vec::new();
    for (case, expected) in cases.iter().zip(reference::transformers(&python, &cases)) {
        project.write("model.jinja", case["main"].as_str().unwrap());
        project.write("chat.json", case["context"].to_string());
        let (code, out, err) =
            cuebook(&project, &["render", "model.jinja", "--style", "chat", "--vars", "chat.json"]);
        let same = match expected["text"].as_str() {
            Some(text) => code == 0 && out == text,
            None => code != 0,
        };
        if !same && !err.contains("values cannot change") {
            wrong.push(format!("{}\n  transformers {expected}\n  ours {out:?} {err}", case["main"]));
        }
    }
    println!("{} templates, {} wrong", cases.len(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
